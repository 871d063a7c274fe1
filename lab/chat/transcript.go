package chat

import (
	"encoding/json"
	"fmt"
)

// transcriptLine is a line of what Claude Code keeps of a session in ~/.claude/projects (a message, or something about the session),
// or of what Codex keeps in ~/.codex/sessions (an item of Responses in an envelope).
type transcriptLine struct {
	Type      string          `json:"type"`
	SessionID string          `json:"sessionId"` // of Claude Code
	Agent     string          `json:"agentId"`   // likewise: a sub-agent's, if it is not empty
	Message   json.RawMessage `json:"message"`   // likewise
	Payload   json.RawMessage `json:"payload"`   // of Codex
}

// transcriptMessage is what is taken of a message of Claude Code.
type transcriptMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// isTranscript reports whether a recording that begins with a value is a transcript of Claude Code or Codex.
func isTranscript(first json.RawMessage) bool {
	var l transcriptLine
	return json.Unmarshal(first, &l) == nil && l.Type != "" && (l.SessionID != "" || len(l.Payload) > 0)
}

// transcriptRun is a session, or a sub-agent of one, on its way to be a run.
type transcriptRun struct {
	ID       string               `json:"id"`
	Messages []*transcriptMessage `json:"messages,omitempty"`
	Items    []json.RawMessage    `json:"items,omitempty"`

	place place
	lines []int // of the messages or items
	byID  map[string]*transcriptMessage
}

// transcriptRuns makes runs of the lines of a transcript: one of each session, and of each sub-agent.
func transcriptRuns(lines []runText) ([]runText, error) {
	var runs []*transcriptRun
	codex := ""
	for _, line := range lines {
		var l transcriptLine
		if err := json.Unmarshal(line.json, &l); err != nil {
			return nil, line.fault("%w", err)
		}
		var about struct {
			ID string `json:"id"`
		}
		if l.Type == "session_meta" && json.Unmarshal(l.Payload, &about) == nil {
			codex = about.ID
		}
		switch {
		case l.Type == "response_item":
			r := runOf(&runs, codex, line)
			r.Items, r.lines = append(r.Items, l.Payload), append(r.lines, line.line)
		case l.SessionID != "" && (l.Type == "user" || l.Type == "assistant"):
			key := l.SessionID
			if l.Agent != "" {
				key += "." + l.Agent
			}
			if err := runOf(&runs, key, line).add(l.Message, line.line); err != nil {
				return nil, line.fault("message: %w", err)
			}
		}
	}
	out := make([]runText, len(runs))
	for i, r := range runs {
		text, err := json.Marshal(r)
		if err != nil {
			return nil, r.place.fault("%w", err)
		}
		out[i] = runText{place: r.place, json: text, lines: r.lines}
		out[i].run = i
	}
	return out, nil
}

func runOf(runs *[]*transcriptRun, id string, at runText) *transcriptRun {
	for _, r := range *runs {
		if r.ID == id {
			return r
		}
	}
	r := &transcriptRun{ID: id, place: at.place, byID: make(map[string]*transcriptMessage)}
	*runs = append(*runs, r)
	return r
}

// add adds a message, or more blocks of an answer that has begun.
func (r *transcriptRun) add(raw json.RawMessage, line int) error {
	m := new(transcriptMessage)
	var about struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(raw, m); err != nil {
		return err
	}
	_ = json.Unmarshal(raw, &about) // of another form: it is an answer of its own
	begun := r.byID[about.ID]
	if about.ID == "" || begun == nil {
		r.byID[about.ID] = m
		r.Messages, r.lines = append(r.Messages, m), append(r.lines, line)
		return nil
	}
	var before, more []json.RawMessage
	if json.Unmarshal(begun.Content, &before) != nil || json.Unmarshal(m.Content, &more) != nil {
		return fmt.Errorf("content: want a list of blocks, as other lines of the message %s have it", about.ID)
	}
	content, err := json.Marshal(append(before, more...))
	begun.Content = content
	return err
}
