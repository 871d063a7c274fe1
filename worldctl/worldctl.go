// Package worldctl is the command line, one file a verb: it parses, calls and
// prints, and gives every error a hint. A program of one's own that calls Main has
// all of it, with the reducers, adapters and verifiers that it brings.
package worldctl

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/outside"
	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/serve/owner"
)

// collectorPercent is how much the heap grows between collections, unless GOGC
// says otherwise: worlds live long and their garbage is short-lived.
const collectorPercent = 400

// Options are what a program adds to worlds. The zero value opens worlds whose
// reducers are all in Starlark and whose adapters are the host's own.
type Options struct {
	Reducers  reducer.Registry                // in Go, by NAME@VERSION
	Adapters  map[string]host.Factory         // by the names that world.yaml calls them: see host/llm and host/mcp
	Verifiers map[string]host.VerifierFactory // by the names of adapters

	agents     *agents     // that are attached to worlds of this process; complete makes it
	interrupts *interrupts // nil: the process has none, as in a test

	program string // as hints and --help name it; empty: worldctl
}

// complete returns the options with what every program has for agents that run beside a world. The process
// that owns a world carries out the commands of others with its own.
func (o Options) complete() Options {
	if o.agents != nil {
		return o
	}
	reducers := reducer.Registry{recorder.Name + "@" + recorder.Version: recorder.New}
	maps.Copy(reducers, o.Reducers)
	o.agents = new(agents)
	adapters := map[string]host.Factory{manifest.AdapterRelay: relay.New(&o.agents.desk), manifest.AdapterOutside: outside.New(&o.agents.tools)}
	maps.Copy(adapters, o.Adapters)
	o.Reducers, o.Adapters = reducers, adapters
	return o
}

// Main carries out the command line of this process, and ends it with the exit
// code that worldctl --help lists. It is to be called once, from main.
func Main(opts Options) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectorPercent)
	}
	opts.program = strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	ctx, end := context.WithCancelCause(context.Background())
	opts.interrupts = newInterrupts(end)
	opts.interrupts.listen()
	os.Exit(run(ctx, opts, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// endBy ends the process by a signal, so that whoever started it sees that.
func endBy(s os.Signal) {
	signal.Reset(s)
	if p, err := os.FindProcess(os.Getpid()); err == nil && p.Signal(s) == nil {
		<-time.After(together) // it comes, unless who started the process had it ignored
	}
	os.Exit(exitInterrupted)
}

// fewestDescriptors is how many files and connections a process has to be allowed to have open:
// with fewer a store that is being opened waits for one, and who asked for it for long.
const fewestDescriptors = 128

// run is the program, without the process: it returns the exit code.
func run(ctx context.Context, opts Options, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if n := file.Descriptors(); n < fewestDescriptors {
		fmt.Fprintf(stderr, "error: the process may have %d files open, and needs %d at least\nhint: ulimit -n %d\n", n, fewestDescriptors, fewestDescriptors)
		return exitFailed
	}
	c := &cli{
		opts: opts, args: args, stdin: stdin, stdout: bufio.NewWriter(stdout), stderr: stderr,
		origin: owner.Origin{Width: widthOf(stdout), Console: widthOf(stderr) > 0, Plain: os.Getenv("NO_COLOR") != "", Program: opts.program},
	}
	return c.execute(ctx)
}
