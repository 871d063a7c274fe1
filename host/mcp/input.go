package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// Servers ask persons: in a result that says input_required, whose answers go with
// the next call, or by a request of their own while a call is under way. Nobody is
// here to answer then: such a request is cancelled, and the next call answers it.
// Whose question it is: see calls.

const (
	methodElicit = "elicitation/create"
	modeForm     = "form" // the mode of what is answered here; it may be left out
)

// answerElicitations is middleware for what a client receives. The SDK's own way, an
// ElicitationHandler, would have it call a tool once more where a server answers with
// the error that a URL has to be visited.
func (c *calls) answerElicitations(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		p, ok := req.GetParams().(*mcp.ElicitParams)
		if method != methodElicit || !ok {
			return next(ctx, method, req)
		}
		if p.Mode != "" && p.Mode != modeForm {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("elicitation mode %q is not supported", p.Mode)}
		}
		schema, err := json.Marshal(p.RequestedSchema)
		if err != nil {
			return nil, err
		}
		asked := receipt.InputRequest{Message: p.Message}
		if asked.Schema, err = canon.FromJSON(schema); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
		}
		return c.elicited(ctx, asked, taskOf(p.Meta))
	}
}

// answers are the questions that attempts before this one have asked, with what a
// person has said.
type answers []receipt.Input

// to returns the answer to a question; the last, if it was asked several times.
func (a answers) to(asked receipt.InputRequest) (found *mcp.ElicitResult, ok bool) {
	for _, in := range a {
		q, given, err := in.Read()
		if err != nil {
			continue
		}
		for name, was := range q.Requests {
			if was.Message == asked.Message && bytes.Equal(was.Schema, asked.Schema) {
				if r, err := accepted(given[name]); err == nil {
					found, ok = r, true
				}
			}
		}
	}
	return found, ok
}

// duringCalls reports whether any of the questions was asked while a call was under way.
func (a answers) duringCalls() bool {
	return slices.ContainsFunc(a, func(in receipt.Input) bool {
		q, err := receipt.DecodeQuestion(in.Question)
		return err == nil && slices.Contains(q.Names(), methodElicit)
	})
}

// addTo adds the answers to what the last result has asked to the call that follows it.
func (a answers) addTo(p *mcp.CallToolParams) error {
	if len(a) == 0 {
		return nil
	}
	q, given, err := a[len(a)-1].Read()
	if err != nil {
		return err
	}
	if _, elicited := q.Requests[methodElicit]; elicited {
		return nil // the server will ask again
	}
	p.RequestState, p.InputResponses = q.State, mcp.InputResponseMap{}
	for name, answer := range given {
		r, err := accepted(answer)
		if err != nil {
			return err
		}
		p.InputResponses[name] = r
	}
	return nil
}

// accepted is the answer of a person, as the protocol has it.
func accepted(answer receipt.Data) (*mcp.ElicitResult, error) {
	text, err := canon.ToJSON(answer)
	if err != nil {
		return nil, err
	}
	r := &mcp.ElicitResult{Action: "accept"}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return r, d.Decode(&r.Content)
}

// needsInput is the result of a call that asks a person.
func needsInput(q receipt.Question) host.Result {
	payload, err := q.Encode()
	if err != nil {
		return permanent(false, "not_a_question", err.Error())
	}
	return host.Result{Status: receipt.StatusError, Class: receipt.OutcomeInputRequired, Payload: payload}
}

// inputRequired is the result of a call whose result asks for input; false: it does not.
func inputRequired(data canon.Raw) (host.Result, bool) {
	if textOf(item(data, "resultType")) != string(receipt.OutcomeInputRequired) {
		return host.Result{}, false
	}
	var requests map[string]canon.Raw
	if raw := item(data, "inputRequests"); string(raw) != canon.Null {
		if err := canon.Unmarshal(raw, &requests); err != nil {
			return permanent(false, "not_a_result", "inputRequests: "+err.Error()), true
		}
	}
	q := receipt.Question{Requests: make(map[string]receipt.InputRequest), State: textOf(item(data, "requestState"))}
	for name, raw := range requests { // order cannot show but in which fault is named
		method, params := textOf(item(raw, "method")), item(raw, "params")
		mode := textOf(item(params, "mode"))
		if method != methodElicit || mode != "" && mode != modeForm {
			return permanent(false, "input_not_supported", fmt.Sprintf("the server asks for %s %s, which nobody here can give", method, mode)), true
		}
		q.Requests[name] = receipt.InputRequest{Message: textOf(item(params, "message")), Schema: item(params, "requestedSchema")}
	}
	return needsInput(q), true
}

// textOf returns a text; empty: it is none.
func textOf(raw canon.Raw) string {
	if r := canon.NewReader(raw); r.Kind() == canon.KindText {
		return r.Text()
	}
	return ""
}
