package world

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// plan holds the checked output of a step. All of it is checked before the first record is written, so a
// step takes effect completely or not at all. Its memory is reused.
type plan struct {
	events  []plannedEvent
	targets []*cell
}

type plannedEvent struct {
	rule *eventRule
	from int // of targets
	to   int
}

// turn has a cell handle the first event in its mailbox.
func (k *kernel) turn(c *cell) {
	x := *c.mail.front()
	k.handled++
	k.touch(c)
	history, scratch := c.nextHistory(k.scratch, &x)
	k.scratch = scratch
	err := k.reduce(c, &x)
	switch {
	case err == nil:
		k.rules.guard.item(len(k.out.State), "the state of", c.name, k.last)
		k.commit(c, &x, history)
	case k.rules.guard.stop(err, "a step of cell "+c.name, k.last), k.rules.guard.ended() != nil: // all is thrown away
	default:
		k.fail(c, &x, history, err)
	}
	if c.mail.len() > 0 && !c.halted && !c.queued {
		k.scheduler.push(c)
	}
}

// reduce runs the cell's reducer and checks the output. It changes nothing: see commit and fail.
func (k *kernel) reduce(c *cell, x *mail) error {
	id := c.id()
	rule := k.rules.reducer(id.Reducer)
	if rule == nil {
		return fmt.Errorf("the manifest has no reducer %q", id.Reducer)
	}
	k.in = reducer.Input{
		Cell: id, Step: c.n + 1, State: c.state,
		Event: reducer.Event{Name: x.name, Data: x.data}, Params: rule.params, Time: k.now, Clock: k.rules.manifest.Clock, Limits: rule.limits,
		Seed:   reducer.Seed{World: k.seed, Cell: id, Step: c.n + 1},
		Bounds: k.rules.guard.stepBounds(),
	}
	if hear := k.onPrint; hear != nil {
		at := Printed{Record: k.last + 1, Cell: c.name, N: c.n + 1}
		k.in.OnPrint = func(p reducer.Print) {
			at.Print = p
			hear(at)
		}
	}
	k.out.Reset()
	if k.paranoid {
		if err := k.reduceTwice(rule); err != nil {
			return err
		}
	} else if err := reducer.Reduce(rule.impl, &k.in, &k.out); err != nil {
		return err
	}
	if err := k.out.CheckLimits(rule.limits); err != nil {
		return err
	}
	return k.checkOutput(c)
}

// reduceTwice runs a reducer twice on equal inputs and fails on a difference: the reducer is not a pure
// function of its input.
func (k *kernel) reduceTwice(rule *reducerRule) error {
	in := k.in
	in.State = bytes.Clone(in.State)
	in.Event.Data = bytes.Clone(in.Event.Data)
	in.OnPrint = nil // once is enough
	var first reducer.Output
	errFirst := reducer.Reduce(rule.impl, &in, &first)
	err := reducer.Reduce(rule.impl, &k.in, &k.out)
	switch {
	case (err == nil) != (errFirst == nil), err != nil && err.Error() != errFirst.Error():
		return fmt.Errorf("the reducer is not deterministic: one run ended with %w, another with %w", err, errFirst)
	case err != nil:
		return err
	case !sameOutput(&first, &k.out):
		return fmt.Errorf("the reducer is not deterministic: two runs on the same input gave different outputs")
	case !bytes.Equal(in.State, k.in.State) || !bytes.Equal(in.Event.Data, k.in.Event.Data):
		return fmt.Errorf("the reducer changed its input")
	}
	return nil
}

func sameOutput(a, b *reducer.Output) bool {
	return bytes.Equal(a.State, b.State) && a.Gas == b.Gas &&
		slices.EqualFunc(a.Events, b.Events, func(x, y reducer.Emit) bool {
			return x.Name == y.Name && x.Key == y.Key && bytes.Equal(x.Data, y.Data)
		}) &&
		slices.EqualFunc(a.Effects, b.Effects, func(x, y reducer.Effect) bool {
			return x.Kind == y.Kind && x.Tag == y.Tag && x.Cap == y.Cap && bytes.Equal(x.Params, y.Params)
		}) &&
		slices.EqualFunc(a.Timers, b.Timers, func(x, y reducer.Timer) bool {
			return x.After == y.After && x.Name == y.Name && x.Tag == y.Tag && bytes.Equal(x.Data, y.Data)
		}) &&
		slices.Equal(a.Cancels, b.Cancels)
}

// checkOutput checks the events, effects and timers of a step, and fills in the plan.
func (k *kernel) checkOutput(c *cell) error {
	p := &k.plan
	p.events, p.targets = p.events[:0], p.targets[:0]
	limits := &k.rules.manifest.Limits
	for _, e := range k.out.Events {
		if err := k.rules.guard.ended(); err != nil {
			return err
		}
		rule, err := k.rules.event(e.Name)
		if err != nil {
			return fmt.Errorf("emit %s: %w", e.Name, err)
		}
		if err := rule.check(e.Data, limits); err != nil {
			return fmt.Errorf("emit %s: %w", e.Name, err)
		}
		from := len(p.targets)
		to, err := k.route(p.targets[from:], rule, e.Key, e.Data)
		if err != nil {
			return fmt.Errorf("emit %s: %w", e.Name, err)
		}
		p.targets = append(p.targets[:from], to...)
		p.events = append(p.events, plannedEvent{rule: rule, from: from, to: len(p.targets)})
	}
	if err := k.checkRoom(); err != nil {
		return err
	}
	for _, e := range k.out.Effects {
		if _, ok := k.rules.manifest.Effects[e.Kind]; !ok {
			return fmt.Errorf("effect %s: the manifest declares no such effect", e.Kind)
		}
		if n := uint64(len(e.Params)); n > limits.Payload {
			return fmt.Errorf("effect %s: %w: limits.payload is %d bytes, the params have %d", e.Kind, reducer.ErrLimit, limits.Payload, n)
		}
	}
	return k.checkTimers(c, &k.out)
}

// checkRoom checks the mailboxes' room for the planned events.
func (k *kernel) checkRoom() error {
	if c, most := k.full(k.plan.targets); c != nil {
		return fmt.Errorf("emit to %s: %w: limits.mailbox is %d", c.name, ErrMailboxFull, most)
	}
	return nil
}

// fail records a failed step, and halts the cell or skips the event, as its reducer's on_error says.
func (k *kernel) fail(c *cell, x *mail, history receipt.History, err error) {
	rule := k.rules.reducers[c.id().Reducer]
	halt := rule == nil || rule.halt
	b := journal.Failed{Version: journal.V(journal.BodyVersion), Cell: c.name, N: c.n + 1, Halted: halt, Error: journal.Text(err.Error())}
	k.writeRecord(journal.KindFailed, x.record, &b)
	if hear := k.onFailure; hear != nil {
		hear(Failure{Cell: b.Cell, Tick: k.now, Halted: halt, Error: b.Error})
	}
	if halt {
		c.halted = true
		k.halted[c.id()] = c
		return
	}
	k.endTurn(c, history)
}

// endTurn ends a turn: the first event of the cell's mailbox is handled.
func (k *kernel) endTurn(c *cell, history receipt.History) {
	c.n++
	c.history = history
	c.mail.pop(&k.queues)
}

// setState gives a cell the state that its step has put out.
func (k *kernel) setState(c *cell) {
	c.state = append(c.state[:0], k.out.State...)
	if len(c.state) == 0 || string(c.state) == canon.Null {
		c.state = nil
	}
}

// commit writes the records of a step and changes the world accordingly. If the guard ends midway, the caller
// throws the unit away.
func (k *kernel) commit(c *cell, x *mail, history receipt.History) {
	k.endTurn(c, history)
	k.volume += uint64(len(k.out.State))
	k.setState(c)
	b := journal.Stepped{Version: journal.V(journal.BodyVersion), Cell: c.name, N: c.n, Outcome: receipt.OutcomePure, Gas: k.out.Gas}
	if len(c.state) > 0 && k.execution == nil {
		b.State = canon.Sum(c.state)
	}
	if len(k.out.Effects) > 0 {
		b.Outcome = receipt.OutcomeSuccess
	}
	step := k.stepped(x.record, &b)
	if len(c.state) == 0 {
		gone := journal.Deleted{Version: journal.V(journal.BodyVersion), Cell: c.name, N: c.n}
		k.writeRecord(journal.KindDeleted, step, &gone)
	}
	if len(k.out.Cancels) > 0 {
		k.cancelTags(c, step)
	}
	goesOn := func() bool { return k.rules.guard.ended() == nil }
	for i := 0; i < len(k.plan.events) && goesOn(); i++ {
		k.emit(&k.plan.events[i], k.out.Events[i].Data, step)
	}
	for i := 0; i < len(k.out.Effects) && goesOn(); i++ {
		k.askForEffect(c, i, &k.out.Effects[i], step)
	}
	for i := 0; i < len(k.out.Timers) && goesOn(); i++ {
		k.setTimer(c, &k.out.Timers[i], step)
	}
}

// emit sends a planned event.
func (k *kernel) emit(e *plannedEvent, data journal.Data, step journal.Seq) {
	to := k.plan.targets[e.from:e.to]
	var id journal.Seq
	var payload []byte
	if k.execution != nil {
		id, payload = k.pass(data)
	} else {
		b := journal.Emitted{Version: journal.V(journal.BodyVersion), Name: e.rule.name, To: k.names(to), Data: data}
		id, payload = k.write(journal.KindEmitted, step, b.Append(k.body[:0]))
	}
	if len(to) > 0 {
		k.deliverAll(to, mail{record: id, name: e.rule.name, data: k.tail(payload, data)})
	}
	if len(to) == 0 {
		dropped := journal.Dropped{Version: journal.V(journal.BodyVersion), Name: e.rule.name, Reason: "no_route"}
		k.writeRecord(journal.KindDropped, id, &dropped)
	}
}
