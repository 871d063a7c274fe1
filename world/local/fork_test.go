package local_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// sound verifies a world and returns the report.
func sound(t *testing.T, w *local.World) *verify.Report {
	t.Helper()
	r, err := w.Verify(t.Context(), local.Verification{})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	return r
}

func TestForkHasTheSamePastAndGoesItsOwnWay(t *testing.T) {
	dir, head := lived(t)
	w := open(t, dir)
	to := filepath.Join(t.TempDir(), "a", "fork")
	done, err := w.Fork(t.Context(), to, local.ForkOptions{ID: "child", Actor: "ada"})
	require.NoError(t, err)
	require.Equal(t, &local.Forked{
		ID: "child", Parent: "test", At: head.ID, ChainRoot: head.Root, Effects: journal.ForkHold, Dir: to, Linked: done.Linked,
	}, done)
	require.Equal(t, head, w.Status().Head, "the parent does not change")

	f := open(t, to)
	require.Equal(t, "child", f.Status().ID)
	require.Equal(t, head.ID+1, f.Status().Head.ID)
	_, err = f.Submit(t.Context(), "go", map[string]any{"to": "a", "do": []any{map[string]any{"effect": "tool.a", "param": "y"}}})
	require.NoError(t, err)
	require.NoError(t, f.Run(t.Context()))
	require.Equal(t, 1, f.Status().Intents[receipt.StateAwaitingApproval], "its effects are on hold")
	require.Positive(t, sound(t, f).Receipts.Inherited)
	live(t, w)
	require.Zero(t, w.Status().Intents[receipt.StateAwaitingApproval])
	require.Zero(t, sound(t, w).Receipts.Inherited)
	var got [2][]byte
	for i, s := range []*local.World{w, f} {
		got[i], err = s.Record(head.ID)
		require.NoError(t, err)
	}
	require.Equal(t, got[0], got[1])
	require.NoError(t, f.Close())
	require.NoError(t, w.Close())
	require.NoError(t, open(t, to).Close())
	require.NoError(t, open(t, dir).Close())
}

// rolls has bot/a draw random numbers, and returns all that it has drawn.
func rolls(t *testing.T, w *local.World, n int) []any {
	t.Helper()
	var do []any
	for range n {
		do = append(do, map[string]any{"random": 1 << 40})
	}
	_, err := w.Submit(t.Context(), "go", map[string]any{"to": "a", "do": do})
	require.NoError(t, err)
	require.NoError(t, w.Run(t.Context()))
	return drawn(t, w, w.Status().Head.ID)
}

// drawn returns what bot/a had drawn at a record.
func drawn(t *testing.T, w *local.World, at journal.Seq) []any {
	t.Helper()
	v, ok, err := w.CellAt(reducer.Cell{Reducer: "bot", Key: "a"}, at)
	require.NoError(t, err)
	require.True(t, ok)
	state, err := canon.Decode(v.State)
	require.NoError(t, err)
	return state.(map[string]any)["seen"].([]any)
}

// TestForkWithASeedDrawsOtherNumbers from its first step on, in every process and in its
// own forks; what both have in common stays, and all of it replays.
func TestForkWithASeedDrawsOtherNumbers(t *testing.T) {
	dir := create(t)
	w := open(t, dir)
	past := rolls(t, w, 2)
	at := w.Status().Head.ID
	fork := func(w *local.World, o local.ForkOptions) *local.World {
		t.Helper()
		to := filepath.Join(t.TempDir(), "fork")
		done, err := w.Fork(t.Context(), to, o)
		require.NoError(t, err)
		require.Equal(t, o.Seed, done.Seed)
		return open(t, to)
	}
	seed := uint64(4711)
	same, seeded := fork(w, local.ForkOptions{ID: "a"}), fork(w, local.ForkOptions{ID: "b", Seed: &seed})
	was, is := rolls(t, w, 3), rolls(t, seeded, 3)
	require.Equal(t, was, rolls(t, same, 3), "without one it draws what its parent does")
	require.NotEqual(t, was, is)
	require.Equal(t, past, drawn(t, seeded, at))

	again := fork(w, local.ForkOptions{ID: "c", At: at, Seed: &seed})
	require.Equal(t, is, rolls(t, again, 3), "the same seed draws the same")
	again = fork(again, local.ForkOptions{ID: "d", At: at + 1})
	require.Equal(t, is, rolls(t, again, 3), "and so does a fork of the fork")
	path := seeded.Dir()
	require.NoError(t, seeded.Close())
	seeded = open(t, path)
	last := seeded.Status().Head.ID
	sound(t, seeded)
	more := rolls(t, seeded, 1)
	require.Equal(t, is, drawn(t, seeded, last), "from the image, which another process made")
	require.Equal(t, more[:len(is)], is)
}

// TestWorldsAreTheirOwnersAlone: what they hold is in the clear, and the keyring signs.
func TestWorldsAreTheirOwnersAlone(t *testing.T) {
	dir, _ := lived(t)
	w := open(t, dir)
	up := t.TempDir()
	fork, backup := filepath.Join(up, "fork"), filepath.Join(up, "backup")
	_, err := w.Fork(t.Context(), fork, local.ForkOptions{ID: "child", Actor: "ada"})
	require.NoError(t, err)
	_, err = w.Backup(backup)
	require.NoError(t, err)
	for _, made := range []string{dir, fork, backup} {
		for name, mode := range map[string]fs.FileMode{".world": 0o700, ".world/keyring": 0o600} {
			info, err := os.Stat(filepath.Join(made, name))
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode().Perm(), "%s of %s", name, filepath.Base(made))
		}
	}
	require.NoError(t, w.Close())
}

// Whatever record is named, a fork begins at a moment at which no tick is open,
// and no later one would do.
func TestForkBeginsWhereNoTickIsOpen(t *testing.T) {
	dir, head := lived(t)
	w := open(t, dir)
	err := w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Snapshot(t.Context(), "here", "", "ada")) })
	require.NoError(t, err)
	live(t, w)
	last := w.Status().Head.ID
	var starts []journal.Seq // moments before an input from outside
	for s, err := range w.Scan(0) {
		require.NoError(t, err)
		switch s.Record.Kind {
		case journal.KindAdvanced, journal.KindSubmitted, journal.KindSnapshot:
			starts = append(starts, s.ID-1)
		}
	}
	starts = append(starts, last)
	require.Contains(t, starts, head.ID)
	for at := journal.Seq(1); at <= last; at++ {
		to := filepath.Join(t.TempDir(), "fork")
		done, err := w.Fork(t.Context(), to, local.ForkOptions{At: at})
		require.NoError(t, err, "at #%d", at)
		want := journal.Seq(0)
		for _, start := range starts {
			if start <= at {
				want = start
			}
		}
		require.Equal(t, want, done.At, "at #%d", at)
		f := open(t, to)
		require.Equal(t, done.ID, f.Status().ID)
		sound(t, f)
		require.NoError(t, f.Close())
	}
	_, err = w.Fork(t.Context(), filepath.Join(t.TempDir(), "fork"), local.ForkOptions{At: last + 1})
	require.ErrorIs(t, err, journal.ErrNotFound)
	require.NoError(t, w.Close())
}

func TestForkGetsTheFilesButNoSecrets(t *testing.T) {
	dir, _ := lived(t)
	put := func(path string, mode fs.FileMode) {
		t.Helper()
		path = filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(path), mode))
		require.NoError(t, os.Chmod(path, mode))
	}
	put("tools/look", 0o700)
	put("notes.txt", 0o400)
	put(".world/secrets/token", 0o600)
	put("inner/.world/anchor", 0o600)
	put("inner/world.yaml", 0o600)
	require.NoError(t, os.Symlink("notes.txt", filepath.Join(dir, "link")))
	w := open(t, dir)
	inside := filepath.Join(dir, "tools", "fork")
	for _, to := range []string{inside, filepath.Join(dir, "tools", "again")} {
		_, err := w.Fork(t.Context(), to, local.ForkOptions{})
		require.NoError(t, err)
		for path, mode := range map[string]fs.FileMode{"tools/look": 0o700, "notes.txt": 0o400, "world.yaml": 0o644} {
			info, err := os.Stat(filepath.Join(to, path))
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode().Perm(), path)
		}
		for _, path := range []string{".world/secrets", "inner", "link", "tools/fork", "tools/again"} {
			require.NoFileExists(t, filepath.Join(to, path))
			require.NoDirExists(t, filepath.Join(to, path))
		}
	}
	require.NoError(t, w.Close())
	require.NoError(t, open(t, inside).Close())
}

func TestForkThatIsRefusedLeavesTheDirectoryAsItWas(t *testing.T) {
	dir, head := lived(t)
	other := create(t)
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "mine"), nil, 0o600))
	empty := t.TempDir()
	w := open(t, dir)
	for name, c := range map[string]struct {
		to   string
		f    local.ForkOptions
		want error
	}{
		"a world there":  {to: other, want: local.ErrExists},
		"its own":        {to: dir, want: local.ErrExists},
		"not empty":      {to: full, want: local.ErrNotEmpty},
		"a file":         {to: filepath.Join(full, "mine")},
		"a bad id":       {to: empty, f: local.ForkOptions{ID: "no spaces please"}, want: local.ErrBadID},
		"the same id":    {to: empty, f: local.ForkOptions{ID: "test"}, want: world.ErrSameWorld},
		"unknown effect": {to: empty, f: local.ForkOptions{Effects: "dry"}, want: world.ErrForkEffects},
		"in the future":  {to: filepath.Join(empty, "x", "y"), f: local.ForkOptions{At: head.ID + 9}, want: journal.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			beside, err := filepath.Glob(filepath.Join(filepath.Dir(empty), "*"))
			require.NoError(t, err)
			before := slices.Concat(tree(t, other), tree(t, full), tree(t, empty), beside)
			_, err = w.Fork(t.Context(), c.to, c.f)
			require.Error(t, err)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
			beside, err = filepath.Glob(filepath.Join(filepath.Dir(empty), "*"))
			require.NoError(t, err)
			require.Equal(t, before, slices.Concat(tree(t, other), tree(t, full), tree(t, empty), beside))
			require.Equal(t, head, w.Status().Head)
		})
	}
	_, err := w.Fork(t.Context(), empty, local.ForkOptions{})
	require.NoError(t, err, "a directory that is there and empty will do")
	require.NoError(t, w.Close())
}

// forkOfCalls returns a world that has asked the outside once, and a fork of it.
func forkOfCalls(t *testing.T, effects journal.ForkEffects, live ...string) (dir, to string, opts local.Options) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"world.yaml": windowsManifest(askPerson), "caller.star": windowsReducer} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	opts = local.Options{Adapters: outside(dir, "")}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "calls"}, opts))
	w, err := local.Open(dir, opts)
	require.NoError(t, err)
	start := w.Status().Head.ID
	_, err = w.Submit(t.Context(), "go", map[string]any{"to": "a"})
	require.NoError(t, err)
	require.NoError(t, w.Run(t.Context()))
	require.Len(t, calls(t, dir), 1)
	to = filepath.Join(t.TempDir(), "fork")
	_, err = w.Fork(t.Context(), to, local.ForkOptions{At: start, Effects: effects, Live: live})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return dir, to, opts
}

// again lets a fork ask for what its parent asked for.
func again(t *testing.T, to string, opts local.Options) *local.World {
	t.Helper()
	w, err := local.Open(to, opts)
	require.NoError(t, err)
	_, err = w.Submit(t.Context(), "go", map[string]any{"to": "a"})
	require.NoError(t, err)
	require.NoError(t, w.Run(t.Context()))
	return w
}

func TestRecordedForkIsAnsweredByItsParent(t *testing.T) {
	dir, to, opts := forkOfCalls(t, journal.ForkRecorded)
	f := again(t, to, opts)
	require.Equal(t, 1, f.Status().Intents[receipt.StateCommitted])
	require.Len(t, calls(t, dir), 1, "nobody asked the outside")
	sound(t, f)
	require.NoError(t, f.Close())

	p, err := local.Open(dir, opts)
	require.NoError(t, err)
	if testlog.On() { // it has its parent with it, as that was
		f, err = local.Open(to, opts)
		require.NoError(t, err)
		require.NoError(t, errors.Join(f.Close(), p.Close()))
		return
	}
	_, err = local.Open(to, opts)
	var locked *store.LockedError
	require.ErrorAs(t, err, &locked, "its parent has an owner")
	require.NoError(t, p.Close())
	require.NoError(t, os.Rename(dir, dir+"-moved"))
	_, err = local.Open(to, opts)
	require.ErrorIs(t, err, local.ErrNoRecording)
	r, err := local.Verify(t.Context(), to, opts, local.Verification{})
	require.NoError(t, err, "it can be verified without its parent")
	require.Empty(t, r.Faults)
	opts.Effects = dir + "-moved"
	f, err = local.Open(to, opts)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestLiveForkAsksTheOutsideByItself(t *testing.T) {
	dir, to, opts := forkOfCalls(t, journal.ForkLive, "outside.*")
	f := again(t, to, opts)
	require.Equal(t, 1, f.Status().Intents[receipt.StateCommitted])
	keys := calls(t, dir)
	require.Len(t, keys, 2)
	require.NotEqual(t, keys[0], keys[1], "as another world")
	sound(t, f)
	require.NoError(t, f.Close())
}
