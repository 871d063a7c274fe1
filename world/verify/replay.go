package verify

import (
	"errors"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// played is what a replay came to.
type played struct {
	at        journal.Seq // the last record that was the same
	snapshots uint64      // among the records that were
	state     journal.Hash
	err       error
}

// play replays a history from a snapshot, or from record 1 where from is 0. Receipts
// are scan's to check, so it takes them at their word: a bad one is one fault, not two.
func (v *verifier) play(h journal.History, from journal.Seq) played {
	p := played{at: from}
	done, err := world.Replay(v.ctx, h, world.ReplayConfig{
		Registry: v.cfg.Registry, Bounds: v.cfg.Bounds, From: from, Spilling: v.cfg.Spilling,
		Visit: func(s journal.Scanned) error {
			p.at = s.ID
			if s.Record.Kind == journal.KindSnapshot {
				p.snapshots++
			}
			if v.cfg.Progress != nil {
				v.cfg.Progress(uint64(s.ID))
			}
			return nil
		},
	})
	if p.err = err; err == nil {
		p.state = done.StateRoot
	}
	return p
}

// begun starts the replay from record 1 of what scan reads; it needs nothing that scan
// finds out. What comes of it is received when scan has ended.
func (v *verifier) begun() <-chan played {
	done := make(chan played, 1)
	go func() {
		defer close(v.feed.ended)
		done <- v.play(&fedHistory{v.h, v.feed}, 0)
	}()
	return done
}

// replay reports what the replay from record 1 came to. Where an input is gone it goes
// on from the next snapshot that can be loaded.
func (v *verifier) replay(p played) {
	var missing *reducer.MissingError
	var beyond *world.BoundError
	for {
		v.report.Snapshots.Checked += p.snapshots
		switch {
		case p.err == nil:
			v.report.StateRoot = p.state
			v.report.Replay.OK = true
			return
		case errors.As(p.err, &beyond), errors.As(p.err, new(*world.SpillError)):
			v.beyond = p.err
			return
		case errors.As(p.err, &missing):
			v.report.Replay.Needs = missing.Reducers
			v.report.Replay.Error = "not replayed here: needs " + strings.Join(missing.Reducers, ", ")
			return
		case v.report.Redacted+v.report.Withheld == 0 || !errors.Is(p.err, journal.ErrNotFound):
			v.diverged(p.err)
			return
		}
		from := v.next(p.at + 1)
		if v.beyond != nil {
			return
		}
		if from == 0 {
			v.gap(p.at+1, journal.Seq(v.report.Records))
			v.report.Replay.OK = true
			return
		}
		v.gap(p.at+1, from)
		p = v.play(v.whole, from)
	}
}

// gap reports records that could not be recomputed.
func (v *verifier) gap(from, to journal.Seq) {
	v.report.Replay.Gaps = append(v.report.Replay.Gaps, Gap{From: min(from, to), To: to})
}

// diverged reports why the replay ended.
func (v *verifier) diverged(err error) {
	v.report.Replay.Error = err.Error()
	place := "replay"
	if d := new(world.Divergence); errors.As(err, &d) {
		v.report.Replay.FirstDivergence = d
		place = placeOf(d.Record)
		if v.kind(d.Record) == journal.KindSnapshot {
			v.report.Snapshots.Bad++
		}
	}
	if !slices.ContainsFunc(v.report.Faults, func(f Fault) bool { return f.Message == err.Error() }) {
		v.fault(place, "%v", err)
	}
}

// kind returns the kind of a record, "" where it cannot be read.
func (v *verifier) kind(id journal.Seq) journal.Kind {
	rec, _ := journal.Read(v.h, id)
	return rec.Kind
}

// next returns the first snapshot at or after a record whose image is kept and
// has the roots that the journal names, 0 where there is none. What is wrong with
// those that it passes over is reported.
func (v *verifier) next(from journal.Seq) journal.Seq {
	for s, err := range v.h.Scan(from - 1) {
		if err != nil {
			break // scan has reported it
		}
		if s.Err != nil || s.Record.Kind != journal.KindSnapshot {
			continue
		}
		switch err := v.image(&s); {
		case err == nil:
			v.report.Snapshots.Checked++
			return s.ID
		case errors.As(err, new(*world.SpillError)):
			v.beyond = err
			return 0
		case errors.Is(err, journal.ErrNotFound): // it was pruned
		default:
			v.report.Snapshots.Bad++
			v.fault(placeOf(s.ID), "%v", err)
		}
	}
	return 0
}

// image checks the kept image of a snapshot against its record.
func (v *verifier) image(s *journal.Scanned) error {
	rec := s.Record
	body, err := rec.LoadBody(v.h)
	if err != nil {
		return err
	}
	done, err := world.Replay(v.ctx, v.whole, world.ReplayConfig{
		Registry: v.cfg.Registry, Bounds: v.cfg.Bounds, From: s.ID, To: s.ID, Spilling: v.cfg.Spilling,
	})
	if err != nil {
		return err
	}
	b, ok := body.(*journal.SnapshotCreated)
	if !ok || done.StateRoot != b.StateRoot || [journal.LinkBytes]byte(done.Head.Root[:journal.LinkBytes]) != s.Link {
		return world.ErrOtherState
	}
	return nil
}
