// Package recorder is the reducer of agents' sessions: programs that run beside a world, and whose
// model calls go through it (package serve/gateway). It is a part of worldctl, and not an API.
//
// A session is a cell, recorder/NAME. Each start of the agent is an incarnation. Each request
// that the agent makes is an event, [Asked], and the step that handles it asks for one
// [Call]: the gate judges it, and the adapter relay performs it. A call of a tool that it makes of a
// server of the Model Context Protocol is [Called], and asks for a [MCPCall], which the adapter outside performs; one of
// its own, which it runs itself, asks for an [OwnTool], likewise. A
// request that the gateway answers from the record asks for nothing, and is an event, [Served]. The state counts;
// what was asked and answered is in the journal.
package recorder

import (
	"fmt"

	"github.com/worldkernel/worldkernel/reducer"
)

// Name and Version name the reducer in a manifest: {engine: go, name: recorder, version: "1"}.
const (
	Name    = "recorder"
	Version = "1"
)

// The events of a session.
const (
	Began  = "agent.began"  // data: Beginning
	Asked  = "agent.asked"  // data: Request
	Called = "agent.called" // data: ToolRequest
	Listed = "agent.listed" // data: Listing
	Joined = "agent.joined" // data: Joining
	Served = "agent.served" // data: Answered
	Ended  = "agent.ended"  // data: Ending
)

// Call is the kind of the effect that a request asks for. Its params are the Request.
const Call = "model.call"

// Beginning is the data of Began.
type Beginning struct {
	Incarnation uint64   `cbor:"incarnation"` // from 1
	Principal   string   `cbor:"principal"`   // who has started the agent
	Command     []string `cbor:"command"`     // with its arguments; empty: the agent was started by somebody else
	Dir         string   `cbor:"dir"`         // the agent's working directory
	Instead              // in a fork, from now on
}

// Instead says which model is asked in the place of another one. Its zero value: none is.
type Instead struct {
	Of    string `cbor:"of,omitempty" json:"of,omitempty"` // the model that the agent asks for
	Model string `cbor:"instead,omitempty" json:"instead,omitempty"`
}

// Request is the data of Asked and the params of Call: what policies see of a request, and
// the request itself.
type Request struct {
	Ask         string   `cbor:"ask"`          // the tag of the intent, unique in the session
	Incarnation uint64   `cbor:"incarnation"`  // in which it was asked
	Principal   string   `cbor:"principal"`    // who has started the agent
	Dialect     string   `cbor:"dialect"`      // openai or anthropic
	Method      string   `cbor:"method"`       // of HTTP
	Path        string   `cbor:"path"`         // with the query
	Model       string   `cbor:"model"`        // empty: none is named
	Tools       []string `cbor:"tools"`        // that the model may ask for; empty: none
	ServerTools []string `cbor:"server_tools"` // types of tools that the provider runs; empty: none
	MaxTokens   uint64   `cbor:"max_tokens"`   // of the answer; 0: not bounded by the request
	InputTokens uint64   `cbor:"input_tokens"` // estimated
	Stream      bool     `cbor:"stream"`       // the answer is to be a stream of events
	Prompt      string   `cbor:"prompt"`       // the last text of the user's, shortened
	Body        []byte   `cbor:"body"`         // as it is sent to the provider: as the agent sent it, but for Replaced

	Replaced map[string][]byte `cbor:"replaced"` // by JSON pointer: what the agent sent where a recorded message was sent in its place
}

// Answered is the data of Served.
type Answered struct {
	Ask         string `cbor:"ask"`         // the intent whose answer was given
	Incarnation uint64 `cbor:"incarnation"` // in which it was given
}

// Joining is the data of Joined: the model has called a tool of the agent's own again that waits for a person.
type Joining struct {
	Ask string `cbor:"ask"` // the tag of the intent that waits
	ID  string `cbor:"id"`  // of the call that takes its place
}

// Ending is the data of Ended.
type Ending struct {
	Incarnation uint64 `cbor:"incarnation"`
	Code        int64  `cbor:"code"` // exit code of the agent; -1: it is not known
}

// Answer is the payload of a receipt of Call.
type Answer struct {
	Status int               `cbor:"status"` // of HTTP
	Header map[string]string `cbor:"header"` // what the agent gets of it
	Body   []byte            `cbor:"body"`   // as the provider sent it, compressed where it was
	Cut    bool              `cbor:"cut"`    // the connection ended before the answer did
	Model  string            `cbor:"model"`  // as the provider names it; empty: it does not
	Text   string            `cbor:"text"`   // what the model says, shortened
	Calls  []ToolCall        `cbor:"calls"`  // the tools that it asks for
	Usage  Usage             `cbor:"usage"`  // what it used
}

// Given reports whether it is what a provider has answered: a person may say that something else came of a call.
func (a *Answer) Given() bool { return a.Status >= 100 && a.Status <= 999 }

// ToolCall is a tool that a model asks for.
type ToolCall struct {
	ID    string `cbor:"id" json:"id"`
	Name  string `cbor:"name" json:"name"`
	Input string `cbor:"input" json:"input"` // JSON or text, shortened
}

// Usage is what a call used, in tokens.
type Usage struct {
	Input      uint64 `cbor:"input" json:"input"`             // but for what the two below count
	CacheRead  uint64 `cbor:"cache_read" json:"cache_read"`   // input that the provider had in its cache
	CacheWrite uint64 `cbor:"cache_write" json:"cache_write"` // input that it has put there
	Output     uint64 `cbor:"output" json:"output"`
	Micros     uint64 `cbor:"micros" json:"micros"`       // what that costs, by the prices of the config
	Estimated  bool   `cbor:"estimated" json:"estimated"` // the provider did not say: counted from the bytes
}

// Tokens returns all of them.
func (u Usage) Tokens() uint64 { return u.Input + u.CacheRead + u.CacheWrite + u.Output }

// Impossible is a count of tokens that no answer can have used: adapters put it in the place of a count that is no
// natural number below it. The capability of such an answer rests.
const Impossible = 1 << 53

// Believable returns Tokens for sums that people see, and 0 if a count is impossible.
func (u Usage) Believable() uint64 {
	if n := u.Tokens(); n < Impossible {
		return n
	}
	return 0
}

// Cost returns what they cost for such sums, and 0 if a count is impossible.
func (u Usage) Cost() uint64 {
	if u.Tokens() < Impossible {
		return u.Micros
	}
	return 0
}

// Session is the state of a session's cell.
type Session struct {
	Incarnation uint64   `cbor:"incarnation" json:"incarnation"`
	Running     bool     `cbor:"running" json:"running"` // the incarnation has not ended
	Code        int64    `cbor:"code" json:"code"`       // exit code of the last that has ended
	Principal   string   `cbor:"principal" json:"principal"`
	Command     []string `cbor:"command" json:"command"`
	Dir         string   `cbor:"dir" json:"dir"`
	Asked       uint64   `cbor:"asked" json:"asked"`       // requests that went to the gate
	Served      uint64   `cbor:"served" json:"served"`     // requests that were answered from the record
	Answered    uint64   `cbor:"answered" json:"answered"` // calls that the provider answered well
	Denied      uint64   `cbor:"denied" json:"denied"`     // of models and of tools, by the gate or a person
	Failed      uint64   `cbor:"failed" json:"failed"`     // that were refused by the provider, or are in doubt
	Tokens      uint64   `cbor:"tokens" json:"tokens"`
	Micros      uint64   `cbor:"micros" json:"micros"` // what they cost
	Tools       uint64   `cbor:"tools" json:"tools"`   // that answers asked for
	Called      uint64   `cbor:"called" json:"called"` // calls of tools that went to the gate
	Ran         uint64   `cbor:"ran" json:"ran"`       // of which the servers have answered
	Instead

	Pins    map[string]Pins   `cbor:"pins" json:"-"`    // by server: its tools as they were first listed, or last permitted
	Changed map[string]Change `cbor:"changed" json:"-"` // by tag: calls under way of tools that are other ones than their pins

	Joined map[string]string `cbor:"joined" json:"-"` // by id: the tags of the intents that calls of the agent's own tools took over
}

// New makes the reducer.
func New() reducer.Reducer { return reducer.Typed(1, handle)() }

func handle(ctx *reducer.Context, s Session, e reducer.Event) (Session, error) {
	switch e.Name {
	case Began:
		b, err := reducer.Decode[Beginning](e.Data)
		if err == nil && b.Incarnation != s.Incarnation+1 {
			err = fmt.Errorf("incarnation %d follows %d", b.Incarnation, s.Incarnation)
		}
		s.Incarnation, s.Running, s.Principal, s.Command, s.Dir = b.Incarnation, true, b.Principal, b.Command, b.Dir
		if b.Model != "" {
			s.Instead = b.Instead
		}
		return s, err
	case Asked:
		r, err := reducer.Decode[Request](e.Data)
		ctx.Effect(Call, e.Data, r.Ask)
		s.Asked++
		return s, err
	case Called:
		r, err := reducer.Decode[ToolRequest](e.Data)
		kind := MCPCall
		if r.Server == "" {
			kind = OwnTool
		}
		ctx.Effect(kind, e.Data, r.Ask)
		s.Called++
		return s.call(&r), err
	case Listed:
		l, err := reducer.Decode[Listing](e.Data)
		return s.list(&l, uint64(ctx.Time())), err
	case Joined:
		j, err := reducer.Decode[Joining](e.Data)
		if len(s.Joined) >= MaxPins { // a call beyond is asked for anew when the agent is started again
			return s, err
		}
		s.Joined = with(s.Joined, j.ID, j.Ask)
		return s, err
	case Served:
		s.Served++
		return s, nil
	case Ended:
		end, err := reducer.Decode[Ending](e.Data)
		if end.Incarnation == s.Incarnation {
			s.Running, s.Code = false, end.Code
		}
		return s, err
	case reducer.ReceiptEvent:
		return received(s, e.Data, uint64(ctx.Time()))
	}
	return s, fmt.Errorf("a session knows no event %q", e.Name)
}

// received counts what an answer says that it used.
func received(s Session, data reducer.Data, now uint64) (Session, error) {
	r, err := reducer.Decode[reducer.Receipt](data)
	if err != nil {
		return s, err
	}
	if r.Kind == MCPCall || r.Kind == OwnTool {
		return s.answer(&r, now), nil
	}
	switch r.Status {
	case "ok":
	case "denied":
		s.Denied++
		return s, nil
	default:
		s.Failed++
		return s, nil
	}
	s.Answered++
	a, err := reducer.Decode[Answer](r.Payload)
	if err != nil {
		return s, nil //nolint:nilerr // a person has said what came of it
	}
	s.Tokens += a.Usage.Believable()
	s.Micros += a.Usage.Cost()
	s.Tools += uint64(len(a.Calls))
	return s, err
}
