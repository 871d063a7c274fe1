package experiment_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/experiment"
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
