package worldctl

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/host/outside"
	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/serve/gateway"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

// agents are those that are attached to the worlds of this process. It is safe for concurrent use.
type agents struct {
	desk     relay.Desk
	tools    outside.Callers
	attached atomic.Int64 // by other processes
	names    sync.Map     // of the sessions that run
}

// wait returns once no agent is attached any more, or ctx ends; it tells if it has to.
func (a *agents) wait(ctx context.Context, tell func(n int64)) {
	told := false
	for a.attached.Load() > 0 && ctx.Err() == nil {
		if !told {
			tell(a.attached.Load())
			told = true
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
		}
	}
}

// attached is an agent's gateway, in this process or in the one that owns the world.
type attached struct {
	Name        string
	Command     []string
	Dir         string // where it runs
	Incarnation uint64
	Recorded    int
	OpenAI      string // where it finds a dialect
	Anthropic   string
	Tools       string // where servers of tools come in; empty: the world has no rules for them
	Offline     bool   // only the record answers
	Hook        string // where its hooks ask; empty: the world has no rules for its tools
}

// attach serves a gateway for an agent, until end is called with the agent's exit code.
func (c *cli) attach(ctx context.Context, lw *local.World, x *agentRun) (a *attached, end func(code int) (gateway.Summary, error), err error) {
	a = &attached{Name: x.Name, Command: x.Command, Dir: x.Here, Offline: x.Offline}
	if err := c.nameSession(a, lw, x); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			c.opts.agents.names.Delete(a.Name)
		}
	}()
	if x.Defer != 0 && !defers(a.Command) {
		return a, nil, usagef("such as worldctl agent run --defer 10m -- claude -p \"fix the failing test\"", "--defer is for claude -p: other agents do not end where a tool waits for a person")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return a, nil, err
	}
	known := clientOf(a.Command)
	g, err := gateway.Open(ctx, gateway.Config{
		World: lw, Desk: &c.opts.agents.desk, Tools: &c.opts.agents.tools, Session: a.Name, Principal: x.As, Command: a.Command, Dir: a.Dir,
		Upstream: x.Upstream, Offline: x.Offline, Diverge: x.Diverge, Again: x.Again, Branch: x.Branch, Defer: x.Defer,
		Answers: gates(lw, recorder.OwnTool), Hooked: known.asks, Recalls: known.recalls,
		Address: listener.Addr().String(), Offers: known.asks,
		Waits: func(key receipt.Key, link string) {
			c.note("%s: a person has to approve %s: %s", a.Name, view.Describer{Journal: view.Journal{Local: lw}}.ParamsOf(key), c.inWorld("worldctl intent approve "+view.Short(key)))
			if link != "" { // empty: somebody was faster
				c.note("or at %s", link)
			}
		},
	})
	if err != nil {
		return a, nil, errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 256 << 10}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends when it is closed
	}()
	a.Incarnation, a.Recorded = g.Incarnation(), g.Recorded()
	address := listener.Addr().String()
	a.OpenAI, a.Anthropic = g.URL(address, relay.OpenAI), g.URL(address, relay.Anthropic)
	if gates(lw, recorder.MCPCall) {
		a.Tools = g.URL(address, gateway.Tools)
	}
	if gates(lw, recorder.OwnTool) {
		a.Hook = g.URL(address, gateway.Hooks)
	}
	return a, func(code int) (gateway.Summary, error) {
		summary, err := g.Close(context.WithoutCancel(ctx), code)
		_ = server.Close()
		<-served
		c.opts.agents.names.Delete(a.Name)
		return summary, err
	}, nil
}

// nameSession completes what was asked for by what the world knows of the session, whose name it takes among those that run.
func (c *cli) nameSession(a *attached, lw *local.World, x *agentRun) (err error) {
	takes := func(name string) bool {
		_, runs := c.opts.agents.names.LoadOrStore(name, true)
		return !runs
	}
	switch {
	case x.Again:
		s, err := findSession(lw, strings.Fields(x.Name))
		if err != nil {
			return err
		}
		a.Name, a.Dir = s.Name, s.Dir
		if len(a.Command) == 0 {
			a.Command = s.Command
		}
		if len(a.Command) == 0 {
			return usagef("worldctl agent list", "session %q was not started here: its client starts it again", a.Name)
		}
	case x.Joins && takes(x.Name):
		return nil
	case x.Joins || x.Name == "":
		a.Name, err = newSession(lw, cmp.Or(x.Name, append(x.Command, "agent")[0]), takes)
		return err
	default:
		if _, err := findSession(lw, []string{x.Name}); err == nil {
			return usagef("worldctl agent resume "+shellWord(x.Name), "there is a session %q already", x.Name)
		}
	}
	if !takes(a.Name) {
		return &fault{err: fmt.Errorf("the session %q runs already", a.Name), code: exitConflict, hint: "worldctl agent list"}
	}
	return nil
}

// newAgentAttachCommand is what agent run has the owner of a world do. It answers with an attached, waits for the
// agent's exit code on stdin, and answers with a gateway.Summary, each a line of JSON.
func newAgentAttachCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:    "attach JSON",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			var x agentRun
			if err := json.Unmarshal([]byte(args[0]), &x); err != nil || c.owned == nil {
				return usagef("worldctl agent run -- COMMAND", "agent attach is for worldctl itself")
			}
			c.opts.agents.attached.Add(1)
			defer c.opts.agents.attached.Add(-1)
			a, end, err := c.attach(cmd.Context(), c.owned, &x)
			if err != nil {
				return err
			}
			err = c.lineJSON(a)
			text, _ := io.ReadAll(c.stdin) // where that ends early, the agent has
			code, bad := strconv.Atoi(string(text))
			if bad != nil {
				code = -1
			}
			summary, ended := end(code)
			return errors.Join(err, ended, c.lineJSON(summary))
		},
	}
}

func (c *cli) lineJSON(v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = fmt.Fprintf(c.stdout, "%s\n", line)
	}
	return errors.Join(err, c.stdout.Flush())
}

// readLineJSON reads a line of JSON to its end: who has written it waits for that.
func readLineJSON(from *bufio.Reader, v any) error {
	line, err := from.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

var errNoOwner = errors.New("the process that owns the world does nothing for others")

// runAttached runs an agent beside a world that another process owns, and drives.
func (c *cli) runAttached(ctx context.Context, x *agentRun) error {
	dir, err := c.dir()
	if err == nil {
		dir, err = filepath.Abs(dir) // the owner is in another directory
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	stdin, code := io.Pipe()
	answers, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := c.askAttached(context.WithoutCancel(ctx), dir, stdin, stdout, "-w", dir, "agent", "attach", string(text))
		_ = stdout.Close()
		ended <- err
	}()
	from := bufio.NewReader(answers)
	var a attached
	if err := readLineJSON(from, &a); err != nil {
		_ = errors.Join(code.Close(), answers.Close())
		return cmp.Or(<-ended, err)
	}
	return c.runTo(ctx, x, &a, func(exit int) (s gateway.Summary, err error) {
		_, err = fmt.Fprint(code, exit)
		err = errors.Join(err, code.Close(), readLineJSON(from, &s))
		return s, errors.Join(<-ended, err)
	})
}

// forkAtOwner has the owner of the world fork it, and completes what is other in the fork.
func (c *cli) forkAtOwner(ctx context.Context, dir string, f *agentFork, given []byte) error {
	var out bytes.Buffer
	if err := c.askAttached(ctx, dir, bytes.NewReader(given), &out, c.args...); err != nil {
		return err
	}
	return json.Unmarshal(out.Bytes(), &f.agentRun)
}

// askAttached has the owner of a world do a command.
func (c *cli) askAttached(ctx context.Context, dir string, stdin io.Reader, stdout io.Writer, args ...string) error {
	asks := *c
	asks.stdin, asks.rawOut, asks.args = stdin, bufio.NewWriter(stdout), args
	code, answered, err := asks.askOwner(ctx, dir)
	switch {
	case err == nil && !answered:
		return errNoOwner
	case err == nil && code != exitOK:
		return &fault{err: errDifferent, code: code} // it has said why
	}
	return err
}
