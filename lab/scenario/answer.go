package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// outside answers the effects of one play, in the order of their permits. What it answers
// to an attempt it answers again: a deterministic adapter is asked again after a crash.
type outside struct {
	clock manifest.Clock
	kinds map[string]host.Adapter // that it answers
	steps uint64                  // that are left
	end   context.CancelCauseFunc // when none are

	mu    sync.Mutex
	left  []Answer
	used  []uint64
	given map[string]*given

	now   manifest.Tick // of the steps that were counted
	turns uint64        // likewise
	next  manifest.Tick // in which the first answer comes that is still to come
}

// given is what the outside says to an attempt, and when.
type given struct {
	host.Result
	err   error
	after manifest.Tick // so long after it was asked for; notYet: never
	due   manifest.Tick // 0: not known yet
}

// Deterministic makes the world await each answer.
func (*outside) Deterministic() bool { return true }

// Perform implements host.Adapter.
func (o *outside) Perform(_ context.Context, call host.Call) (host.Result, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := o.answer(&call.Permit.Intent, call.Permit.Attempt)
	return g.Result, g.err
}

// tell is a world.AnswerOrder: answers come when the scenario says. It counts the steps of
// cells, and ends the play where there are too many.
func (o *outside) tell(now manifest.Tick, turns uint64, flight []*receipt.Entry) (next *receipt.Entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now != o.now {
		o.now, o.turns = now, 0
	}
	if turns > o.turns {
		o.steps -= min(o.steps, turns-o.turns)
		o.turns = turns
	}
	if o.steps == 0 {
		o.end(errSteps)
	}
	o.next = notYet
	first := notYet
	for _, e := range flight {
		due := now
		if o.kinds[e.Intent.Kind] != nil {
			due = o.due(e, now)
		}
		switch {
		case due > now:
			o.next = min(o.next, due)
		case due < first:
			first, next = due, e
		}
	}
	return next
}

// due returns when the answer to an effect in flight comes.
func (o *outside) due(e *receipt.Entry, now manifest.Tick) manifest.Tick {
	g := o.answer(&e.Intent, e.Attempt)
	switch {
	case g.due > 0:
	case g.after == notYet:
		g.due = notYet
	default:
		g.due = now + g.after
	}
	return g.due
}

// comes returns the tick in which the next answer comes; false: none is to come.
func (o *outside) comes() (manifest.Tick, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.next, o.next != notYet
}

// answer returns what is said to an attempt. It is called with mu held.
func (o *outside) answer(in *receipt.Intent, attempt uint64) *given {
	id := string(in.Step) + "/" + strconv.FormatUint(attempt, 10)
	g := o.given[id]
	if g == nil {
		g = o.choose(in)
		o.given[id] = g
	}
	return g
}

func (o *outside) choose(in *receipt.Intent) *given {
	nearest := "no answer is of that kind"
	for i := range o.left {
		a := &o.left[i]
		if a.Effect != in.Kind || !a.Always && o.used[i] >= max(a.Times, 1) {
			continue
		}
		text, err := fits(a.Params, in.Params)
		if err != nil {
			return &given{err: err}
		}
		if text != "" {
			nearest = fmt.Sprintf("answer %d differs: %s", i+1, text)
			continue
		}
		o.used[i]++
		g := &given{after: a.After.in(o.clock)}
		if a.Never {
			g.after = notYet
		}
		if g.Result, g.err = a.result(); g.err != nil && a.Outcome != inDoubt {
			g.err = fmt.Errorf("answer %d: %w", i+1, g.err)
		}
		return g
	}
	return &given{err: &host.MissError{
		File: "the scenario", Cell: in.Cell, Step: in.Step, Kind: in.Kind, Params: in.Params, Occurrence: in.Occurrence, Nearest: nearest,
	}}
}

// inDoubt is the outcome where nobody can tell what came of an attempt.
const inDoubt = "in_doubt"

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
	case a.Outcome == inDoubt:
		return r, &host.DoubtError{Reason: show(a.Error)}
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
