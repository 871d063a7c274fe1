package local

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/bundle"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/world/verify"
)

// ErrNoRange says that a bundle was asked for of records that are not there.
var ErrNoRange = errors.New("there are no such records")

// BundleOptions say what a bundle holds. The zero value is for all of a world.
type BundleOptions struct {
	From, To journal.Seq          // the first record and the last; 0: 1, and the last there is
	Withhold []journal.Seq        // records whose payloads are left out: only those that are not part of the record can be
	Keys     []ed25519.PrivateKey // sign the last checkpoint besides the world's own key
	Progress func(done uint64)    // called with the number of records written; may be nil
}

// ExportBundle writes what somebody needs who verifies the world offline, and no
// secret; see package bundle. It signs a checkpoint of the last record for it. The
// world goes on meanwhile. The errors are ErrNoRange, ErrInline, and those of
// Checkpoint.
func (lw *World) ExportBundle(ctx context.Context, w io.Writer, o BundleOptions) error {
	lw.still.RLock()
	defer lw.still.RUnlock()
	header, notes, err := lw.bundleHeader(&o)
	if err != nil {
		return err
	}
	x, err := bundle.NewWriter(w, header)
	if err != nil {
		return err
	}
	for s, err := range lw.store.Scan(header.First - 1) {
		if err = cmp.Or(err, s.Err, ctx.Err()); err != nil {
			return err
		}
		if err := lw.bundleRecord(x, s); err != nil {
			return err
		}
		if len(notes) > 0 && notes[0].Size == uint64(s.ID) {
			if err := x.Checkpoint(notes[0].Note); err != nil {
				return err
			}
			notes = notes[1:]
		}
		if o.Progress != nil {
			o.Progress(uint64(s.ID - header.First + 1))
		}
		if s.ID == header.Last {
			break
		}
	}
	return x.Close()
}

func (lw *World) bundleRecord(x *bundle.Writer, s journal.Scanned) error {
	rec := s.Record
	if err := rec.Load(lw.store); err != nil && !errors.Is(err, journal.ErrRedacted) {
		return err
	}
	blobs, err := blobsOf(lw.store, &rec)
	if err != nil {
		return err
	}
	for _, b := range blobs {
		if err := x.Blob(b.Bytes); err != nil {
			return err
		}
	}
	return x.Record(s)
}

// bundleHeader returns the header of a bundle and the checkpoints in it: those that
// the world has signed of records in the range, and one of the last.
func (lw *World) bundleHeader(o *BundleOptions) (h bundle.Header, notes []store.Signed, err error) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if err := lw.w.Sync(); err != nil {
		return h, nil, err
	}
	head := lw.store.Head()
	h = bundle.Header{World: lw.keys.World(), First: cmp.Or(o.From, 1), Last: cmp.Or(o.To, head.ID)}
	if h.First > h.Last || h.Last > head.ID {
		return h, nil, fmt.Errorf("%w: #%d to #%d of #%d", ErrNoRange, h.First, h.Last, head.ID)
	}
	if err := lw.ownUpTo(h.Last); err != nil {
		return h, nil, err
	}
	keys, err := lw.signers(o.Keys)
	if err != nil {
		return h, nil, err
	}
	last, err := lw.signAt(h.Last, keys)
	if err != nil {
		return h, nil, err
	}
	if notes, err = lw.signedIn(&h, last, o.Keys); err != nil {
		return h, nil, err
	}
	slices.SortFunc(h.Keys, func(a, b ed25519.PublicKey) int { return bytes.Compare(a, b) })
	h.Keys = slices.CompactFunc(h.Keys, func(a, b ed25519.PublicKey) bool { return bytes.Equal(a, b) })
	if h.First > 1 {
		if h.Root, h.Nodes, err = lw.before(h.First); err != nil {
			return h, nil, err
		}
	}
	for _, id := range o.Withhold {
		if id < h.First || id > h.Last {
			return h, nil, fmt.Errorf("record #%d: %w", id, ErrNoRange)
		}
		blob, err := lw.payloadOf(id)
		if err != nil {
			return h, nil, err
		}
		h.Withheld = append(h.Withheld, blob)
	}
	slices.SortFunc(h.Withheld, func(a, b journal.Hash) int { return bytes.Compare(a[:], b[:]) })
	h.Withheld = slices.Compact(h.Withheld)
	return h, notes, nil
}

// signedIn returns the checkpoints of the records of a bundle, of which the last is one that may be
// kept nowhere, and notes in its header who signed them.
func (lw *World) signedIn(h *bundle.Header, last *store.Signed, others []ed25519.PrivateKey) (notes []store.Signed, err error) {
	own, err := lw.keys.CheckpointKeys()
	if err != nil {
		return nil, err
	}
	known := append(public(own), public(others)...)
	add := func(signed store.Signed) {
		by, err := checkpoint.Open(signed.Note, known...)
		if err != nil || len(by.By) == 0 || signed.World != h.World {
			return // who signed it nobody can tell any more
		}
		notes = append(notes, signed)
		h.Keys = append(h.Keys, by.By...)
	}
	for signed, err := range lw.store.Checkpoints(h.First, h.Last-1) {
		if err != nil {
			return nil, err
		}
		add(signed)
	}
	add(*last)
	return notes, nil
}

// ownUpTo returns why the journal up to a record cannot be signed: of a fork, what
// is before it was its parent.
func (lw *World) ownUpTo(last journal.Seq) error {
	for s, err := range lw.store.Scan(last) {
		if err = cmp.Or(err, s.Err); err != nil {
			return err
		}
		if s.Record.Kind == journal.KindForked {
			return fmt.Errorf("%w of this world: it begins with #%d, and what is before is its parent's", ErrNoRange, s.ID)
		}
	}
	return nil
}

// before returns the chain root and the nodes of the Merkle tree before a record.
func (lw *World) before(first journal.Seq) (journal.Hash, []journal.Hash, error) {
	tree, err := lw.store.TreeAt(first - 1)
	if err != nil {
		return journal.Hash{}, nil, err
	}
	chain := new(canon.Chain)
	for s, err := range lw.store.Scan(0) {
		if err = cmp.Or(err, s.Err); err != nil {
			return journal.Hash{}, nil, err
		}
		if s.ID == first {
			break
		}
		chain.Add(uint64(s.ID), string(s.Record.Kind), s.Bytes)
	}
	return chain.Root(), tree.Nodes(), nil
}

// VerifyBundle proves the world, or the part of it, in a bundle: offline, without
// its store and without a secret, within opts.Bounds. The error says that it is none, or
// that it could not be done: a *world.BoundError or a *TimeError where the bounds are why.
func VerifyBundle(ctx context.Context, from io.Reader, opts Options, v Verification) (*verify.Report, error) {
	bounds := opts.Bounds.withDefaults()
	ctx, cancel := bounds.within(ctx)
	defer cancel()
	type verified struct {
		report *verify.Report
		err    error
	}
	done := make(chan verified, 1)
	go func() {
		report, err := v.runBundle(ctx, from, opts, bounds)
		done <- verified{report, err}
	}()
	select {
	case x := <-done:
		return x.report, x.err
	case <-ctx.Done():
	}
	select {
	case <-done:
	case <-time.After(lastStep): // an engine of before, or a manifest, that cannot be interrupted
	}
	return nil, context.Cause(ctx)
}

// openBundle reads a bundle within bounds.
func openBundle(ctx context.Context, from io.Reader, bounds Bounds) (*bundle.Reader, error) {
	r, err := bundle.Open(cancelled{ctx, from}, bundle.Options{
		MaxBytes: int64(bounds.Size), MaxManifest: int(bounds.Memory / manifestShare),
	})
	if errors.Is(err, bundle.ErrSize) {
		err = &SizeError{bounds.Size}
	}
	return r, err
}

// runBundle is VerifyBundle, which does not wait for it for ever.
func (v Verification) runBundle(ctx context.Context, from io.Reader, opts Options, bounds Bounds) (*verify.Report, error) {
	r, err := openBundle(ctx, from, bounds)
	if err != nil {
		return nil, err
	}
	h := r.Header()
	cfg := verify.Config{
		Registry: opts.Reducers, Bounds: bounds.Bounds, Damage: r.Damage(),
		Begin:    verify.Begin{First: h.First, Root: h.Root, Nodes: h.Nodes, World: h.World},
		Withheld: h.Withheld, Checkpoints: r.Checkpoints(), Signers: h.Keys, Sealed: true,
	}
	report, err := v.run(ctx, r, h.Last, cfg)
	return report, errors.Join(err, r.Close())
}

// manifestShare is what part of Bounds.Memory a manifest may have in bytes, as
// package world has it for all that is looked into.
const manifestShare = 64

// lastStep is how long a step may go on that nobody waits for any more.
const lastStep = time.Second

// cancelled is a reader that ends with its context.
type cancelled struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r cancelled) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}
