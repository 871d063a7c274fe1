package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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

// elicit answers a question of the server.
func (c *calls) elicit(ctx context.Context, params json.RawMessage) (*elicitResult, error) {
	p, err := canon.FromJSON(params)
	if err != nil {
		return nil, &rpcError{Code: codeParams, Message: err.Error()}
	}
	if mode := textOf(item(p, "mode")); mode != "" && mode != modeForm {
		return nil, &rpcError{Code: codeParams, Message: fmt.Sprintf("elicitation mode %q is not supported", mode)}
	}
	asked := receipt.InputRequest{Message: textOf(item(p, "message")), Schema: item(p, "requestedSchema")}
	return c.elicited(ctx, asked, taskOf(p))
}

// elicitResult is the answer to a question.
type elicitResult struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// answers are the questions that attempts before this one have asked, with what a
// person has said.
type answers []receipt.Input

// to returns the answer to a question; the last, if it was asked several times.
func (a answers) to(asked receipt.InputRequest) (found *elicitResult, ok bool) {
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
func (a answers) addTo(params map[string]any) error {
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
	responses := make(map[string]*elicitResult)
	if params["inputResponses"] = responses; q.State != "" {
		params["requestState"] = q.State
	}
	for name, answer := range given {
		r, err := accepted(answer)
		if err != nil {
			return err
		}
		responses[name] = r
	}
	return nil
}

// accepted is the answer of a person, as the protocol has it.
func accepted(answer receipt.Data) (*elicitResult, error) {
	text, err := canon.ToJSON(answer)
	if err == nil && !bytes.HasPrefix(text, []byte("{")) {
		err = errors.New("the answer is no object")
	}
	return &elicitResult{Action: "accept", Content: text}, err
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
