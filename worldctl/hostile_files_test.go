package worldctl

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// filesOfAWorld are names that the program opens below .world, or makes there.
func filesOfAWorld(t *testing.T, dir string) []string {
	t.Helper()
	names := []string{"moved", "recorded", "or_live", "effects.new", "store/000099.log", "store/LOCK.held", "secrets/token", "past/world.yaml", "notified"}
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, ".world"), func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var name string
			name, err = filepath.Rel(filepath.Join(dir, ".world"), path)
			names = append(names, name)
		}
		return err
	}))
	return names
}

// TestLookingAtAWorldChangesNothingOutside has each file of a world be what somebody who
// made the directory could make of it. No verb opens what it names, waits for it, or fills memory with it.
func TestLookingAtAWorldChangesNothingOutside(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, victim := filepath.Join(top, "w"), filepath.Join(top, "victim")
	worldctl(t, nil, "init", dir)
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	kinds := map[string]func(at string) error{
		"link":     func(at string) error { return os.Symlink(victim, at) },
		"dangling": func(at string) error { return os.Symlink(filepath.Join(top, "made"), at) },
		"device":   func(at string) error { return os.Symlink("/dev/zero", at) },
		"pipe":     func(at string) error { return syscall.Mkfifo(at, 0o600) },
		"same":     func(at string) error { return os.Link(victim, at) },
		"socket": func(at string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(top, "s"), Net: "unix"})
			if err != nil {
				return err
			}
			l.SetUnlinkOnClose(false)
			return errors.Join(l.Close(), os.Rename(filepath.Join(top, "s"), at))
		},
		"sparse": func(at string) error {
			return errors.Join(os.WriteFile(at, nil, 0o600), os.Truncate(at, 1<<40))
		},
	}
	verbs := [][]string{
		{"status"},
		{"run"},
		{"verify"},
		{"keys", "list"},
		{"snapshot", "list"},
		{"cell", "list"},
		{"fork", filepath.Join(top, "out")},
		{"backup", filepath.Join(top, "out")},
	}
	for _, name := range filesOfAWorld(t, dir) {
		at := filepath.Join(dir, ".world", name)
		kept, had := at+".kept", false
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
		if _, err := os.Lstat(at); err == nil {
			had = true
			kept = filepath.Join(top, "kept")
			require.NoError(t, os.Rename(at, kept))
		}
		for kind, put := range kinds {
			require.NoError(t, put(at))
			says := "open " + at
			if kind == "same" && filepath.Ext(name) == ".sst" { // as backups have them
				says = at
			}
			for _, verb := range verbs {
				within(t, name+" is a "+kind, append([]string{"-w", dir}, verb...), says)
			}
			within(t, name+" is a "+kind, []string{"restore", dir, "-w", filepath.Join(top, "out")}, says)
			require.NoError(t, os.Remove(at))
		}
		if had {
			require.NoError(t, os.Rename(kept, at))
		}
		data, err := os.ReadFile(victim)
		require.NoError(t, err)
		require.Equal(t, "precious", string(data), name)
		require.NoFileExists(t, filepath.Join(top, "made"))
		require.NoDirExists(t, filepath.Join(top, "out"))
	}
	worldctl(t, nil, "-w", dir, "verify")
}

// within has a verb end, with an error that says where.
func within(t *testing.T, what string, args []string, says string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // and not for ever
	defer cancel()
	code, _, said := inProcess(ctx, args...)
	require.NotZero(t, code, "%s: %v", what, args)
	require.Contains(t, said, says, "%s: %v", what, args)
	require.NoError(t, ctx.Err(), "%s: %v", what, args)
}

func TestWorldsDirectoryIsNoLink(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "w")
	worldctl(t, nil, "init", dir)
	require.NoError(t, os.Rename(filepath.Join(dir, ".world"), filepath.Join(top, "elsewhere")))
	require.NoError(t, os.Symlink(filepath.Join(top, "elsewhere"), filepath.Join(dir, ".world")))
	within(t, ".world is a link", []string{"-w", dir, "status"}, "it is not a directory")
}

// TestFilesOfASourceAreRegular has what world.yaml names be what is no file.
func TestFilesOfASourceAreRegular(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte("world: w\nreducers:\n  a: {engine: starlark, source: a.star}\n"), 0o600))
	at := filepath.Join(dir, "a.star")
	for kind, put := range map[string]func() error{
		"device": func() error { return os.Symlink("/dev/zero", at) },
		"link":   func() error { return os.Symlink("/etc/passwd", at) },
		"pipe":   func() error { return syscall.Mkfifo(at, 0o600) },
	} {
		require.NoError(t, put())
		within(t, kind, []string{"validate", filepath.Join(dir, "world.yaml")}, "a.star")
		within(t, kind, []string{"init", dir}, "a.star")
		require.NoError(t, os.Remove(at))
	}
}

// TestStrangersWorldHasToBeNamed: who is in a directory of somebody else runs nothing of that user.
func TestStrangersWorldHasToBeNamed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	dir := filepath.Join(t.TempDir(), "w")
	worldctl(t, nil, "init", dir)
	require.NoError(t, os.Chown(filepath.Join(dir, ".world"), 12345, 12345))
	below := filepath.Join(dir, "below")
	require.NoError(t, os.Mkdir(below, 0o700))
	for _, at := range []string{dir, below} {
		cmd := exec.Command("worldctl", "status")
		cmd.Dir = at
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "user 12345's")
		require.Contains(t, string(out), "-w DIR")
	}
	worldctl(t, nil, "-w", dir, "status")

	// What such a user has linked there is not written to.
	require.NoError(t, os.Remove(filepath.Join(dir, ".world", "lock")))
	victim := filepath.Join(filepath.Dir(dir), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	require.NoError(t, os.Link(victim, filepath.Join(dir, ".world", "lock")))
	within(t, "lock is a hard link", []string{"-w", dir, "status"}, "it is a hard link")
}

// TestRestoreGivesAwayNothing of what a copy's modes say: nothing runs as another user, and who may write is as
// the umask says.
func TestRestoreGivesAwayNothing(t *testing.T) {
	top := t.TempDir()
	dir, back := filepath.Join(top, "w"), filepath.Join(top, "backup")
	worldctl(t, nil, "init", dir)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tools"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tools", "run"), nil, 0o700))
	worldctl(t, nil, "-w", dir, "backup", back)
	all := os.ModeSetuid | os.ModeSetgid | os.ModeSticky | 0o777
	for _, name := range []string{"", ".world", ".world/store", ".world/anchor", "tools", "tools/run", "world.yaml"} {
		require.NoError(t, os.Chmod(filepath.Join(back, name), all))
	}
	out, err := exec.Command("sh", "-c", `umask 027; exec worldctl restore "$0" -w "$1"`, back, filepath.Join(top, "again")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, filepath.WalkDir(filepath.Join(top, "again"), func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		bits := os.ModeSetuid | os.ModeSticky | 0o027
		if !info.IsDir() { // of a directory it runs nothing, and is inherited
			bits |= os.ModeSetgid
		}
		require.Zero(t, info.Mode()&bits, "%s: %v", path, info.Mode())
		return err
	}))
	info, err := os.Stat(filepath.Join(top, "again", "tools", "run"))
	require.NoError(t, err)
	require.EqualValues(t, 0o750, info.Mode().Perm(), "it can be run")
}
