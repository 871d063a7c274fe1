package chat

import (
	"fmt"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// call is one call of a tool, and its answer.
type call struct {
	message  int // that made it
	id       string
	kind     string // of effect
	params   journal.Data
	answered bool
	answer   journal.Data
	failed   bool
}

// message parses message i of a run, and matches an answer with its call.
func (rec *Recording) message(run *run, i int, value any) error {
	fields, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("want an object, not %s", shapeOf(value))
	}
	role, err := word(fields, "role")
	if err != nil {
		return err
	}
	if role == "tool" {
		return run.answer(fields)
	}
	calls, err := rec.calls(fields)
	if err != nil {
		return err
	}
	if len(calls) > 0 && role != "assistant" {
		return fmt.Errorf("tool_calls: only an assistant calls tools, not the role %q", role)
	}
	made := make([]any, len(calls))
	for n := range calls {
		call := &calls[n]
		call.message = i
		made[n] = map[string]any{"id": call.id, "kind": call.kind, "arguments": call.params}
	}
	run.calls = append(run.calls, calls...)
	data, err := canon.Marshal(map[string]any{
		"run": run.key, "index": i, "role": role, "content": fields["content"], "calls": made,
	})
	run.messages = append(run.messages, message{index: i, data: data, calls: len(calls)})
	return err
}

// answer gives a tool's result to the call that it answers: of those with its
// id the first without an answer, for recordings use ids again.
func (run *run) answer(fields map[string]any) error {
	id, err := word(fields, "tool_call_id")
	if err != nil {
		return err
	}
	for n := range run.calls {
		call := &run.calls[n]
		if call.id != id || call.answered {
			continue
		}
		call.answered = true
		call.failed = strings.HasPrefix(textOf(fields["content"]), "Error")
		call.answer, err = canon.Marshal(fields["content"])
		return err
	}
	return fmt.Errorf("%w: no call before it has the id %q and waits", errUnasked, id)
}

// textOf returns the text at the beginning of a content, which is a text,
// or a list of parts of which the first may be one.
func textOf(content any) string {
	if parts, ok := content.([]any); ok && len(parts) > 0 {
		if part, ok := parts[0].(map[string]any); ok {
			content = part["text"]
		}
	}
	text, _ := content.(string)
	return text
}

// calls parses the tool calls of a message.
func (rec *Recording) calls(fields map[string]any) ([]call, error) {
	if fields["function_call"] != nil {
		return nil, fmt.Errorf("function_call: this old form has no ids; want tool_calls")
	}
	if fields["tool_calls"] == nil {
		return nil, nil
	}
	list, ok := fields["tool_calls"].([]any)
	if !ok {
		return nil, fmt.Errorf("tool_calls: want a list, not %s", shapeOf(fields["tool_calls"]))
	}
	calls := make([]call, len(list))
	for n, value := range list {
		var err error
		if calls[n], err = rec.call(value); err != nil {
			return nil, fmt.Errorf("tool_calls[%d]: %w", n, err)
		}
	}
	return calls, nil
}

func (rec *Recording) call(value any) (call, error) {
	var call call
	fields, ok := value.(map[string]any)
	if !ok {
		return call, fmt.Errorf("want an object, not %s", shapeOf(value))
	}
	var err error
	if call.id, err = word(fields, "id"); err != nil {
		return call, err
	}
	function, ok := fields["function"].(map[string]any)
	if !ok {
		return call, fmt.Errorf("function: want an object, not %s", shapeOf(fields["function"]))
	}
	name, err := word(function, "name")
	if err != nil {
		return call, fmt.Errorf("function.%w", err)
	}
	if call.kind, err = rec.tool(name); err != nil {
		return call, err
	}
	call.params, err = argumentsOf(function["arguments"])
	return call, err
}

// argumentsOf turns the JSON text in which a model wrote arguments into data.
// Models do not always write JSON: then the text itself is the data.
func argumentsOf(value any) (journal.Data, error) {
	switch v := value.(type) {
	case map[string]any:
		return canon.Marshal(v)
	case string:
		data, err := canon.FromJSON([]byte(v))
		if err == nil && canon.NewReader(data).Kind() == canon.KindMap {
			return data, nil
		}
		return canon.Marshal(map[string]any{"arguments": v})
	default:
		return nil, fmt.Errorf("function.arguments: want JSON in a text, not %s", shapeOf(value))
	}
}

// tool returns the kind of effect that stands for a tool. Names of effects are
// in lower case; what else they cannot hold becomes an underscore.
func (rec *Recording) tool(name string) (string, error) {
	kind := "tool." + strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-' {
			return c
		}
		return '_'
	}, strings.ToLower(name))
	if len(kind) > manifest.MaxNameBytes {
		return "", fmt.Errorf("%w: the name of %.16s… has %d bytes", errToolName, name, len(name))
	}
	if twin, ok := rec.tools[kind]; ok && twin != name {
		return "", fmt.Errorf("%w: %s and %s would both be %s", errToolName, twin, name, kind)
	}
	rec.tools[kind] = name
	return kind, nil
}

// word returns a text that has to be there.
func word(fields map[string]any, name string) (string, error) {
	word, ok := fields[name].(string)
	switch {
	case !ok:
		return "", fmt.Errorf("%s: want text, not %s", name, shapeOf(fields[name]))
	case word == "":
		return "", fmt.Errorf("%s: is empty", name)
	}
	return word, nil
}
