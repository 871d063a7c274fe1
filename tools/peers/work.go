package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// work is what a peer is asked for: cells that each ask for one effect after the other,
// all cells at the same time.
type work struct {
	cells, effects int
	dir            string // gone afterwards
	performed      atomic.Int64
	cost           cost
}

// cost is what is said of it.
type cost struct {
	Promise string        `json:"promise"`
	Skipped string        `json:"skipped,omitempty"` // why nothing was measured
	Wall    time.Duration `json:"wall"`
	CPU     time.Duration `json:"cpu"` // of all threads, and of the server, user and system
}

// Perform is an effect: the outside answers at once.
func (w *work) Perform(context.Context, int) (string, error) {
	w.performed.Add(1)
	return "ok", nil
}

// in does the work in a directory that is gone afterwards. Servers that do not run as
// root can get at what is below it.
func (w *work) in(dir string, do func() error) (err error) {
	w.dir, err = os.MkdirTemp(dir, "peers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(w.dir)) }()
	if err := os.Chmod(w.dir, 0o711); err != nil { //nolint:gosec // see above
		return err
	}
	return do()
}

// measure has all cells live, from the first that is begun to the end of the last, and
// writes down what it cost. A server that is another process says how much CPU it used.
func (w *work) measure(ctx context.Context, server func() (time.Duration, error), live func(ctx context.Context, cell int) error) error {
	before, start := cpuTime(), time.Now()
	theirs, err := server()
	if err != nil {
		return err
	}
	cells, ctx := errgroup.WithContext(ctx)
	for i := range w.cells {
		cells.Go(func() error { return live(ctx, i) })
	}
	if err := cells.Wait(); err != nil {
		return err
	}
	w.cost.Wall, w.cost.CPU = time.Since(start), cpuTime()-before
	until, err := server()
	if err != nil {
		return err
	}
	w.cost.CPU += until - theirs
	if done, want := w.performed.Load(), int64(w.cells*w.effects); done != want {
		return fmt.Errorf("%d effects were performed, not %d", done, want)
	}
	return nil
}

// withinProcess is the CPU of a server that is none.
func withinProcess() (time.Duration, error) { return 0, nil }

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
