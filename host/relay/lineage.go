package relay

import (
	"encoding/json"
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

func (a *Asked) profile() profile {
	switch {
	case a.Header.Get("X-Claude-Code-Session-Id") != "" || strings.HasPrefix(a.Header.Get("User-Agent"), "claude-cli/"):
		return claudeCode
	case strings.HasPrefix(a.Header.Get("Originator"), "codex"):
		return codex
	}
	return anyAgent
}

// turn is a message or an item, in the members that dialects share.
type turn struct {
	Role       string          `json:"role"`
	Type       string          `json:"type"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  json.RawMessage `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	CallID     string          `json:"call_id"`
}

// block is a part of a message.
type block struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	ToolUseID string `json:"tool_use_id"`
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
	var text string
	if json.Unmarshal(fields[name], &text) == nil {
		return append(turns, text), text
	}
	var all []json.RawMessage
	_ = json.Unmarshal(fields[name], &all)
	var of user
	for _, raw := range all {
		var t turn
		_ = json.Unmarshal(raw, &t)
		switch {
		case a.said(&t):
			turns = of.end(turns)
			turns = append(turns, []any{"a", a.saidBy(&t, raw)})
		case t.Role == "system" || t.Role == "developer":
			if a.profile() == anyAgent {
				turns = append(of.end(turns), canonical(raw, "cache_control"))
			}
		default:
			of.add(a.profile(), &t)
		}
	}
	return of.end(turns), of.last
}

// said reports whether the model has said a turn.
func (a *Asked) said(t *turn) bool {
	if a.form != formResponses {
		return t.Role == "assistant"
	}
	return t.Role == "assistant" || t.Type != "" && t.Type != "message" && !strings.HasSuffix(t.Type, "_output") && t.Role == ""
}

// saidBy returns what the model has said, as it says it each time it is quoted.
func (a *Asked) saidBy(t *turn, raw json.RawMessage) any {
	switch a.form {
	case formMessages:
		var text string
		if json.Unmarshal(t.Content, &text) == nil {
			return []any{map[string]any{"type": "text", "text": text}}
		}
		return canonical(t.Content, "cache_control")
	case formChat:
		return []any{canonical(t.Content), canonical(t.ToolCalls)}
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
func (u *user) add(p profile, t *turn) {
	for _, id := range []string{t.ToolCallID, t.CallID} {
		if id != "" {
			u.ids = append(u.ids, id)
			return
		}
	}
	var text string
	if json.Unmarshal(t.Content, &text) == nil {
		u.text(p, text)
		return
	}
	var blocks []json.RawMessage
	_ = json.Unmarshal(t.Content, &blocks)
	for _, raw := range blocks {
		var b block
		_ = json.Unmarshal(raw, &b)
		switch {
		case b.ToolUseID != "":
			u.ids = append(u.ids, b.ToolUseID)
		case b.Text != "":
			u.text(p, b.Text)
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

// end adds what was gathered to the turns, if it is anything.
func (u *user) end(turns []any) []any {
	if len(u.ids)+len(u.texts)+u.notices == 0 {
		return turns
	}
	slices.Sort(u.ids)
	turns = append(turns, []any{"u", u.ids, u.texts, u.notices})
	u.ids, u.texts, u.notices = nil, nil, 0
	return turns
}
