package relay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// errChoices says that there is no one answer that a result could be for.
var errChoices = errors.New("relay: an answer of more than one choice cannot be answered")

// Again returns the body of the request that tells the model a result for each call of its answer.
func (s *Said) Again(a *Asked, results []string) ([]byte, error) {
	body, name := fieldsOf(a.Body), "messages"
	var more []any
	switch a.form {
	case formMessages:
		blocks := make([]any, len(s.Calls))
		for i, c := range s.Calls {
			blocks[i] = map[string]any{"type": "tool_result", "tool_use_id": c.ID, "is_error": true, "content": results[i]}
		}
		more = []any{map[string]any{"role": "assistant", "content": s.quoted}, map[string]any{"role": "user", "content": blocks}}
	case formChat:
		if len(s.quoted) != 1 {
			return nil, errChoices
		}
		more = []any{s.quoted[0]}
		for i, c := range s.Calls {
			result := map[string]any{"role": "tool", "tool_call_id": c.ID, "content": results[i]}
			if c.ID == "" {
				result = map[string]any{"role": "function", "name": c.Name, "content": results[i]}
			}
			more = append(more, result)
		}
	default:
		name = "input"
		if text, ok := textIn(body[name]); ok {
			more = append(more, map[string]any{"role": "user", "content": text})
		}
		for _, item := range s.quoted {
			if string(body["store"]) != "false" {
				more = append(more, item)
			} else if of := fieldsOf(item); of.text("type") != "reasoning" || len(of["encrypted_content"]) > 0 {
				delete(of, "id") // the provider does not know it
				more = append(more, of)
			}
		}
		for i, c := range s.Calls {
			more = append(more, map[string]any{"type": c.item + "_output", "call_id": c.ID, "output": results[i]})
		}
	}
	was := body.list(name)
	all := make([]any, 0, len(was)+len(more))
	for _, of := range was {
		all = append(all, of)
	}
	text, err := json.Marshal(append(all, more...))
	if err != nil {
		return nil, err
	}
	body[name] = text
	return json.Marshal(body)
}

// GoOn returns the stream of an answer as it goes on after what has flowed of another one: without its beginning, and with numbers that follow.
func GoOn(flowed, stream []byte) []byte {
	var g goingOn
	for frame := range frames(flowed) {
		if event := fieldsOf(dataOf(frame)); len(event) > 0 {
			g.count(event)
		}
	}
	if g.frames == 0 {
		return stream
	}
	var out bytes.Buffer
	for frame := range frames(stream) {
		event := fieldsOf(dataOf(frame))
		kind := event.text("type")
		switch {
		case kind == "message_start", kind == "response.created", kind == "response.in_progress", kind == "response.queued":
			continue
		case len(event) == 0: // a comment, or the end
			out.Write(frame)
			continue
		}
		g.number(event)
		if len(event["type"]) > 0 {
			fmt.Fprintf(&out, "event: %s\n", kind)
		}
		text, err := json.Marshal(event)
		if err != nil {
			panic(err) // it is made of JSON
		}
		fmt.Fprintf(&out, "data: %s\n\n", text)
	}
	return out.Bytes()
}

// goingOn is how far a stream has come.
type goingOn struct {
	frames int
	begun  int               // blocks or items
	items  []json.RawMessage // of Responses, that are whole
}

func (g *goingOn) count(event fields) {
	g.frames++
	switch event.text("type") {
	case "content_block_start", "response.output_item.added":
		g.begun++
	case "response.output_item.done":
		g.items = append(g.items, event["item"])
	}
}

// number gives an event of another stream the numbers that follow.
func (g *goingOn) number(event fields) {
	for _, name := range []string{"index", "output_index"} {
		var n int
		if len(event[name]) > 0 && json.Unmarshal(event[name], &n) == nil {
			event[name], _ = json.Marshal(n + g.begun)
		}
	}
	if len(event["sequence_number"]) > 0 {
		event["sequence_number"], _ = json.Marshal(g.frames)
		g.frames++
	}
	if whole := event.in("response"); len(whole["output"]) > 0 {
		whole["output"], _ = json.Marshal(append(g.items[:len(g.items):len(g.items)], whole.list("output")...))
		event["response"], _ = json.Marshal(whole)
	}
	choices := event.list("choices")
	for i, raw := range choices {
		choice := fieldsOf(raw)
		if delta := choice.in("delta"); len(delta["role"]) > 0 { // it was said: agents put texts of one name together
			delete(delta, "role")
			choice["delta"], _ = json.Marshal(delta)
			choices[i], _ = json.Marshal(choice)
		}
	}
	if len(choices) > 0 {
		event["choices"], _ = json.Marshal(choices)
	}
}
