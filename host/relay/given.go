package relay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
)

type object = map[string]any

// Given returns an answer that somebody gives in the place of the provider: content is a text that the model says, or an
// answer of the request's API as JSON, which becomes a stream where the request asks for one. It has used nothing.
func (a *Asked) Given(content []byte) (http.Header, []byte, error) {
	message := make(object)
	if text := bytes.TrimSpace(content); !bytes.HasPrefix(text, []byte("{")) {
		message = a.saying(string(text))
	} else if err := json.Unmarshal(text, &message); err != nil {
		return nil, nil, err
	}
	id := "given-" + keyOf([]any{string(content)})[:8]
	message["id"], message["model"] = id, a.Model
	var frames []object
	var err error
	switch a.form {
	case formMessages:
		frames, err = givenMessage(message)
	case formChat:
		frames, err = givenChat(message)
	case formResponses:
		frames, err = givenResponse(message)
	case formOther:
		err = errors.New("the request asks no model")
	}
	if err != nil {
		return nil, nil, err
	}
	if !a.Stream {
		body, err := json.Marshal(message)
		return http.Header{"Content-Type": {"application/json"}, "Request-Id": {id}}, body, err
	}
	var body bytes.Buffer
	for _, f := range frames {
		text, err := json.Marshal(f)
		if err != nil {
			return nil, nil, err
		}
		if f["type"] != nil {
			fmt.Fprintf(&body, "event: %s\n", f["type"])
		}
		fmt.Fprintf(&body, "data: %s\n\n", text)
	}
	if a.form == formChat {
		body.WriteString("data: [DONE]\n\n")
	}
	r := newReading(a, true)
	if _, err := r.add(body.Bytes()); err != nil || !r.ended {
		return nil, nil, errors.New("its parts are not as the API of the request has them")
	}
	return http.Header{"Content-Type": {"text/event-stream"}, "Request-Id": {id}}, body.Bytes(), nil
}

// saying returns an answer of nothing but a text.
func (a *Asked) saying(text string) object {
	part := []any{object{"type": "text", "text": text}}
	switch a.form {
	case formChat:
		return object{"choices": []any{object{"message": object{"content": text}}}}
	case formResponses:
		part[0] = object{"type": "output_text", "text": text, "annotations": []any{}}
		return object{"output": []any{object{"type": "message", "content": part}}}
	default:
		return object{"content": part}
	}
}

// objects returns the objects of a list, which a given answer is to have.
func objects(of object, name string) ([]object, error) {
	list, _ := of[name].([]any)
	out := make([]object, len(list))
	for i := range list {
		if out[i], _ = list[i].(object); out[i] == nil {
			return nil, fmt.Errorf("%s[%d] is no object", name, i)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("want an answer with %s, as the API of the request has it", name)
	}
	return out, nil
}

// givenMessage completes an answer of Messages, and returns its events.
func givenMessage(m object) ([]object, error) {
	blocks, err := objects(m, "content")
	if err != nil {
		return nil, err
	}
	m["type"], m["role"], m["stop_sequence"] = "message", "assistant", nil
	m["usage"] = object{"input_tokens": 0, "output_tokens": 0}
	if m["stop_reason"] = "end_turn"; slices.ContainsFunc(blocks, func(b object) bool { return b["type"] == "tool_use" }) {
		m["stop_reason"] = "tool_use"
	}
	begin := maps.Clone(m)
	begin["content"], begin["stop_reason"] = []any{}, nil
	events := []object{{"type": "message_start", "message": begin}}
	for i, b := range blocks {
		first, deltas := b, []object(nil)
		switch b["type"] {
		case "text":
			first, deltas = object{"type": "text", "text": ""}, []object{{"type": "text_delta", "text": b["text"]}}
		case "tool_use":
			input, err := json.Marshal(b["input"])
			if err != nil {
				return nil, err
			}
			first = object{"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{}}
			deltas = []object{{"type": "input_json_delta", "partial_json": string(input)}}
		}
		events = append(events, object{"type": "content_block_start", "index": i, "content_block": first})
		for _, d := range deltas {
			events = append(events, object{"type": "content_block_delta", "index": i, "delta": d})
		}
		events = append(events, object{"type": "content_block_stop", "index": i})
	}
	delta := object{"stop_reason": m["stop_reason"], "stop_sequence": nil}
	return append(events, object{"type": "message_delta", "delta": delta, "usage": m["usage"]}, object{"type": "message_stop"}), nil
}

// givenChat completes an answer of Chat Completions, and returns its chunks.
func givenChat(m object) ([]object, error) {
	choices, err := objects(m, "choices")
	if err != nil {
		return nil, err
	}
	said, _ := choices[0]["message"].(object)
	if said == nil {
		return nil, errors.New("choices[0]: want a message")
	}
	said["role"] = "assistant"
	calls, _ := said["tool_calls"].([]any)
	reason := "stop"
	if len(calls) > 0 {
		reason = "tool_calls"
	}
	m["object"], m["created"] = "chat.completion", 0
	m["usage"] = object{"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
	choices[0]["index"], choices[0]["finish_reason"] = 0, reason
	delta := maps.Clone(said)
	for i, c := range calls {
		if of, _ := c.(object); of != nil {
			of["index"], of["type"] = i, "function"
		}
	}
	chunk := func(delta object, reason any) object {
		choice := object{"index": 0, "delta": delta, "finish_reason": reason}
		return object{"id": m["id"], "object": "chat.completion.chunk", "created": 0, "model": m["model"], "choices": []any{choice}}
	}
	last := chunk(object{}, reason)
	last["usage"] = m["usage"]
	return []object{chunk(delta, nil), last}, nil
}

// givenResponse completes an answer of Responses, and returns its events.
func givenResponse(m object) ([]object, error) {
	items, err := objects(m, "output")
	if err != nil {
		return nil, err
	}
	m["object"], m["created_at"], m["status"] = "response", 0, "completed"
	m["usage"] = object{"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
	begin := object{"id": m["id"], "object": "response", "model": m["model"], "status": "in_progress", "output": []any{}}
	events := []object{{"type": "response.created", "response": begin}}
	for i, item := range items {
		if item["id"] == nil {
			item["id"] = fmt.Sprintf("item_%d", i)
		}
		if item["status"] = "completed"; item["type"] == "message" {
			item["role"] = "assistant"
		}
		events = append(events, object{"type": "response.output_item.added", "output_index": i, "item": item})
		parts, _ := item["content"].([]any)
		for n, p := range parts {
			if part, _ := p.(object); part["type"] == "output_text" {
				events = append(events, object{"type": "response.output_text.delta", "item_id": item["id"], "output_index": i, "content_index": n, "delta": part["text"]})
			}
		}
		events = append(events, object{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	return append(events, object{"type": "response.completed", "response": m}), nil
}

// SetModel has a request ask another model. Its lineage stays that of the request as the agent has sent it.
func (a *Asked) SetModel(model string) error {
	name, err := json.Marshal(model)
	if err != nil {
		return err
	}
	edit := Edit{Text: a.Body}
	for member, value := range members(a.Body) {
		if member == "model" {
			edit.Replace(value, name)
		}
	}
	a.Body, a.Model = edit.Edited(), model
	return nil
}
