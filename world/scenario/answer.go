package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// outside answers the effects of one play. What it answers to an attempt it answers
// again: a deterministic adapter is asked again after a crash.
type outside struct {
	mu    sync.Mutex
	left  []Answer
	used  []uint64
	given map[string]host.Result
}

// Deterministic makes the world await each answer, in the order of the intents.
func (*outside) Deterministic() bool { return true }

// Perform implements host.Adapter.
func (o *outside) Perform(_ context.Context, call host.Call) (host.Result, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := call.Permit
	id := p.Key.String() + "/" + strconv.FormatUint(p.Attempt, 10)
	if r, ok := o.given[id]; ok {
		return r, nil
	}
	nearest := "no answer is of that kind"
	for i := range o.left {
		a := &o.left[i]
		if a.Effect != p.Kind || !a.Always && o.used[i] >= max(a.Times, 1) {
			continue
		}
		text, err := fits(a.Params, p.Params)
		if err != nil {
			return host.Result{}, err
		}
		if text != "" {
			nearest = fmt.Sprintf("answer %d differs: %s", i+1, text)
			continue
		}
		r, err := a.result()
		if err != nil {
			return host.Result{}, fmt.Errorf("answer %d: %w", i+1, err)
		}
		o.used[i]++
		o.given[id] = r
		return r, nil
	}
	return host.Result{}, &host.MissError{
		File: "the scenario", Cell: p.Cell, Step: p.Step, Kind: p.Kind, Params: p.Params, Occurrence: p.Occurrence, Nearest: nearest,
	}
}

// unused returns the answers that nobody asked for.
func (o *outside) unused() (faults []string) {
	for i, a := range o.left {
		if n := max(a.Times, 1); !a.Always && o.used[i] < n {
			faults = append(faults, fmt.Sprintf("answer %d, to %s, was asked for %d of %d times", i+1, a.Effect, o.used[i], n))
		}
	}
	return faults
}

// result is what an answer comes to.
func (a *Answer) result() (host.Result, error) {
	r := host.Result{Status: receipt.StatusOK}
	value := a.Reply
	switch {
	case a.Error != nil:
		r.Status, r.Class, value = receipt.StatusError, receipt.Outcome(a.Outcome), a.Error
	case a.Says != "" || a.Calls != nil:
		var err error
		if value, err = a.completion(); err != nil {
			return r, err
		}
		r.Cost.Tokens = a.Tokens
	}
	var err error
	r.Payload, err = canon.Marshal(value)
	return r, err
}

// completion is a payload of the adapter llm.
func (a *Answer) completion() (any, error) {
	message := map[string]any{"role": "assistant", "content": a.Says}
	reason := "stop"
	var calls []any
	for i, c := range a.Calls {
		arguments, err := json.Marshal(c.Arguments)
		if err != nil {
			return nil, err
		}
		if c.Arguments == nil {
			arguments = []byte("{}")
		}
		calls = append(calls, map[string]any{
			"id": "call_" + strconv.Itoa(i+1), "type": "function",
			"function": map[string]any{"name": c.Tool, "arguments": string(arguments)},
		})
	}
	if calls != nil {
		message["tool_calls"], reason = calls, "tool_calls"
	}
	return map[string]any{
		"message": message, "finish_reason": reason, "model": "scenario", "usage": map[string]any{"total_tokens": a.Tokens},
	}, nil
}
