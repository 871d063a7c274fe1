package local

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/receipt"
)

// These tell a process that it is to die while it copies a world, and when.
const (
	copyingWorld  = "WORLDKERNEL_TEST_COPYING_WORLD"
	copyingMoment = "WORLDKERNEL_TEST_COPYING_MOMENT"
)

// copyings are ways to die.
var copyings = map[string]func(lw *World, to string) error{
	"the fork's store is named": func(lw *World, to string) error {
		return whole(to, lw.dir, func(making string) error {
			hidden := filepath.Join(making, hiddenDir)
			if err := os.Mkdir(hidden, 0o700); err != nil {
				return err
			}
			_, err := lw.copyStore(hidden, ring{keys: lw.keys}, 2, dieCopying)
			return err
		})
	},
	"the fork is made and not named": func(lw *World, to string) error {
		return whole(to, lw.dir, func(making string) error {
			keys, err := CreateOptions{ID: "child"}.keyring(lw.opts)
			if err != nil {
				return err
			}
			if _, err = lw.forkTo(context.Background(), making, keys, lw.store.Head().ID, ForkOptions{Effects: journal.ForkHold}); err != nil {
				return err
			}
			return dieCopying(nil)
		})
	},
	"a new world is there and has not begun": func(lw *World, to string) error {
		files := map[string][]byte{}
		for _, name := range []string{ManifestFile, "answers.star", "bot.star", "order.json"} {
			data, err := os.ReadFile(filepath.Join(lw.dir, name))
			if err != nil {
				return err
			}
			files[name] = data
		}
		return CreateNew(to, files, CreateOptions{}, Options{}, func(*World) error { return dieCopying(nil) })
	},
	"the backup's store is named": func(lw *World, to string) error {
		_, err := lw.duplicate(to, dieCopying)
		return err
	},
}

func dieCopying(*store.Store) error {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		return err
	}
	select {}
}

// TestCopyingProcess is no test but the process that dies.
func TestCopyingProcess(t *testing.T) {
	dir := os.Getenv(copyingWorld)
	if dir == "" {
		t.Skip("it is run by TestKilledCopyLeavesNothing")
	}
	lw, err := Open(dir, Options{})
	require.NoError(t, err)
	die := copyings[os.Getenv(copyingMoment)]
	if die == nil {
		die = importAndDie
	}
	require.NoError(t, die(lw, dir+"-copy"))
}

// importAndDie imports a world's journal, and dies when its records are there.
func importAndDie(lw *World, to string) error {
	var all bytes.Buffer
	if err := lw.ExportBundle(context.Background(), &all, BundleOptions{}); err != nil {
		return err
	}
	return Import(context.Background(), to, &all, nil, Options{}, func(uint64) { _ = dieCopying(nil) })
}

// A process that is killed while it imports leaves a directory that is no world, which
// whoever looks for one is told of, and which the next world there clears away.
func TestKilledImportIsNamedAndCleared(t *testing.T) {
	dir, _ := made(t)
	lw, err := Open(dir, Options{})
	require.NoError(t, err)
	for range 3 {
		_, err = lw.Submit(t.Context(), "go", map[string]any{"to": "a"})
		require.NoError(t, err)
		require.NoError(t, lw.Run(t.Context()))
	}
	var all bytes.Buffer
	require.NoError(t, lw.ExportBundle(t.Context(), &all, BundleOptions{}))
	require.NoError(t, lw.Close())
	to := dir + "-copy"
	for name, again := range map[string]func() error{
		"an import": func() error { return Import(t.Context(), to, bytes.NewReader(all.Bytes()), nil, Options{}, nil) },
		"an init": func() error {
			if err := os.CopyFS(to, os.DirFS("../worldtest/testdata/bots")); err != nil {
				return err
			}
			return Create(to, CreateOptions{}, Options{})
		},
		"a fork": func() error {
			lw, err := Open(dir, Options{})
			if err != nil {
				return err
			}
			_, err = lw.Fork(t.Context(), to, ForkOptions{})
			return errors.Join(err, lw.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			dying(t, dir, "an import")
			left, err := filepath.Glob(filepath.Join(to, newDir+"*"))
			require.NoError(t, err)
			require.Len(t, left, 1)
			_, err = Open(to, Options{})
			require.ErrorIs(t, err, ErrNoWorld)
			require.ErrorContains(t, err, filepath.Base(left[0])+" is one that is being made")
			_, err = Find(to)
			require.ErrorContains(t, err, filepath.Base(left[0]))

			require.NoError(t, again())
			left, err = filepath.Glob(filepath.Join(to, newDir+"*"))
			require.NoError(t, err)
			require.Empty(t, left)
			copied, err := OpenReadOnly(to, Options{})
			require.NoError(t, err)
			require.NoError(t, copied.Close())
			require.NoError(t, os.RemoveAll(to))
		})
	}
}

// dying runs a process that dies while it copies a world, and waits for its end.
func dying(t *testing.T, dir, moment string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run", "^TestCopyingProcess$")
	child.Env = append(os.Environ(), copyingWorld+"="+dir, copyingMoment+"="+moment)
	said, err := child.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, -1, exit.ExitCode(), "a signal ended it, and not: %s", said)
}

// A process that is killed while it forks or backs up a world leaves that as it
// was, and no directory; and what it leaves is in nobody's way.
func TestKilledCopyLeavesNothing(t *testing.T) {
	for moment := range copyings {
		t.Run(moment, func(t *testing.T) {
			dir, _ := made(t)
			lw, err := Open(dir, Options{})
			require.NoError(t, err)
			_, err = lw.Submit(t.Context(), "go", map[string]any{"to": "a", "do": []any{map[string]any{"effect": "tool.a", "param": "x"}}})
			require.NoError(t, err)
			require.NoError(t, lw.Run(t.Context()))
			head := lw.Status().Head
			require.NoError(t, lw.Close())

			dying(t, dir, moment)
			to := dir + "-copy"
			require.NoFileExists(t, to)
			left := filepath.Join(filepath.Dir(dir), "."+filepath.Base(to)+makingDir+"*")
			names, err := filepath.Glob(left)
			require.NoError(t, err)
			require.Len(t, names, 1)

			lw, err = Open(dir, Options{})
			require.NoError(t, err)
			require.Equal(t, head, lw.Status().Head)
			done, err := lw.Fork(t.Context(), to, ForkOptions{})
			require.NoError(t, err)
			require.Equal(t, head.ID, done.At)
			r, err := lw.Verify(t.Context(), Verification{})
			require.NoError(t, err)
			require.Empty(t, r.Faults)
			require.NoError(t, lw.Close())
			names, err = filepath.Glob(left)
			require.NoError(t, err)
			require.Empty(t, names)
			entries, err := os.ReadDir(filepath.Join(dir, hiddenDir))
			require.NoError(t, err)
			for _, e := range entries {
				require.NotContains(t, strings.TrimPrefix(e.Name(), "copy"), "copy", "but for that of a log")
			}
		})
	}
}

// A fork of a world with a sealed keyring has a sealed one, too.
func TestForkOfASealedWorldIsSealed(t *testing.T) {
	dir, _ := made(t)
	opts := Options{Passphrase: func() ([]byte, error) { return []byte("open sesame"), nil }}
	require.NoError(t, Seal(dir, opts))
	lw, err := Open(dir, opts)
	require.NoError(t, err)
	_, err = lw.Fork(t.Context(), dir+"-fork", ForkOptions{})
	require.NoError(t, err)
	_, err = lw.Backup(dir + "-backup")
	require.NoError(t, err)
	require.NoError(t, lw.Close())
	for _, copied := range []string{dir + "-fork", dir + "-backup"} {
		file, err := os.ReadFile(filepath.Join(copied, hiddenDir, keyringFile))
		require.NoError(t, err)
		require.True(t, receipt.Sealed(file))
		_, err = Open(copied, Options{})
		require.ErrorIs(t, err, ErrSealed)
		lw, err = Open(copied, opts)
		require.NoError(t, err)
		require.NoError(t, lw.Close())
	}
}
