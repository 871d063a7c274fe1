package store

import (
	"bytes"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// gathering is which cells the records after one checkpoint concern, up to the last that
// was appended: a checkpoint indexes them without reading them again. It is apply's alone
// until it goes to writeImages with one.
type gathering struct {
	after, to journal.Seq // it has the records after one up to another
	failed    bool        // or not: they are to be read
	concerns  *concerns
	before    map[journal.Hash][]byte // the cells of the intents in the gathering before it
	mentions
}

// mostGathered is how many mentions are held at most, where an image is long in coming.
const mostGathered = 1 << 18

func (s *Store) newGathering(after journal.Seq) *gathering {
	return &gathering{after: after, to: after, concerns: s.concernsUnlooked(), mentions: mentions{index: map[string]int{}}}
}

// next begins the gathering after one that goes with a checkpoint.
func (g *gathering) next(s *Store) *gathering {
	n := s.newGathering(g.to)
	n.all = make([]mention, 0, len(g.all))
	if g.concerns != nil {
		n.before = g.concerns.cells
	}
	return n
}

// lately returns the cell of an intent of the gathering before, nil where that did not know.
func (g *gathering) lately(intent journal.Hash) []byte {
	cell := g.before[intent]
	if bytes.HasPrefix(cell, []byte(unlooked)) {
		return nil
	}
	return cell
}

// add gathers what a batch says that was just applied. What cannot be read is no error
// here: the checkpoint will find out.
func (g *gathering) add(b journal.Batch) {
	g.to = b.Head.ID
	if g.failed {
		return
	}
	visit := g.mention
	for _, r := range b.Records {
		e, err := canon.DecodeEnvelopeAs(r.Bytes, journal.KindOf)
		if err == nil && !e.Blob.IsZero() {
			if payload, missing := journal.BlobList(b.Blobs).Blob(e.Blob); missing == nil {
				e.Payload, e.Blob = payload, journal.Hash{}
			}
		}
		if err == nil {
			g.record = r.ID
			err = g.concerns.eachKnown(entry{Envelope: e}, visit)
		}
		if err != nil || len(g.all) > mostGathered {
			g.failed, g.concerns, g.mentions = true, nil, mentions{}
			return
		}
	}
}

// has reports whether it has the records after one up to another.
func (g *gathering) has(after, to journal.Seq) bool {
	return !g.failed && g.after == after && g.to == to
}

// mention is a cell that a record concerns: one entry of the index to be.
type mention struct {
	cell   int // index into the names
	record journal.Seq
	next   int // the cell's next mention; see groupByCell
}

// mentions are what some records say of cells.
type mentions struct {
	names  []string
	index  map[string]int // of the names
	all    []mention
	record journal.Seq // that is being looked at
}

func (m *mentions) mention(cell []byte) {
	m.all = append(m.all, mention{cell: m.place(cell), record: m.record})
}

// place returns where a name is among the names.
func (m *mentions) place(name []byte) int {
	at, ok := m.index[string(name)]
	if !ok {
		at = len(m.names)
		m.names = append(m.names, string(name))
		m.index[m.names[at]] = at
	}
	return at
}

// settle puts cells in the place of intents whose cells were not known; see
// concernsUnlooked. Of an intent that the ledger does not have nothing stays.
func (m *mentions) settle(c *concerns) error {
	const nowhere = -1
	moved := map[int]int{}
	for at, name := range m.names { // those that it adds are cells
		key, ok := strings.CutPrefix(name, unlooked)
		if !ok {
			continue
		}
		cell, err := c.inLedger(journal.Hash([]byte(key)))
		if err != nil {
			return err
		}
		moved[at] = nowhere
		if len(cell) > 0 {
			moved[at] = m.place(cell)
		}
	}
	if len(moved) == 0 {
		return nil
	}
	kept := m.all[:0]
	for _, x := range m.all {
		if to, ok := moved[x.cell]; ok {
			x.cell = to
		}
		if x.cell != nowhere {
			kept = append(kept, x)
		}
	}
	m.all = kept
	return nil
}
