package journal

import (
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// EachCell calls visit for the cells that a record concerns by its own content,
// for indexes; an operator stands in the place of a cell. Records that name an
// intent alone concern its cell; see IntentOf. The names are valid as long as
// payload, which must be canonical.
func EachCell(k Kind, payload []byte, visit func(cell []byte)) error {
	row := rowOf(k)
	r := itemOf(payload, max(row.cell, row.cells, row.operator))
	switch {
	case row.cell > 0:
		visitText(r, visit)
	case row.cells > 0:
		visitTexts(r, visit)
	case row.operator > 0:
		visitText(r, func(actor []byte) {
			visit([]byte(reducer.Cell{Reducer: reducer.Operator, Key: string(actor)}.String()))
		})
	}
	return r.Err()
}

// itemOf returns a reader at one of the items of a payload.
func itemOf(payload []byte, item int) *canon.Reader {
	r := canon.NewReader(payload)
	r.Array()
	return seekItem(r, item)
}

// seekItem moves r, which has read the head of a payload, to one of its items.
func seekItem(r *canon.Reader, item int) *canon.Reader {
	for ; item > 0; item-- {
		r.Raw()
	}
	return r
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
	row := rowOf(k)
	r := itemOf(payload, max(row.receipt, row.key))
	var name []byte
	switch {
	case row.receipt > 0:
		name = keyOfReceipt(r.Rest())
	case row.key > 0:
		name = r.Bytes()
	default:
		return Hash{}, nil, false
	}
	if row.key > 0 && row.cell > 0 {
		cell = seekItem(r, row.cell-row.key-1).TextBytes()
	}
	if r.Err() != nil || len(name) != len(key) {
		return Hash{}, nil, false
	}
	return Hash(name), cell, true
}

// AttemptOf returns the number of the attempt that a record is about, 0 for a record
// about none, and for one that cannot be read.
func AttemptOf(k Kind, payload []byte) uint64 {
	row := rowOf(k)
	r := itemOf(payload, max(row.attempt, row.receipt))
	switch {
	case row.attempt > 0:
	case row.receipt > 0:
		attempt, err := canon.Lookup(r.Rest(), "attempt")
		if err != nil {
			return 0
		}
		r = canon.NewReader(attempt)
	default:
		return 0
	}
	if n := r.Uint(); r.Err() == nil {
		return n
	}
	return 0
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

// NameOf returns what the subject of a record is called in it: an event, a timer, a
// snapshot, the kind of an effect; empty: nothing, or it cannot be read. The name is a
// part of payload, which must be canonical.
func NameOf(k Kind, payload []byte) []byte {
	row := rowOf(k)
	return wordOf(payload, row.name, row.receipt, "kind")
}

// HowOf returns how the subject of a record came out, in the one word that the record has
// for it, such as "denied" or "ok", and of a receipt that leaves its intent waiting for a
// person or for the outside "input_required" or "accepted"; empty: it has none, or cannot
// be read. The word is a part of payload, which must be canonical.
func HowOf(k Kind, payload []byte) []byte {
	row := rowOf(k)
	if row.yes == "" {
		how := wordOf(payload, row.how, row.receipt, "status")
		if row.receipt == 0 || string(how) == string(receipt.StatusOK) {
			return how
		}
		switch class := wordOf(payload, 0, row.receipt, "outcome"); receipt.Outcome(class) { //nolint:exhaustive // others are failures
		case receipt.OutcomeInputRequired, receipt.OutcomeAccepted:
			return class
		}
		return how
	}
	if itemOf(payload, row.how).Bool() {
		return []byte(row.yes)
	}
	return nil
}

// wordOf returns the text of an item, or else of a member of the receipt in another; nil
// where there is neither.
func wordOf(payload []byte, item, receipt int, member string) []byte {
	if item+receipt == 0 {
		return nil
	}
	if item > 0 {
		return itemOf(payload, item).TextBytes()
	}
	found, err := canon.Lookup(itemOf(payload, receipt).Rest(), member)
	if err != nil {
		return nil
	}
	return canon.NewReader(found).TextBytes()
}

// CostOf returns the cost in the receipt of a record; zero: the record has no readable receipt.
// payload must be canonical.
func CostOf(k Kind, payload []byte) (cost receipt.Cost) {
	row := rowOf(k)
	if row.receipt == 0 {
		return cost
	}
	if found, err := canon.Lookup(itemOf(payload, row.receipt).Rest(), "cost"); err == nil {
		cost.Read(canon.NewReader(found))
	}
	return cost
}

// Mention is what a record about an intent is about.
type Mention struct {
	Record  Seq
	Kind    Kind
	Key     Hash   // zero: it is about no intent
	Attempt uint64 // 0: it is about no attempt
}

// MentionIn returns what a record whose payload was loaded is about.
func MentionIn(r *Record) Mention {
	m := Mention{Record: r.ID, Kind: r.Kind}
	var about bool
	if m.Key, _, about = IntentOf(r.Kind, r.Payload); about {
		m.Attempt = AttemptOf(r.Kind, r.Payload)
	}
	return m
}

// AnswersTo reports whether an earlier record may have asked for this one: it is
// about the same attempt, or about the same intent where one of them is about no
// attempt. The last such record did.
func (m Mention) AnswersTo(asked Mention) bool {
	return slices.Contains(m.Kind.Answers(), asked.Kind) && m.Key == asked.Key &&
		(m.Attempt == asked.Attempt || m.Attempt == 0 || asked.Attempt == 0)
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
	_, brings := ManifestOf(newBody(k))
	return brings
}
