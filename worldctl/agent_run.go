package worldctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/serve/gateway"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

// agentRun is what a run of an agent was asked for.
type agentRun struct {
	Name     string
	As       string
	Upstream map[string]string // by dialect
	Offline  bool
	Diverge  bool
	Command  []string
	Here     string          // where it was typed
	Again    bool            // the session is to be there
	Branch   *gateway.Branch // of the session, in a fork
	Defer    time.Duration   // see gateway.Config
	Joins    bool            // the session may be there: a server of tools, which somebody else has started

	serve func(context.Context, *attached) (code int, err error) // in the place of the agent; nil: it is started
	sums  bool                                                   // what came of it is said though it is served
}

func newAgentRunCommand(c *cli) *cobra.Command {
	var x agentRun
	cmd := &cobra.Command{
		Use:  "run [--name NAME] -- COMMAND [ARGUMENT...]",
		Args: needsAgent,
		RunE: func(cmd *cobra.Command, args []string) error {
			x.Command = args
			return c.runAgent(cmd.Context(), &x)
		},
	}
	cmd.Flags().StringVar(&x.Name, "name", "", "the session's `NAME`; that of the program if not given")
	x.bind(cmd)
	x.bindDefer(cmd)
	return cmd
}

func needsAgent(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("such as "+cmd.CommandPath()+" -- claude -p \"fix the failing test\"", "agent %s needs the command of an agent, after --", cmd.Name())
	}
	return nil
}

func (x *agentRun) bind(cmd *cobra.Command) {
	cmd.Flags().StringToStringVar(&x.Upstream, "upstream", nil, "where a provider is: `DIALECT=URL`, of openai or anthropic; where the agent would have gone if not given")
	cmd.Flags().StringVar(&x.As, "as", "", "who starts it: `NAME`; your login if not given")
}

func (x *agentRun) bindDefer(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&x.Defer, "defer", 0, "end claude -p once a tool of its own has waited for a person for so `LONG`: agent resume goes on; an hour's wait, and then the model is told, if not given")
}

// defers reports whether a program ends when a tool of its own is deferred: Claude Code does without a terminal.
func defers(command []string) bool {
	return clientOf(command).asks && hasFlag(command, "-p", "--print")
}

func newAgentResumeCommand(c *cli) *cobra.Command {
	x := agentRun{Again: true}
	cmd := &cobra.Command{
		Use: "resume [NAME]",
		RunE: func(cmd *cobra.Command, args []string) error {
			x.Name = strings.Join(args, "")
			return c.runAgent(cmd.Context(), &x)
		},
	}
	cmd.Flags().BoolVar(&x.Diverge, "diverge", false, "make calls that were never made, though recorded answers are left")
	x.bind(cmd)
	x.bindDefer(cmd)
	return cmd
}

func newAgentReplayCommand(c *cli) *cobra.Command {
	x := agentRun{Again: true, Offline: true}
	return &cobra.Command{
		Use:  "replay [NAME] [-- COMMAND [ARGUMENT...]]",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				args, x.Command = args[:at], args[at:]
			}
			if len(args) > 1 {
				return usagef("such as worldctl agent replay triage -- python agent.py", "agent replay takes one NAME, and a command after --")
			}
			x.Name = strings.Join(args, "")
			return c.runAgent(cmd.Context(), &x)
		},
	}
}

// runAgent runs an agent beside the world, which this process owns meanwhile, or another one does already.
func (c *cli) runAgent(ctx context.Context, x *agentRun) error {
	if len(x.Command) > 0 {
		if _, err := exec.LookPath(x.Command[0]); err != nil {
			return usagef("such as worldctl agent run -- claude -p \"fix the failing test\"", "the agent cannot be started: %w", err)
		}
	}
	for dialect := range x.Upstream {
		if dialect != relay.OpenAI && dialect != relay.Anthropic {
			return usagef("such as --upstream openai=http://localhost:11434", "--upstream: there is no dialect %q: openai, anthropic", dialect)
		}
	}
	var err error
	if x.As, err = c.actor(x.As); err != nil {
		return err
	}
	if x.Here, err = os.Getwd(); err != nil {
		return err
	}
	x.Upstream = upstreams(x.Upstream, os.Getenv)
	for begun := time.Now(); ; {
		err = c.runBeside(ctx, x)
		if !x.Joins || !errors.Is(err, local.ErrNoWorld) && !errors.Is(err, errNoOwner) || time.Since(begun) > startPatience || ctx.Err() != nil {
			return err
		}
		<-time.After(lockPause) // clients start their servers together: another makes the world, or has it and ends
	}
}

// startPatience is how long what a client has started waits for a world that another process makes or gives up.
const startPatience = 5 * time.Second

// runBeside runs an agent beside the world, which is found or made.
func (c *cli) runBeside(ctx context.Context, x *agentRun) error {
	if err := c.agentWorld(!x.Again); err != nil {
		return err
	}
	err := c.own(ctx, func(lw *local.World) error {
		if x.Branch == nil { // else it is said what is other
			c.noteEdited(lw)
		}
		return c.runOwned(ctx, lw, x)
	})
	if errors.As(err, new(*store.LockedError)) {
		return c.runAttached(ctx, x)
	}
	return err
}

// runOwned runs an agent beside a world that this process owns, and drives the world until it and all that others have
// attached have ended. Where the world cannot go on the agent is ended: it would wait for ever for what nobody records.
func (c *cli) runOwned(ctx context.Context, lw *local.World, x *agentRun) error {
	driving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var beside sync.WaitGroup
	var drove error
	ctx, broke := context.WithCancel(ctx)
	defer broke()
	beside.Go(func() {
		if !x.Offline {
			_, drove = lw.Drive(driving, local.Course{Stay: true})
			broke()
		}
	})
	g, end, err := c.attach(ctx, lw, x)
	if err == nil {
		err = c.runTo(ctx, x, g, end)
		c.opts.agents.wait(ctx, func(n int64) { c.note("note: %s beside it; Ctrl-C ends them", view.Number(uint64(n), "agent")) })
	}
	stop()
	beside.Wait()
	if errors.Is(drove, context.Canceled) {
		drove = nil
	}
	return errors.Join(err, drove)
}

// runTo runs an agent that is attached to its end, and says what came of it.
func (c *cli) runTo(ctx context.Context, x *agentRun, g *attached, end func(code int) (gateway.Summary, error)) error {
	if x.Again {
		this := "start " + strconv.FormatUint(g.Incarnation, 10)
		if x.Offline {
			this = "a replay"
		}
		c.note("%s: %s, %s on record", g.Name, this, view.Number(uint64(g.Recorded), "answer"))
	}
	start := c.startAgent
	if x.serve != nil {
		start = x.serve
	}
	code, err := start(ctx, g)
	summary, ended := end(code)
	if err = errors.Join(err, ended); err != nil {
		return err
	}
	if x.serve != nil && !x.sums {
		return endedWith(code)
	}
	if err = c.showAgentRun(g.Name, code, &summary); err == nil && x.Branch != nil && !summary.Branched {
		err = hinted(errors.New("the agent has not made the call again, so nothing is other in the fork"), "worldctl agent show %s", shellWord(g.Name))
	}
	return err
}

// startAgent runs the agent to its end, and returns its exit code.
func (c *cli) startAgent(ctx context.Context, g *attached) (code int, err error) {
	return c.startAgentTo(ctx, g, os.Stdout, os.Stderr)
}

func (c *cli) startAgentTo(ctx context.Context, g *attached, stdout, stderr io.Writer) (code int, err error) {
	argv, known := g.Command, clientOf(g.Command)
	self, err := os.Executable()
	if err != nil {
		return -1, err
	}
	if known.pointed != nil {
		argv = known.pointed(argv, g.OpenAI)
	}
	if known.hooked != nil && g.Hook != "" {
		with, err := known.hooked(argv, self, g.Dir)
		switch {
		case err == nil:
			argv = with
		case known.asks:
			return -1, err
		default:
			c.note("note: the agent takes no hook, so after a restart it runs again what ran: %s", err)
		}
	}
	argv, clean := c.withTools(argv, self, g)
	defer clean()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = g.Dir, c.stdin, stdout, stderr
	cmd.Env = agentEnv(os.Environ(), g)
	cmd.SysProcAttr = dyingWithParent()
	c.opts.interrupts.leave(os.Interrupt) // a terminal sends it to the agent as well, which may go on
	runtime.LockOSThread()                // dying with its parent is dying with this thread
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return -1, hinted(err, "the command of the agent is %s, started in %s", shellWord(argv[0]), shellWord(g.Dir))
	}
	ended := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer ended()
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if code = exit.ExitCode(); code < 0 {
			code = 128 + int(exit.Sys().(syscall.WaitStatus).Signal()) //nolint:forcetypeassert // of this system
		}
		return code, nil
	}
	return 0, err
}

// families are the variables of the environment that say where models are. Those of the agent's parents
// would lead around the gateway.
var families = []string{ //nolint:gochecknoglobals // a table
	"OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_HOST", "OPENAI_BASE_PATH", "ANTHROPIC_BASE_URL", "ANTHROPIC_HOST", "ANTHROPIC_API_URL",
	"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "AZURE_OPENAI_ENDPOINT",
}

// agentEnv returns the environment of an agent: that of this process, pointed at the gateway.
func agentEnv(inherited []string, g *attached) []string {
	out := slices.DeleteFunc(slices.Clone(inherited), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(families, name)
	})
	for _, name := range []string{"NO_PROXY", "no_proxy"} { // the gateway is on this machine
		out = append(out, name+"="+strings.TrimPrefix(os.Getenv(name)+",127.0.0.1,localhost", ","))
	}
	openai := g.OpenAI + "/v1"
	return append(out,
		"OPENAI_BASE_URL="+openai, "OPENAI_API_BASE="+openai, "ANTHROPIC_BASE_URL="+g.Anthropic,
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", // sub-agents that end in their turn can be resumed
		"WORLDKERNEL_AGENT=1", toolsEnv+"="+g.Tools, hookVariable+"="+g.Hook)
}

// pointedCodex returns a command line of Codex, which does not heed the environment.
func pointedCodex(argv []string, openai string) []string {
	const provider = "model_providers.worldkernel."
	return append([]string{
		argv[0], "-c", "model_provider=worldkernel", "-c", provider + "name=worldkernel", "-c", provider + "base_url=" + openai + "/v1",
		"-c", provider + "wire_api=responses", "-c", provider + "env_key=OPENAI_API_KEY",
	}, argv[1:]...)
}

// upstreams returns where the agent would have gone, by dialect, without the version that its paths begin with.
func upstreams(given map[string]string, getenv func(string) string) map[string]string {
	out := map[string]string{relay.OpenAI: "https://api.openai.com", relay.Anthropic: "https://api.anthropic.com"}
	for dialect, names := range map[string][]string{relay.OpenAI: {"OPENAI_BASE_URL", "OPENAI_API_BASE"}, relay.Anthropic: {"ANTHROPIC_BASE_URL"}} {
		for _, name := range names {
			if url := getenv(name); url != "" {
				out[dialect] = url
				break
			}
		}
	}
	maps.Copy(out, given)
	for dialect, url := range out {
		out[dialect] = strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/v1")
	}
	return out
}

// showAgentRun says what a run of an agent came to, on stderr: stdout is the agent's.
func (c *cli) showAgentRun(name string, code int, s *gateway.Summary) error {
	c.note("")
	how := endedBy(code)
	if code == 0 && len(s.Deferred) > 0 {
		how = "ended to wait for a person"
	}
	c.note("%s %s: %s, %d made, %d from the record; %d tokens, %d micros, %d tools asked for", name, how,
		view.Number(uint64(s.Requests), "request"), s.Calls, s.Served, s.Tokens, s.Micros, s.Tools)
	for _, of := range []struct {
		n    int
		what string
	}{
		{s.Denied, "denied: worldctl intent list --state denied"},
		{s.Waiting, "waiting for a person: worldctl intent list --state awaiting"},
		{s.UnderWay, "still under way: their answers are recorded when they come, or they are in doubt"},
		{s.InDoubt, "of which nobody can tell what became"},
		{s.Failed, "that the provider refused or did not answer whole"},
		{s.Left, "recorded and not asked for"},
	} {
		if of.n > 0 {
			c.note("%8d %s", of.n, of.what)
		}
	}
	if s.ToolRequests > 0 {
		c.note("%s: %d made, %d from the record", view.Number(uint64(s.ToolRequests), "call")+" of tools", s.ToolCalls, s.ToolsServed)
	} else if s.Tools > 0 {
		c.note("the tools of this agent do not come through the gateway, and run unjudged: docs/gateway.md says which do")
	}
	if len(s.Changed) > 0 {
		c.note("other than before: %s: policies see intent.params.tool_changed", strings.Join(s.Changed, ", "))
	}
	if d := s.Divergence; d != nil && d.Tool != "" {
		c.note("call %d of a tool was never made before: %s of %s: %s", d.Request, d.Tool, d.Path, d.Prompt)
		return &fault{err: errDifferent, code: exitVerify}
	} else if d != nil {
		c.note("request %d was never made before: %s, model %s: %q", d.Request, d.Path, d.Model, d.Prompt)
		if d.Nearest != "" {
			c.note("the nearest on record is %s; they differ at %s", d.Nearest, d.Place)
		}
		return &fault{err: errDifferent, code: exitVerify}
	}
	c.hintNext("worldctl agent show %[1]s, worldctl agent resume %[1]s, worldctl verify", shellWord(name))
	if code == 0 && len(s.Deferred) > 0 {
		return &fault{
			err: fmt.Errorf("%s has ended because a tool of its own waits for a person", name), code: exitDenied,
			hint: fmt.Sprintf("worldctl intent approve %s, or deny; then worldctl agent resume %s", view.Short(s.Deferred[0]), shellWord(name)),
		}
	}
	if code == 0 && s.Requests+s.ToolRequests == 0 {
		return hinted(errors.New("nothing of the agent reached the gateway"),
			"an agent that does not heed OPENAI_BASE_URL or ANTHROPIC_BASE_URL has to be pointed at it: docs/gateway.md says how")
	}
	if code != 0 {
		return (&agentError{code}).fault()
	}
	return nil
}
