package columns

import (
	"slices"

	"github.com/worldkernel/worldkernel/journal"
)

// intents know of every intent what records about it do not say themselves: whose it is,
// of which kind, and who asked for an answer. No value has a pointer, so that many of
// them cost the collector nothing.
type intents struct {
	known        map[journal.Hash]intent
	mentions     []mention // of what may be answered
	kinds        []journal.Kind
	cells, names words
}

// intent is one of them: numbers of its cell and of its kind, each 0 where it is not
// known, else 1 more; and 1 + the place of its last mention, 0: there is none.
type intent struct{ cell, name, last uint32 }

// mention is a journal.Mention, of the intent that it hangs on.
type mention struct {
	record  journal.Seq
	attempt uint64
	kind    uint16 // the place in kinds
	before  uint32 // 1 + the place of the mention before it; 0: it is the first
}

func newIntents() intents {
	x := intents{known: make(map[journal.Hash]intent)}
	for _, k := range journal.Kinds() {
		for _, asked := range k.Answers() {
			if !slices.Contains(x.kinds, asked) {
				x.kinds = append(x.kinds, asked)
			}
		}
	}
	return x
}

// tell adds to what a record tells what is known of the intent that it is about, and
// takes note of it.
func (x *intents) tell(t *told, rec *journal.Record, of Source) {
	m := journal.MentionIn(rec)
	if m.Key.IsZero() {
		return
	}
	in, known := x.known[m.Key]
	if !known && (len(t.cell) == 0 || len(t.name) == 0) {
		cell, kind := of.Intent(m.Key)
		in.cell, in.name = x.cells.or0(cell), x.names.or0(kind)
	}
	if len(t.cell) > 0 {
		in.cell = 1 + x.cells.number(t.cell)
	} else if in.cell > 0 {
		t.cell = []byte(x.cells.list[in.cell-1])
	}
	if len(t.name) > 0 {
		in.name = 1 + x.names.number(t.name)
	} else if in.name > 0 {
		t.name = []byte(x.names.list[in.name-1])
	}
	if len(rec.Kind.Answers()) > 0 {
		t.cause = x.askedFor(m, in.last)
	}
	if kind := slices.Index(x.kinds, rec.Kind); kind >= 0 {
		x.mentions = append(x.mentions, mention{m.Record, m.Attempt, uint16(kind), in.last})
		in.last = uint32(len(x.mentions))
	}
	x.known[m.Key] = in
}

// askedFor returns the last of the mentions from a place on back, and before an answer,
// that asked for it.
func (x *intents) askedFor(answer journal.Mention, at uint32) journal.Seq {
	for at > 0 {
		m := &x.mentions[at-1]
		if m.record < answer.Record && answer.AnswersTo(journal.Mention{Record: m.record, Kind: x.kinds[m.kind], Key: answer.Key, Attempt: m.attempt}) {
			return m.record
		}
		at = m.before
	}
	return 0
}
