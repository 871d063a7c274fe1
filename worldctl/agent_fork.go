package worldctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/serve/gateway"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// agentFork is what a fork of an agent was asked for.
type agentFork struct {
	agentRun

	at     int    // the call, from 1
	dir    string // of the fork
	answer string // a file
	model  string
	tools  []string // that may run, besides those that only read; "*": all
}

func newAgentForkCommand(c *cli) *cobra.Command {
	f := agentFork{agentRun: agentRun{Again: true}}
	cmd := &cobra.Command{
		Use: "fork [NAME] --at CALL -d DIR",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Name = strings.Join(args, "")
			return c.forkAgent(cmd.Context(), &f)
		},
	}
	cmd.Flags().IntVar(&f.at, "at", 0, "the `CALL` that is another one in the fork, from 1")
	cmd.Flags().StringVarP(&f.dir, "dir", "d", "", "the fork's `DIR`, which must be empty or not there")
	cmd.Flags().StringVar(&f.answer, "answer", "", "the `FILE` that answers the call; - is stdin")
	cmd.Flags().StringVar(&f.model, "model", "", "the `MODEL` that is asked from the call on")
	cmd.Flags().StringSliceVar(&f.tools, "tools", nil, "`NAME`s of tools that may run in the fork, besides those that only read")
	f.bind(cmd)
	return cmd
}

// forkAgent forks the world, and starts the agent in the fork.
func (c *cli) forkAgent(ctx context.Context, f *agentFork) error {
	switch {
	case f.at < 1 || f.dir == "":
		return usagef("worldctl agent calls numbers the calls; such as worldctl agent fork --at 3 -d DIR", "agent fork needs --at CALL and -d DIR")
	case f.answer != "" && f.model != "":
		return usagef("--model asks another model, --answer asks none", "want one of --answer and --model")
	}
	var given []byte
	var err error
	if f.answer != "" {
		if given, err = c.readContent(f.answer); err != nil {
			return err
		}
	}
	if err := c.agentWorld(false); err != nil {
		return err
	}
	parent := c.world
	err = c.with(func(lw *local.World) error { return c.makeAgentFork(ctx, lw, f, given) })
	if elsewhere := new(ownedError); errors.As(err, &elsewhere) {
		err = c.forkAtOwner(ctx, elsewhere.dir, f, given)
	} else if err == nil && c.owned != nil { // who has asked starts the agent
		return c.lineJSON(f.agentRun)
	}
	if err != nil {
		return err
	}
	fork := *c
	fork.world, fork.storeFlags = c.path(f.dir), storeFlags{}
	err = fork.runAgent(ctx, &f.agentRun)
	c.note("compare: worldctl -w %s diff head %s", shellWord(parent), shellWord(f.dir))
	return err
}

// makeAgentFork forks a world before the call, with rules for the agent's tools.
func (c *cli) makeAgentFork(ctx context.Context, lw *local.World, f *agentFork, given []byte) error {
	at, err := c.branchOf(lw, f, given)
	if err != nil {
		return err
	}
	kinds := slices.DeleteFunc([]string{recorder.Call, recorder.MCPCall, recorder.OwnTool}, func(kind string) bool { return !gates(lw, kind) })
	actor, err := c.actor(f.As)
	if err != nil {
		return err
	}
	done, err := c.makeFork(ctx, lw, f.dir, local.ForkOptions{At: at, Effects: journal.ForkLive, Live: manifest.Live(kinds), Actor: actor, Amend: f.amend(kinds)})
	if err != nil {
		return notCopied(f.dir, err)
	}
	c.note("note: %s is forked from %s at #%d, before call %d of %s", shellWord(f.dir), done.Parent, done.At, f.at, f.Name)
	if len(f.tools) == 0 {
		c.note("note: tools that do more than read are denied in it: --tools NAME permits one")
	}
	return nil
}

// branchOf completes what is other in the fork, and returns the last record that both worlds have.
func (c *cli) branchOf(lw *local.World, f *agentFork, given []byte) (journal.Seq, error) {
	s, err := findSession(lw, strings.Fields(f.Name))
	if err != nil {
		return 0, err
	}
	f.Name = s.Name
	j := recordsOf(lw)
	calls := modelCalls(j, s.Name)
	if f.at > len(calls) {
		return 0, usagef("worldctl agent calls "+shellWord(s.Name), "session %q has made %s", s.Name, view.Number(uint64(len(calls)), "call"))
	}
	e := &calls[f.at-1]
	asked, err := requestOf(j, e)
	if err != nil {
		return 0, err
	}
	if given != nil {
		if _, _, err := asked.Given(given); err != nil {
			return 0, hinted(fmt.Errorf("%s: %w", f.answer, err), "a text, or JSON as the API answers it")
		}
	}
	if err := f.mayRunAgain(lw, j, s, calls[:f.at-1], len(asked.Tools)); err != nil {
		return 0, err
	}
	_, lineage, _ := strings.Cut(e.Intent.Tag, " ")
	f.Branch = &gateway.Branch{Lineage: lineage, Answer: given, Instead: recorder.Instead{Of: asked.Model, Model: f.model}}
	return beforeEvent(j, journal.Seq(e.Emitted))
}

// may returns the tools that may run in the fork.
func (f *agentFork) may() []string { return append(slices.Clone(f.tools), gateway.ReadOnly()...) }

// mayRunAgain refuses a fork in which tools would run that nobody has named: those that the world has no rules for, and those
// that an agent without hooks runs again, since it is given the answers that ask for them.
func (f *agentFork) mayRunAgain(lw *local.World, j view.Journal, s *session, before []receipt.Entry, offered int) error {
	switch {
	case slices.Contains(f.tools, "*"):
		return nil
	case !gates(lw, recorder.OwnTool) && offered > 0:
		return usagef("--tools '*' lets all of them run, for real", "the world has no rules for the tools of %s, and so cannot keep them from running in the fork", shellWord(strings.Join(s.Command, " ")))
	case clientOf(s.Command).asks:
		return nil
	}
	var again []string
	for i := range before {
		call, err := callOf(j, i+1, &before[i])
		if err != nil {
			return err
		}
		again = append(again, call.Tools...)
	}
	slices.Sort(again)
	again = slices.DeleteFunc(slices.Compact(again), func(name string) bool { return slices.Contains(f.may(), name) })
	if len(again) == 0 {
		return nil
	}
	return usagef("--tools "+shellWord(strings.Join(again, ","))+" lets them", "the agent has no hooks, and so would run again what answers before call %d ask for: %s", f.at, strings.Join(again, ", "))
}

// requestOf returns the request of a model call.
func requestOf(j view.Journal, e *receipt.Entry) (*relay.Asked, error) {
	var r recorder.Request
	if err := canon.UnmarshalTrusted(j.Params(e.Intent.Key), &r); err != nil {
		return nil, err
	}
	return relay.Read(r.Dialect, r.Method, r.Path, make(http.Header), r.Body)
}

// beforeEvent returns the record before the event that led to a record.
func beforeEvent(j view.Journal, id journal.Seq) (journal.Seq, error) {
	for {
		e, err := j.Entry(id)
		if err != nil {
			return 0, err
		}
		if e.CausedBy == 0 {
			return id - 1, nil
		}
		id = e.CausedBy
	}
}

// amend returns the fork's rules: those of its parent, and that tools do no more than read.
func (f *agentFork) amend(kinds []string) world.Amendment {
	names := map[string]string{
		recorder.OwnTool: `intent.params.tool`,
		recorder.MCPCall: `intent.params.server + "/" + intent.params.tool`,
	}
	if slices.Contains(f.tools, "*") {
		return nil
	}
	return func(base *manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
		may, err := json.Marshal(f.may())
		if err != nil {
			return nil, nil, err
		}
		next := *base
		next.Policies = slices.Clone(base.Policies)
		for _, kind := range kinds {
			if names[kind] != "" {
				next.Policies = append(next.Policies, manifest.Policy{
					Name: "in this fork a " + kind + " only reads", Decide: "deny",
					When: fmt.Sprintf(`intent.kind == %q && !((%s) in %s)`, kind, names[kind], may),
				})
			}
		}
		return &next, nil, nil
	}
}
