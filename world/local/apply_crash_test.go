package local_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// These tell a process that it is to die while it changes the rules of a world, and
// at which write.
const (
	adoptingWorld = "WORLDKERNEL_TEST_ADOPTING_WORLD"
	adoptingWrite = "WORLDKERNEL_TEST_ADOPTING_WRITE"
)

// mortalJournal dies before or after a write.
type mortalJournal struct {
	*store.Store
	left int // writes until then, each counted before and after
}

func (j *mortalJournal) count() {
	if j.left--; j.left == 0 {
		die()
	}
}

func (j *mortalJournal) Append(b journal.Batch) (journal.Pending, error) {
	j.count()
	p, err := j.Store.Append(b)
	if err == nil {
		err = p.Wait()
	}
	j.count()
	return p, err
}

func (j *mortalJournal) Checkpoint(img *journal.Image) error {
	j.count()
	err := j.Store.Checkpoint(img)
	j.count()
	return err
}

// migrating returns rules whose code takes over the states of cells.
func migrating(base *manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte) {
	source := []byte(changingReducer + "\ndef migrate(state):\n    return state + [\"migrated\"]\n")
	next := *base
	caller := base.Reducers["caller"]
	caller.Source = canon.Sum(source)
	next.Reducers = map[string]manifest.Reducer{"caller": caller}
	return &next, map[manifest.Hash][]byte{caller.Source: source}
}

// TestAdoptingProcess is no test but the process that dies.
func TestAdoptingProcess(t *testing.T) {
	dir := os.Getenv(adoptingWorld)
	if dir == "" {
		t.Skip("it is run by TestKilledAtEveryWriteOfAChange")
	}
	left, err := strconv.Atoi(os.Getenv(adoptingWrite))
	require.NoError(t, err)
	hidden := filepath.Join(dir, ".world")
	file, err := os.ReadFile(filepath.Join(hidden, "keyring"))
	require.NoError(t, err)
	keys, err := receipt.DecodeKeyring(file)
	require.NoError(t, err)
	s, err := openStore(hidden, keys)
	require.NoError(t, err)
	w, err := world.Open(world.Config{
		Journal: &mortalJournal{Store: s, left: left}, History: s, Keys: keys,
		NewHost: func(id string, m *manifest.Manifest) (world.Host, error) {
			return host.New(host.Config{
				World: id, Manifest: m, Content: s.Blob, Keys: keys, Dir: dir,
				Adapters: newProbes().options("probe").Adapters, EffectLog: filepath.Join(hidden, "effects"),
			})
		},
	})
	require.NoError(t, err)
	next, contents := migrating(w.Manifest())
	require.NoError(t, worldtest.Adopt(t.Context(), w, next, contents))
}

// TestKilledAtEveryWriteOfAChange kills a process that proposes, shadows, approves
// and applies, at each boundary of a write. What it leaves has the old rules and
// states or the new ones, and can be gone on with.
func TestKilledAtEveryWriteOfAChange(t *testing.T) {
	testlog.Skip(t, "who copies its directory has no second world: the store has one")
	p := newProbes()
	origin := changing(t, p)
	w := openWith(t, origin, p.options("probe"))
	for _, to := range []string{"x", "y", "z"} {
		ask(t, w, to, "tool.a", 1)
	}
	require.NoError(t, w.Run(t.Context()))
	var next *manifest.Manifest
	var contents map[manifest.Hash][]byte
	w.View(func(w *world.Moment) { next, contents = migrating(w.Manifest()) })
	require.NoError(t, w.Close())

	inForce := make(map[bool]int)
	for write, lived := 1, false; !lived; write++ {
		dir := filepath.Join(t.TempDir(), "world")
		require.NoError(t, os.CopyFS(dir, os.DirFS(origin)))
		require.NoError(t, os.Chmod(filepath.Join(dir, ".world", "keyring"), 0o600))
		lived = adoptAndDie(t, dir, write)

		w := openWith(t, dir, p.options("probe"))
		applied := w.Status().Manifest == hashOf(t, next)
		inForce[applied]++
		requireMigrated(t, w, applied)
		requireSound(t, w)
		if !applied {
			require.NoError(t, w.Update(func(w *world.World) error { return worldtest.Adopt(t.Context(), w, next, contents) }))
		}
		requireMigrated(t, w, true)
		ask(t, w, "x", "tool.a", 2)
		require.NoError(t, w.Run(t.Context()))
		require.Equal(t, []any{"first", "migrated", "first"}, heard(t, w, "x"))
		requireSound(t, w)
		_, err := w.Replay(t.Context(), 0, nil)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	require.Greater(t, inForce[false], 6, "proposing, shadowing and approving are writes")
	require.Greater(t, inForce[true], 1, "it died with the manifest in force, too")
}

// adoptAndDie reports whether the process lived.
func adoptAndDie(t *testing.T, dir string, write int) bool {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run", "^TestAdoptingProcess$")
	child.Env = append(os.Environ(), adoptingWorld+"="+dir, adoptingWrite+"="+strconv.Itoa(write))
	said, err := child.CombinedOutput()
	if err == nil {
		return true
	}
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, -1, exit.ExitCode(), "a signal ended it, and not: %s", said)
	return false
}

// requireMigrated holds all cells to the old states or all to the new ones.
func requireMigrated(t *testing.T, w *local.World, migrated bool) {
	t.Helper()
	want := []any{"first"}
	if migrated {
		want = append(want, "migrated")
	}
	for _, key := range []string{"x", "y", "z"} {
		require.Equal(t, want, heard(t, w, key))
	}
}
