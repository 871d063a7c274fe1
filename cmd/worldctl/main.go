// Command worldctl creates, runs, inspects and verifies worlds of agents: one
// file a verb, and a hint with every error.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// collectorPercent is how much the heap grows between collections, unless GOGC
// says otherwise: worlds live long and their garbage is short-lived.
const collectorPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectorPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
