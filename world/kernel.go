package world

import (
	"cmp"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// kernel is a world as a state machine. It takes an input, computes the consequences a unit at a
// time, and returns a ready: records that must be durable, and tasks that may begin once they are. It
// does no I/O and is not safe for concurrent use.
//
// The state is a fold over the journal. A unit is an input with its immediate consequences, or the turn of
// a cell. A batch of records never ends inside a unit.
type kernel struct {
	ground
	roster
	calendar
	effects

	submits   submits
	retention uint64 // number of snapshots to keep; 0: the manifest's number
	proposals governance.Proposals

	onPrint   func(Printed) // is called for each print of a step; may be nil
	onFailure func(Failure) // is called for each step that fails; may be nil
	in        reducer.Input
	out       reducer.Output
	plan      plan
}

func newKernel(keys *receipt.Keyring, paranoid bool) *kernel {
	s := new(imageStore)
	k := &kernel{
		ground: ground{recorder: newRecorder(journal.Head{}, 0), paranoid: paranoid},
		roster: roster{
			store: s, cells: cells{here: make(map[string]*cell), store: s}, halted: make(map[reducer.Cell]*cell),
		},
		calendar: calendar{lists: newAlarmLists()},
		effects: effects{
			receipts: receipts{keys: keys}, ledger: ledger{store: s},
			counts: occurrences{here: make(map[journal.CountKey]count), store: s},
		},
	}
	g, r := &k.ground, &k.roster
	k.weigh, k.roster.ground, k.calendar.roster, k.effects.roster = k.held, g, r, r
	k.receipts.ground, k.ledger.ground, k.counts.ground = g, g, g
	return k
}

// create writes record 1.
func (k *kernel) create(c journal.Created) {
	k.id, k.seed = c.World, c.Seed
	k.since = k.writeRecord(journal.KindCreated, 0, &c)
}

// submit takes an event from outside and puts it into mailboxes: now, or at the tick due if that is
// in the future.
func (k *kernel) submit(name string, data journal.Data, direct *reducer.Cell, due manifest.Tick, key *SubmitKey) (journal.Seq, error) {
	rule, err := k.rules.event(name)
	if err != nil {
		return 0, err
	}
	if err := rule.check(data, &k.rules.manifest.Limits); err != nil {
		return 0, err
	}
	if due != 0 && due < k.now {
		return 0, refuse(ErrBadTick, "at", "%d, and the world is at tick %d", due, k.now)
	}
	if most := k.rules.manifest.Limits.Alarms; due > k.now && uint64(len(k.scheduled)) >= most {
		return 0, refuse(ErrAlarms, "at", "%d events are scheduled, limits.alarms is %d", len(k.scheduled), most)
	}
	to, err := k.targets(rule, data, direct)
	if err != nil {
		return 0, err
	}
	b := journal.Submitted{Version: journal.V(journal.BodyVersion), Name: rule.name, Due: due, Direct: direct != nil, To: k.names(to), Data: data}
	if key != nil {
		b.Under, b.Of, b.Nth = key.Name, key.Of, key.Nth
	}
	id, payload := k.write(journal.KindSubmitted, 0, b.Append(k.body[:0]))
	if key != nil {
		k.submits.noteKey(key, id, cmp.Or(k.rules.manifest.Limits.SubmitKeys, manifest.DefaultSubmitKeys))
	}
	k.inTick = false
	x := mail{record: id, name: rule.name, data: k.tail(payload, data)}
	if due > k.now {
		k.scheduled.add(alarm{at: due, record: id, to: append([]*cell(nil), to...), name: x.name, data: x.data})
		touchList(k.lists.scheduled, to)
		return id, nil
	}
	k.deliverAll(to, x)
	return id, nil
}

// targets returns the recipients of a submitted event: the cell named by the sender, or the cells of the
// routes. It is an error if the mailbox of a recipient is full.
func (k *kernel) targets(rule *eventRule, data journal.Data, direct *reducer.Cell) ([]*cell, error) {
	to := k.plan.targets[:0]
	if direct != nil {
		if k.rules.reducers[direct.Reducer] == nil {
			return nil, refuse(ErrNoRoute, "to", "the manifest has no reducer %q", direct.Reducer)
		}
		to = append(to, k.cellFor(*direct))
	} else {
		var err error
		if to, err = k.route(to, rule, "", data); err != nil {
			return nil, err
		}
		if len(to) == 0 {
			return nil, refuse(ErrNoRoute, "event", "%q", rule.name)
		}
	}
	k.plan.targets = to
	if c, _ := k.full(to); c != nil {
		return nil, refuse(ErrMailboxFull, c.name, "%d events wait, limits.mailbox is %d", c.mail.len(), k.rules.manifest.Limits.Mailbox)
	}
	return to, nil
}

// advance begins a tick: events and timers that are due are delivered, and the first round can start. A
// still tick permits no effect.
func (k *kernel) advance(to manifest.Tick, still bool) error {
	if k.tickOpen() {
		return errTickOpen
	}
	if to < k.now || to == k.now && !k.tickGoesOn() && !still {
		return refuse(ErrBadTick, "to", "%d, and the world is at tick %d", to, k.now)
	}
	k.beginTick(to, still)
	return nil
}

// beginTick is advance after its checks. The tick may be the present one again: with a real clock, an event
// that comes after the tick has ended is handled in the same tick; so is a still tick. When the guard ends
// (a signal came), beginTick returns early, and the caller throws the unit away.
func (k *kernel) beginTick(to manifest.Tick, still bool) {
	sameTick := to == k.now
	k.now = to
	still = still || k.stills > 0
	k.inTick, k.handled, k.still = true, 0, still
	b := journal.Advanced{Version: journal.V(journal.BodyVersion), To: to, Still: still}
	if id, _ := k.write(journal.KindAdvanced, 0, b.Append(k.body[:0])); !sameTick {
		k.ticked = id
	}
	for x := range k.scheduled.due(to) {
		if k.rules.guard.ended() != nil {
			return
		}
		if x.mayBeDestroyed() {
			touchList(k.lists.scheduled, x.to)
		}
		k.deliverAll(x.to, mail{record: x.record, name: x.name, data: x.data})
	}
	for x := range k.timers.due(to) {
		if k.rules.guard.ended() != nil {
			return
		}
		k.untag(x)
		if x.mayBeDestroyed() {
			touchList(k.lists.timers, x.to)
		}
		c := x.to[0]
		fired := journal.TimerFired{Version: journal.V(journal.BodyVersion), Cell: c.name, Name: x.name}
		id, _ := k.write(journal.KindFired, x.record, fired.Append(k.body[:0]))
		k.deliver(c, mail{record: id, name: x.name, data: x.data})
	}
	for e := k.ledger.Overdue(uint64(to)); e != nil; e = k.ledger.Overdue(uint64(to)) {
		if k.rules.guard.ended() != nil {
			return
		}
		k.deny(e, journal.Seq(e.Emitted), &governance.Decision{Code: CodeApprovalExpired, Reason: "nobody approved it in time"})
	}
	k.grant()
}

// resume lets a halted cell go on, with the event that failed or without it.
func (k *kernel) resume(id reducer.Cell, b journal.Resumed) error {
	c := k.cells.get(id)
	if c == nil {
		return refuse(ErrNoCell, "cell", "%s", id)
	}
	if !c.halted {
		return refuse(ErrNotHalted, "cell", "%s", id)
	}
	if b.Actor == "" && b.Reason != "" {
		return refuse(ErrNoReason, "actor", "say who decides")
	}
	b.V, b.Cell = journal.BodyVersion, c.name
	b.Actor, b.Reason = journal.Text(b.Actor), journal.Text(b.Reason)
	k.noteInput(journal.KindResumed, &b)
	if b.Skip {
		history, scratch := c.nextHistory(k.scratch, c.mail.front())
		k.scratch = scratch
		k.endTurn(c, history)
	}
	c.halted = false
	delete(k.halted, c.id())
	k.touch(c)
	if c.mail.len() > 0 {
		k.scheduler.push(c)
	}
	return nil
}

// next does a unit: the turn of a cell. It returns false at a barrier if the tick is done, and when
// the guard ends.
func (k *kernel) next() bool {
	if !k.tickOpen() || k.over() {
		return false
	}
	if k.scheduler.left == 0 {
		k.scheduler.left = k.scheduler.ready()
	}
	k.turn(k.scheduler.next())
	if k.scheduler.left == 0 {
		k.grant()
	}
	return true
}
