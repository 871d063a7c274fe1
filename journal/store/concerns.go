package store

import (
	"bytes"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// concerns tells which cells the records after the last image concern, given all
// of them in order: an intent's record may name nothing but its key, and then the
// cell stands in a record before it or in the ledger of that image.
type concerns struct {
	store *Store
	old   *versions               // the ledger; nil: nobody looks there
	cells map[journal.Hash][]byte // of the intents that were met; empty: it is unknown

	// What the ledger would say, where somebody has it in memory; nil: nobody has.
	lately func(intent journal.Hash) []byte
}

func (s *Store) concernsSince(v *view) (*concerns, error) {
	old, err := v.versions(ledgerPrefix, ledgerPrefix)
	if err != nil {
		return nil, err
	}
	return &concerns{store: s, old: old, cells: map[journal.Hash][]byte{}}, nil
}

// unlooked begins what stands in the place of a cell, with the key of its intent behind
// it. No cell's name holds a zero byte.
const unlooked = "\x00"

// concernsUnlooked is concernsSince for as long as the image before may not be written yet:
// it does not look into its ledger.
func (s *Store) concernsUnlooked() *concerns {
	return &concerns{store: s, cells: map[journal.Hash][]byte{}}
}

func (c *concerns) close() { c.old.close() }

// each visits the cells that the next record concerns, one perhaps twice.
func (c *concerns) each(e entry, visit func(cell []byte)) error {
	payload, err := c.store.payload(e)
	if err != nil {
		return err
	}
	c.store.opts.EachCell(e.Kind, payload, visit)
	key, cell, ok := c.store.opts.IntentOf(e.Kind, payload)
	if !ok {
		return nil
	}
	if len(cell) > 0 {
		c.cells[key] = bytes.Clone(cell)
		return nil
	}
	cell, met := c.cells[key]
	if !met {
		if c.old == nil {
			cell = append([]byte(unlooked), key[:]...)
		} else if cell, err = c.inLedger(key); err != nil {
			return err
		}
		c.cells[key] = cell
	}
	if len(cell) > 0 {
		visit(cell)
	}
	return nil
}

// inLedger returns the cell of an intent, nil where the ledger does not have it.
func (c *concerns) inLedger(key journal.Hash) ([]byte, error) {
	if c.lately != nil {
		if cell := c.lately(key); len(cell) > 0 {
			return cell, nil
		}
	}
	name := intentName(nil, key)
	at, body, err := c.old.readVersion(name, journal.Last)
	if err != nil || body == nil {
		return nil, err
	}
	e, err := receipt.DecodeEntry(receipt.Key{Hash: key}, body)
	if err != nil {
		return nil, damaged(versionKey(nil, name, at), err)
	}
	return []byte(e.Intent.Cell), nil
}
