package world

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
)

// imageCore is Image.Core: a kernel without its cells, intents and alarms.
type imageCore struct {
	Version   uint64        `cbor:"version"`
	World     string        `cbor:"world"`
	Seed      uint64        `cbor:"seed"`
	Lineage   journal.Hash  `cbor:"lineage"`
	Manifest  journal.Hash  `cbor:"manifest"`
	Now       manifest.Tick `cbor:"now"`
	InTick    bool          `cbor:"in_tick"`
	Handled   uint64        `cbor:"handled"`
	Left      uint64        `cbor:"left"`
	Still     bool          `cbor:"still,omitempty"`
	Ready     []string      `cbor:"ready"`
	Operators uint64        `cbor:"operators"`
	Budgets   budgets       `cbor:"budgets"`

	Paces map[string]pace        `cbor:"paces,omitempty"`
	Rests map[string]journal.Seq `cbor:"rests,omitempty"`

	Catalog   snapshot.Catalog `cbor:"catalog"`
	Retention uint64           `cbor:"retention"`
	Rollbacks []turning        `cbor:"rollbacks"`
	Fresh     []journal.Seq    `cbor:"fresh,omitempty"`
	Recalls   []recall         `cbor:"recalls"`
	Held      bool             `cbor:"held"`
	Live      []string         `cbor:"live,omitempty"`

	Proposals governance.Proposals `cbor:"proposals"`
	Since     journal.Seq          `cbor:"since"`
	Ticked    journal.Seq          `cbor:"ticked,omitempty"`

	Cells  uint64   `cbor:"cells,omitempty"`  // number of cells in the image
	Unborn uint64   `cbor:"unborn,omitempty"` // of Cells
	Halted []string `cbor:"halted,omitempty"` // Halted and Ready are all cells with mail

	Counts uint64 `cbor:"counts,omitempty"` // number of counts in the image

	// Of the ledger, where entries of it had left memory.
	Ledger *receipt.Standing `cbor:"ledger,omitempty"`

	Submits []*underKey `cbor:"submits,omitempty"`
}

type imageAlarm struct {
	At     manifest.Tick
	Record journal.Seq
	To     []string
	Name   string
	Data   journal.Data
	Tag    string
}

// imageCell is CellVersion.Bytes.
type imageCell struct {
	Version   uint64        `cbor:"version"`
	State     journal.Data  `cbor:"state"` // null: no state
	N         uint64        `cbor:"n"`
	History   journal.Hash  `cbor:"history"`
	Halted    bool          `cbor:"halted"`
	Mail      []imageMail   `cbor:"mail"`
	Awaits    []receipt.Key `cbor:"awaits"`
	Unborn    bool          `cbor:"unborn,omitempty"`
	Cancelled []receipt.Key `cbor:"cancelled,omitempty"` // of Awaits

	Budget *governance.Account `cbor:"budget,omitempty"`
}

type imageMail struct {
	_      struct{} `cbor:",toarray"`
	Record journal.Seq
	Name   string
	Data   journal.Data
}

// imageVersion is the version of an image's core, and of each cell in it.
const imageVersion = 1

// image returns an image of the kernel, with the cells, lists of alarms, intents and counts that changed since the
// last image. The caller has taken everything written: see takeReady.
func (k *kernel) image() (*journal.Image, error) {
	core := imageCore{
		Version: imageVersion, World: k.id, Seed: k.seed, Lineage: k.lineage, Manifest: k.rules.hash,
		Now: k.now, InTick: k.inTick, Handled: k.handled, Left: uint64(k.scheduler.left), Still: k.still,
		Ready:     cellNames(k.scheduler.queue[k.scheduler.first:]),
		Operators: k.operators, Budgets: k.budgets, Paces: k.paces, Rests: k.rests,
		Catalog: k.catalog, Retention: k.retention, Rollbacks: k.rollbacks, Fresh: k.fresh, Recalls: k.recalls, Held: k.onHold, Live: k.live,
		Proposals: k.proposals, Since: k.since, Ticked: k.ticked,
		Cells: uint64(k.cells.len()), Unborn: uint64(k.cells.unborn), Halted: cellNames(k.haltedCells()),
		Submits: k.submits.list,
	}
	img := &journal.Image{Head: k.head(), Keep: k.keeps()}
	var err error
	if img.Cells, err = k.imageCells(); err != nil {
		return nil, err
	}
	if lists := k.imageLists(); len(lists) > 0 {
		img.Cells = append(img.Cells, lists...)
		slices.SortFunc(img.Cells, func(a, b journal.CellVersion) int { return strings.Compare(a.Cell, b.Cell) })
	}
	img.Intents = k.ledger.imageIntents()
	img.Counts = k.counts.image()
	core.Counts = uint64(k.counts.len())
	core.Ledger = k.ledger.Standing() // after the intents: what they have is saved
	if img.Core, err = canon.Marshal(core); err != nil {
		return nil, fmt.Errorf("world: image: %w", err)
	}
	return img, nil
}

// imageCells returns the cells that changed since the last image, by name.
func (r *roster) imageCells() (out []journal.CellVersion, err error) {
	slices.SortFunc(r.dirty, func(a, b *cell) int { return strings.Compare(a.name, b.name) })
	out = make([]journal.CellVersion, 0, len(r.dirty))
	var b []byte
	for _, c := range r.dirty {
		c.dirty = false
		r.cells.weigh(c)
		if cap(b)-len(b) < len(c.state)+arenaBytes/64 {
			b = make([]byte, 0, arenaBytes+len(c.state))
		}
		start := len(b)
		if b, err = c.appendImage(b); err != nil {
			return nil, fmt.Errorf("world: image of cell %s: %w", c.name, err)
		}
		out = append(out, journal.CellVersion{Cell: c.name, First: !c.saved, Bytes: b[start:len(b):len(b)]})
		c.saved = true
	}
	clear(r.dirty)
	r.dirty = r.dirty[:0]
	return out, nil
}

// appendImage appends the canonical bytes of an imageCell, whose keys are in
// canonical order: the shorter first. By hand, because a checkpoint writes every
// cell that changed; a test holds it equal to the library's.
func (c *cell) appendImage(b []byte) ([]byte, error) {
	asks, pairs := c.asked(), 7
	if asks.account != nil {
		pairs++
	}
	if !c.born {
		pairs++
	}
	if len(asks.cancelled) > 0 {
		pairs++
	}
	b = canon.AppendMap(b, pairs)
	b = canon.AppendUint(canon.AppendText(b, "n"), c.n)
	b = canon.AppendArray(canon.AppendText(b, "mail"), c.mail.len())
	for _, x := range c.mail.pending() {
		b = canon.AppendArray(b, 3)
		b = canon.AppendUint(b, uint64(x.record))
		b = canon.AppendText(b, x.name)
		b = canon.AppendRaw(b, x.data)
	}
	b = canon.AppendRaw(canon.AppendText(b, "state"), c.state)
	b = appendKeys(canon.AppendText(b, "awaits"), asks.awaits)
	if asks.account != nil {
		account, err := canon.Marshal(asks.account)
		if err != nil {
			return nil, err
		}
		b = canon.AppendRaw(canon.AppendText(b, "budget"), account)
	}
	b = canon.AppendBool(canon.AppendText(b, "halted"), c.halted)
	if !c.born {
		b = canon.AppendBool(canon.AppendText(b, "unborn"), true)
	}
	b = canon.AppendBytes(canon.AppendText(b, "history"), c.history[:])
	b = canon.AppendUint(canon.AppendText(b, "version"), imageVersion)
	if len(asks.cancelled) > 0 {
		b = appendKeys(canon.AppendText(b, "cancelled"), asks.cancelled)
	}
	return b, nil
}

func appendKeys(b []byte, keys []receipt.Key) []byte {
	b = canon.AppendArray(b, len(keys))
	for _, key := range keys {
		b = canon.AppendBytes(b, key.Hash[:])
	}
	return b
}

// restore fills an empty kernel from an image that holds all cells, intents and counts which are not in the image
// store. It returns the hash of the manifest in force.
func (k *kernel) restore(img *journal.Image) (journal.Hash, error) {
	parts, err := partsOf(img)
	if err != nil {
		return journal.Hash{}, fmt.Errorf("world: image at #%d: %w", img.Head.ID, err)
	}
	core := &parts.core
	k.recorder = newRecorder(img.Head, core.Now)
	k.id, k.seed, k.lineage = core.World, core.Seed, core.Lineage
	k.inTick, k.handled, k.still, k.operators = core.InTick, core.Handled, core.Still, core.Operators
	k.budgets, k.paces, k.rests = core.Budgets, core.Paces, core.Rests
	k.catalog, k.retention, k.onHold, k.live = core.Catalog, core.Retention, core.Held, core.Live
	k.rollbacks, k.fresh, k.recalls = core.Rollbacks, core.Fresh, core.Recalls
	k.proposals, k.since, k.ticked = core.Proposals, core.Since, core.Ticked
	k.submits.restore(core.Submits)
	names := make(map[string]*cell, len(core.Ready))
	for i := range parts.cells {
		c, err := decodeCell(&parts.cells[i])
		if err != nil {
			return journal.Hash{}, fmt.Errorf("world: image at #%d: cell %s: %w", img.Head.ID, parts.cells[i].Cell, err)
		}
		if c.halted {
			k.halted[c.id()] = c
		}
		k.cells.put(c)
		k.longest = max(k.longest, c.mail.len())
		names[c.name] = c
	}
	k.cells.stored, k.cells.unborn = int(core.Cells)-k.cells.len(), int(core.Unborn)
	if n := k.cells.stored; n < 0 || n > 0 && k.store.images == nil {
		return journal.Hash{}, fmt.Errorf("world: image at #%d: it has %d cells, and there are %d", img.Head.ID, core.Cells, len(parts.cells))
	}
	if err := k.counts.restore(img, core.Counts); err != nil {
		return journal.Hash{}, fmt.Errorf("world: image at #%d: %w", img.Head.ID, err)
	}
	for _, name := range core.Ready {
		if c := names[name]; c != nil {
			k.scheduler.push(c)
		}
	}
	k.scheduler.left = int(core.Left)
	k.lists = parts.lists
	k.lists.partial = k.store.images != nil // see liveImage
	if k.scheduled, err = k.restoreAlarms(parts.scheduled); err != nil {
		return journal.Hash{}, fmt.Errorf("world: image at #%d: %w", img.Head.ID, err)
	}
	timers, err := k.restoreAlarms(parts.timers)
	if err != nil {
		return journal.Hash{}, fmt.Errorf("world: image at #%d: %w", img.Head.ID, err)
	}
	k.setTimers(timers)
	if err := k.ledger.Restore(len(img.Intents), entriesOf(img)); err != nil || core.Ledger == nil || k.store.images == nil {
		return core.Manifest, err
	}
	k.ledger.Resume(core.Ledger, k.store.cold())
	k.ledger.storedAt = img.Head.ID
	return core.Manifest, nil
}

// entriesOf yields the ledger entries of an image, by their keys.
func entriesOf(img *journal.Image) iter.Seq2[receipt.Key, []byte] {
	return func(yield func(receipt.Key, []byte) bool) {
		for _, v := range img.Intents {
			if !yield(receipt.Key{Hash: v.Key}, v.Bytes) {
				return
			}
		}
	}
}

// decodeCell returns the cell of a version.
func decodeCell(v *journal.CellVersion) (*cell, error) {
	id, err := reducer.ParseCell(v.Cell)
	if err != nil {
		return nil, err
	}
	var saved imageCell
	if err := canon.Unmarshal(v.Bytes, &saved); err != nil {
		return nil, err
	}
	if saved.Version != imageVersion {
		return nil, fmt.Errorf("unknown version %d", saved.Version)
	}
	c := newCell(id, receipt.History{})
	c.saved = true
	c.born, c.n, c.history, c.halted, c.changed = !saved.Unborn, saved.N, saved.History, saved.Halted, v.At
	if saved.Budget != nil || len(saved.Awaits)+len(saved.Cancelled) > 0 {
		c.asks = &asks{awaits: saved.Awaits, cancelled: saved.Cancelled, account: saved.Budget}
	}
	if string(saved.State) != canon.Null {
		c.state = saved.State
	}
	for _, x := range saved.Mail {
		c.mail.push(mail{record: x.Record, name: x.Name, data: x.Data}, nil)
	}
	return c, nil
}
