package world

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// KernelVersion is recorded in world.created, because the meaning of a journal depends on the kernel's version.
const KernelVersion = "kernel/1"

// Defaults of a Config.
const (
	DefaultBatchRecords      = 2048
	DefaultCheckpointRecords = 65_536
	DefaultMemory            = 1 << 30 // of package local, in bytes
)

// Config has the parts that a World works with. Journal, History and NewHost are required, with one exception:
// without a Journal, Create makes a World that keeps nothing, for experiments. It computes the same states and the
// same execution hash. Its records have numbers, but neither bytes nor roots, so it cannot be forked, rolled back or
// given other rules: ErrNotKept.
type Config struct {
	Journal  journal.Journal
	History  journal.History // reads the records of Journal
	NewHost  func(world string, m *manifest.Manifest) (Host, error)
	Performs Performs         // of candidates that are proposed and applied; nil: any effects
	Keys     *receipt.Keyring // verifies receipts
	Registry reducer.Registry // Go reducers; nil: none
	Paranoid bool             // run every reduction twice and compare
	Bounds   Bounds           // of candidates, until they are in force; zero: DefaultBounds
	Now      func() int64     // the wall clock, in nanoseconds since 1970-01-01 UTC; nil: time jumps, even if the manifest has a real clock

	// When Life ends, the World stops at once, while it is opened or amid a step, too. That step is thrown away:
	// open the world again. Nil: a step always runs to its end.
	Life context.Context

	// Images, if set, reads the images of Journal. Once cells and intents take more than about Memory bytes,
	// unused ones are dropped from memory, and read from the last image on demand. 0: all stay in memory.
	Images journal.Versions
	Memory int

	// BatchRecords is the number of records after which a batch is appended, while the next one is computed.
	// 0: DefaultBatchRecords.
	BatchRecords int
	// CheckpointRecords is the number of records between checkpoints. 0: DefaultCheckpointRecords.
	CheckpointRecords journal.Seq
}

// Performs returns why the effects of a manifest cannot be performed, or nil. content reads the contents that the
// manifest names. Code of the manifest that has to run for the answer runs within bounds; nil: within its own limits.
type Performs func(m *manifest.Manifest, content func(manifest.Hash) ([]byte, error), within *reducer.Bounds) error

// withDefaults returns cfg with its zero sizes filled in.
func (cfg Config) withDefaults() Config {
	if cfg.Bounds == (Bounds{}) {
		cfg.Bounds = DefaultBounds()
	}
	if cfg.BatchRecords == 0 {
		cfg.BatchRecords = DefaultBatchRecords
	}
	if cfg.CheckpointRecords == 0 {
		cfg.CheckpointRecords = DefaultCheckpointRecords
	}
	return cfg
}

// Genesis has the parts of a new world.
type Genesis struct {
	ID       string // unique; keys and receipts are bound to it
	Seed     uint64
	Manifest *manifest.Manifest
	Contents map[manifest.Hash][]byte // all that the manifest names
}

// Create makes a new world in an empty journal. It is durable on return.
func Create(cfg Config, g Genesis) (*World, error) {
	encoded, err := g.Manifest.Encode()
	if err != nil {
		return nil, fmt.Errorf("world: manifest: %w", err)
	}
	blobs := []journal.Blob{{Hash: canon.Sum(encoded), Bytes: encoded}}
	for _, h := range g.Manifest.Contents() {
		content, ok := g.Contents[h]
		if !ok {
			return nil, fmt.Errorf("world: manifest: content %s is missing", h)
		}
		blobs = append(blobs, journal.Blob{Hash: h, Bytes: content})
	}
	k := newKernel(cfg.Keys, cfg.Paranoid)
	k.store.images = cfg.Images
	if cfg.Journal == nil {
		nothing := nowhere{journal.BlobList(blobs)}
		cfg.Journal, cfg.History, k.execution = nothing, nothing, journal.NewExecution()
	}
	if k.rules, err = compile(g.Manifest, blobs[0].Hash, journal.BlobList(blobs), cfg.Registry, newGuard(cfg.life(), Bounds{})); err != nil {
		return nil, err
	}
	k.create(journal.Created{
		Version: journal.V(journal.BodyVersion), World: g.ID, Name: g.Manifest.World, Seed: g.Seed, Manifest: k.rules.hash,
		Kernel: KernelVersion, Engines: k.rules.engines,
	})
	k.blobs = append(blobs, k.blobs...)
	cfg = cfg.withDefaults()
	w := &World{cfg: cfg, Moment: Moment{k, cfg.History, cfg.Registry, cfg.Performs, cfg.Bounds, nil}, durable: k.taken.ID}
	w.queued = w.notBegun
	if err := w.sync(); err != nil {
		return nil, err
	}
	return w, w.start()
}

// Open loads the last checkpoint of a world and replays the records after it. If the program lacks Go reducers, the
// world can only be read: see World.Lacks.
func Open(cfg Config) (*World, error) {
	w, err := open(cfg)
	if err != nil {
		return nil, err
	}
	if err := w.start(); err != nil {
		return nil, err
	}
	return w, w.recover()
}

// Try opens a world as Open does, for rules that nobody has put in force: they run within cfg.Bounds. If they need
// more, every later change of the world returns a *BoundError, and the caller throws the world away.
func Try(cfg Config) (*World, error) {
	g := newGuard(cfg.life(), cfg.withDefaults().Bounds)
	w, err := openWithin(cfg, g)
	if err != nil {
		return nil, err
	}
	g.spare(w.k)
	if err := w.start(); err != nil {
		return nil, err
	}
	return w, w.recover()
}

// Adopt folds a journal from elsewhere, within bounds, and stores an image of the world, with which Open begins. The
// errors are those of Replay.
func Adopt(ctx context.Context, cfg Config, b Bounds) error {
	w, err := openWithin(cfg, newGuard(ctx, b))
	if err != nil {
		return err
	}
	return w.Checkpoint()
}

// open opens a world without a host.
func open(cfg Config) (*World, error) { return openWithin(cfg, newGuard(cfg.life(), Bounds{})) }

// life returns the context with which the world ends.
func (cfg *Config) life() context.Context {
	if cfg.Life == nil {
		return context.Background()
	}
	return cfg.Life
}

func openWithin(cfg Config, g *guard) (*World, error) {
	if cfg.History == nil {
		return nil, notKept(1)
	}
	img, err := lastImage(cfg)
	if err != nil {
		return nil, err
	}
	var lost []*journal.Image // images that a crash has lost
	k, err := load(cfg.History, img, ReplayConfig{
		Keys: cfg.Keys, Registry: cfg.Registry, Paranoid: cfg.Paranoid, guard: g, images: cfg.Images,
		passed: func(img *journal.Image) { lost = append(lost, img) },
	})
	if err != nil && !isMissing(err) {
		return nil, err
	}
	if err != nil {
		k.takeReady(ready{})
	} else {
		err = k.rules.lacks
	}
	cfg = cfg.withDefaults()
	w := &World{cfg: cfg, Moment: Moment{k, cfg.History, cfg.Registry, cfg.Performs, cfg.Bounds, nil}, durable: k.taken.ID}
	w.queued = w.notBegun
	w.broken, w.lacks = err, err
	if img != nil {
		w.saved = img.Head.ID
	}
	for _, img := range lost {
		if err := cfg.Journal.Checkpoint(img); err != nil {
			return nil, err
		}
		w.saved = img.Head.ID
	}
	return w, nil
}

// lastImage returns the image that a world is opened with. If the image is larger than memory, it has only the cells
// that are active; the others stay in the image store.
func lastImage(cfg Config) (*journal.Image, error) {
	if cfg.Images == nil || cfg.Memory == 0 {
		return cfg.History.Image(journal.Last)
	}
	img, err := cfg.Images.Core(journal.Last)
	if err != nil || img == nil {
		return nil, err
	}
	parts, err := partsOf(img)
	if err != nil || !parts.core.exceeds(cfg.Memory) {
		return cfg.History.Image(journal.Last)
	}
	return liveImage(cfg.Images, img, parts)
}

// exceeds reports whether an image is larger than this memory.
func (c *imageCore) exceeds(memory int) bool {
	return c.Ledger != nil || int(c.Cells)*cellBytes+int(c.Counts)*countBytes > memory
}

// liveImage adds to the core of an image the active cells, the alarms, and the intents that must stay in memory.
func liveImage(images journal.Versions, img *journal.Image, parts *imageParts) (_ *journal.Image, err error) {
	at := img.Head.ID
	for _, name := range slices.Concat(parts.core.Ready, parts.core.Halted) {
		v, err := images.CellVersion(name, at)
		if err != nil {
			return nil, err
		}
		if v != nil {
			img.Cells = append(img.Cells, *v)
		}
	}
	for _, prefix := range []string{scheduledList, timersList} {
		for v, err := range images.CellVersions(prefix, at) {
			if err != nil {
				return nil, err
			}
			waits, err := decodeAlarms(&v, parts.core.Now)
			if err != nil {
				return nil, err
			}
			if len(waits) > 0 {
				v.Bytes = bytes.Clone(v.Bytes)
				img.Cells = append(img.Cells, v)
			}
		}
	}
	slices.SortFunc(img.Cells, func(a, b journal.CellVersion) int { return strings.Compare(a.Cell, b.Cell) })
	img.Intents, err = lastIntents(images, &parts.core, at)
	return img, err
}

// lastIntents returns the intents of a world whose cells are not all loaded: all of them, or, if some intents had
// left memory, only the intents that have not ended for good.
func lastIntents(images journal.Versions, core *imageCore, at journal.Seq) (out []journal.IntentVersion, err error) {
	if core.Ledger == nil {
		for v, err := range images.IntentVersions(at) {
			if err != nil {
				return nil, err
			}
			v.Bytes = bytes.Clone(v.Bytes)
			out = append(out, v)
		}
		return out, nil
	}
	for _, key := range core.Ledger.Live {
		v, err := images.IntentVersion(key.Hash, at)
		if err == nil && v == nil {
			err = fmt.Errorf("world: image at #%d: intent %s: %w", at, key, journal.ErrNotFound)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, *v)
	}
	return out, nil
}

func (w *World) start() error {
	w.answers, w.failures = make(map[receipt.Key][]byte), make(map[receipt.Key]receipt.Answer)
	w.confirming = make(map[receipt.Key]bool)
	var err error
	if w.host, err = w.cfg.NewHost(w.k.id, w.k.rules.manifest); err == nil && w.host != nil {
		w.cfg.Journal.Notify(w.host.Wake)
	}
	return err
}
