package world

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/journal"
)

// Spilling bounds the memory of a replay, a look back or a shadow, and says where the rest goes. The zero
// value keeps all in memory.
type Spilling struct {
	// Memory is about how many bytes cells, intents and images take in memory.
	Memory int
	// Spill makes a place of its own for what Memory has no room for. It is closed when it is not needed any more.
	// Nil: there is none.
	Spill func() (Spill, error)
}

// Spill stores images that a replay has computed: a replay does not trust the images of the world.
type Spill interface {
	journal.Versions
	// Part is that of journal.History.
	Part(at journal.Seq, cells []string) (*journal.Image, error)
	// Checkpoint is that of journal.Journal; images of one head add up.
	Checkpoint(img *journal.Image) error
	Close() error
}

// SpillError says that a Spill could not be written or read. It says nothing about the world.
type SpillError struct{ Err error }

func (e *SpillError) Error() string {
	return fmt.Sprintf("world: what was put aside beyond the bound of memory: %v", e.Err)
}

// Unwrap returns why.
func (e *SpillError) Unwrap() error { return e.Err }

// open makes a Spill for an image store.
func (s Spilling) open(to *imageStore) error {
	spill, err := s.Spill()
	if err != nil {
		to.fail(&SpillError{err})
		return to.err
	}
	to.images, to.spill = spill, spill
	return nil
}

// close removes what was put aside.
func (s *imageStore) close() error {
	if s.spill == nil {
		return nil
	}
	err := s.spill.Close()
	if s.spill, s.images = nil, nil; err != nil {
		return &SpillError{err}
	}
	return nil
}

// spill moves what is not used out of memory, if the kernel holds more than Spilling.Memory. It weighs the
// kernel when so much has been written since the last time that this may be so.
func (k *folding) spill() error {
	if k.cfg.Spilling.Spill == nil || k.volume < k.weighed {
		return nil
	}
	most := k.cfg.Spilling.Memory
	held := k.weight()
	if held > most {
		if err := k.putAside(most); err != nil {
			return err
		}
		held = k.weight()
	}
	k.weighed = k.volume + uint64(max(most-held, most/8))
	return nil
}

// weight returns about how many bytes the kernel holds, and the images beside it.
func (k *folding) weight() int {
	n := k.cells.bytes + k.counts.bytes() + k.ledger.Held()
	for _, c := range k.dirty {
		n += c.size() - int(c.bytes)
	}
	if k.images != nil {
		n += k.images.Size()
	}
	return n
}

// putAside stores an image of the present, and drops from memory what is in the image and not used.
func (k *folding) putAside(most int) error {
	if k.store.spill == nil {
		if err := k.cfg.Spilling.open(k.store); err != nil {
			return err
		}
		if err := k.moveImages(); err != nil {
			return err
		}
	}
	if _, err := k.addImage(); err != nil {
		return err
	}
	k.leaveToImage(most)
	return nil
}

// moveImages moves the images that rollbacks may ask for out of memory.
func (k *folding) moveImages() error {
	if k.images == nil && k.base != nil {
		k.images = new(journal.Images)
		k.images.Add(k.base)
	}
	if k.images != nil {
		for img := range k.images.Each() {
			if err := k.store.spill.Checkpoint(img); err != nil {
				k.store.fail(err)
				return k.store.err
			}
		}
	}
	k.images, k.base, k.cfg.leave = nil, nil, nil // who looks back leaves whole images only
	return nil
}

// leaveToImage drops from memory, down to most bytes, what the image just stored has and nobody uses.
func (k *kernel) leaveToImage(most int) {
	if k.counts.bytes() > most/4 {
		k.counts.drop(most / 8)
	}
	k.dropUnused(most - k.counts.bytes())
	k.ledger.dropIntents(max(most-k.counts.bytes()-k.cells.bytes, most/4))
}

// imageBefore returns the last image up to a record, nil if there is none. An image larger than Memory is
// copied into a Spill; the returned image then has only the cells that something is under way with.
func (s Spilling) imageBefore(h journal.History, at journal.Seq) (*journal.Image, Spill, error) {
	versions, ok := h.(journal.Versions)
	if !ok || s.Spill == nil {
		img, err := h.Image(at)
		return img, nil, err
	}
	core, err := versions.Core(at)
	if err != nil || core == nil {
		return nil, nil, err
	}
	parts, err := partsOf(core)
	if err != nil || !parts.core.exceeds(s.Memory) {
		img, err := h.Image(at)
		return img, nil, err
	}
	var to imageStore
	if err := s.open(&to); err != nil {
		return nil, nil, err
	}
	err = to.copyImage(versions, core)
	if err == nil { // it is whole if nobody has let it go meanwhile
		if now, gone := versions.Core(core.Head.ID); gone != nil || now == nil || now.Head != core.Head {
			err = fmt.Errorf("world: image at #%d: %w", core.Head.ID, cmp.Or(gone, journal.ErrNotFound))
		}
	}
	var img *journal.Image
	if err == nil {
		if img, err = liveImage(to.spill, core, parts); err != nil {
			err = &SpillError{err}
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, to.close())
	}
	return img, to.spill, nil
}

// copiedAtOnce is how many bytes of an image are in memory while it is copied.
const copiedAtOnce = 4 << 20

// copyImage copies the image with this core into the spill, piece by piece.
func (s *imageStore) copyImage(from journal.Versions, core *journal.Image) error {
	part := &journal.Image{Head: core.Head, Core: core.Core}
	size := 0
	give := func(n, most int) error {
		if size += n; size < most {
			return nil
		}
		if err := s.spill.Checkpoint(part); err != nil {
			return &SpillError{err}
		}
		part = &journal.Image{Head: core.Head, Core: core.Core}
		size = 0
		return nil
	}
	for v, err := range from.CellVersions("", core.Head.ID) {
		if err != nil {
			return err
		}
		v.Bytes = bytes.Clone(v.Bytes)
		part.Cells = append(part.Cells, v)
		if err := give(cellBytes+len(v.Bytes), copiedAtOnce); err != nil {
			return err
		}
	}
	for v, err := range from.IntentVersions(core.Head.ID) {
		if err != nil {
			return err
		}
		v.First, v.Bytes = true, bytes.Clone(v.Bytes)
		part.Intents = append(part.Intents, v)
		if err := give(entryBytes+len(v.Bytes), copiedAtOnce); err != nil {
			return err
		}
	}
	for v, err := range from.CountVersions(core.Head.ID) {
		if err != nil {
			return err
		}
		v.First, v.Bytes = true, bytes.Clone(v.Bytes)
		part.Counts = append(part.Counts, v)
		if err := give(countBytes+len(v.Bytes), copiedAtOnce); err != nil {
			return err
		}
	}
	return give(0, 0)
}

// isSpill reports whether an error is a *SpillError.
func isSpill(err error) bool {
	return errors.As(err, new(*SpillError))
}
