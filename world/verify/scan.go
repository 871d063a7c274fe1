package verify

import (
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// scan walks the journal once: chain, anchor, receipts, intents, changes of the
// rules, execution.
func (v *verifier) scan() {
	chain := new(canon.Chain)
	anchored := v.cfg.Anchor.ID == 0
	var last world.Seq
	broken := false
	for s, err := range v.h.Scan(0) {
		if err != nil {
			v.fault(placeOf(last+1), "%v", err)
			break
		}
		place := placeOf(s.ID)
		if s.ID != last+1 {
			v.fault(place, "it follows record #%d: records are missing, repeated or out of order", last)
		}
		last = s.ID
		if s.Err != nil {
			v.fault(place, "%v", s.Err)
			continue
		}
		rec := s.Record
		root := chain.Add(uint64(rec.ID), string(rec.Kind), s.Bytes)
		if [world.LinkBytes]byte(root[:world.LinkBytes]) != s.Link && !broken {
			broken = true // and so are all links after it
			v.fault(place, "the chain root that was stored with it is another: this record or an earlier one was changed")
		}
		if rec.ID == v.cfg.Anchor.ID {
			anchored = root == v.cfg.Anchor.Root
		}
		v.record(place, &rec)
	}
	v.report.Records = uint64(last)
	v.report.EventChainRootHash = chain.Root()
	if !v.unwritten {
		v.report.ExecutionHash = v.execution.Hash()
	}
	if v.cfg.Anchor.ID != 0 {
		v.report.Anchor = &AnchorProof{OK: anchored, ID: v.cfg.Anchor.ID}
		if !anchored {
			v.fault("anchor", "record #%d with root %s was acknowledged, and the journal does not have it", v.cfg.Anchor.ID, v.cfg.Anchor.Root)
		}
	}
}

func placeOf(id world.Seq) string { return fmt.Sprintf("record #%d", id) }

// record checks one record by itself.
func (v *verifier) record(place string, rec *world.Record) {
	v.now, v.cause = rec.ID, rec.CausedBy
	if err := rec.Load(v.h); errors.Is(err, world.ErrNotFound) {
		v.miss(place, rec.Blob, err)
		v.gone(rec.Kind)
		v.goneChange(place, rec.Kind)
		v.unwritten = v.unwritten || world.Executes(rec.Kind)
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
	if err := v.execution.Add(rec); err != nil {
		v.fault(place, "%v", err)
	}
	v.body(place, body)
}

// body checks what a record says.
func (v *verifier) body(place string, body world.Body) {
	v.change(place, body)
	if hash, brings := world.ManifestOf(body); brings {
		m := v.contents(place, hash)
		if _, proposed := body.(*world.ManifestProposed); !proposed {
			v.govern(hash, m)
		}
	}
	switch b := body.(type) {
	case *world.Created:
		v.report.WorldID = b.World
	case *world.Finished:
		if r := v.receipt(place, b.Receipt); r != nil {
			v.finished(place, r)
			if v.effects[r.Kind].Verify == nil {
				v.report.Ledger.NoVerifier++
			}
		}
	case *world.Late:
		if r := v.receipt(place, b.Receipt); r != nil {
			v.late(place, r)
		}
	case *world.RolledBack:
		v.rolledBack(place, b)
	case *world.Forked:
		v.forked(b)
	case *world.Redacted:
		if v.missing[b.Blob] {
			delete(v.missing, b.Blob)
			v.report.Redacted++
		}
	default:
		v.ledger(place, body)
	}
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
	case errors.Is(err, world.ErrNotFound):
		v.miss(place, hash, fmt.Errorf("%s %s: %w", what, hash, err))
	case err != nil:
		v.fault(place, "%s %s: %v", what, hash, err)
	default:
		return b
	}
	return nil
}

// miss is a blob that is not there: a fault, unless the journal goes on to say
// that it was redacted.
type miss struct {
	blob  world.Hash
	fault Fault
}

func (v *verifier) miss(place string, blob world.Hash, err error) {
	if !v.missing[blob] {
		v.missing[blob] = true
		v.missed = append(v.missed, miss{blob, Fault{Place: place, Message: err.Error()}})
	}
}

// closeMissing reports what is missing when the journal has been read.
func (v *verifier) closeMissing() {
	for _, m := range v.missed {
		if v.missing[m.blob] {
			v.report.Faults = append(v.report.Faults, m.fault)
		}
	}
}
