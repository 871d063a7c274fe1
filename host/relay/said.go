package relay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/worldkernel/worldkernel/reducer/recorder"
)

// Call is a tool that the model asks the agent to run.
type Call struct {
	ID        string
	Name      string          // behind that of its namespace and a dot, where it has one
	Arguments json.RawMessage // what is no JSON is text in a member input

	item string // type of an item of Responses
}

// Said is what a model has said in a whole answer.
type Said struct {
	Calls []Call
	Flows int // bytes of the answer that the agent may have before its calls are judged

	text   growing           // what the model says to the user
	quoted []json.RawMessage // as the next request quotes it: blocks of Messages, items of Responses, messages of Chat Completions, one a choice
}

// errUnreadable says that nobody can judge an answer, since an agent may read something else in it.
var errUnreadable = errors.New("relay: the provider's answer cannot be read, so its tool calls cannot be judged")

// ReadSaid reads a whole answer to a request. Names of members count as agents read them: in their case, and the last of equal ones.
func ReadSaid(a *Asked, answer *recorder.Answer) (*Said, error) {
	s := new(Said)
	stream := strings.HasPrefix(answer.Header["content-type"], "text/event-stream")
	encoding := answer.Header["content-encoding"]
	switch {
	case a.form == formOther || answer.Status != http.StatusOK:
		return s, nil
	case stream && encoding != "" && encoding != "identity":
		return nil, errUnreadable // what has flowed of it was not read
	}
	s.Flows = Flows(a, answer)
	if err := s.read(a.form, plain(http.Header{"Content-Encoding": {encoding}}, answer.Body), stream); err != nil {
		return nil, err
	}
	return s, nil
}

// read reads a whole answer.
func (s *Said) read(of form, text []byte, stream bool) error {
	if stream {
		if err := s.readStream(of, text); err != nil {
			return err
		}
	} else if json.Valid(text) {
		s.readWhole(of, fieldsOf(text))
	} else {
		return errUnreadable
	}
	spoken := len(s.text) > 0
	for _, raw := range s.quoted {
		quoted := fieldsOf(raw)
		s.readCalls(of, quoted)
		if !spoken {
			s.readText(quoted)
		}
	}
	if len(s.Calls) > maxCalls {
		return fmt.Errorf("%w: they are more than %d", errUnreadable, maxCalls)
	}
	return nil
}

// Flows returns how many bytes of a recorded answer to a request the agent may have before the whole is on record; 0: it is no stream.
func Flows(a *Asked, answer *recorder.Answer) int {
	if answer.Status != http.StatusOK || !strings.HasPrefix(answer.Header["content-type"], "text/event-stream") {
		return 0
	}
	flows, _ := newReading(a, true).add(answer.Body)
	return flows
}

type fields map[string]json.RawMessage

// fieldsOf returns the members of an object; of anything else there are none.
func fieldsOf(raw []byte) fields {
	f := make(fields)
	if i := afterSpace(raw, 0); i == len(raw) || raw[i] != '{' {
		return f
	}
	for name, value := range members(raw) {
		f[name] = value
	}
	return f
}

func (f fields) text(name string) string {
	text, _ := textIn(f[name])
	return text
}

func (f fields) in(name string) fields { return fieldsOf(f[name]) }

func (f fields) list(name string) (out []json.RawMessage) {
	for _, of := range members(f[name]) {
		out = append(out, of)
	}
	return out
}

func (s *Said) readWhole(of form, answer fields) {
	switch of {
	case formChat:
		for _, choice := range answer.list("choices") {
			s.quoted = append(s.quoted, fieldsOf(choice)["message"])
		}
	case formResponses:
		s.quoted = answer.list("output")
	case formMessages:
		s.quoted = answer.list("content")
	case formOther:
	}
}

// readText reads what a block, an item or a message says.
func (s *Said) readText(quoted fields) {
	s.text = append(append(s.text, quoted.text("text")...), quoted.text("content")...)
	if quoted.text("type") == "message" { // of Responses
		for _, part := range quoted.list("content") {
			s.text = append(s.text, fieldsOf(part).text("text")...)
		}
	}
}

// readCalls reads the calls of a block, an item or a message.
func (s *Said) readCalls(of form, quoted fields) {
	kind := quoted.text("type")
	switch {
	case of == formMessages && kind == "tool_use":
		s.add(quoted.text("id"), quoted, "input", kind)
	case of == formResponses && strings.HasSuffix(kind, "_call") && quoted.text("call_id") != "":
		for _, input := range []string{"arguments", "input", "action", "operation"} {
			if len(quoted[input]) > 0 || input == "operation" {
				s.add(quoted.text("call_id"), quoted, input, kind)
				break
			}
		}
	case of == formChat:
		for _, raw := range quoted.list("tool_calls") {
			if call := fieldsOf(raw); len(call["custom"]) > 0 {
				s.add(call.text("id"), call.in("custom"), "input", "")
			} else {
				s.add(call.text("id"), call.in("function"), "arguments", "")
			}
		}
		if call := quoted.in("function_call"); len(call) > 0 {
			s.add("", call, "arguments", "")
		}
	}
}

func (s *Said) add(id string, of fields, input, item string) {
	c := Call{ID: id, Name: of.text("name"), Arguments: of[input], item: item}
	if c.Name == "" {
		c.Name = strings.TrimSuffix(item, "_call")
	}
	if in := of.text("namespace"); in != "" {
		c.Name = in + "." + c.Name
	}
	if text, ok := textIn(c.Arguments); ok {
		if c.Arguments = json.RawMessage(text); input != "arguments" || !json.Valid(c.Arguments) {
			c.Arguments, _ = json.Marshal(map[string]string{"input": text})
		}
		if text == "" {
			c.Arguments = nil
		}
	}
	if len(c.Arguments) == 0 {
		c.Arguments = json.RawMessage("{}")
	}
	s.Calls = append(s.Calls, c)
}

// readStream puts together what a stream says in pieces.
func (s *Said) readStream(of form, stream []byte) error {
	p := pieces{of: make(map[string]*piece)}
	for frame := range frames(stream) {
		data := bytes.TrimSpace(dataOf(frame))
		switch {
		case len(data) == 0 || string(data) == "[DONE]":
			continue
		case !json.Valid(data):
			return errUnreadable
		}
		event := fieldsOf(data)
		switch of {
		case formChat:
			p.addChat(event)
		case formResponses:
			switch event.text("type") {
			case "response.output_item.done":
				s.quoted = append(s.quoted, event["item"])
			case "response.output_text.delta": // its item may not come
				s.text = append(s.text, event.text("delta")...)
			}
		case formMessages:
			p.addBlock(event)
		case formOther:
		}
	}
	if of != formResponses {
		s.quoted = p.whole()
	}
	return nil
}

// frames yields the frames of a stream, each with what ends it.
func frames(stream []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for rest := stream; len(rest) > 0; {
			_, next := frameEnd(rest)
			if next == 0 {
				next = len(rest)
			}
			if !yield(rest[:next]) {
				return
			}
			rest = rest[next:]
		}
	}
}

// pieces are blocks or messages that come in pieces, in the order in which they begin.
type pieces struct {
	order []*piece
	of    map[string]*piece // by index
}

// piece is a block or a message, as far as it has come.
type piece struct {
	said  map[string]any
	input []byte      // of a block: JSON
	calls []*chatCall // of a message
}

// chatCall is a call in a message of Chat Completions.
type chatCall struct {
	index, id, kind, name string
	input                 growing
}

// MarshalJSON implements json.Marshaler: a call as it is quoted.
func (c *chatCall) MarshalJSON() ([]byte, error) {
	input := "arguments"
	if c.kind == "custom" {
		input = "input"
	}
	return json.Marshal(map[string]any{"id": c.id, "type": c.kind, c.kind: map[string]any{"name": c.name, input: c.input}})
}

// at returns what has an index.
func (p *pieces) at(index string, begin func() map[string]any) *piece {
	if p.of[index] == nil {
		one := &piece{said: begin()}
		p.order, p.of[index] = append(p.order, one), one
	}
	return p.of[index]
}

// growing is a text that comes in many pieces.
type growing []byte

// MarshalJSON implements json.Marshaler.
func (g growing) MarshalJSON() ([]byte, error) { return json.Marshal(string(g)) }

// more adds to a text.
func more(to map[string]any, name string, text string) {
	if text != "" {
		was, begun := to[name].(growing)
		if !begun {
			begin, _ := to[name].(string)
			was = growing(begin)
		}
		to[name] = append(was, text...)
	}
}

func (p *pieces) addBlock(event fields) {
	if kind := event.text("type"); kind != "content_block_start" && kind != "content_block_delta" {
		return
	}
	delta := event.in("delta")
	b := p.at(string(event["index"]), func() map[string]any {
		begun, _ := canonical(event["content_block"]).(map[string]any)
		if begun == nil {
			begun = make(map[string]any)
		}
		return begun
	})
	for _, name := range []string{"text", "thinking", "signature"} {
		more(b.said, name, delta.text(name))
	}
	if of := delta["citation"]; len(of) > 0 {
		citations, _ := b.said["citations"].([]any)
		b.said["citations"] = append(citations, of)
	}
	b.input = append(b.input, delta.text("partial_json")...)
}

func (p *pieces) addChat(event fields) {
	for _, raw := range event.list("choices") {
		choice := fieldsOf(raw)
		delta := choice.in("delta")
		m := p.at(string(choice["index"]), func() map[string]any { return map[string]any{"role": "assistant", "content": nil} })
		more(m.said, "content", delta.text("content"))
		more(m.said, "refusal", delta.text("refusal"))
		if of := delta.in("function_call"); len(of) > 0 {
			call, _ := m.said["function_call"].(map[string]any)
			if call == nil {
				call = map[string]any{"arguments": ""}
			}
			more(call, "name", of.text("name"))
			more(call, "arguments", of.text("arguments"))
			m.said["function_call"] = call
		}
		for i, raw := range delta.list("tool_calls") {
			m.addCall(i, fieldsOf(raw))
		}
	}
}

// addCall adds a part of a call: to that with its index, unless it has an id of its own.
func (p *piece) addCall(i int, part fields) {
	index := string(part["index"])
	if index == "" {
		index = fmt.Sprint(i)
	}
	var c *chatCall
	for _, of := range p.calls {
		if of.index == index && (part.text("id") == "" || of.id == "" || part.text("id") == of.id) {
			c = of
		}
	}
	switch {
	case len(p.calls) > maxCalls: // the answer is refused
		return
	case c == nil:
		c = &chatCall{index: index, kind: "function"}
		p.calls = append(p.calls, c)
	}
	if len(part["custom"]) > 0 {
		c.kind = "custom"
	}
	tool := part.in(c.kind)
	c.id = cmp.Or(c.id, part.text("id"))
	c.name += tool.text("name")
	c.input = append(c.input, tool.text("arguments")+tool.text("input")...)
}

// whole returns the blocks or messages.
func (p *pieces) whole() (out []json.RawMessage) {
	for _, of := range p.order {
		if len(of.calls) > 0 {
			of.said["tool_calls"] = of.calls
		}
		if json.Valid(of.input) {
			of.said["input"] = json.RawMessage(of.input)
		} else if len(of.input) > 0 {
			of.said["input"] = map[string]growing{"input": of.input}
		}
		var text bytes.Buffer
		lines := json.NewEncoder(&text)
		lines.SetEscapeHTML(false)
		if err := lines.Encode(of.said); err != nil {
			panic(err) // it is made of what was decoded from JSON
		}
		out = append(out, bytes.TrimSpace(text.Bytes()))
	}
	return out
}
