package experiment_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/lab/experiment"
)

// childEnv has the test binary carry out an experiment instead.
const childEnv = "WORLDKERNEL_EXPERIMENT"

func TestMain(m *testing.M) {
	if file := os.Getenv(childEnv); file != "" {
		if err := child(file, os.Args[len(os.Args)-2], os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child carries out an experiment and says when a run has ended.
func child(file, dir, jobs string) error {
	s, err := experiment.Load(file, experiment.LoadOptions{})
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(jobs)
	if err != nil {
		return err
	}
	_, err = experiment.Run(context.Background(), s, experiment.Options{Dir: dir, Jobs: n, Ended: func(_ *experiment.Result, done, _ uint64) { fmt.Println(done) }})
	return err
}

// TestWhyResultsCannotBeLockedIsSaid: another process works on them, or this one, or there is
// something else.
func TestWhyResultsCannotBeLockedIsSaid(t *testing.T) {
	file := document(t, sir(t, "seeds: 6", "seeds: 2000"))
	s, err := experiment.Load(file, experiment.LoadOptions{})
	require.NoError(t, err)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$", "--", dir, "1") //nolint:gosec // this program
	cmd.Env = append(os.Environ(), childEnv+"="+file)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.True(t, bufio.NewScanner(out).Scan(), "it has ended a run")
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	_, err = experiment.Run(t.Context(), s, experiment.Options{Dir: dir, Runs: 1})
	require.ErrorIs(t, err, experiment.ErrResultsUsed)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed

	var within error
	dir = t.TempDir()
	_, err = experiment.Run(t.Context(), s, experiment.Options{Dir: dir, Runs: 1, Ended: func(*experiment.Result, uint64, uint64) {
		_, within = experiment.Run(t.Context(), s, experiment.Options{Dir: dir, Runs: 1})
	}})
	require.NoError(t, err)
	require.ErrorIs(t, within, experiment.ErrResultsUsed)

	dir = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "lock"), 0o700))
	_, err = experiment.Run(t.Context(), s, experiment.Options{Dir: dir, Runs: 1})
	require.NotErrorIs(t, err, experiment.ErrResultsUsed)
	require.ErrorIs(t, err, syscall.EISDIR)
	require.ErrorContains(t, err, "lock cannot be locked: ")
}

func TestTablesAreTheSameHoweverOftenItWasKilled(t *testing.T) {
	file := document(t, sir(t, "seeds: 6", "seeds: 20"))
	s, err := experiment.Load(file, experiment.LoadOptions{})
	require.NoError(t, err)
	whole := t.TempDir()
	run(t, s, experiment.Options{Dir: whole, Jobs: 1})
	rng := rand.New(rand.NewPCG(1, 0)) //nolint:gosec // a test's
	dir := t.TempDir()
	for kill := range 10 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$", "--", dir, strconv.Itoa(1+kill%2)) //nolint:gosec // this program
		cmd.Env = append(os.Environ(), childEnv+"="+file)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for range 1 + rng.IntN(3) {
			if !lines.Scan() {
				break
			}
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	}
	out := run(t, s, experiment.Options{Dir: dir, Jobs: 2})
	require.GreaterOrEqual(t, out.Before, uint64(10))
	require.Equal(t, tables(t, whole), tables(t, dir))
}
