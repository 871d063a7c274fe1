package bundle

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/journal"
)

// course follows the records and checkpoints behind a header. What does not belong where it stands, a Writer
// refuses, and a Reader tells as damage.
type course struct {
	header   *Header
	records  uint64
	last     journal.Seq           // id of the last record
	signed   journal.Seq           // the record of the last checkpoint; 0: none
	ends     bool                  // the last item is a checkpoint
	notes    int                   // checkpoints
	withheld map[journal.Hash]bool // payloads; true: a record has it
	unused   []ed25519.PublicKey   // keys that have signed nothing yet
}

func newCourse(h *Header) course {
	c := course{header: h, last: h.First - 1, unused: h.Keys, withheld: make(map[journal.Hash]bool, len(h.Withheld))}
	for _, name := range h.Withheld {
		c.withheld[name] = false
	}
	return c
}

// record takes the next record.
func (c *course) record(id journal.Seq, payload journal.Hash) {
	c.records++
	c.last, c.ends = id, false
	if _, withheld := c.withheld[payload]; withheld {
		c.withheld[payload] = true
	}
}

// checkpoint takes a checkpoint, or says why it does not stand here. open says that there are blobs since the last
// record. The error is ErrLimit where there are too many.
func (c *course) checkpoint(note []byte, open bool) error {
	p, err := checkpoint.Parse(note)
	switch {
	case err != nil:
		return err
	case p.World != c.header.World:
		return fmt.Errorf("a checkpoint of world %s in a bundle of world %s", p.World, c.header.World)
	case journal.Seq(p.Size) != c.last || c.records == 0:
		return fmt.Errorf("a checkpoint at %d stands behind record #%d", p.Size, c.last)
	case open:
		return fmt.Errorf("a checkpoint at %d stands between a blob and its record", p.Size)
	case c.last <= c.signed:
		return fmt.Errorf("a checkpoint at %d, and there is one already", p.Size)
	case c.notes >= maxCheckpoints:
		return fmt.Errorf("%w: more than %d checkpoints", ErrLimit, maxCheckpoints)
	}
	c.notes++
	c.signed, c.ends = c.last, true
	if s, err := checkpoint.Open(note, c.unused...); err == nil {
		c.unused = slices.DeleteFunc(slices.Clone(c.unused), func(key ed25519.PublicKey) bool {
			return slices.ContainsFunc(s.By, func(by ed25519.PublicKey) bool { return bytes.Equal(by, key) })
		})
	}
	return nil
}

// close returns what is missing at the end.
func (c *course) close() (faults []DamageError) {
	fault := func(item uint64, format string, args ...any) {
		faults = append(faults, DamageError{Item: item, Err: fmt.Errorf(format, args...)})
	}
	if !c.ends || c.last != c.header.Last {
		fault(0, "it ends behind record #%d, and not with a checkpoint of record #%d, the last one by its header", c.last, c.header.Last)
	}
	for _, name := range c.header.Withheld {
		if !c.withheld[name] {
			fault(1, "header: blob %s is withheld, and no record has it as payload", name)
		}
	}
	for _, key := range c.unused {
		fault(1, "header: key %x has signed no checkpoint", []byte(key))
	}
	return faults
}
