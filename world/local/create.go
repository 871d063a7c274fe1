package local

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
)

// Why a world cannot be made.
var (
	ErrExists = errors.New("there is a world here already")
	ErrBadID  = fmt.Errorf("not an id for a world: want 1 to %d letters, digits, '-', '_' or '.', and neither '-' nor '.' first", maxIDBytes)
)

// CreateOptions says what a new world gets besides its world.yaml. The zero value gives
// it a random id, the manifest's seed and a new keyring.
type CreateOptions struct {
	ID      string // 1 to 64 letters, digits, '-', '_' or '.', and neither '-' nor '.' first
	Seed    *uint64
	Keyring []byte // the content of a keyring file made for the same id
	Sealed  bool   // the keyring, if it is not sealed, is sealed with Options.Passphrase
}

// Create makes a world of the world.yaml in a directory. Either the world is
// there afterwards, or the directory is as it was.
func Create(dir string, b CreateOptions, opts Options) error {
	loaded, err := load(filepath.Join(dir, ManifestFile), opts)
	if err != nil {
		return err
	}
	return CreateOf(loaded, dir, b, opts)
}

// CreateOf is Create of what was read already, in a directory that need not have it.
func CreateOf(loaded *source.Loaded, dir string, b CreateOptions, opts Options) error {
	r, err := b.keyring(opts)
	if err != nil {
		return err
	}
	keys := r.keys
	g := world.Genesis{ID: keys.World(), Seed: loaded.Manifest.Seed, Manifest: loaded.Manifest, Contents: loaded.Contents}
	if b.Seed != nil {
		g.Seed = *b.Seed
	}
	return build(dir, r, opts, func(hidden string, s *store.Store) error {
		lw := &World{mu: newTurn(), dir: dir, hidden: hidden, store: s, keys: keys, opts: opts}
		if lw.w, err = world.Create(lw.config(), g); err != nil {
			return err
		}
		return errors.Join(lw.host.Close(), lw.w.Checkpoint())
	})
}

// CreateNew makes a world of files, world.yaml among them, in a directory that is
// empty or not there, and lets begin use it. After a crash or an error the world is
// not there, with nothing of what begin did.
func CreateNew(dir string, files map[string][]byte, b CreateOptions, opts Options, begin func(*World) error) error {
	return whole(dir, dir, func(making string) error {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			at := filepath.Join(making, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
				return err
			}
			if err := errors.Join(file.WriteNew(at, files[name], 0o666), file.SyncDir(filepath.Dir(at))); err != nil {
				return err
			}
		}
		if err := Create(making, b, opts); err != nil {
			return err
		}
		lw, err := Open(making, opts)
		if err != nil {
			return err
		}
		return errors.Join(begin(lw), lw.Close())
	})
}

// CreateCopy makes a world of what was read in a directory that is empty or not there, with
// the files that a world in another directory has beside .world, and lets begin use it. After
// a crash or an error there is no directory.
func CreateCopy(loaded *source.Loaded, from, dir string, b CreateOptions, opts Options, begin func(*World) error) error {
	return whole(dir, from, func(making string) error {
		if err := copyFiles(making, from); err != nil {
			return err
		}
		if err := CreateOf(loaded, making, b, opts); err != nil {
			return err
		}
		lw, err := Open(making, opts)
		if err != nil {
			return err
		}
		return errors.Join(begin(lw), lw.Close())
	})
}

// load reads a world file and makes sure that all its effects can be performed. The error
// is a *manifest.NoAdapterError, too, where nothing but that is wrong.
func load(file string, opts Options, options ...source.Option) (*source.Loaded, error) {
	var lacks error
	check := func(l *source.Loaded) (faults []manifest.Fault) {
		content := func(h manifest.Hash) ([]byte, error) { return l.Contents[h], nil }
		faults, lacks = adapterFaults(l.Manifest, filepath.Dir(file), opts, content, nil)
		return faults
	}
	loaded, err := Read(file, opts, append(options, source.WithCheck(check))...)
	if lacks != nil {
		err = &lackingError{err, lacks}
	}
	return loaded, err
}

// Read reads a world file as Load does, and does not ask whether its effects can be
// performed here: for those who try what its rules say.
func Read(file string, opts Options, options ...source.Option) (*source.Loaded, error) {
	options = append(options, source.WithAnyAdapter())
	for name := range opts.Adapters {
		options = append(options, source.WithAdapter(name))
	}
	return source.Load(file, options...)
}

// newDir begins the names of hidden directories that are being made.
const newDir = hiddenDir + ".new-"

// build makes the hidden directory under another name and renames it when it is
// complete and durable.
func build(dir string, keyring ring, opts Options, fill func(hidden string, s *store.Store) error) error {
	hidden := filepath.Join(dir, hiddenDir)
	if _, err := os.Lstat(hidden); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", dir, ErrExists)
	}
	making, err := os.MkdirTemp(dir, newDir)
	if err != nil {
		return err
	}
	err = buildIn(making, keyring, opts, fill)
	if err == nil {
		err = os.Rename(making, hidden)
	}
	if err == nil {
		sweep(dir)
		return file.SyncDir(dir)
	}
	if _, gone := os.Lstat(hidden); gone == nil { // made by someone else meanwhile
		err = fmt.Errorf("%s: %w", dir, ErrExists)
	}
	return errors.Join(err, os.RemoveAll(making))
}

// noWorld is an ErrNoWorld that names what a build has left that was killed.
func noWorld(dir, where string) error {
	err := fmt.Errorf("%s: %w%s", dir, ErrNoWorld, where)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), newDir) {
			return fmt.Errorf("%w; %s is one that is being made, or was when its process was killed: make it again, and that goes", err, e.Name())
		}
	}
	return err
}

// sweep removes what builds have left that were killed. What cannot be removed
// does no harm: it may be that of a build that will find this world here.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), newDir) {
			_ = store.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

func buildIn(making string, keyring ring, opts Options, fill func(hidden string, s *store.Store) error) error {
	data, err := keyring.encode()
	if err != nil {
		return err
	}
	if err := putKeyring(filepath.Join(making, keyringFile), data); err != nil {
		return err
	}
	opts = opts.tested(making, true)
	s, err := openStore(making, keyring.keys, opts, store.Create)
	if err != nil {
		return err
	}
	err = fill(making, s)
	if err == nil {
		err = publish(s.Log(), data)
	}
	err = errors.Join(err, s.Close())
	if err == nil && opts.Copy != "" { // else the store has synced the directory
		err = file.SyncDir(making)
	}
	return err
}

func (b CreateOptions) keyring(opts Options) (ring, error) {
	r, err := b.ownKeyring(opts)
	if err != nil || !b.Sealed || r.passphrase != nil {
		return r, err
	}
	if opts.Passphrase == nil {
		return r, ErrNotSealed
	}
	r.sealing = opts.Sealing
	r.passphrase, err = opts.Passphrase()
	return r, err
}

func (b CreateOptions) ownKeyring(opts Options) (ring, error) {
	if b.Keyring != nil {
		r, err := decodeKeyring(b.Keyring, opts)
		if err != nil {
			return ring{}, fmt.Errorf("the keyring: %w", err)
		}
		if !r.keys.CanSign() {
			return ring{}, ErrNoKeys
		}
		if b.ID != "" && b.ID != r.keys.World() {
			return ring{}, fmt.Errorf("the keyring was made for world %s, not %s", r.keys.World(), b.ID)
		}
		return r, nil
	}
	id := b.ID
	if id == "" {
		id = hex.EncodeToString(randomBytes(8))
	}
	if err := CheckID(id); err != nil {
		return ring{}, err
	}
	keys, err := receipt.NewKeyring(id, []receipt.Epoch{{Number: 1, Secret: randomBytes(receipt.SecretBytes)}})
	return ring{keys: keys}, err
}

// maxIDBytes is the greatest length of a world's id.
const maxIDBytes = 64

// CheckID refuses what cannot be the id of a world: ErrBadID.
func CheckID(id string) error {
	ok := id != "" && len(id) <= maxIDBytes && id[0] != '-' && id[0] != '.' // which commands take for an option, and file systems for another directory
	for _, c := range id {
		ok = ok && (c == '-' || c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	}
	if !ok {
		return fmt.Errorf("%q is %w", id, ErrBadID)
	}
	return nil
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, by its documentation
	return b
}
