package relay

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
)

// The lineage of a request is what it has in common with itself when the agent is started
// again: texts of the user's, what the model has said, and the ids of results. Results
// themselves, git status, dates and reminders are other ones then
// (docs/adr/0079-requests-are-known-by-their-lineage.md).

// kind of agent whose volatile texts are known.
type profile int

const (
	anyAgent profile = iota
	claudeCode
	codex
)

// OfClaudeCode reports whether Claude Code says that it has made the request.
func (a *Asked) OfClaudeCode() bool { return a.profile() == claudeCode }

func (a *Asked) profile() profile {
	switch {
	case a.Header.Get("X-Claude-Code-Session-Id") != "" || strings.HasPrefix(a.Header.Get("User-Agent"), "claude-cli/"):
		return claudeCode
	case strings.HasPrefix(a.Header.Get("Originator"), "codex"):
		return codex
	}
	return anyAgent
}

// turns returns the lineage of a conversation, and the last text of the user's.
func (a *Asked) turns(fields map[string]json.RawMessage) (turns []any, prompt string) {
	name := "messages"
	if a.form == formResponses {
		name = "input"
	}
	if a.profile() == anyAgent {
		for _, of := range []string{"system", "instructions", "previous_response_id"} {
			if len(fields[of]) > 0 {
				turns = append(turns, canonical(fields[of], "cache_control"))
			}
		}
	}
	if text, ok := textIn(fields[name]); ok {
		return append(turns, text), text
	}
	var of user
	for _, raw := range members(fields[name]) {
		t := fieldsOf(raw)
		switch role := t.text("role"); {
		case a.said(t):
			turns = of.appendTurn(turns)
			turns = append(turns, []any{"a", a.saidBy(t, raw)})
		case role == "system" || role == "developer":
			if a.profile() == anyAgent {
				turns = append(of.appendTurn(turns), canonical(raw, "cache_control"))
			}
		default:
			of.add(a.profile(), t)
		}
	}
	return of.appendTurn(turns), of.last
}

// said reports whether the model has said a turn.
func (a *Asked) said(t fields) bool {
	role, kind := t.text("role"), t.text("type")
	return role == "assistant" || a.form == formResponses && kind != "" && kind != "message" && !strings.HasSuffix(kind, "_output") && role == ""
}

// saidBy returns what the model has said, as it says it each time it is quoted.
func (a *Asked) saidBy(t fields, raw json.RawMessage) any {
	switch a.form {
	case formMessages:
		if text, ok := textIn(t["content"]); ok {
			return []any{map[string]any{"type": "text", "text": text}}
		}
		return canonical(t["content"], "cache_control")
	case formChat:
		return []any{canonical(t["content"]), canonical(t["tool_calls"])}
	default:
		return canonical(raw, "id", "status")
	}
}

// user gathers what stands between two answers of the model.
type user struct {
	ids, texts []string
	notices    int    // of tasks in the background that have ended
	last       string // text
}

// add adds a message of the user's, or results of tools.
func (u *user) add(p profile, t fields) {
	for _, id := range []string{t.text("tool_call_id"), t.text("call_id")} {
		if id != "" {
			u.ids = append(u.ids, id)
			return
		}
	}
	if text, ok := textIn(t["content"]); ok {
		u.text(p, text)
		return
	}
	for _, raw := range members(t["content"]) {
		b := fieldsOf(raw)
		switch id, text := b.text("tool_use_id"), b.text("text"); {
		case id != "":
			u.ids = append(u.ids, id)
		case text != "":
			u.text(p, text)
		default: // an image, a document
			u.texts = append(u.texts, keyOf([]any{canonical(raw, "cache_control")}))
		}
	}
}

func (u *user) text(p profile, text string) {
	switch {
	case p == claudeCode && strings.HasPrefix(text, "<system-reminder>"):
	case p == claudeCode && strings.HasPrefix(text, "<task-notification>"):
		u.notices++
	case p == codex && strings.HasPrefix(text, "<environment_context>"):
	default:
		u.texts, u.last = append(u.texts, text), text
	}
}

// appendTurn adds what was gathered to the turns, if it is anything.
func (u *user) appendTurn(turns []any) []any {
	if len(u.ids)+len(u.texts)+u.notices == 0 {
		return turns
	}
	slices.Sort(u.ids)
	turns = append(turns, []any{"u", u.ids, u.texts, u.notices})
	u.ids, u.texts, u.notices = nil, nil, 0
	return turns
}

// Result is the result of a tool in a request.
type Result struct {
	ID      string // of the call
	Failed  bool
	Content json.RawMessage // empty: none
}

// Results yields the results of tools that a request tells the model, each with its bytes.
func Results(body []byte) iter.Seq2[Result, json.RawMessage] {
	return func(yield func(Result, json.RawMessage) bool) {
		for name, turns := range members(body) {
			if name != "messages" && name != "input" {
				continue
			}
			for _, raw := range members(turns) {
				t := fieldsOf(raw)
				of := Result{ID: t.text("tool_call_id"), Content: t["content"]}
				if strings.HasSuffix(t.text("type"), "_output") {
					of = Result{ID: t.text("call_id"), Content: t["output"]}
				}
				if of.ID != "" && !yield(of, raw) {
					return
				}
				for _, raw := range members(t["content"]) {
					b := fieldsOf(raw)
					if id := b.text("tool_use_id"); id != "" && !yield(Result{id, string(b["is_error"]) == "true", b["content"]}, raw) {
						return
					}
				}
			}
		}
	}
}
