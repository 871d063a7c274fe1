package chat

import (
	"errors"
	"fmt"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// maxAnswerBytes leaves room for what a receipt says besides.
const maxAnswerBytes = manifest.DefaultReceipt - 64<<10

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

// message parses message i of a run, and matches answers with their calls.
func (rec *Recording) message(run *run, i int, value any) error {
	fields, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("want an object, not %s", shapeOf(value))
	}
	said, err := plainMessage(fields)
	if err != nil {
		return err
	}
	if said.role == "" { // it holds nothing but answers
		return run.answers(said.answers)
	}
	calls := make([]call, len(said.calls))
	for n, given := range said.calls {
		if calls[n], err = rec.call(given); err != nil {
			return fmt.Errorf("%s: %w", given.at, err)
		}
	}
	if len(calls) > 0 && said.role != "assistant" {
		return fmt.Errorf("%s: only an assistant calls tools, not the role %q", said.calls[0].at, said.role)
	}
	made := make([]any, len(calls))
	for n := range calls {
		call := &calls[n]
		call.message = i
		made[n] = map[string]any{"id": call.id, "kind": call.kind, "arguments": call.params}
	}
	run.calls = append(run.calls, calls...)
	if err := run.answers(said.answers); err != nil { // after its calls: tools that the provider runs are answered where they are called
		return err
	}
	data, err := canon.Marshal(map[string]any{
		"run": run.key, "index": i, "role": said.role, "content": said.content, "calls": made,
	})
	run.messages = append(run.messages, message{index: i, data: data, calls: len(calls)})
	return err
}

func (run *run) answers(all []answerText) error {
	for _, a := range all {
		if err := run.answer(a); err != nil {
			return err
		}
	}
	return nil
}

// answer gives a tool's result to the call that it answers: of those with its
// id the first without an answer, for recordings use ids again.
func (run *run) answer(a answerText) error {
	for n := range run.calls {
		call := &run.calls[n]
		if call.id != a.id || call.answered {
			continue
		}
		var err error
		call.answered = true
		call.failed = a.failed || strings.HasPrefix(textOf(a.content), "Error")
		if call.answer, err = canon.Marshal(a.content); len(call.answer) > maxAnswerBytes {
			return fmt.Errorf("%w: an answer of %d bytes, at most %d are taken", world.ErrTooLarge, len(call.answer), maxAnswerBytes)
		}
		return err
	}
	return fmt.Errorf("%w: no call before it has the id %q and waits", errUnasked, a.id)
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

// call makes an effect of a call.
func (rec *Recording) call(given callText) (call, error) {
	if given.id == "" || given.name == "" {
		return call{}, errors.New("want a call with an id and the name of a tool, as texts")
	}
	kind, err := rec.tool(given.name)
	if err != nil {
		return call{}, err
	}
	params, err := argumentsOf(given.arguments)
	return call{id: given.id, kind: kind, params: params}, err
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
		return nil, fmt.Errorf("arguments: want JSON in a text, or an object, not %s", shapeOf(value))
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
