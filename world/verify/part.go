package verify

import (
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/journal"
)

// What can be said of a part of a journal, which does not begin with record 1: that
// its bytes are those that were signed, and that its receipts are what their hashes
// say. What follows from the past is not judged.

// part reports whether the journal does not begin with record 1.
func (v *verifier) part() bool { return v.cfg.Begin.First > 1 }

// startPart goes on from what is before the first record.
func (v *verifier) startPart() {
	if a := v.cfg.Anchor; a.ID != 0 {
		v.report.Anchor = &AnchorProof{ID: a.ID}
	}
	if !v.part() {
		return
	}
	b := v.cfg.Begin
	v.report.From, v.report.WorldID, v.unwritten = b.First, v.worldBefore(), true
	tree, err := checkpoint.Resume(uint64(b.First-1), b.Nodes)
	if err != nil {
		v.fault(placeOf(b.First-1), "%v", err)
		v.heads.blind = "the tree over the records before the first is not known"
		return
	}
	v.tree = tree
}

// worldBefore returns the world's id before the first record. Receipts and
// checkpoints from before a fork are its parent's, and only the fork says whose.
func (v *verifier) worldBefore() string {
	for s, err := range v.h.Scan(0) {
		if err != nil {
			break // scan reports it
		}
		if s.Err != nil || s.Record.Kind != journal.KindForked {
			continue
		}
		rec := s.Record
		body, err := rec.LoadBody(v.h)
		if b, ok := body.(*journal.Forked); ok && err == nil {
			return b.Parent
		}
	}
	return v.cfg.Begin.World
}

// misnamed is a chain root that a record names and that is another.
type misnamed struct {
	record journal.Seq
	fault  Fault
}

// named compares the chain root that a record names with the chain.
func (v *verifier) named(place string, body journal.Body) {
	var at journal.Seq
	var root journal.Hash
	switch b := body.(type) {
	case *journal.SnapshotCreated:
		at, root = b.At, b.ChainRoot
	case *journal.Forked:
		at, root = b.At, b.ChainRoot
	default:
		return
	}
	if v.broken || v.lost {
		return
	}
	if at != v.now-1 || root != v.before {
		v.misnamed = append(v.misnamed, misnamed{v.now, Fault{place, fmt.Sprintf(
			"it names chain root %s at record #%d, and that of record #%d is %s", root, at, v.now-1, v.before)}})
	}
}

// closeNamed reports the chain roots that nothing else has compared: the replay does
// where it comes by. In a part of a journal they are all there is to find out whether
// the one before its first record is right.
func (v *verifier) closeNamed() {
	for _, m := range v.misnamed {
		if v.part() || slices.ContainsFunc(v.report.Replay.Gaps, func(g Gap) bool { return g.From <= m.record && m.record <= g.To }) {
			v.report.Faults = append(v.report.Faults, m.fault)
		}
	}
}

// closePart reports a part without records: nothing was shown.
func (v *verifier) closePart() {
	if v.part() && v.report.Records < uint64(v.cfg.Begin.First) {
		v.fault(placeOf(v.cfg.Begin.First), "it should be the first, and the journal has none")
	}
}

// closeWorld compares the world with the one that the caller expects.
func (v *verifier) closeWorld() {
	if want, is := v.cfg.Begin.World, v.report.WorldID; want != "" && is != "" && want != is {
		v.fault("world", "it is %s, and this should be %s", is, want)
	}
}
