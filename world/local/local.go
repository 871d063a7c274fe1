// Package local opens a world directory: it wires the store, the keyring, the
// manifest, the reducers and the host into a World.
//
// A world directory holds world.yaml, the sources that it names, and .world/:
//
//	store/    the journal and what is derived from it (package journal/store)
//	anchor    where the journal was when it was last acknowledged
//	keyring   the receipt keys, readable by the owner only
//	effects   results of live effects that the journal does not hold yet
//	recorded  in a fork whose effects are answered by what its parent recorded:
//	          the parent's absolute path, a line; without it the outside answers
//	past/     in such a fork of a world in a log: the parent as it was, which recorded
//	          names
//	live      beside recorded, where what the parent has not asked for is performed:
//	          the last record of its that counts for that, a line
//	notified  what a server has told outside of what waits for a person: see package
//	          notify
//	moved     where the world has moved to, or where it is being moved here from: it does
//	          not open
//	secrets/  values of secret://NAME, a file each; made by people
//	lock      held by the process that owns the world
//	owner.sock  where worldctl run and serve carry out other processes' commands
//
// Where the journal lies in a log (Options.Log) store and anchor are a copy of it, which may be lost.
//
// Three lines run a world:
//
//	w, err := local.Open("support-desk", local.Options{})
//	_, err = w.Submit(ctx, "ticket.opened", map[string]any{"customer": "ada"})
//	err = w.Run(ctx)
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/trust"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// Names within a world directory.
const (
	ManifestFile = "world.yaml"
	hiddenDir    = ".world"
	keyringFile  = "keyring"
	effectsFile  = "effects"
	recordedFile = "recorded"
	liveFile     = "live"
	notifiedFile = "notified"
	movedFile    = "moved"
	secretsDir   = "secrets"

	maxNoteBytes = 1 << 20 // of a file that says one thing
)

// NotifiedFile returns the path of a server's notes on notifications sent.
func (lw *World) NotifiedFile() string { return filepath.Join(lw.hidden, notifiedFile) }

// ErrNoWorld says that a directory holds no world yet.
var ErrNoWorld = errors.New("no world here")

// World is a world in a directory, owned by this process. It is safe for
// concurrent use: calls take turns.
type World struct {
	still sync.RWMutex // held while the store is read beside changes or is copied, before mu; Close waits for it

	mu     turn
	dir    string
	hidden string // where the store is
	w      *world.World
	store  *store.Store
	host   *host.Host
	keys   *receipt.Keyring
	opts   Options
	lacks  error       // see Lacks
	signed journal.Seq // up to where a checkpoint is signed, at least

	edition atomic.Pointer[edition] // whose host is host
	trust   *trust.Trust            // what is performed for the world; nil: everything. Calls of Update change it

	past   *pastAnswers  // of the world whose recordings answer; nil: none do
	missed atomic.Uint64 // attempts that were made because nothing recorded answers them

	submitted submissions // that wait for their turn

	spills atomic.Uint64 // that were made; see spilling

	changing    atomic.Int64 // since when Update changes it, by Unix time in nanoseconds; 0: it does not
	aside       string       // holds what is this look's alone, and goes with it; empty: the world is owned
	removeAside func() error
	looks       bool // the world is only read; see Look

	left   []receipt.Permit // see Left
	closed bool             // Close has closed the host

	life    context.Context    // of the world in memory; nil: that of Options
	endLife context.CancelFunc // ends what it does, amid a step too; nil: as life

	passphrase []byte // the keyring is sealed with it; nil: it is not sealed
}

// ErrStrangersWorld means that a world belongs to another user and was not named explicitly.
var ErrStrangersWorld = errors.New("another user's world is opened only where it is named")

// Find returns the nearest directory upwards from dir that holds a world. With
// ErrStrangersWorld, too: its rules and programs are that user's.
func Find(dir string) (string, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		if info, err := os.Lstat(filepath.Join(at, hiddenDir)); err == nil && info.IsDir() {
			if uid, known := file.OwnerOf(info); known && uid != os.Geteuid() {
				err = fmt.Errorf("%w: %s is user %d's", ErrStrangersWorld, at, uid)
			}
			return at, err
		}
		up := filepath.Dir(at)
		if up == at {
			return "", noWorld(dir, ", nor in a directory above")
		}
		at = up
	}
}

// Open opens the world in a directory and becomes its owner. What a crash left
// half-done is caught up on before the next input. Where the program lacks Go reducers
// or adapters the world can only be read: see Lacks.
func Open(dir string, opts Options) (*World, error) { return openBy(dir, opts, world.Open) }

func openBy(dir string, opts Options, open opener) (*World, error) {
	lw, err := own(dir, opts)
	if err != nil {
		return nil, err
	}
	lw.life, lw.endLife = context.WithCancel(lw.lifetime())
	if err := lw.load(lw.config(), open); err != nil {
		lw.endLife()
		return nil, errors.Join(err, lw.abandon())
	}
	if lw.host != nil { // the world has asked for all that it has in flight
		lw.host.DropStale()
	}
	return lw, nil
}

// opener opens a world: world.Open or world.Try.
type opener = func(world.Config) (*world.World, error)

func (lw *World) load(cfg world.Config, open opener) (err error) {
	if lw.w, err = open(cfg); err == nil && lw.w.Lacks() != nil {
		lw.lacks = lw.w.Lacks()
	}
	return err
}

// Lacks returns nil, or why this program does not run the world and not change it. With
// a *reducer.MissingError cells and intents are as they were before the first record that
// such a reducer has to compute, and the records after it can be read. Else it is a
// *manifest.NoAdapterError for each adapter or verifier that is missing, and all is as it
// was left.
func (lw *World) Lacks() error { return lw.lacks }

// own becomes the owner of what is stored in a directory, whether or not it
// makes a world.
func own(dir string, opts Options) (*World, error) {
	lw, err := hold(dir, opts, store.Open)
	if err == nil {
		dropSpills(lw.hidden)
	}
	return lw, err
}

// ownReadOnly is own for who only reads: where the journal lies in a log nothing is owned.
func ownReadOnly(dir string, opts Options) (*World, error) {
	opts = opts.tested(filepath.Join(dir, hiddenDir), false)
	if opts.Log == nil {
		return own(dir, opts)
	}
	aside, remove, err := opts.MakeTemporary("world-look-")
	if err != nil {
		return nil, err
	}
	lw, err := hold(dir, opts, func(hidden string, opts store.Options) (*store.Store, error) {
		return store.OpenReadOnly(hidden, filepath.Join(aside, "copy"), opts)
	})
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	lw.aside, lw.removeAside = aside, remove
	return lw, nil
}

// storeOpener opens a store: store.Open, store.Create, or what does as they do.
type storeOpener = func(dir string, opts store.Options) (*store.Store, error)

// ownerSocket is where the owner of a world listens; see serve/owner.
const ownerSocket = "owner.sock"

// checkFiles refuses what is under .world and no file: somebody may have made the
// directory, so that who only looks at the world opens, or changes, what a link names.
func checkFiles(hidden string) error { return file.CheckTree(hidden, ownerSocket) }

// hold opens what is stored in a directory.
func hold(dir string, opts Options, open storeOpener) (*World, error) {
	hidden := filepath.Join(dir, hiddenDir)
	opts = opts.tested(hidden, false)
	if err := checkFiles(hidden); err != nil {
		return nil, err
	}
	if err := refuseMoved(dir, opts); err != nil {
		return nil, err
	}
	path := filepath.Join(hidden, keyringFile)
	if err := fetchKeyring(path, opts); err != nil {
		return nil, err
	}
	if _, err := os.Stat(hidden); errors.Is(err, fs.ErrNotExist) {
		return nil, noWorld(dir, "")
	}
	r, err := readKeyring(path, opts)
	if err != nil {
		return nil, err
	}
	s, err := openStore(hidden, r.keys, opts, open)
	if err != nil {
		return nil, err
	}
	if r, err = latestKeyring(path, r, opts); err == nil && opts.Effects == "" {
		opts.Effects, opts.asked, opts.live, err = readRecorded(hidden)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &World{mu: newTurn(), dir: dir, hidden: hidden, store: s, keys: r.keys, opts: opts, passphrase: r.passphrase}, nil
}

func openStore(hidden string, keys *receipt.Keyring, opts Options, open storeOpener) (*store.Store, error) {
	anchorKey, err := keys.AnchorKey()
	if err != nil {
		return nil, err
	}
	var log journal.Log
	if opts.Log != nil {
		if log, err = opts.Log(anchorKey); err != nil {
			return nil, err
		}
		hidden = cmp.Or(opts.Copy, hidden)
	}
	return open(hidden, store.Options{
		AnchorKey: anchorKey, Log: log, Scratch: opts.Scratch, Fatal: opts.Fatal, EachCell: eachCell, Moments: cmp.Or(opts.Checkpoint, world.DefaultCheckpointRecords),
		IntentOf: func(kind string, payload []byte) (journal.Hash, []byte, bool) {
			return journal.IntentOf(journal.Kind(kind), payload)
		},
	})
}

// eachCell tells the store's index which cells a record concerns. A payload
// that cannot be read is in no index; verification reports it.
func eachCell(kind string, payload []byte, visit func(cell []byte)) {
	_ = journal.EachCell(journal.Kind(kind), payload, visit)
}

// abandon lets go of what has been opened.
func (lw *World) abandon() error {
	var err error
	if lw.host != nil {
		err = lw.host.Close()
	}
	err = errors.Join(err, lw.store.Close())
	if lw.aside != "" {
		err = errors.Join(err, lw.removeAside())
	}
	return err
}

// Close saves an image, for a fast next opening, and releases the world.
func (lw *World) Close() error {
	lw.still.Lock()
	defer lw.still.Unlock()
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.lacks != nil || lw.aside != "" {
		return lw.abandon()
	}
	if lw.host == nil {
		lw.store.SetWake(journal.WakeNever)
		return errors.Join(lw.w.Checkpoint(), lw.abandon())
	}
	// What was refused may have left permits on their way to the disk: nobody begins those.
	given := lw.host.Shut()
	ended := lw.life != nil && lw.life.Err() != nil // amid a step, which is thrown away: what was told to anybody is durable
	if !ended {
		given = errors.Join(given, lw.w.Sync())
	}
	if lw.opts.Effects != "" {
		given = errors.Join(given, lw.host.GiveBack(lw.w.InFlight()))
	}
	// What takes long comes first: until the host is closed, workers elsewhere renew what they hold.
	var kept error
	if !ended {
		kept = errors.Join(lw.w.Checkpoint(), lw.store.KeepImage())
	}
	// The host before the store: what it still finishes is kept in the effect store.
	closed := lw.host.Close()
	lw.closed = true
	lw.left = lw.host.Left(lw.w.InFlight())
	if !ended && errors.Join(given, closed) == nil {
		lw.store.SetWake(lw.wake())
	}
	return errors.Join(given, kept, closed, lw.store.Close())
}

// Left returns, after Close, the attempts that it did not see the end of within
// Options.Grace. Who opens the world next finds them in doubt.
func (lw *World) Left() []receipt.Permit { return lw.left }

// ErrNoKeys says that a world cannot go on because its keyring has no keys: it
// was imported without them.
var ErrNoKeys = errors.New("this world has no receipt keys, so it can be read but not run")

func (lw *World) canRun() error {
	if lw.looks || !lw.keys.CanSign() {
		return ErrNoKeys
	}
	return lw.lacks
}

// Step runs the next tick.
func (lw *World) Step(ctx context.Context) error {
	return lw.Update(func(w *world.World) error { return w.Step(ctx) })
}

// Next does what can be done without waiting for the outside; see world.World.Next.
func (lw *World) Next(ctx context.Context) (world.Progress, error) {
	return Change(lw, func(w *world.World) (world.Progress, error) { return w.Next(ctx) })
}

// Sync makes durable what Next has brought about so far.
func (lw *World) Sync() error { return lw.Update((*world.World).Sync) }

// View lets read look at the world while nothing changes it. What read gets must
// not be used after it returns, and read must not call lw, which waits for it.
func (lw *World) View(read func(*world.Moment)) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	read(&lw.w.Moment)
	if err := lw.w.Unread(); err != nil && lw.opts.Fatal != nil {
		lw.opts.Fatal(err) // what read has got is not so
	}
}

// Update lets change change the world while nobody else does, and returns its error.
// Then it signs the checkpoint that is due, whatever the error. What change gets must not
// be used after it returns, and change must not call lw, which waits for it. Apply of lw
// waits for effects in flight, too.
func (lw *World) Update(change func(*world.World) error) error {
	if err := lw.canRun(); err != nil {
		return err
	}
	lw.mu.Lock()
	defer lw.mu.Unlock()
	lw.changing.Store(time.Now().UnixNano())
	defer lw.changing.Store(0)
	lw.submitWaiting()
	return errors.Join(change(lw.w), lw.signDue())
}

// Change is Update with a result.
func Change[T any](lw *World, change func(*world.World) (T, error)) (v T, err error) {
	err = lw.Update(func(w *world.World) error {
		v, err = change(w)
		return err
	})
	return v, err
}

// Status returns where the world stands.
func (lw *World) Status() world.Status {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.w.Status()
}

// Dir returns the world's directory.
func (lw *World) Dir() string { return lw.dir }

// Keys returns the world's keyring.
func (lw *World) Keys() *receipt.Keyring { return lw.keys }

// OpenReadOnly opens the world in a directory to be read, in no other process meanwhile; where its
// journal lies in a log as it is now, whoever owns it. What would change it is refused with
// ErrNoKeys; what a crash left half-done stays so; and a fork does not need the world whose
// recordings answer its effects. Its keys sign proofs, bundles and checkpoints for others, which it
// does not keep.
func OpenReadOnly(dir string, opts Options) (*World, error) {
	lw, err := ownReadOnly(dir, opts)
	if err != nil {
		return nil, err
	}
	if err := lw.justLook(); err != nil {
		return nil, err
	}
	return lw, nil
}

// justLook loads a world that is only looked at.
func (lw *World) justLook() error {
	lw.looks = true
	if err := lw.load(lw.config(), world.Open); err != nil {
		return errors.Join(err, lw.abandon())
	}
	return nil
}
