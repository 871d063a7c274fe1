package chat

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// exchange is what a line of a log holds: a request to a model, its answer, or both.
type exchange struct{ request, response map[string]any }

// isLog reports whether a recording that begins with a value is a log of an API's requests and answers.
func isLog(first runText) bool {
	fields, err := first.decode()
	if err != nil {
		return false // and whoever reads it as a run says what is wrong
	}
	x, err := exchangeOf(fields)
	return err != nil || x.request != nil || x.response != nil
}

// exchangeOf finds the request and the answer in a line of a log: side by side, each perhaps in an envelope and as text, or one alone.
func exchangeOf(fields map[string]any) (x exchange, err error) {
	for _, names := range [][2]string{{"request", "response"}, {"request_body", "response_body"}} {
		if _, err := messagesOf(fields); err == nil || fields[names[0]] == nil && fields[names[1]] == nil {
			continue
		}
		if x.request, err = bodyOf(fields[names[0]]); err == nil && x.request != nil && !isRequest(x.request) {
			err = errors.New("want a request of Chat Completions, Messages or Responses")
		}
		if err != nil {
			return x, fmt.Errorf("%s: %w", names[0], err)
		}
		if x.response, err = bodyOf(fields[names[1]]); err != nil {
			return x, fmt.Errorf("%s: %w", names[1], err)
		}
		return x, nil
	}
	switch {
	case isRequest(fields):
		x.request = fields
	case fields["type"] == "message" && fields["role"] == "assistant", fields["object"] == "response", fields["choices"] != nil:
		x.response = fields
	}
	return x, nil
}

// bodyOf returns the object in an envelope, or in a text.
func bodyOf(value any) (map[string]any, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		if inner, ok := v["body"]; ok {
			return bodyOf(inner)
		}
		return v, nil
	case string:
		raw, err := canon.FromJSON([]byte(v))
		if err != nil {
			return nil, err
		}
		value, err := canon.Decode(raw)
		object, ok := value.(map[string]any)
		if err == nil && !ok {
			err = fmt.Errorf("want an object, not %s", shapeOf(value))
		}
		return object, err
	}
	return nil, fmt.Errorf("want an object, not %s", shapeOf(value))
}

// isRequest reports whether an object is a request to a model, and no run: a run has messages, and may name its model.
func isRequest(fields map[string]any) bool {
	if _, named := fields["model"].(string); !named || fields["messages"] == nil && fields["input"] == nil {
		return false
	}
	for _, name := range []string{"input", "max_tokens", "max_completion_tokens", "stream", "tools"} {
		if fields[name] != nil {
			return true
		}
	}
	return false
}

// talk is a conversation of requests that continue one another, on its way to be a run.
type talk struct {
	runText
	messages []any
	end      [sha256.Size]byte // see chain
}

// talks are the conversations of a log.
type talks struct {
	all       []*talk
	byEnd     map[[sha256.Size]byte]*talk
	responses map[string]*talk // by the id of the last answer
}

// logRuns makes runs of a log's requests and answers: one of those that continue each other, in which each message stands once.
func logRuns(lines []runText) ([]runText, error) {
	ts := talks{byEnd: make(map[[sha256.Size]byte]*talk), responses: make(map[string]*talk)}
	var open *talk // its last request has no answer so far
	for _, line := range lines {
		fields, err := line.decode()
		if err != nil {
			return nil, err
		}
		x, err := exchangeOf(fields)
		if err == nil && x.request == nil && x.response == nil {
			err = errors.New("want a request, an answer or both, of Chat Completions, Messages or Responses")
		}
		if err != nil {
			return nil, line.fault("%w", err)
		}
		if x.request != nil {
			if open, err = ts.ask(line, x.request); err != nil {
				return nil, err
			}
		}
		if x.response == nil {
			continue
		}
		if open == nil {
			open = ts.begin(line)
		}
		if err := ts.answer(open, line, x.response); err != nil {
			return nil, line.fault("response: %w", err)
		}
		open = nil
	}
	runs := make([]runText, len(ts.all))
	for i, t := range ts.all {
		t.run, t.fields = i, map[string]any{"items": t.messages}
		runs[i] = t.runText
	}
	return runs, nil
}

func (ts *talks) begin(at runText) *talk {
	at.lines = []int{}
	t := &talk{runText: at}
	ts.all = append(ts.all, t)
	return t
}

// ask finds the conversation that a request continues, or begins one.
func (ts *talks) ask(at runText, request map[string]any) (*talk, error) {
	messages, ok := request["messages"].([]any)
	if input, is := request["input"].(string); is {
		messages, ok = []any{map[string]any{"role": "user", "content": input}}, true
	} else if !ok {
		messages, ok = request["input"].([]any)
	}
	if !ok {
		return nil, at.fault("request: want its messages or input as a list")
	}
	id, _ := request["previous_response_id"].(string)
	t, from := ts.responses[id], 0
	var end [sha256.Size]byte
	if t != nil {
		end = t.end
	}
	for i, m := range messages {
		var err error
		if end, err = chain(end, m); err != nil {
			return nil, &Error{at.atMessage(i), fmt.Errorf("request: %w", err)}
		}
		if id == "" && end != [sha256.Size]byte{} && ts.byEnd[end] != nil {
			t, from = ts.byEnd[end], i+1
		}
	}
	if t == nil {
		t = ts.begin(at)
	}
	return t, ts.add(t, at, messages[from:])
}

// answer adds a model's answer to its conversation.
func (ts *talks) answer(t *talk, at runText, response map[string]any) error {
	choices, _ := response["choices"].([]any)
	output, responses := response["output"].([]any)
	switch {
	case len(choices) > 0:
		for _, other := range choices[1:] {
			if holdsCalls(other) {
				return errors.New("choices: calls in any but the first are not read")
			}
		}
		first, _ := choices[0].(map[string]any)
		output = []any{first["message"]}
	case response["role"] == "assistant":
		output = []any{map[string]any{"role": "assistant", "content": response["content"]}}
	case !responses && says(response["error"]):
		return nil // it failed, and says nothing
	case !responses:
		return errors.New("want an answer of Chat Completions, Messages or Responses")
	}
	err := ts.add(t, at, output)
	if id, _ := response["id"].(string); id != "" {
		ts.responses[id] = t
	}
	return err
}

// add adds messages to a conversation.
func (ts *talks) add(t *talk, at runText, messages []any) (err error) {
	if ts.byEnd[t.end] == t {
		delete(ts.byEnd, t.end)
	}
	for _, m := range messages {
		if t.end, err = chain(t.end, m); err != nil {
			return err
		}
		t.messages, t.lines = append(t.messages, m), append(t.lines, at.line)
	}
	ts.byEnd[t.end] = t
	return nil
}

// chain returns what stands for a conversation with one more message: what is said, called and answered in it. Clients
// send the rest of it in another form with each request, or leave it out.
func chain(end [sha256.Size]byte, m any) ([sha256.Size]byte, error) {
	fields, ok := m.(map[string]any)
	if !ok {
		return end, fmt.Errorf("want an object, not %s", shapeOf(m))
	}
	said, err := plainMessage(fields)
	if err != nil || said.role == "system" || said.role == "developer" {
		return end, err
	}
	var about []any
	if text := textOfParts(said.content); text != "" {
		about = append(about, text)
	}
	for _, c := range said.calls {
		about = append(about, []any{c.id, c.name})
	}
	for _, a := range said.answers {
		about = append(about, []any{a.id})
	}
	if len(about) == 0 {
		return end, nil
	}
	data, err := canon.Marshal([]any{end[:], said.role, about})
	return sha256.Sum256(data), err
}

// textOfParts returns the text in all parts of a content.
func textOfParts(content any) string {
	text, _ := content.(string)
	parts, _ := content.([]any)
	for _, part := range parts {
		fields, _ := part.(map[string]any)
		switch fields["type"] {
		case "text", "input_text", "output_text":
			more, _ := fields["text"].(string)
			text += more
		}
	}
	return text
}
