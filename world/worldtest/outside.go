package worldtest

import (
	"context"
	"errors"
	"slices"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Outside is a world.Host whose effects are live and whose answers a test gives
// by hand, in the order that it likes: the outside itself, with an effect store
// that survives a Crash. Nothing runs beside the test. It is one world's.
//
//	out := new(worldtest.Outside)
//	w := worldtest.Load(t, "testdata/shop", worldtest.Options{Outside: out})
//	w.Submit("order.placed", map[string]any{"customer": "ada"})
//	w.Drive()
//	out.Lose(out.Task(receipt.Perform), "the line is dead")
//	w.Drive()
type Outside struct {
	// Deterministic are the kinds that are not live.
	Deterministic []string
	// Play, if set, is called for every task that waits for an answer, as soon as
	// the world hands it out. It may answer it or not.
	Play func(t receipt.Task)
	// Performed are the attempts that the world had performed, oldest first,
	// whatever became of them. A Crash does not change it.
	Performed []receipt.Permit
	// Unbegun, if set, says of an attempt that a rollback leaves behind, or that its
	// cell has cancelled, whether nobody has begun it: then it is no longer one of
	// Performed.
	Unbegun func(t receipt.Task) bool

	world   string
	keys    *receipt.Keyring
	tasks   []receipt.Task
	answers []receipt.Answer
	stored  []stored
}

// stored is a result in the effect store.
type stored struct {
	key     receipt.Key
	attempt uint64
	receipt []byte
}

func (s *stored) isOf(t *receipt.Task) bool { return s.key == t.Key && s.attempt == t.Attempt }

// ErrNoAnswer fails a world that waits for an Outside without answers.
var ErrNoAnswer = errors.New("worldtest: the world waits, and the outside has no answer")

// open makes o the host of a process that begins.
func (o *Outside) open(id string, keys *receipt.Keyring) {
	o.world, o.keys = id, keys
	o.tasks, o.answers = nil, nil
}

// Live implements world.Host.
func (o *Outside) Live(in *receipt.Intent) bool {
	return !slices.Contains(o.Deterministic, in.Kind)
}

// Start implements world.Host.
func (o *Outside) Start(tasks []receipt.Task) {
	for _, t := range tasks {
		switch t.Work {
		case receipt.Forget:
			o.stored = slices.DeleteFunc(o.stored, func(s stored) bool { return s.isOf(&t) })
			continue
		case receipt.Recover:
			o.recover(t)
			continue
		case receipt.Withdraw:
			if o.unbegun(t) {
				o.answers = append(o.answers, receipt.Answer{Key: t.Key, Attempt: t.Attempt, Work: receipt.Withdraw, Unbegun: true})
			}
			continue
		case receipt.GiveBack:
			if o.unbegun(t) {
				t.Work = receipt.Perform
				o.Reply(t, GivenBack())
			}
			continue
		case receipt.Hasten:
			o.Due(o.retry(t))
			continue
		case receipt.Perform:
			o.Performed = append(o.Performed, t.Permit)
		case receipt.Retry, receipt.Verify, receipt.Confirm:
		}
		o.tasks = append(o.tasks, t)
		if o.Play != nil {
			o.Play(t)
		}
	}
}

// retry returns the task that began the wait which another one ends: that itself where a
// process before began it.
func (o *Outside) retry(hasten receipt.Task) receipt.Task {
	at := slices.IndexFunc(o.tasks, func(t receipt.Task) bool {
		return t.Work == receipt.Retry && t.Key == hasten.Key && t.Attempt == hasten.Attempt
	})
	if at < 0 {
		return hasten
	}
	return o.tasks[at]
}

// GivenBack is the reply of a host that has not begun an attempt and never will.
func GivenBack() Reply {
	return Reply{Status: receipt.StatusCancelled, Class: receipt.OutcomeRetryableFailure, Unsent: true}
}

// unbegun takes back an attempt to perform that nobody has begun, and reports whether
// it was one.
func (o *Outside) unbegun(t receipt.Task) bool {
	same := func(x receipt.Task) bool {
		return x.Work == receipt.Perform && x.Key == t.Key && x.Attempt == t.Attempt
	}
	if o.Unbegun == nil || !slices.ContainsFunc(o.tasks, same) || !o.Unbegun(t) {
		return false
	}
	o.tasks = slices.DeleteFunc(o.tasks, same)
	o.Performed = slices.DeleteFunc(o.Performed, func(p receipt.Permit) bool { return p.Key == t.Key && p.Attempt == t.Attempt })
	return true
}

func (o *Outside) recover(t receipt.Task) {
	if i := slices.IndexFunc(o.stored, func(s stored) bool { return s.isOf(&t) }); i >= 0 {
		o.say(t, receipt.Answer{Receipt: o.stored[i].receipt})
		return
	}
	if t.Accepted != "" { // it only asked
		t.Work = receipt.Perform
		o.Reply(t, GivenBack())
		return
	}
	o.say(t, receipt.Answer{Lost: "no result of it was stored"})
}

// Answers implements world.Host.
func (o *Outside) Answers() ([]receipt.Answer, error) {
	out := o.answers
	o.answers = nil
	return out, nil
}

// Wake implements world.Host: its Wait never blocks on the journal.
func (*Outside) Wake() {}

// Queued implements world.Host.
func (o *Outside) Queued() receipt.Queued {
	all := make(receipt.Queued)
	for _, t := range o.tasks {
		if t.Work == receipt.Perform && o.Unbegun != nil && o.Unbegun(t) {
			all[t.Key] = t.Attempt
		}
	}
	return all
}

// Wait implements world.Host.
func (o *Outside) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil || len(o.answers) > 0 {
		return err
	}
	return ErrNoAnswer
}

// Tasks returns the tasks of one kind of work that have no answer, oldest first.
func (o *Outside) Tasks(work receipt.Work) []receipt.Task {
	return slices.DeleteFunc(slices.Clone(o.tasks), func(t receipt.Task) bool { return t.Work != work })
}

// Task returns the oldest of Tasks. It panics where there is none.
func (o *Outside) Task(work receipt.Work) receipt.Task { return o.Tasks(work)[0] }

// Stored returns how many results the effect store holds.
func (o *Outside) Stored() int { return len(o.stored) }

// Store performs a task and keeps the result, and tells nobody: what is left
// where a process dies just then.
func (o *Outside) Store(t receipt.Task, r Reply) {
	data, err := Sign(o.keys, o.world, t.Permit, r)
	if err != nil {
		panic(err) // a payload without a canonical form
	}
	o.stored = append(o.stored, stored{t.Key, t.Attempt, data})
}

// Reply performs a task, including a task that was lost before.
func (o *Outside) Reply(t receipt.Task, r Reply) {
	if r.Err != nil {
		o.say(t, receipt.Answer{Err: r.Err})
		return
	}
	o.Store(t, r)
	o.say(t, receipt.Answer{Receipt: o.stored[len(o.stored)-1].receipt})
}

// Forge performs a task for a host whose keys are others, which finds its own receipt genuine.
func (o *Outside) Forge(t receipt.Task, keys *receipt.Keyring, r Reply) {
	data, err := Sign(keys, o.world, t.Permit, r)
	if err != nil {
		panic(err) // a payload without a canonical form
	}
	checked, err := keys.Check(new(receipt.Decoder), data)
	if err != nil {
		panic(err) // keys of another world
	}
	o.say(t, receipt.Answer{Receipt: data, Checked: &checked})
}

// Mix exchanges the receipts of the last two answers that nobody has taken.
func (o *Outside) Mix() {
	a, b := &o.answers[len(o.answers)-1], &o.answers[len(o.answers)-2]
	a.Receipt, b.Receipt = b.Receipt, a.Receipt
}

// Lose gives up a task to perform: nobody can tell whether it happened.
func (o *Outside) Lose(t receipt.Task, why string) { o.say(t, receipt.Answer{Lost: why}) }

// Due ends the backoff that a task to retry waits for.
func (o *Outside) Due(t receipt.Task) { o.say(t, receipt.Answer{Due: true}) }

// Find answers a task to verify or to confirm.
func (o *Outside) Find(t receipt.Task, verdict receipt.FoundVerdict, payload manifest.Data, reason string) {
	o.say(t, receipt.Answer{Found: &receipt.Found{Verdict: verdict, Payload: payload, Reason: reason}})
}

// say answers a task.
func (o *Outside) say(t receipt.Task, a receipt.Answer) {
	o.tasks = slices.DeleteFunc(o.tasks, func(x receipt.Task) bool {
		return x.Work == t.Work && x.Key == t.Key && x.Attempt == t.Attempt
	})
	a.Key, a.Attempt, a.Work = t.Key, t.Attempt, t.Work
	o.answers = append(o.answers, a)
}
