package worldtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// simulation is a world that is disturbed while it lives.
type simulation struct {
	t       *testing.T
	rng     *rand.Rand
	total   *fault.Struck
	w       *World
	journal *Journal
	read    int // records that ledger is made of
	ledger  map[receipt.Key]*told
}

// told is what the durable journal tells of an intent.
type told struct {
	decided, started, finished int
	permit                     journal.Started
	receipt                    []byte
}

// look reads what has become durable.
func (s *simulation) look() {
	for _, stored := range s.journal.Records()[s.read:] {
		s.read++
		rec, err := journal.DecodeRecord(stored.Bytes)
		require.NoError(s.t, err)
		require.NoError(s.t, rec.Load(s.journal))
		body, err := rec.Body()
		require.NoError(s.t, err)
		switch b := body.(type) {
		case *journal.IntentEmitted:
			s.told(b.Key).decided++
		case *journal.Started:
			s.told(b.Key).started++
			s.told(b.Key).permit = *b
		case *journal.Finished:
			r, err := receipt.Decode(b.Receipt)
			require.NoError(s.t, err)
			s.told(r.Key).finished++
			s.told(r.Key).receipt = b.Receipt
		}
	}
}

func (s *simulation) told(key receipt.Key) *told {
	if s.ledger[key] == nil {
		s.ledger[key] = new(told)
	}
	return s.ledger[key]
}

// judge holds the laws of the ledger against the durable journal.
func (s *simulation) judge() {
	s.look()
	for key, x := range s.ledger {
		require.NotZero(s.t, x.decided, "intent %s has a decision", key)
		require.LessOrEqual(s.t, x.started, 1, "intent %s was allowed to execute twice", key)
		require.LessOrEqual(s.t, x.finished, x.started, "intent %s has more ends than starts", key)
	}
}

// perform answers an effect, or does not yet.
func (s *simulation) perform(p receipt.Permit) Reply {
	s.look()
	x := s.told(p.Key)
	require.Equal(s.t, 1, x.started, "performed before its permit was durable")
	require.Equal(s.t, [2]any{x.permit.Attempt, x.permit.Nonce}, [2]any{p.Attempt, p.Nonce})
	require.Zero(s.t, x.finished, "performed after its receipt was durable")
	if s.rng.IntN(3) == 0 {
		s.total.Count("answer late")
		return Reply{Err: errLate}
	}
	return fate(p)
}

// fail lets the journal fail now and then; a wait may also end without anyone
// knowing how.
func (s *simulation) fail(wait bool) error {
	switch s.rng.IntN(24) {
	case 0:
		if wait {
			s.total.Count("append lost")
		} else {
			s.total.Count("append refused")
		}
		return ErrInjected
	case 1:
		if wait {
			s.total.Count("append unknown")
			return journal.ErrUnknown
		}
	}
	return nil
}

// failRead lets the journal fail to read what the world has left to an image.
func (s *simulation) failRead() error {
	if s.rng.IntN(24) > 0 {
		return nil
	}
	s.total.Count("image unreadable")
	return ErrInjected
}

// live does an action whatever comes in between, and requires that it ends as it
// does in peace.
func (s *simulation) live(d *action, want result) {
	s.patiently(func() (bool, error) {
		if d.name == "" {
			if s.w.Status().Time == want.time {
				return true, nil // the tick has begun; what comes next finishes it
			}
			return false, s.w.World.Step(s.context())
		}
		if want.refused == nil && events(s.w) == want.events {
			return true, nil // it was durable before the journal failed
		}
		err := do(s.context(), s.t, s.w, d)
		if d.name == "adopt" && (errors.Is(err, ErrInjected) || errors.Is(err, journal.ErrUnknown)) {
			s.total.Count("step of a change lost")
		}
		if err == nil {
			require.NoError(s.t, want.refused)
			require.Equal(s.t, want.events, events(s.w), "acknowledged before it was durable")
		}
		if input := new(world.InputError); errors.As(err, &input) {
			require.Equal(s.t, want.refused, err)
			return true, nil
		}
		return false, err
	})
	if s.rng.IntN(4) == 0 {
		s.crash()
	}
	s.meddle()
}

// patiently does something until it is done, through all that may go wrong.
func (s *simulation) patiently(do func() (done bool, err error)) {
	for range 10_000 {
		done, err := do()
		if done {
			return
		}
		switch {
		case err == nil:
			require.Equal(s.t, s.journal.Head(), s.w.Status().Head, "returned before it was durable")
			return
		case errors.Is(err, ErrInjected), errors.Is(err, journal.ErrUnknown):
			_, again := s.w.Receive(nil)
			require.ErrorIs(s.t, err, again, "after a failure the world refuses everything with its reason")
			s.crash()
		case errors.Is(err, errLate), errors.Is(err, context.Canceled):
			s.meddle()
		default:
			require.NoError(s.t, err)
		}
	}
	s.t.Fatal("it never ends")
}

// crash ends the world in memory and opens it with other sizes.
func (s *simulation) crash() {
	s.total.Count("process killed")
	s.w.cfg.BatchRecords = 1 + s.rng.IntN(12)
	s.w.cfg.CheckpointRecords = journal.Seq(1 + s.rng.IntN(60))
	durable := s.journal.Head()
	s.journal.FailRead = nil
	s.w.Crash()
	s.journal.FailRead = s.failRead
	require.Equal(s.t, durable, s.w.Status().Head)
}

// context returns one that now and then ends in the middle.
func (s *simulation) context() context.Context {
	if s.rng.IntN(4) > 0 {
		return context.Background()
	}
	return &countdown{Context: context.Background(), left: s.rng.IntN(12), total: s.total}
}

// countdown is a context that ends after it has been asked so many times.
type countdown struct {
	context.Context
	left  int
	total *fault.Struck
}

func (c *countdown) Err() error {
	if c.left == 0 {
		c.total.Count("call interrupted")
		return context.Canceled
	}
	c.left--
	return nil
}

// meddle offers receipts: those that must be refused, and now and then the one
// that the world waits for, from another hand than the host's.
func (s *simulation) meddle() {
	s.look()
	for _, x := range s.ledger {
		if x.finished > 0 {
			s.refused("receipt twice", x.receipt, receipt.ErrDuplicate)
		}
	}
	flight := s.inFlight()
	absent := receipt.Permit{Intent: receipt.Intent{Kind: "tool.a"}, Attempt: 1}
	if len(flight) > 0 {
		absent = flight[s.rng.IntN(len(flight))]
		s.forge(absent)
	}
	absent.Key.Hash[0]++
	s.refused("receipt of nothing", s.sign(s.w.cfg.Keys, absent), receipt.ErrUnknownIntent)
	if len(flight) > 0 && s.rng.IntN(2) == 0 {
		s.total.Count("receipt from elsewhere")
		_, err := s.w.Receive(s.sign(s.w.cfg.Keys, flight[0]))
		switch {
		case errors.Is(err, ErrInjected), errors.Is(err, journal.ErrUnknown):
			s.crash()
		default:
			require.NoError(s.t, err)
		}
	}
}

// forge offers receipts for an effect in flight that are not what they seem.
func (s *simulation) forge(p receipt.Permit) {
	keys := s.w.cfg.Keys
	s.refused("receipt of another world", s.sign(Keyring(s.t, "another"), p), receipt.ErrUnknownKey)
	other := p
	other.Nonce[s.rng.IntN(len(p.Nonce))]++
	s.refused("receipt of another permit", s.sign(keys, other), receipt.ErrWrongAttempt)
	other = p
	other.Attempt++
	s.refused("receipt of another permit", s.sign(keys, other), receipt.ErrWrongAttempt)
	other = p
	other.Kind = "tool.c"
	s.refused("receipt of another kind", s.sign(keys, other), receipt.ErrWrongIntent)
	forged := s.sign(keys, p)
	forged[s.rng.IntN(len(forged))] ^= 1 << s.rng.IntN(8)
	s.refused("receipt with a bit flipped", forged, nil)
}

// refused offers a receipt that must change nothing; nil stands for any reason.
func (s *simulation) refused(name string, data []byte, why error) {
	s.total.Count(name)
	before := s.w.Status()
	s.journal.FailRead = nil // what it answers has ended, and may have left memory
	_, err := s.w.Receive(data)
	s.journal.FailRead = s.failRead
	require.Error(s.t, err)
	if why != nil {
		require.ErrorIs(s.t, err, why)
	}
	require.Equal(s.t, before, s.w.Status())
}

func (s *simulation) sign(keys *receipt.Keyring, p receipt.Permit) []byte {
	p.Time = s.w.Manifest().Clock.At(s.w.Status().Time)
	data, err := Sign(keys, "test", p, fate(p))
	require.NoError(s.t, err)
	return data
}

// inFlight returns the permits of effects that wait for their answer, in the
// order in which the world takes them.
func (s *simulation) inFlight() []receipt.Permit { return s.w.InFlight() }
