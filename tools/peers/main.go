// Command peers has another engine do what `bench effects` has a world do, and says
// what it cost: `bench peers` starts it, once for each engine and round, and puts what
// it prints beside a world. It is a module of its own because of what the engines
// bring with them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := answer(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// peer is another engine.
type peer struct {
	promise string // what somebody who uses it so can count on
	run     func(ctx context.Context, w *work) error
}

func peers() map[string]peer {
	return map[string]peer{
		"go-workflows": {goWorkflowsPromise, goWorkflows},
		"dbos":         {dbosPromise, dbosTransact},
		"temporal":     {temporalPromise, temporal},
	}
}

// absentError is why a peer could not be asked to do anything.
type absentError struct{ why string }

func (e absentError) Error() string { return e.why }

// answer has a peer do the work that the arguments ask for, and prints what it cost.
func answer(ctx context.Context, args []string, stdout io.Writer) error {
	var w work
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	name := f.String("peer", "", "which `ENGINE`: go-workflows, dbos or temporal")
	f.IntVar(&w.cells, "cells", 100, "how many cells")
	f.IntVar(&w.effects, "effects", 100, "how many effects each of them asks for")
	dir := f.String("dir", "", "`DIR` to work in, for its disk; a temporary one if not given")
	if err := f.Parse(args); err != nil {
		return err
	}
	p, ok := peers()[*name]
	if !ok {
		return fmt.Errorf("%q is no peer: type -peer go-workflows, dbos or temporal", *name)
	}
	w.cost.Promise = p.promise
	err := w.in(*dir, func() error { return p.run(ctx, &w) })
	if absent, ok := errors.AsType[absentError](err); ok {
		w.cost.Skipped = absent.why
	} else if err != nil {
		return fmt.Errorf("%s: %w", *name, err)
	}
	return json.NewEncoder(stdout).Encode(w.cost)
}
