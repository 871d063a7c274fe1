package relay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/worldkernel/worldkernel/reducer/recorder"
)

// Bounds of what is read beside an answer.
const (
	maxFrame = 16 << 20 // bytes of a frame of a stream
	maxText  = 2_000    // bytes of the text that is kept apart
	maxInput = 2_000    // bytes of a tool's input that are kept apart
	maxCalls = 256      // tools that one answer asks for
)

// errFrame says that a frame of a stream is larger than maxFrame.
var errFrame = errors.New("relay: a frame of the answer is larger than 16 MiB")

// reading reads an answer beside its way to the agent. It never changes a byte.
type reading struct {
	form   form
	stream bool // the answer is a stream of events
	answer recorder.Answer

	frame []byte // of the stream, not whole yet
	past  int    // bytes of the answer before it
	hold  int    // from where on the answer is held; -1: nothing is
	ended bool   // the model has said its last
}

func newReading(a *Asked, stream bool) *reading {
	return &reading{form: a.form, stream: stream, hold: -1}
}

// add reads more of the answer, and returns up to which byte of it the agent may have it before
// it is on record: what asks for a tool it gets later, since it runs the tool at once, and
// so it gets the end.
func (r *reading) add(p []byte) (flows int, err error) {
	if !r.stream {
		return 0, nil
	}
	r.frame = append(r.frame, p...)
	for {
		end, next := frameEnd(r.frame)
		if end < 0 {
			break
		}
		if r.hold < 0 && r.event(dataOf(r.frame[:end])) {
			r.hold = r.past
		} else if r.hold >= 0 {
			r.event(dataOf(r.frame[:end]))
		}
		r.past += next
		r.frame = r.frame[next:]
	}
	if len(r.frame) > maxFrame {
		return 0, errFrame
	}
	if r.hold >= 0 {
		return r.hold, nil
	}
	return r.past, nil
}

// frameEnd returns where the first frame ends, and where the next one begins; -1: it has not
// come whole.
func frameEnd(p []byte) (end, next int) {
	for i := 0; ; i++ {
		at := bytes.IndexAny(p[i:], "\r\n")
		if at < 0 {
			return -1, 0
		}
		i += at
		for _, sep := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
			if bytes.HasPrefix(p[i:], []byte(sep)) {
				return i, i + len(sep)
			}
		}
	}
}

// dataOf returns the data of a frame.
func dataOf(frame []byte) []byte {
	var out []byte
	for line := range bytes.Lines(frame) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			out = append(out, bytes.TrimRight(bytes.TrimPrefix(data, []byte(" ")), "\r\n")...)
		}
	}
	return out
}

// event reads a frame, and reports whether the agent is to have it only when the whole answer is on
// record.
func (r *reading) event(data []byte) (hold bool) {
	if string(data) == "[DONE]" {
		r.ended = true
		return true
	}
	if !json.Valid(data) {
		return false
	}
	e := fieldsOf(data)
	switch r.form {
	case formChat:
		r.totals(e)
		for _, raw := range e.list("choices") {
			choice := fieldsOf(raw)
			delta := choice.in("delta")
			hold = hold || len(delta.list("tool_calls")) > 0 || says(delta["function_call"]) || says(choice["finish_reason"])
		}
	case formResponses:
		r.totals(e.in("response"))
		switch e.text("type") {
		case "response.output_item.added", "response.output_item.done":
			return strings.HasSuffix(e.in("item").text("type"), "_call")
		case "response.completed", "response.incomplete", "response.failed":
			r.ended = true
			return true
		}
	case formMessages:
		r.totals(e.in("message"))
		r.totals(e)
		switch e.text("type") {
		case "content_block_start":
			return e.in("content_block").text("type") == "tool_use"
		case "message_delta":
			return true
		case "message_stop":
			r.ended = true
			return true
		}
	case formOther:
	}
	return hold
}

func says(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// readWhole reads what can be read only of all that has come. Sent is the estimate of its input.
func (r *reading) readWhole(a *Asked, body []byte) recorder.Answer {
	size := len(body)
	if r.stream {
		body = body[:min(r.past, size)]
	} else if r.form != formOther && json.Valid(body) {
		r.totals(fieldsOf(body))
	}
	var said Said
	_ = said.read(r.form, body, r.stream) // of what nobody can read nothing is kept apart
	spoken := len(said.text)
	for _, c := range said.Calls[:min(len(said.Calls), maxCalls)] {
		spoken += len(c.Arguments)
		r.answer.Calls = append(r.answer.Calls, recorder.ToolCall{ID: c.ID, Name: c.Name, Input: shorten(string(c.Arguments), maxInput)})
	}
	r.answer.Text = shorten(string(said.text), maxText)
	if r.form != formOther && r.answer.Usage.Tokens() == 0 {
		r.answer.Usage = recorder.Usage{Input: a.InputTokens, Output: uint64(size)/4 + 1, Estimated: true}
	}
	if least := uint64(spoken)/4 + 1; r.form != formOther && r.stream && !r.ended && r.answer.Usage.Output < least {
		r.answer.Usage.Output, r.answer.Usage.Estimated = least, true // it was cut off before it said what it used
	}
	return r.answer
}

// totals reads what a part of an answer says of the whole: its model, and what it used.
func (r *reading) totals(of fields) {
	r.answer.Model = cmp.Or(of.text("model"), r.answer.Model)
	var u usage
	_ = json.Unmarshal(of["usage"], &u) // what is no count counts nothing
	to, in, cached := &r.answer.Usage, uint64(u.PromptTokens+u.InputTokens), uint64(u.PromptDetails.Cached+u.InputDetails.Cached)
	if u.TotalTokens >= maxTokens {
		in = maxTokens
	}
	to.Input, to.CacheWrite = max(to.Input, in-min(in, cached)), max(to.CacheWrite, uint64(u.CacheWrite))
	to.CacheRead, to.Output = max(to.CacheRead, min(in, cached)+uint64(u.CacheRead)), max(to.Output, uint64(u.CompletionTokens+u.OutputTokens))
}

// number is a count of tokens as servers write it.
type number uint64

// maxTokens stands for a count that is impossible.
const maxTokens = recorder.Impossible

// UnmarshalJSON takes whatever is no natural number up to maxTokens for maxTokens: the answer costs what it may at most,
// and its capability rests, as host/llm has it. null says nothing.
func (n *number) UnmarshalJSON(text []byte) error {
	var v uint64
	if json.Unmarshal(text, &v) != nil || v > maxTokens {
		v = maxTokens
	}
	*n = number(v)
	return nil
}

// usage is what the APIs say of usage: each time of the whole answer so far.
type usage struct {
	PromptTokens     number `json:"prompt_tokens"`
	CompletionTokens number `json:"completion_tokens"`
	InputTokens      number `json:"input_tokens"`
	OutputTokens     number `json:"output_tokens"`
	TotalTokens      number `json:"total_tokens"` // the sum of others, unless it is impossible
	PromptDetails    struct {
		Cached number `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	InputDetails struct {
		Cached number `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	CacheWrite number `json:"cache_creation_input_tokens"` // of Messages, and beside the input
	CacheRead  number `json:"cache_read_input_tokens"`     // likewise
}
