package twice

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/verify"
)

// judge holds what the bank did against what somebody said.
type judge struct {
	read      int                  // entries of the book
	keys      map[string]int       // executions, of what was read
	deals     map[deal]int         // likewise
	begun     map[receipt.Key]bool // of which an attempt has ever begun
	forbidden map[receipt.Key]bool // left by a rollback before anything was begun
	cancelled map[receipt.Key]bool // before anything was done

	before map[string]map[receipt.Key]int // executions before each snapshot, those on their way included
}

func newJudge() judge {
	return judge{
		keys: make(map[string]int), deals: make(map[deal]int),
		begun: make(map[receipt.Key]bool), forbidden: make(map[receipt.Key]bool), cancelled: make(map[receipt.Key]bool),
		before: make(map[string]map[receipt.Key]int),
	}
}

// look reads what the journal and the bank's book have since the last time.
func (j *judge) look(l *life) error {
	for {
		body, err := l.history.follow(l.home.journal)
		if err != nil {
			return err
		}
		if body == nil {
			break
		}
		l.said.hear(body, l.history, l.Manifest(), l.home.id)
		j.cancel(l, body)
		if b, ok := body.(*journal.SnapshotCreated); ok {
			j.before[b.Name] = l.said.executions(l.bank)
		}
		if b, ok := body.(*journal.RolledBack); ok {
			if err := j.compare(l, l.history.left, b.Abandoned); err != nil {
				return fmt.Errorf("rollback to %s: %w", b.Snapshot, err)
			}
		}
	}
	if err := j.undone(l); err != nil {
		return err
	}
	for _, e := range l.bank.since(j.read) {
		j.read++
		if err := j.enter(l, e); err != nil {
			return err
		}
	}
	return j.late(l)
}

// cancel notes what a cell, or a rollback, has cancelled before anything was done.
func (j *judge) cancel(l *life, body journal.Body) {
	switch b := body.(type) {
	case *journal.IntentEmitted:
		delete(j.cancelled, b.Key)
	case *journal.IntentAwaitingApproval:
		delete(j.cancelled, b.Key)
	case *journal.IntentCancelled:
		l.count("withdrawn")
		l.tell("    withdrawn: %s, key %s, attempt %d", l.history.deals[b.Key], brief(b.Key), b.Attempt)
	case *journal.IntentEnded:
		if b.Status == receipt.StatusCancelled && !l.said.elsewhere[b.Key] {
			l.count("cancelled unbegun")
			j.cancelled[b.Key] = true
		}
	case *journal.TagCancelled:
		l.count("timer cancelled")
	case *journal.TimerFired:
		l.count("timer fired")
	}
}

// undone requires that what was cancelled as never attempted was not, and will not be.
func (j *judge) undone(l *life) error {
	for _, key := range sorted(j.cancelled) {
		if times, coming := l.bank.happened(key); times > 0 || coming {
			return fmt.Errorf("%s, key %s: it was cancelled as never attempted, and the bank has it", l.history.deals[key], brief(key))
		}
	}
	return nil
}

// enter takes an entry of the bank's book.
func (j *judge) enter(l *life, e entry) error {
	l.count("executed")
	l.tellAt(e.at, "    the bank: %s, key %s", e.deal, brief(e.key))
	j.keys[e.external]++
	j.deals[e.deal]++
	if of, ok := e.deal.refunded(); ok {
		l.count("refunded")
		return l.said.allowsRefund(e, of, j.keys[e.external], j.deals[of])
	}
	err := l.said.allows(e, j.keys[e.external])
	if err != nil {
		l.ledger(e.deal)
	}
	return err
}

// ledger tells what the ledger has about a deal.
func (l *life) ledger(d deal) {
	for _, e := range l.Intents() {
		if l.history.deals[e.Intent.Key] == d {
			l.tell("    the ledger: %s is %s %s, attempt %d, abandoned %t, reused %t",
				brief(e.Intent.Key), e.State, e.Outcome, e.Attempt, e.Abandoned, e.Reused)
		}
	}
}

// listed requires that a rollback which was refused says why.
func (j *judge) listed(l *life, snapshot string, effects []journal.SideEffect) error {
	if err := j.look(l); err != nil {
		return err
	}
	if err := j.compare(l, l.history.leaves(snapshot), effects); err != nil {
		return fmt.Errorf("rollback to %s, which was refused: %w", snapshot, err)
	}
	return nil
}

// errUnlisted says that a rollback kept quiet about something.
var errUnlisted = errors.New("it leaves behind, and does not list")

// compare requires that all that was done, or may yet be, in the part that is left
// is listed.
func (j *judge) compare(l *life, left map[receipt.Key]bool, effects []journal.SideEffect) error {
	listed := make(map[receipt.Key]bool)
	for _, x := range effects {
		listed[x.Key] = true
		l.count("listed")
	}
	for _, key := range sorted(left) {
		d := l.history.deals[key]
		times, coming := l.bank.happened(key)
		if times == 0 && !coming || listed[key] || l.bank.tookBack(l.history.steps[key]) || l.said.elsewhere[key] {
			continue
		}
		e := l.entry(key)
		return fmt.Errorf("%w: %s, key %s, which is %s (attempt %d, abandoned %t)", errUnlisted, d, brief(key), e.State, e.Attempt, e.Abandoned)
	}
	return nil
}

// leave notes what a rollback has just left behind before anything of it was
// begun: nobody may begin it any more, unless it is asked for again. What a
// process had in hand that was killed may have been begun, for all anybody knows.
func (j *judge) leave(l *life) {
	j.began(l)
	for _, e := range l.Intents() {
		key := e.Intent.Key
		idle := e.State == receipt.StateInFlight || e.State == receipt.StateOpen
		if e.Abandoned && idle && !j.begun[key] && len(e.Lost) == 0 && e.For == nil {
			l.count("left unbegun")
			j.forbidden[key] = true
		}
	}
}

func (j *judge) began(l *life) []receipt.Key {
	begun := l.teller.news()
	for _, key := range begun {
		j.begun[key] = true
	}
	return begun
}

// late requires that nothing has begun that was forbidden.
func (j *judge) late(l *life) error {
	for _, key := range j.began(l) {
		if j.forbidden[key] && l.entry(key).Abandoned {
			return fmt.Errorf("%s, key %s: a rollback left it before it was begun, and now it was", l.history.deals[key], brief(key))
		}
	}
	for key := range j.forbidden {
		if !l.entry(key).Abandoned {
			delete(j.forbidden, key)
		}
	}
	return nil
}

// end lets everything end that can, and judges what is left.
func (l *life) end() error {
	l.tell("the end: everybody decides, and the world runs until it is idle")
	ctx, reopened := context.Background(), 0
	for range 200 {
		if err := l.attempt(l.untilIdle); err != nil {
			return err
		}
		<-time.After(2 * timeout)
		open := false
		for _, e := range l.Intents() {
			if !e.State.AwaitsPerson() && e.State != receipt.StateInDoubt {
				continue
			}
			could, err := l.decideOn(ctx, &e, false)
			if input := new(world.InputError); err != nil && !errors.As(err, &input) {
				return err
			}
			open = open || could
		}
		switch {
		case open || !l.Idle():
		case l.unconfirmed() && reopened < 20:
			reopened++
			if err := l.restart(ctx); err != nil {
				return err
			}
		default:
			return l.judge()
		}
	}
	return errors.New("it never ends")
}

// unconfirmed reports whether somebody still waits to be told because a verifier could not
// be reached that was to confirm a recorded result: the next process asks it again.
func (l *life) unconfirmed() bool {
	if !l.teller.isUnsure() {
		return false
	}
	for _, c := range l.Cells() {
		var s account
		if len(c.State) > 0 && canon.UnmarshalTrusted(c.State, &s) == nil && slices.Contains(slices.Collect(maps.Values(s.Paid)), asked) {
			return true
		}
	}
	return false
}

// untilIdle runs the world until nothing more can happen: less than a day, or never.
func (l *life) untilIdle(context.Context) error {
	ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
	defer cancel()
	err := l.Run(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("it waits for ever")
	}
	return err
}

// paid reports whether the bank has made a deal, and not taken it back. What was
// taken back elsewhere a history cannot know: in a parent since they parted, or
// in another history before a rollback led back to this one.
func (l *life) paid(d deal) bool {
	times, undone := l.bank.made(d)
	return times > undone || times > 0 && (l.forks > 0 || l.returned)
}

// judge requires that nobody was told of a payment that was not made, and that
// the journal is what it says.
func (l *life) judge() error {
	if err := l.sound.look(l); err != nil {
		return err
	}
	for _, c := range l.Cells() {
		var s account
		if len(c.State) == 0 {
			continue
		}
		if err := canon.UnmarshalTrusted(c.State, &s); err != nil {
			return err
		}
		for tag, status := range s.Paid {
			kind, what := tag[:len(kinds[0])], tag[len(kinds[0])+1:]
			d := deal{c.Cell.String(), kind, paramsOf(what)}
			l.count("told " + status)
			if s.Withdrawn[tag] {
				l.count("told apart")
			}
			if status == untold || status == mistold {
				return fmt.Errorf("%s of %s: %s", tag, c.Cell, status)
			}
			if status == string(receipt.StatusOK) && !l.paid(d) {
				return fmt.Errorf("%s was told that %s is paid, and it is not", c.Cell, d)
			}
			if status == asked {
				l.ledger(d)
				return fmt.Errorf("%s was never told what became of %s", c.Cell, d)
			}
		}
	}
	got, err := world.Replay(context.Background(), l.home.journal, world.ReplayConfig{Keys: l.home.keys, Registry: registry()})
	if err != nil {
		return err
	}
	if got.Head != l.Status().Head || got.StateRoot != l.StateRoot() {
		return errors.New("the replay is another world")
	}
	r, err := verify.Verify(context.Background(), l.home.journal, verify.Config{Keys: l.home.keys, Registry: registry(), Anchor: l.Status().Head})
	if err == nil && !r.OK {
		err = fmt.Errorf("it does not verify: %v", r.Faults)
	}
	return err
}
