package local

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/bundle"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// ErrPart says that a bundle does not have all of a journal.
var ErrPart = errors.New("only the bundle of a whole journal makes a world")

// Import makes a world in a directory of a bundle of all of a journal. Without the content of
// its keyring file (nil) the world can be read and verified, not run; a sealed one stays sealed
// with its passphrase. The journal is replayed before the world is there;
// where that fails the directory is as it was. It is in no log, whatever opts say: there what is in
// flight would be taken for never begun. MoveInto takes it to one. progress may be nil.
// The errors are ErrPart, and those of package bundle.
func Import(ctx context.Context, dir string, from io.Reader, keyring []byte, opts Options, progress func(done uint64)) error {
	opts = opts.inDirectory()
	bounds := opts.Bounds.withDefaults()
	ctx, cancel := bounds.within(ctx)
	defer cancel()
	r, err := openBundle(ctx, from, bounds)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer r.Close() //nolint:errcheck // only read
	for damage := range r.Damage() {
		return fmt.Errorf("import: %w", damage)
	}
	h := r.Header()
	if h.First > 1 {
		return fmt.Errorf("import: %w: this one begins with record #%d", ErrPart, h.First)
	}
	none, err := receipt.NewKeyring(h.World, nil)
	keys := ring{keys: none}
	if keyring != nil {
		keys, err = decodeKeyring(keyring, opts)
	}
	if err != nil {
		return fmt.Errorf("import: the keyring: %w", err)
	}
	if of := keys.keys.World(); of != h.World {
		return fmt.Errorf("import: the keyring was made for world %s, the journal is of %s", of, h.World)
	}
	return file.InDir(dir, func() error { return importTo(ctx, dir, keys, opts, r, progress) })
}

func importTo(ctx context.Context, dir string, keyring ring, opts Options, from *bundle.Reader, progress func(uint64)) error {
	return build(dir, keyring, opts, func(hidden string, s *store.Store) error {
		p := pouring{from: from, to: s, progress: progress}
		p.redact = func(blob journal.Hash) error { return s.Redact(blob, p.flush) }
		if err := p.pourAll(ctx); err != nil {
			return fmt.Errorf("import: %w", err)
		}
		lw := &World{mu: newTurn(), dir: dir, hidden: hidden, store: s, keys: keyring.keys, opts: opts}
		if err := world.Adopt(ctx, lw.config(), opts.Bounds.withDefaults().Bounds); err != nil {
			return err
		}
		var err error
		if lw.w, err = world.Open(lw.config()); err != nil {
			return err
		}
		if lw.host != nil {
			if err := lw.host.Close(); err != nil {
				return err
			}
		}
		if id := lw.w.Status().ID; id != from.Header().World {
			return fmt.Errorf("import: the bundle is of world %s, the journal in it of %s", from.Header().World, id)
		}
		for _, h := range lw.w.Manifest().Contents() { // Open reads only what it runs
			if _, err := s.Blob(h); err != nil {
				return fmt.Errorf("import: content of the manifest: %w", err)
			}
		}
		return nil
	})
}
