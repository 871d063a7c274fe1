package world

import (
	"cmp"
	"errors"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
)

// kernel is a world as a state machine: it takes inputs, computes what follows
// from them one unit at a time, and says in a ready what must be durable before
// what may be released. It does no I/O and is not safe for concurrent use.
//
// Its state is a fold over the journal. A unit (one input with what follows
// from it at once, or one cell's turn) is never split between two batches.
type kernel struct {
	recorder

	id      string // the world's
	seed    uint64
	lineage receipt.History
	rules   *rules
	keys    *receipt.Keyring // nil: receipts are not verified, see Replay
	decoder receipt.Decoder

	shelf     *shelf
	cells     cells
	counts    occurrences
	queues    queues
	longest   int     // at least as long as the longest mailbox
	order     []*cell // scratch: of a broadcast
	scheduler scheduler
	scheduled alarms // submitted events that fall due later
	submits   submits
	timers    alarms
	tagged    map[timerTag]*alarm // of timers, by their tags
	lists     alarmLists          // of both, in images
	ledger    receipt.Ledger
	shelvedAt journal.Seq // what of the ledger is not in memory is as it was then; 0: all is
	inTick    bool        // since clock.advanced, until the next input but a receipt
	handled   uint64      // events handled in this tick
	still     bool        // since clock.advanced, until the next: nothing is permitted
	stills    uint        // who holds the world, see Hold: its ticks permit nothing; not in the journal but by these
	parked    map[reducer.Cell]*cell
	operators uint64 // effects submitted by operators
	budgets   budgets
	paces     map[string]pace        // by kind of effect
	rests     map[string]journal.Seq // capabilities, since records
	catalog   snapshot.Catalog
	retention uint64 // snapshots kept, in the place of what the manifest says; 0: as the manifest says
	rollbacks []turning
	fresh     []journal.Seq // those with fresh effects
	recalls   []recall
	onHold    bool     // a fork whose effects wait for persons, but for those of kinds in live
	live      []string // by name
	proposals governance.Proposals
	since     journal.Seq // the last record of what put the rules in force
	ticked    journal.Seq // the clock.advanced since which it is now

	tree      *stateTree // nil: not computed yet
	paranoid  bool
	onPrint   func(Printed) // hears what steps print; nil: nobody does
	onFailure func(Failure) // hears of steps that fail; nil: nobody does
	replaying bool          // a key that is revoked now was good when its receipts came
	dirty     []*cell       // since the last checkpoint
	in        reducer.Input
	out       reducer.Output
	plan      plan
	request   governance.Request
	received  receipt.Receipt       // see genuine
	emitted   journal.IntentEmitted // the last that was noted: so it needs no memory of its own
	finished  journal.Finished      // likewise
	scratch   []byte
}

// errTickOpen says that an input came before the tick was over.
var errTickOpen = errors.New("world: a tick is under way: only receipts may come in")

// tickOpen reports whether cells have turns left in this tick.
func (k *kernel) tickOpen() bool {
	return k.scheduler.left > 0 ||
		k.inTick && k.scheduler.ready() > 0 && k.handled < k.rules.manifest.Limits.EventsPerTick
}

func newKernel(keys *receipt.Keyring, paranoid bool) *kernel {
	s := new(shelf)
	return &kernel{
		recorder: newRecorder(journal.Head{}, 0), keys: keys, paranoid: paranoid, shelf: s,
		cells: cells{here: make(map[string]*cell), shelf: s}, counts: occurrences{here: make(map[journal.CountKey]count), shelf: s},
		parked: make(map[reducer.Cell]*cell), lists: newAlarmLists(),
	}
}

// create writes record 1.
func (k *kernel) create(c journal.Created) {
	k.id, k.seed = c.World, c.Seed
	k.since = k.note(journal.KindCreated, 0, &c)
}

// submit takes an event from outside. It goes into mailboxes at once, or at
// the tick due if that is still to come.
func (k *kernel) submit(name string, data journal.Data, direct *reducer.Cell, due manifest.Tick, key *SubmitKey) (journal.Seq, error) {
	if k.tickOpen() {
		return 0, errTickOpen
	}
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
		k.submits.note(key, id, cmp.Or(k.rules.manifest.Limits.SubmitKeys, manifest.DefaultSubmitKeys))
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

// targets returns the cells that a submitted event goes to. Their mailboxes
// have room.
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
	if c, _ := k.full(); c != nil {
		return nil, refuse(ErrMailboxFull, c.name, "%d events wait, limits.mailbox is %d", c.mail.len(), k.rules.manifest.Limits.Mailbox)
	}
	return to, nil
}

// names returns the cells' names in memory that is reused.
func (k *kernel) names(cells []*cell) []string {
	out := k.plan.names[:0]
	for _, c := range cells {
		out = append(out, c.name)
	}
	k.plan.names = out
	return out
}

// deliver puts an event into a cell's mailbox; the cell is born with it.
func (k *kernel) deliver(c *cell, x mail) {
	if !c.born {
		if twin := k.cells.get(c.id()); twin != nil {
			c = twin // born since the event was routed, or no more
		} else {
			k.cells.put(c)
		}
	}
	if !c.born {
		c.history = k.lineage
		k.cells.bear(c, true)
	}
	c.mail.push(x, &k.queues)
	k.longest = max(k.longest, c.mail.len())
	k.touch(c)
	if !c.queued && !c.parked {
		k.scheduler.push(c)
	}
}

// touch notes that a cell changes. The record that says so may have been
// written or come next, but no snapshot is between.
func (k *kernel) touch(c *cell) {
	c.changed = k.last + 1
	if !c.dirty {
		c.dirty = true
		k.dirty = append(k.dirty, c)
	}
	if k.tree != nil && !c.stale {
		c.stale = true
		k.tree.stale = append(k.tree.stale, c)
	}
}

// advance begins a tick: what falls due is delivered, and the first round is
// ready to go. still has it permit nothing.
func (k *kernel) advance(to manifest.Tick, still bool) error {
	if k.tickOpen() {
		return errTickOpen
	}
	if to < k.now || to == k.now && !k.tickGoesOn() && !still {
		return refuse(ErrBadTick, "to", "%d, and the world is at tick %d", to, k.now)
	}
	k.begin(to, still)
	return nil
}

// begin is advance with nothing in its way. A tick of a real clock can go on: what came
// after it had ended need not wait for the next one. So can any from where it permits nothing.
// Once its guard has ended all is thrown away.
func (k *kernel) begin(to manifest.Tick, still bool) {
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

// resume lets a parked cell go on, with the event that failed or without it.
func (k *kernel) resume(id reducer.Cell, b journal.Resumed) error {
	if k.tickOpen() {
		return errTickOpen
	}
	c := k.cells.get(id)
	if c == nil {
		return refuse(ErrNoCell, "cell", "%s", id)
	}
	if !c.parked {
		return refuse(ErrNotParked, "cell", "%s", id)
	}
	if b.Actor == "" && b.Reason != "" {
		return refuse(ErrNoReason, "actor", "say who decides")
	}
	b.V, b.Cell = journal.BodyVersion, c.name
	b.Actor, b.Reason = journal.Text(b.Actor), journal.Text(b.Reason)
	k.noteInput(journal.KindResumed, &b)
	if b.Skip {
		c.history, k.scratch = c.nextHistory(k.scratch, c.mail.front())
		c.n++
		c.mail.pop(&k.queues)
	}
	c.parked = false
	delete(k.parked, c.id())
	k.touch(c)
	if c.mail.len() > 0 {
		k.scheduler.push(c)
	}
	return nil
}

// next does one unit of what follows from the inputs: the turn of one cell. It
// reports false at a barrier where the tick has nothing more to do, and where its guard
// ends it.
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

// lacksNext reports whether next would give a turn to a cell whose reducer this program
// lacks.
func (k *kernel) lacksNext() bool {
	if k.rules.lacks == nil || !k.tickOpen() {
		return false
	}
	rule := k.rules.reducers[k.scheduler.queue[k.scheduler.first].id().Reducer]
	return rule != nil && rule.impl == nil
}

// nextAlarm returns the tick at which the next timer or scheduled event is due.
func (k *kernel) nextAlarm() (manifest.Tick, bool) {
	var at manifest.Tick
	found := false
	for _, h := range []alarms{k.scheduled, k.timers} {
		if len(h) > 0 && (!found || h[0].at < at) {
			at, found = h[0].at, true
		}
	}
	return at, found && k.reaches(at)
}

// reaches reports whether the clock comes to a tick. What the journal has for one that does
// not come is never due: under another clock it may have been to come.
func (k *kernel) reaches(at manifest.Tick) bool {
	return at <= max(k.now, k.rules.manifest.Clock.Last())
}
