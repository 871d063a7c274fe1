//go:build unix

package worldctl

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// oddities are what a downloaded directory can have in the place of a file. top is a
// directory outside of it, with a file victim and a directory out.
func oddities(top string) map[string]func(at string) error {
	victim := filepath.Join(top, "victim")
	return map[string]func(at string) error{
		"link":      func(at string) error { return os.Symlink(victim, at) },
		"dangling":  func(at string) error { return os.Symlink(filepath.Join(top, "made"), at) },
		"device":    func(at string) error { return os.Symlink("/dev/zero", at) },
		"outside":   func(at string) error { return os.Symlink(filepath.Join(top, "out"), at) },
		"directory": func(at string) error { return os.Mkdir(at, 0o700) },
		"pipe":      func(at string) error { return syscall.Mkfifo(at, 0o600) },
		"socket": func(at string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(top, "s"), Net: "unix"})
			if err != nil {
				return err
			}
			l.SetUnlinkOnClose(false)
			return errors.Join(l.Close(), os.Rename(filepath.Join(top, "s"), at))
		},
		"sparse": func(at string) error { return errors.Join(os.WriteFile(at, nil, 0o600), os.Truncate(at, 1<<40)) },
	}
}

const (
	oddExperiment = "experiment: e\nversion: 1\nworld: w\nseeds: 2\ninputs: in.jsonl\nstop: {idle: true}\n" +
		"measures:\n  n: {cell: counter/a, value: 'state.total', type: int}\neffects: {mode: recorded, record: answers}\n"
	oddInputs   = `{"event": "counter.added", "data": {"name": "a", "by": 2}}` + "\n"
	oddScenario = "scenarios: []\n"
)

// TestWhateverIsInADownloadedDirectoryEveryVerbEnds has each file that a verb finds by itself in a
// directory of somebody else be each thing that it can be. The verb ends, says something, and
// nothing outside has changed or is there afterwards.
func TestWhateverIsInADownloadedDirectoryEveryVerbEnds(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	down := filepath.Join(top, "down")
	w := filepath.Join(down, "w")
	worldctl(t, nil, "init", w, "--template", "counter")
	in := func(name string) string { return filepath.Join(down, name) }
	require.NoError(t, os.WriteFile(in("e.yaml"), []byte(oddExperiment), 0o600))
	require.NoError(t, os.WriteFile(in("in.jsonl"), []byte(oddInputs), 0o600))
	require.NoError(t, os.MkdirAll(in("w/tests"), 0o700))
	require.NoError(t, os.WriteFile(in("w/tests/a.yaml"), []byte(oddScenario), 0o600))
	worldctl(t, nil, "sweep", in("e.yaml"), "--out", in("results"))
	worldctl(t, nil, "-w", w, "backup", in("backup"))
	worldctl(t, nil, "-w", w, "export", in("b.bundle"), "--format", "bundle")
	require.NoError(t, os.WriteFile(filepath.Join(top, "victim"), []byte("precious"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(top, "out"), 0o700))
	made := filepath.Join(top, "restored")
	for _, c := range []struct {
		names string
		verbs [][]string
	}{
		{"w/.world w/.world/owner.sock w/.world/lock w/.world/anchor w/.world/keyring w/.world/effects w/.world/recorded w/.world/live", [][]string{
			{"-w", w, "status"},
			{"-w", w, "intent", "list"},
			{"-w", w, "send", "counter.added", `{"name": "a", "by": 2}`},
			{"-w", w, "export", "-"},
			{"-w", w, "move", "x", "--store", "postgres://nobody@127.0.0.1:1/none"},
			{"fork", made, "-w", w},
		}},
		{"w/world.yaml w/reducers w/schemas", [][]string{{"validate", w}, {"-w", w, "status"}, {"-w", w, "propose", "-m", "x"}, {"fork", made, "-w", w}}},
		{"w/extra", [][]string{{"-w", w, "backup", made}, {"fork", made, "-w", w}}},
		{"w/tests w/tests/a.yaml", [][]string{{"-w", w, "test"}}},
		{"e.yaml in.jsonl answers", [][]string{{"sweep", in("e.yaml"), "--dry-run"}, {"sweep", in("e.yaml"), "--out", made}}},
		{"results/experiment.json results/log results/lock results/runs.csv results/runs.jsonl results/.x", [][]string{
			{"sweep", in("e.yaml"), "--out", in("results")}, {"sweep", "report", in("results")}, {"sweep", "run", in("results"), "1", "--keep", made},
		}},
		{"backup/.world backup/.world/lock backup/.world/keyring backup/.world/store backup/.world/store/LOCK backup/world.yaml backup/extra", [][]string{
			{"restore", in("backup"), "-w", made}, {"-w", in("backup"), "status"},
		}},
		{"b.bundle", [][]string{{"verify", in("b.bundle")}, {"import", in("b.bundle"), "-w", made}}},
	} {
		for name := range strings.FieldsSeq(c.names) {
			for kind, put := range oddities(top) {
				if kind == "pipe" && name == "b.bundle" {
					continue // who types the name of a pipe has it waited for
				}
				at, kept := in(name), filepath.Join(top, "kept")
				had := os.Rename(at, kept) == nil
				require.NoError(t, put(at))
				for _, verb := range c.verbs {
					ends(t, name+" is a "+kind, verb)
					data, err := os.ReadFile(filepath.Join(top, "victim"))
					require.NoError(t, err)
					require.Equal(t, "precious", string(data), "%s is a %s: %v", name, kind, verb)
					require.NoFileExists(t, filepath.Join(top, "made"), "%s is a %s: %v", name, kind, verb)
					inside, err := os.ReadDir(filepath.Join(top, "out"))
					require.NoError(t, err)
					require.Empty(t, inside, "%s is a %s: %v", name, kind, verb)
					require.NoError(t, os.RemoveAll(made))
				}
				require.NoError(t, os.RemoveAll(at))
				if had {
					require.NoError(t, os.Rename(kept, at))
				}
			}
		}
	}
}

// ends has a verb end, whatever it says of it.
func ends(t *testing.T, what string, verb []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // and not for ever
	defer cancel()
	done := make(chan int, 1)
	go func() {
		code, _, _ := inProcess(ctx, verb...)
		done <- code
	}()
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatalf("%s: %v does not end", what, verb)
	}
	require.NoError(t, ctx.Err(), "%s: %v", what, verb)
}
