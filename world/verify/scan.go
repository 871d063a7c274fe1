package verify

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// scan walks the journal once: chain, anchor, tree, checkpoints, receipts, intents,
// changes of the rules, execution.
func (v *verifier) scan() {
	last := max(v.cfg.Begin.First, 1) - 1
	v.compareHeads()
	for s := range v.feed.records() {
		if s.err != nil {
			v.fault(placeOf(last+1), "%v", s.err)
			v.heads.blind = fmt.Sprintf("the journal cannot be read beyond record #%d", last)
			break
		}
		place := placeOf(s.ID)
		if s.ID != last+1 {
			v.fault(place, "it follows record #%d: records are missing, repeated or out of order", last)
		}
		last = s.ID
		v.link(place, s)
		if s.Err != nil {
			v.fault(place, "%v", s.Err)
		} else {
			rec := s.Record
			v.record(place, &rec)
		}
		v.tree.AddLeaf(s.leaf)
		v.compareHeads()
		if v.part() && v.cfg.Progress != nil {
			v.cfg.Progress(uint64(s.ID)) // else it is the replay's
		}
	}
	v.report.Records = uint64(last)
	if !v.lost {
		v.report.EventChainRootHash = v.root
	}
	if !v.unwritten {
		v.report.ExecutionHash = v.execution.Hash()
	}
	if a := v.report.Anchor; a != nil && !a.OK {
		v.fault("anchor", "record #%d with root %s was acknowledged, and the journal does not have it", a.ID, v.cfg.Anchor.Root)
	}
}

// link compares the chain root with a record with what is stored of it and with the
// anchor.
func (v *verifier) link(place string, s *fed) {
	id, root := s.id, s.Root
	if root.IsZero() && !v.lost {
		v.lost = true
		v.fault(place, "the chain cannot be computed from here on: this is no record any more")
	}
	if v.lost {
		return
	}
	if id != s.ID {
		v.fault(place, "it says that it is record #%d", id)
	}
	v.before, v.root = v.root, root
	if [journal.LinkBytes]byte(root[:journal.LinkBytes]) != s.Link && !v.broken {
		v.broken = true // and so are all links after it
		v.fault(place, "the chain root that was stored with it is another: this record or an earlier one was changed")
	}
	if a := v.report.Anchor; a != nil && id == a.ID {
		a.OK = root == v.cfg.Anchor.Root
	}
	for ; len(v.cfg.Images) > 0 && v.cfg.Images[0].ID <= id; v.cfg.Images = v.cfg.Images[1:] {
		if h := v.cfg.Images[0]; h.ID == id && h.Root != root {
			v.fault(place, "an image is kept of it with another chain root")
		}
	}
}

func placeOf(id journal.Seq) string { return "record #" + strconv.FormatUint(uint64(id), 10) }

// record checks one record by itself.
func (v *verifier) record(place string, rec *journal.Record) {
	v.now, v.cause = rec.ID, rec.CausedBy
	if err := rec.Load(v.h); errors.Is(err, journal.ErrNotFound) {
		v.miss(place, miss{blob: rec.Blob, payload: true}, err)
		if !v.part() {
			v.lookAtOwed(place, rec.Kind, nil)
			v.goneWord(rec.Kind)
			v.timers.bring(rec.ID, rec.Kind)
			v.lookAtDue(place, rec.Kind)
			v.goneTime(rec.Kind)
			v.goneChange(place, rec.Kind)
		}
		v.unwritten = v.unwritten || journal.Executes(rec.Kind)
		return
	} else if err != nil {
		v.fault(place, "%v", err)
		return
	}
	body, err := rec.Body()
	if err != nil {
		v.fault(place, "%v", err)
		return
	}
	if err := v.words(body); err != nil {
		v.fault(place, "%v", err)
	}
	r := v.body(place, body)
	v.named(place, body)
	if v.part() {
		return
	}
	if err := v.execution.Add(body); err != nil {
		v.fault(place, "%v", err)
	}
	v.lookAtOwed(place, rec.Kind, body)
	v.ledger(place, body, r)
	v.timers.bring(rec.ID, rec.Kind)
	v.lookAtDue(place, rec.Kind)
	v.time(place, body)
	v.putAside()
}

// body checks what a record says, but for what it says of an intent, and returns the
// receipt in it, nil where there is none.
func (v *verifier) body(place string, body journal.Body) *receipt.Receipt {
	if !v.part() {
		v.change(place, body)
	}
	if hash, brings := journal.ManifestOf(body); brings {
		m := v.contents(place, hash)
		if _, proposed := body.(*journal.ManifestProposed); !proposed {
			v.govern(hash, m)
		}
	}
	switch b := body.(type) {
	case *journal.Created:
		v.report.WorldID = b.World
	case *journal.Finished:
		return v.receipt(place, b.Receipt)
	case *journal.Late:
		return v.receipt(place, b.Receipt)
	case *journal.Forked:
		v.forked(place, b)
	case *journal.Redacted:
		if v.missing[b.Blob] {
			delete(v.missing, b.Blob)
			v.report.Redacted++
		}
	}
	return nil
}

// contents checks that everything is there that a manifest names, and returns it;
// nil where it cannot be read.
func (v *verifier) contents(place string, hash manifest.Hash) *manifest.Manifest {
	encoded := v.blob(place, "manifest", hash)
	if encoded == nil {
		return nil
	}
	m, err := manifest.Decode(encoded)
	if err != nil {
		v.fault(place, "%v", err)
		return nil
	}
	for _, h := range m.Contents() {
		v.blob(place, "content", h)
	}
	return m
}

// blob returns a blob, nil where it is not there or not what its name says.
func (v *verifier) blob(place, what string, hash manifest.Hash) []byte {
	b, err := v.h.Blob(hash)
	if err == nil && canon.Sum(b) != hash {
		err = errors.New("the bytes have another hash")
	}
	switch {
	case errors.Is(err, journal.ErrNotFound):
		v.miss(place, miss{blob: hash}, fmt.Errorf("%s %s: %w", what, hash, err))
	case err != nil:
		v.fault(place, "%s %s: %v", what, hash, err)
	default:
		return b
	}
	return nil
}

// miss is a blob that is not there: a fault, unless the journal goes on to say that
// it was redacted, or it is a payload that was withheld.
type miss struct {
	blob    journal.Hash
	payload bool // of a record
	fault   Fault
}

func (v *verifier) miss(place string, m miss, err error) {
	if !v.missing[m.blob] {
		v.missing[m.blob] = true
		m.fault = Fault{Place: place, Message: err.Error()}
		v.missed = append(v.missed, m)
	}
}

// closeRecords names all damaged records of the store, before everything else, if
// there is a fault at all.
func (v *verifier) closeRecords() {
	if len(v.report.Faults) == 0 || v.cfg.Records == nil {
		return
	}
	found := v.report.Faults
	v.report.Faults = nil
	for err := range v.cfg.Records {
		v.fault("store", "%v", err)
	}
	v.report.Faults = append(v.report.Faults, found...)
}

// closeMissing reports what is missing when the journal has been read.
func (v *verifier) closeMissing() {
	for _, m := range v.missed {
		switch {
		case !v.missing[m.blob]:
		case m.payload && v.withheld[m.blob]:
			v.report.Withheld++
		default:
			v.report.Faults = append(v.report.Faults, m.fault)
		}
	}
}
