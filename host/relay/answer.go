package relay

import (
	"bytes"
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
	said  int    // bytes of text and of tool inputs so far

	inputs map[int]int // by index of a block or item: its place in answer.Calls
}

func newReading(a *Asked, stream bool) *reading {
	return &reading{form: a.form, stream: stream, hold: -1, inputs: make(map[int]int)}
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
	switch r.form {
	case formChat:
		return r.chatEvent(data)
	case formResponses:
		return r.responsesEvent(data)
	case formMessages:
		return r.messagesEvent(data)
	case formOther:
	}
	return false
}

// readWhole reads what can be read only of a whole answer. Sent is the estimate of its input.
func (r *reading) readWhole(a *Asked, body []byte) recorder.Answer {
	if !r.stream {
		switch r.form {
		case formChat:
			r.chatWhole(body)
		case formResponses:
			r.responsesWhole(body)
		case formMessages:
			r.messagesWhole(body)
		case formOther:
		}
	}
	if r.form != formOther && r.answer.Usage.Tokens() == 0 {
		r.answer.Usage = recorder.Usage{Input: a.InputTokens, Output: uint64(len(body))/4 + 1, Estimated: true}
	}
	if spoken := uint64(r.said)/4 + 1; r.form != formOther && r.stream && !r.ended && r.answer.Usage.Output < spoken {
		r.answer.Usage.Output, r.answer.Usage.Estimated = spoken, true // it was cut off before it said what it used
	}
	r.answer.Text = shorten(r.answer.Text, maxText)
	for i := range r.answer.Calls {
		r.answer.Calls[i].Input = shorten(r.answer.Calls[i].Input, maxInput)
	}
	return r.answer
}

func (r *reading) say(text string) {
	r.said += len(text)
	if len(r.answer.Text) <= maxText {
		r.answer.Text += text
	}
}

// call notes that the answer asks for a tool.
func (r *reading) call(index int, c recorder.ToolCall) {
	if len(r.answer.Calls) < maxCalls {
		r.inputs[index] = len(r.answer.Calls)
		r.answer.Calls = append(r.answer.Calls, c)
	}
}

// input notes more of a tool's input.
func (r *reading) input(index int, text string) {
	r.said += len(text)
	if at, ok := r.inputs[index]; ok && len(r.answer.Calls[at].Input) <= maxInput {
		r.answer.Calls[at].Input += text
	}
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

// openAIUsage is what both APIs of OpenAI say of usage.
type openAIUsage struct {
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
}

func (u *openAIUsage) usage() recorder.Usage {
	in, cached := uint64(u.PromptTokens+u.InputTokens), uint64(u.PromptDetails.Cached+u.InputDetails.Cached)
	if u.TotalTokens >= maxTokens {
		in = maxTokens
	}
	return recorder.Usage{Input: in - min(in, cached), CacheRead: min(in, cached), Output: uint64(u.CompletionTokens + u.OutputTokens)}
}

// chatMessage is a message of Chat Completions, whole or a part.
type chatMessage struct {
	Content      json.RawMessage `json:"content"`
	FunctionCall json.RawMessage `json:"function_call"`
	ToolCalls    []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct{ Name, Arguments string }
		Custom   struct{ Name, Input string }
	} `json:"tool_calls"`
}

// chat is an answer of Chat Completions, whole or a part.
type chat struct {
	Model   string       `json:"model"`
	Usage   *openAIUsage `json:"usage"`
	Choices []struct {
		Delta, Message chatMessage
		FinishReason   *string `json:"finish_reason"`
	} `json:"choices"`
}

func (r *reading) chatEvent(data []byte) (hold bool) {
	var c chat
	if json.Unmarshal(data, &c) != nil {
		return false
	}
	r.chatOf(&c)
	for _, choice := range c.Choices {
		called := len(choice.Delta.FunctionCall) > 0 && string(choice.Delta.FunctionCall) != "null"
		hold = hold || len(choice.Delta.ToolCalls) > 0 || called || choice.FinishReason != nil
		r.message(&choice.Delta)
	}
	return hold
}

func (r *reading) chatWhole(body []byte) {
	var c chat
	if json.Unmarshal(body, &c) == nil {
		r.chatOf(&c)
		for _, choice := range c.Choices {
			r.message(&choice.Message)
		}
	}
}

func (r *reading) chatOf(c *chat) {
	if c.Model != "" {
		r.answer.Model = c.Model
	}
	if c.Usage != nil {
		r.answer.Usage = c.Usage.usage()
	}
}

func (r *reading) message(m *chatMessage) {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		r.say(text)
	}
	for i, t := range m.ToolCalls {
		at := i
		if t.Index != nil {
			at = *t.Index
		}
		if _, begun := r.inputs[at]; !begun {
			r.call(at, recorder.ToolCall{ID: t.ID, Name: t.Function.Name + t.Custom.Name})
		}
		r.input(at, t.Function.Arguments+t.Custom.Input)
	}
}

// item is an item of a response.
type item struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Input     string `json:"input"`
	Content   []struct{ Type, Text string }
}

// response is one of Responses.
type response struct {
	Model  string       `json:"model"`
	Usage  *openAIUsage `json:"usage"`
	Output []item       `json:"output"`
}

func (r *reading) responsesEvent(data []byte) (hold bool) {
	var e struct {
		Type     string   `json:"type"`
		Delta    any      `json:"delta"`
		Item     item     `json:"item"`
		Response response `json:"response"`
	}
	if json.Unmarshal(data, &e) != nil {
		return false
	}
	switch e.Type {
	case "response.output_text.delta":
		text, _ := e.Delta.(string)
		r.say(text)
	case "response.output_item.added":
		return strings.HasSuffix(e.Item.Type, "_call")
	case "response.output_item.done":
		r.item(&e.Item, false)
		return strings.HasSuffix(e.Item.Type, "_call")
	case "response.completed", "response.incomplete", "response.failed":
		r.ended = true
		r.responseOf(&e.Response)
		return true
	}
	return false
}

func (r *reading) responsesWhole(body []byte) {
	var whole response
	if json.Unmarshal(body, &whole) == nil {
		r.responseOf(&whole)
		for i := range whole.Output {
			r.item(&whole.Output[i], true)
		}
	}
}

func (r *reading) responseOf(of *response) {
	r.answer.Model = of.Model
	if of.Usage != nil {
		r.answer.Usage = of.Usage.usage()
	}
}

func (r *reading) item(of *item, text bool) {
	switch {
	case strings.HasSuffix(of.Type, "_call") && of.CallID != "":
		r.call(len(r.answer.Calls), recorder.ToolCall{ID: of.CallID, Name: of.Name, Input: of.Arguments + of.Input})
	case text && of.Type == "message":
		for _, part := range of.Content {
			r.say(part.Text)
		}
	}
}

// anthropicUsage is what Messages say of usage.
type anthropicUsage struct {
	Input      number `json:"input_tokens"`
	CacheWrite number `json:"cache_creation_input_tokens"`
	CacheRead  number `json:"cache_read_input_tokens"`
	Output     number `json:"output_tokens"`
}

// contentBlock is a block of a message.
type contentBlock struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// message is one of Messages.
type message struct {
	Model   string         `json:"model"`
	Usage   anthropicUsage `json:"usage"`
	Content []contentBlock `json:"content"`
}

func (r *reading) messagesEvent(data []byte) (hold bool) {
	var e struct {
		Type    string         `json:"type"`
		Index   int            `json:"index"`
		Message message        `json:"message"`
		Block   contentBlock   `json:"content_block"`
		Usage   anthropicUsage `json:"usage"`
		Delta   struct {
			Text    string `json:"text"`
			Partial string `json:"partial_json"`
		} `json:"delta"`
	}
	if json.Unmarshal(data, &e) != nil {
		return false
	}
	switch e.Type {
	case "message_start":
		r.answer.Model = e.Message.Model
		r.used(e.Message.Usage)
	case "content_block_start":
		if e.Block.Type == "tool_use" {
			r.call(e.Index, recorder.ToolCall{ID: e.Block.ID, Name: e.Block.Name})
			return true
		}
	case "content_block_delta":
		r.say(e.Delta.Text)
		r.input(e.Index, e.Delta.Partial)
	case "message_delta":
		r.used(e.Usage)
		return true
	case "message_stop":
		r.ended = true
		return true
	}
	return false
}

func (r *reading) messagesWhole(body []byte) {
	var m message
	if json.Unmarshal(body, &m) != nil {
		return
	}
	r.answer.Model = m.Model
	r.used(m.Usage)
	for i, b := range m.Content {
		r.say(b.Text)
		if b.Type == "tool_use" {
			r.call(i, recorder.ToolCall{ID: b.ID, Name: b.Name, Input: string(b.Input)})
		}
	}
}

// used takes counts over, which are of the whole answer each time.
func (r *reading) used(u anthropicUsage) {
	to := &r.answer.Usage
	to.Input, to.CacheWrite = max(to.Input, uint64(u.Input)), max(to.CacheWrite, uint64(u.CacheWrite))
	to.CacheRead, to.Output = max(to.CacheRead, uint64(u.CacheRead)), max(to.Output, uint64(u.Output))
}
