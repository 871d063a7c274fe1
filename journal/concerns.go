package journal

import (
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/reducer"
)

// EachCell calls visit for the cells that a record concerns by its own content,
// for indexes; an operator stands in the place of a cell. Records that name an
// intent alone concern its cell; see IntentOf. The names are valid as long as
// payload, which must be canonical.
func EachCell(k Kind, payload []byte, visit func(cell []byte)) error {
	r := canon.NewReader(payload)
	r.Array()
	r.Uint() // the version
	switch k {
	case KindResumed, KindStepped, KindFailed, KindDeleted, KindMigrated, KindTimer, KindFired:
		visitText(r, visit)
	case KindIntent, KindDenied, KindParked:
		r.Bytes()     // the key
		r.TextBytes() // the step
		visitText(r, visit)
	case KindInDoubt, KindWaiting, KindEnded:
		r.Bytes() // the key
		visitText(r, visit)
	case KindOperator:
		visitText(r, func(actor []byte) {
			visit([]byte(reducer.Cell{Reducer: reducer.Operator, Key: string(actor)}.String()))
		})
	case KindSubmitted:
		r.TextBytes() // the name
		r.Uint()      // due
		r.Bool()      // direct
		visitTexts(r, visit)
	case KindEmitted:
		r.TextBytes() // the name
		visitTexts(r, visit)
	default: // no cell
	}
	return r.Err()
}

func visitTexts(r *canon.Reader, visit func([]byte)) {
	for n := r.Array(); n > 0; n-- {
		visitText(r, visit)
	}
}

func visitText(r *canon.Reader, visit func([]byte)) {
	if text := r.TextBytes(); r.Err() == nil {
		visit(text)
	}
}

// IntentOf returns the key of the intent that a record is about, and the cell
// that asked for it where the record names that too; else cell is empty. ok is
// false for a record about no intent, and for one that cannot be read. The cell
// is a part of payload, which must be canonical.
func IntentOf(k Kind, payload []byte) (key Hash, cell []byte, ok bool) {
	r := canon.NewReader(payload)
	r.Array()
	r.Uint() // the version
	var name []byte
	switch k {
	case KindIntent, KindDenied, KindParked:
		name = r.Bytes()
		r.TextBytes() // the step
		cell = r.TextBytes()
	case KindInDoubt, KindWaiting, KindEnded:
		name, cell = r.Bytes(), r.TextBytes()
	case KindStarted, KindExpired, KindDue, KindResolved, KindConfirmed:
		name = r.Bytes()
	case KindFinished, KindLate:
		name = keyOfReceipt(r.Rest())
	default:
		return Hash{}, nil, false
	}
	if r.Err() != nil || len(name) != len(key) {
		return Hash{}, nil, false
	}
	return Hash(name), cell, true
}

// keyOfReceipt returns the key in a receipt's bytes, nil where there is none. It
// stands near their beginning, and nothing behind it is read.
func keyOfReceipt(data Data) []byte {
	key, err := canon.Lookup(data, "key")
	if err != nil {
		return nil
	}
	return canon.NewReader(key).Bytes()
}

// ManifestOf returns the manifest that a record brings into the world: that is in
// force from there on, or proposed.
func ManifestOf(body Body) (Hash, bool) {
	switch b := body.(type) {
	case *Created:
		return b.Manifest, true
	case *Forked:
		return b.Manifest, true
	case *ManifestProposed:
		return b.Candidate, true
	case *Applied:
		return b.Manifest, true
	default:
		return Hash{}, false
	}
}

// BringsManifest reports whether records of a kind have a ManifestOf.
func BringsManifest(k Kind) bool {
	switch k {
	case KindCreated, KindForked, KindProposed, KindApplied:
		return true
	default:
		return false
	}
}
