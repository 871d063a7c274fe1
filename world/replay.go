package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// ReplayConfig configures a replay. The zero value replays worlds without Go reducers, and does not verify
// receipts.
type ReplayConfig struct {
	Keys     *receipt.Keyring // verifies receipts; nil: they are not verified
	Registry reducer.Registry // Go reducers; nil: none
	Paranoid bool             // run every reduction twice and compare
	From     journal.Seq      // the snapshot.created to begin with, whose image is kept; 0: record 1
	Bounds   Bounds           // of rules that somebody else has put in force; zero: none
	To       journal.Seq      // the last record to replay, with the rest of its unit; 0: all
	Spilling Spilling         // zero: all of the world is in memory
	// Visit, if set, is called for every record after it has been replayed.
	Visit func(s journal.Scanned) error
	// OnPrint, if set, hears what steps print, before Visit is called for their records.
	OnPrint func(Printed)

	guard  *guard
	images journal.Versions     // of the image that it begins with, if that holds only some cells
	begun  Spill                // the same, if it was copied into a Spill; load owns it
	passed func(*journal.Image) // gets the images of snapshots in order, each with what had changed since the one before; may be nil

	stops *visitingReplay      // looks at the world on the way; nil: nobody does
	every journal.Seq          // leave gets an image after at least so many records, and those of snapshots
	leave func(*journal.Image) // may be nil
}

// Printed is what a call of print printed in a step of a cell.
type Printed struct {
	Record journal.Seq `json:"record"` // cell.stepped or cell.failed of the step
	Cell   string      `json:"cell"`
	N      uint64      `json:"n"` // of the step
	reducer.Print
}

// Replayed is the result of a replay.
type Replayed struct {
	Head      journal.Head
	StateRoot journal.Hash
}

// Divergence says which record of a journal does not follow from its inputs.
//
//nolint:errname // a divergence is the field's noun, and first of all a finding
type Divergence struct {
	Record   journal.Seq `json:"record"`
	Cell     string      `json:"cell,omitempty"`
	Journal  string      `json:"journal"`  // what the journal holds, as JSON
	Computed string      `json:"computed"` // what follows from the inputs, as JSON or in words
}

func (d *Divergence) Error() string {
	at := ""
	if d.Cell != "" {
		at = " (cell " + d.Cell + ")"
	}
	return fmt.Sprintf("replay diverged at record #%d%s: the journal holds %s, the inputs give %s", d.Record, at, d.Journal, d.Computed)
}

// Replay recomputes a world from record 1 without I/O, except reading h, and compares every record. With From
// it begins there, unless a rollback after that leads to an earlier snapshot whose image is gone. The error is
// a *Divergence if a record differs, and a *BoundError if the replay needs more than cfg.Bounds allow. When
// ctx ends, the replay ends, even within a step.
func Replay(ctx context.Context, h journal.History, cfg ReplayConfig) (*Replayed, error) {
	cfg.guard = newGuard(ctx, cfg.Bounds)
	var img *journal.Image
	if cfg.From != 0 {
		var err error
		if img, cfg.begun, err = cfg.Spilling.imageBefore(h, cfg.From); err != nil {
			return nil, err
		}
		if img == nil || img.Head.ID != cfg.From {
			err := fmt.Errorf("world: image at #%d: %w", cfg.From, journal.ErrNotFound)
			return nil, errors.Join(err, cfg.dropBegun())
		}
	}
	k, err := loadThrough(h, img, cfg)
	if err != nil {
		return nil, err
	}
	done := &Replayed{Head: k.head(), StateRoot: k.stateRoot()}
	if err := cmp.Or(k.store.err, k.store.close()); err != nil {
		return nil, err
	}
	return done, nil
}

// dropBegun removes what was put aside to begin with.
func (cfg *ReplayConfig) dropBegun() error {
	s := imageStore{spill: cfg.begun}
	return s.close()
}

// loadThrough is load. If a rollback after the image leads to an earlier snapshot whose image is gone, it
// begins with record 1 instead, and passes that snapshot on the way.
func loadThrough(h journal.History, img *journal.Image, cfg ReplayConfig) (*kernel, error) {
	var visited journal.Seq
	visit, hear := cfg.Visit, cfg.OnPrint
	cfg.Visit = func(s journal.Scanned) error {
		if s.ID <= visited {
			return nil
		}
		visited = s.ID
		if visit == nil {
			return nil
		}
		return visit(s)
	}
	if hear != nil {
		cfg.OnPrint = func(p Printed) {
			if p.Record > visited {
				hear(p)
			}
		}
	}
	var base journal.Seq
	if img != nil {
		base = img.Head.ID
	}
	k, err := load(h, img, cfg)
	if base > 0 && errors.Is(err, journal.ErrNotFound) && !isSpill(err) {
		visited, cfg.begun = max(visited, base), nil
		k, err = load(h, nil, cfg)
	}
	return k, err
}

// At returns the world as it was after a record and the rest of its unit. It replays from the last image
// before; from record 1 if that image cannot be read, or does not agree with the records: an image is derived.
// When ctx ends, At ends, even within a step.
func At(ctx context.Context, h journal.History, at journal.Seq, registry reducer.Registry) (*Moment, error) {
	return AtLeaving(ctx, h, at, registry, 0, nil)
}

// AtLeaving is At for callers that look often. If the image before is more than twice every records away,
// leave gets images on the way, one about every so many records, each with what changed since the one before.
func AtLeaving(ctx context.Context, h journal.History, at journal.Seq, registry reducer.Registry, every journal.Seq, leave func(*journal.Image)) (*Moment, error) {
	cfg := ReplayConfig{Registry: registry, To: at, guard: newGuard(ctx, Bounds{})}
	img, err := h.Image(at)
	if err != nil {
		img, every = nil, 0 // what else is wrong the records tell
	}
	base := journal.Seq(0)
	if img != nil {
		base = img.Head.ID
	}
	if every > 0 && at > base && at-base > 2*every {
		cfg.every, cfg.leave = every, leave
	}
	k, err := loadThrough(h, img, cfg)
	if err != nil && img != nil && !isMissing(err) && cfg.guard.ended() == nil {
		cfg.leave = nil
		k, err = loadThrough(h, nil, cfg)
	}
	if err != nil {
		return nil, err
	}
	return &Moment{k: k, past: h, registry: registry}, nil
}

// load folds a journal into a kernel, from an image (nil: from record 1). If the error is a
// *reducer.MissingError, the kernel is what it was before it needed that reducer. With an error the Spill is
// closed, else the kernel owns it.
func load(h journal.History, img *journal.Image, cfg ReplayConfig) (*kernel, error) {
	k := newKernel(cfg.Keys, cfg.Paranoid)
	k.onPrint = cfg.OnPrint
	if k.store.images = cfg.images; cfg.begun != nil {
		k.store.images, k.store.spill = cfg.begun, cfg.begun
	}
	f := folding{kernel: k, h: h, cfg: cfg, base: img}
	from, err := f.loadImage()
	if err == nil {
		err = f.fold(from)
	}
	if k.store.err != nil {
		err = k.store.err // what followed from that differs from the journal
	}
	if err == nil {
		return k, nil
	}
	if left := k.store.close(); left != nil {
		err = errors.Join(err, left)
	}
	return k, err
}

// loadImage makes the kernel what it was at the image that it begins with, or before record 1. It returns the
// head after which the fold goes on.
func (k *folding) loadImage() (from journal.Head, err error) {
	created, err := firstRecord(k.h)
	if err != nil {
		return from, err
	}
	if err := checkKernel(created.Kernel); err != nil {
		return from, err
	}
	inForce := created.Manifest
	if k.base != nil {
		if inForce, err = k.restore(k.base); err != nil {
			return from, err
		}
		from = k.base.Head
	}
	if k.rules, err = rulesOf(inForce, k.h, k.cfg.Registry, k.cfg.guard); err != nil && !isMissing(err) {
		return from, err
	}
	if k.base == nil {
		return from, checkEngines(created.Engines, k.rules.engines)
	}
	if k.store.spill != nil {
		k.base, k.cfg.leave = nil, nil // it is there, with all of its cells
	}
	return from, nil
}

// rulesOf returns the rules of a manifest that is a blob.
func rulesOf(hash journal.Hash, blobs journal.Blobs, registry reducer.Registry, g *guard) (*rules, error) {
	if encoded, err := blobs.Blob(hash); err == nil {
		if g.item(len(encoded), "manifest", hash.String(), 0); g.ended() != nil {
			return nil, g.ended()
		}
	}
	m, err := manifestOf(hash, blobs)
	if err != nil {
		return nil, err
	}
	return compile(m, hash, blobs, registry, g)
}

func manifestOf(hash journal.Hash, blobs journal.Blobs) (*manifest.Manifest, error) {
	encoded, err := blobs.Blob(hash)
	if err != nil {
		return nil, fmt.Errorf("world: manifest %s: %w", hash, err)
	}
	m, err := manifest.Decode(encoded)
	if err != nil {
		return nil, fmt.Errorf("world: manifest %s: %w", hash, err)
	}
	return m, nil
}

func firstRecord(h journal.History) (*journal.Created, error) {
	rec, err := journal.Read(h, 1)
	if err != nil {
		return nil, err
	}
	body, err := rec.LoadBody(h)
	if err != nil {
		return nil, err
	}
	created, ok := body.(*journal.Created)
	if !ok {
		return nil, fmt.Errorf("world: record #1 is %s, not %s", rec.Kind, journal.KindCreated)
	}
	return created, nil
}

// diverged describes a difference. If got is nil, cause says why there is nothing to compare with.
func diverged(h journal.History, s journal.Scanned, got []byte, cause error) error {
	d := &Divergence{Record: s.ID, Journal: describe(h, s.Bytes)}
	if got != nil {
		d.Computed = describe(h, got)
	} else {
		d.Computed = cause.Error()
	}
	if rec := s.Record; s.Err == nil && rec.Load(h) == nil {
		_ = journal.EachCell(rec.Kind, rec.Payload, func(cell []byte) { // what cannot be read names no cell
			if d.Cell == "" {
				d.Cell = string(cell)
			}
		})
	}
	return d
}

func describe(h journal.History, data []byte) string {
	rec, err := journal.DecodeRecord(data)
	if err == nil {
		err = rec.Load(h)
	}
	if err != nil {
		return err.Error()
	}
	text, err := rec.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(text)
}
