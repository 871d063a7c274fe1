package worldtest

import (
	"context"
	"errors"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// underWay reports whether an intent has neither ended nor been left alone: an attempt
// of it may be in flight or in doubt, or it waits for one.
func (s *liveSimulation) underWay() bool {
	return slices.ContainsFunc(s.w.Intents(), func(e receipt.Entry) bool { return !e.Ended() })
}

// forget has a process that begins find less than the last one has left.
func (s *liveSimulation) forget() {
	s.images = append(s.images, s.w.Journal.Images.Clone())
	switch s.rng.IntN(16) {
	case 0:
		s.struck.Count("images lost")
		s.w.Journal.Images = journal.Images{}
	case 1:
		s.struck.Count("image stale")
		s.w.Journal.Images = s.images[s.rng.IntN(len(s.images))].Clone()
	case 2:
		if len(s.out.stored) > 0 {
			s.struck.Count("effect store lost")
			s.out.stored = nil
		}
	}
}

// muddle has answers come that nobody expects so.
func (s *liveSimulation) muddle() {
	if more := s.out.Tasks(receipt.Perform); len(more) > 0 && s.rng.IntN(3) == 0 {
		s.out.Reply(more[0], s.fates[attemptOf{more[0].Key, more[0].Attempt}])
	}
	last := len(s.out.answers) - 1
	switch s.rng.IntN(6) {
	case 0:
		s.struck.Count("answer twice")
		s.out.answers = append(s.out.answers, s.out.answers[last])
	case 1:
		if last > 0 {
			s.struck.Count("answers out of order")
			slices.Reverse(s.out.answers)
		}
	case 2:
		other := slices.IndexFunc(s.out.answers[:last], func(a receipt.Answer) bool { return a.Receipt != nil })
		if other >= 0 && s.out.answers[last].Receipt != nil {
			s.struck.Count("answer to another attempt")
			a, b := &s.out.answers[last], &s.out.answers[other]
			a.Receipt, b.Receipt = b.Receipt, a.Receipt
		}
	}
}

// tooLate has a person decide about an intent that has ended.
func (s *liveSimulation) tooLate(e *receipt.Entry) {
	if !e.Ended() {
		return
	}
	how := []journal.Resolution{journal.Approve, journal.Disapprove, journal.Executed, journal.NotExecuted}[s.rng.IntN(4)]
	_, err := s.w.Resolve(context.Background(), journal.Resolved{Key: e.Intent.Key, Params: e.Params, Actor: "ada", Reason: "she is late", How: how})
	if errors.Is(err, ErrInjected) {
		s.crash()
		return
	}
	if err == nil && how == journal.NotExecuted && e.State == receipt.StateFailed {
		return // what failed is asked for again
	}
	input := new(world.InputError)
	require.ErrorAs(s.t, err, &input)
	s.struck.Count("approval too late")
}

// govern changes the rules: how much may be in flight, or whether cells may ask for
// anything at all.
func (s *liveSimulation) govern() {
	next := *s.w.Manifest()
	next.Version++
	next.Limits.InFlight = 1 + next.Version%4
	revoke := s.rng.IntN(3) == 0
	bot := next.Reducers["bot"]
	bot.Grants = []string{"tools"}
	if revoke {
		bot.Grants = nil
	}
	next.Reducers = map[string]manifest.Reducer{"bot": bot, "skip": next.Reducers["skip"]}
	waiting := s.underWay()
	if !s.try(Adopt(context.Background(), s.w.World, &next, nil)) || !waiting {
		return
	}
	s.struck.Count("rules changed amid effects")
	if revoke {
		s.struck.Count("capability revoked")
	}
}

// rare does what happens once in the life of a world.
func (s *liveSimulation) rare() {
	switch s.rng.IntN(3) {
	case 0:
		s.rotate()
	case 1:
		s.takeOver()
	}
}

// rotate gives the world a new receipt key, as a process does that ends then.
func (s *liveSimulation) rotate() {
	secret := canon.Sum([]byte{byte(s.rng.IntN(256)), byte(len(s.w.cfg.Keys.Keys()))})
	keys, err := s.w.cfg.Keys.Rotate(secret[:])
	require.NoError(s.t, err)
	under := s.underWay()
	s.w.cfg.Keys = keys
	s.crash()
	b := journal.KeysRotated{Actor: "ada", Revoked: []string{}}
	for _, k := range keys.Keys() {
		if k.Current {
			b.KeyID = k.ID
		}
	}
	if s.try(ErrorOf(s.w.NoteRotation(context.Background(), b))) && under {
		s.struck.Count("receipt key rotated")
	}
}

// takeOver has another process go on with the world, while the one before does not know.
func (s *liveSimulation) takeOver() {
	old := s.w.World
	shown, err := s.w.Journal.shown()
	require.NoError(s.t, err)
	images := shown.Clone() // each process has images of its own: the one before reads cells from them
	s.crash()
	if !s.try(s.w.TrySubmit("go", map[string]any{"to": "a", "do": []any{}})) {
		return
	}
	head := s.w.Journal.Head()
	data, err := canon.Marshal(map[string]any{"to": "b", "do": []any{}})
	require.NoError(s.t, err)
	theirs := s.w.Journal.Images
	s.w.Journal.Images = images
	_, err = old.Submit(context.Background(), world.Submission{Name: "go", Data: data})
	s.w.Journal.Images = theirs
	require.Error(s.t, err)
	require.Equal(s.t, head, s.w.Journal.Head(), "two processes write one journal")
	s.struck.Count("two processes")
}
