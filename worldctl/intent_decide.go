package worldctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// choice is what a person decides about an intent: what the verb says of that, and what is typed.
type choice struct {
	how     journal.Resolution // local.Confirm: its recorded result holds
	states  string             // for --state, of those that are decided about together; empty: one is
	hash    bool               // there is --params-hash
	free    bool               // the reason may be left away
	field   string             // what the payload is called; empty: there is none
	what    string             // it is, for --help
	lacking error              // where there is none; nil: it may be left away

	reason     string
	paramsHash string
	payload    string
	attempt    uint64            // that was seen; 0: none, or whichever it is
	filter     view.IntentFilter // in the place of a key
	yes        bool
	digest     string // of the list that was seen
}

func newIntentApproveCommand(c *cli) *cobra.Command {
	x := &choice{how: journal.Approve, states: "awaiting_approval, as it is if not given", hash: true, free: true}
	cmd := c.deciding("approve", x)
	var reuse bool
	cmd.Flags().BoolVar(&reuse, "reuse", false, "do not perform it: it gets the result of what it repeats")
	cmd.PreRun = func(*cobra.Command, []string) {
		if reuse {
			x.how = world.Reuse
		}
	}
	return cmd
}

func newIntentDenyCommand(c *cli) *cobra.Command {
	return c.deciding("deny", &choice{
		how: journal.Disapprove, states: "awaiting_approval, awaiting_answer or awaiting_confirmation; all three if not given", hash: true, free: true,
	})
}

func newIntentStopCommand(c *cli) *cobra.Command {
	x := &choice{how: journal.Stop, states: "open, awaiting_approval or awaiting_answer; all three if not given", hash: true}
	cmd := c.deciding("stop", x)
	var all, dry bool
	cmd.Flags().BoolVar(&all, "all", false, "all that are not begun")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list them, and stop none")
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		switch {
		case all && (x.filter != view.IntentFilter{} || len(args) > 0):
			return usagef("type one of them", "--all goes with no KEY, and with no filter")
		case dry && (len(args) > 0 || x.digest != ""):
			return usagef("leave --dry-run away", "--dry-run lists what --all or a filter selects")
		case all:
			x.filter.Kind = "*"
		}
		x.yes = !dry
		return nil
	}
	return cmd
}

func newIntentResolveCommand(c *cli) *cobra.Command {
	x := &choice{states: "in_doubt, or failed; those in doubt if not given", field: "payload", what: "what its cell is told: `JSON`, @FILE or - for stdin; null if not given"}
	cmd := c.deciding("resolve", x)
	var executed, notExecuted bool
	cmd.Flags().BoolVar(&executed, "executed", false, "it happened")
	cmd.Flags().BoolVar(&notExecuted, "not-executed", false, "it did not happen")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		switch {
		case executed == notExecuted:
			return usagef("look at the outside first, then type one of the two", "intent resolve needs one of --executed and --not-executed")
		case notExecuted && x.payload != "":
			return usagef("leave --payload away", "what did not happen has no payload")
		}
		x.how = journal.NotExecuted
		if executed {
			x.how = journal.Executed
		}
		return nil
	}
	return cmd
}

func newIntentEditCommand(c *cli) *cobra.Command {
	return c.deciding("edit", &choice{
		how: journal.Edit, hash: true, field: "params", what: "what is asked for instead: `JSON`, @FILE or - for stdin",
		lacking: usagef("type --params JSON, or --params @FILE", "intent edit needs the params to ask for"),
	})
}

func newIntentRetryCommand(c *cli) *cobra.Command {
	return c.deciding("retry", &choice{how: journal.RetryAnyway, states: "in_doubt, or failed; those in doubt if not given"})
}

func newIntentConfirmCommand(c *cli) *cobra.Command {
	return c.deciding("confirm", &choice{how: local.Confirm})
}

func newIntentAnswerCommand(c *cli) *cobra.Command {
	return c.deciding("answer", &choice{
		how: journal.Answer, hash: true, field: "data", what: "the answer: `JSON`, @FILE or - for stdin",
		lacking: usagef("worldctl intent show prints what is asked", "intent answer needs --data"),
	})
}

// deciding makes a verb that decides about an intent, or several.
func (c *cli) deciding(verb string, x *choice) *cobra.Command {
	several := x.states != ""
	cmd := &cobra.Command{Use: verb + " KEY", Args: args(0, 1)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := x.check(cmd, verb, args); err != nil {
			return err
		}
		return c.with(func(lw *local.World) error {
			if len(args) == 0 {
				return c.decideAll(cmd.Context(), lw, *x)
			}
			return c.decide(cmd.Context(), lw, args[0], *x)
		})
	}
	f := cmd.Flags()
	if several {
		cmd.Use = verb + " [KEY]"
		addFilter(cmd, &x.filter)
		f.StringVar((*string)(&x.filter.State), "state", "", "only those in `STATE`: "+x.states)
		f.StringVar(&x.digest, "digest", "", "decide about those of the list that had this `HASH`, if they are the same still")
	}
	if several && verb != "stop" {
		f.BoolVar(&x.yes, "yes", false, "decide about all that are selected: without it they are listed")
	}
	if x.hash {
		f.StringVar(&x.paramsHash, "params-hash", "", "decide only if the intent's params have this `HASH`; see intent show")
	}
	if x.field != "" {
		f.StringVar(&x.payload, x.field, "", x.what)
	}
	f.Uint64Var(&x.attempt, "attempt", 0, "decide only if the intent's last attempt is still the `N`th; see intent show")
	needed := "; needed"
	if x.free {
		needed = "; it may be left away"
	}
	f.StringVar(&x.reason, "reason", "", "why, for those who read the journal: `TEXT`"+needed)
	addActor(cmd, "decides")
	return cmd
}

// check refuses what was typed where it is not said what is decided, about what.
func (x *choice) check(cmd *cobra.Command, verb string, args []string) error {
	filtered := x.filter != view.IntentFilter{}
	switch {
	case x.lacking != nil && x.payload == "":
		return x.lacking
	case cmd.Flags().Changed("reason") && x.reason == "":
		return world.ErrNoReason
	case x.states == "" && len(args) == 0:
		return usagef("worldctl intent list --state awaiting", "intent %s needs a KEY", verb)
	case filtered && len(args) == 1:
		return usagef("type one of the two", "a KEY, and --cell, --kind, --since or --state, do not go together")
	case !filtered && len(args) == 0:
		which := "which by --cell, --kind, --since or --state"
		if verb == "stop" {
			which = "--all, or " + which
		}
		return usagef("type worldctl intent "+verb+" --help", "intent %s needs a KEY, or %s", verb, which)
	case !filtered && x.digest != "":
		return usagef("leave --digest away; --params-hash is of one intent", "--digest is of a list")
	case filtered && x.paramsHash != "":
		return usagef("leave --params-hash away", "--params-hash is of one intent")
	case filtered && x.attempt != 0:
		return usagef("leave --attempt away", "--attempt is of one intent")
	}
	return nil
}

// decide has the world take a person's decision, and prints what became of it.
func (c *cli) decide(ctx context.Context, lw *local.World, key string, x choice) error {
	e, err := recordsOf(lw).FindIntent(key)
	if err != nil {
		return err
	}
	b := journal.Resolved{Key: e.Intent.Key, How: x.how, Params: e.Params, Reason: x.reason, Actor: c.by}
	if x.paramsHash != "" {
		if b.Params, err = canon.ParseHash(x.paramsHash); err != nil {
			return usagef("worldctl intent show "+key+" prints it", "--params-hash: %w", err)
		}
	}
	if x.payload != "" {
		if b.Payload, err = c.parseData(x.field, x.payload); err != nil {
			return err
		}
	}
	if x.attempt != 0 {
		e.Attempt = x.attempt
	}
	d, err := recordsOf(lw).Decide(ctx, &b, e)
	if err != nil {
		return notDecided(err, e)
	}
	err = c.object("intent-decided", d, func() {
		fmt.Fprintf(c.stdout, "intent %s, %s of %s, is %s now: %s by %s\nparams hash %s\n",
			view.Short(d.Key), d.Kind, d.Cell, d.State, d.How, d.Actor, d.ParamsHash)
		if d.Instead != nil {
			fmt.Fprintf(c.stdout, "intent %s is asked for in its place: it is %s\n", view.Short(d.Instead.Key), d.Instead.State)
		}
		c.nextAfter(d.Cell)
	})
	if err == nil && d.Denied() {
		err = hinted(fmt.Errorf("%w: %s", errDenied, d.Why), "worldctl timeline %s", d.Cell)
	}
	return err
}

// errNotYet says that intents were listed, and nothing decided.
var errNotYet = errors.New("nothing is decided")

// errNoneSelected says that a decision was to be taken about nothing.
var errNoneSelected = errors.New("nothing was selected, and nothing is decided")

// decideAll has the world take one decision about all intents that a filter selects, as one
// durable batch, or lists them.
func (c *cli) decideAll(ctx context.Context, lw *local.World, x choice) error {
	b, batch := journal.Resolved{Reason: x.reason, Actor: c.by}, view.Batch{How: x.how, Filter: x.filter}
	var err error
	if x.payload != "" {
		if batch.Payload, err = c.parseData(x.field, x.payload); err != nil {
			return err
		}
	}
	if x.digest != "" {
		digest, err := canon.ParseHash(x.digest)
		if err != nil {
			return usagef("it is what the list ends with", "--digest: %w", err)
		}
		batch.Digest = &digest
	}
	var a *view.DecidedAll
	if x.yes || x.digest != "" {
		a, err = recordsOf(lw).DecideAll(ctx, batch, b)
	} else {
		a, err = recordsOf(lw).Preview(batch)
	}
	if err = cmp.Or(err, c.notePassedOver(lw, &x)); err != nil {
		return err
	}
	err = c.object("intents-decided", a, func() { c.showDecidedAll(lw, a, &x, b.Actor) })
	switch {
	case err != nil:
		return err
	case len(a.Refused) > 0:
		return hinted(fmt.Errorf("%s not decided", view.Number(len(a.Refused), "intent")), "worldctl intent list")
	case !a.Done && x.how == journal.Stop:
		c.note("nothing is stopped; with --digest %s those of this list are, if they are the same still", a.Digest)
	case !a.Done && len(a.Intents) > 0:
		return hinted(fmt.Errorf("%w about %s", errNotYet, view.Number(len(a.Intents), "intent")), "type it again with --digest %s to decide about all of them at once, if they are the same still; with --yes whichever they are then", a.Digest)
	case a.Done && len(a.Intents) == 0:
		return hinted(errNoneSelected, "worldctl intent list shows those that there are")
	case a.Done:
		c.nextAfter(a.Intents[0].Cell)
	}
	return nil
}

// showDecidedAll says what was decided about several intents, or would be.
func (c *cli) showDecidedAll(lw *local.World, a *view.DecidedAll, x *choice, actor string) {
	if len(a.Intents) == 0 && len(a.Refused) == 0 {
		c.note("%s", recordsOf(lw).NoneSelected(x.filter))
	} else {
		tabulate(c, intentHeader(), a.Intents, func(l *view.IntentLine) table.Row { return c.intentRow(*l, true) })
	}
	if a.Done && len(a.Intents) > 0 {
		fmt.Fprintf(c.stdout, "%s: %s by %s\n", view.Number(len(a.Intents), "intent"), x.how, actor)
	}
	c.noteBegun(a)
	for _, r := range a.Refused {
		c.note("not decided: %s: %s", view.Short(r.Key), visible(r.Reason, ""))
	}
}

// noteBegun says how many intents a stop has passed over.
func (c *cli) noteBegun(a *view.DecidedAll) {
	for _, state := range []receipt.State{receipt.StateInFlight, receipt.StateInDoubt, receipt.StateOpen} {
		next := map[receipt.State]string{
			receipt.StateInFlight: "in flight; stop again what is attempted again",
			receipt.StateInDoubt:  "in doubt; worldctl intent resolve says whether it happened",
			receipt.StateOpen:     "accepted by the outside, which is asked about it",
		}[state]
		if n := a.Begun[state]; n > 0 {
			c.note("not stopped, for what may have happened is not undone: %s %s", view.Number(n, "intent"), next)
		}
	}
}

// notePassedOver says how many of those that are selected no approval is about.
func (c *cli) notePassedOver(lw *local.World, x *choice) error {
	if x.how != journal.Approve {
		return nil
	}
	n, err := recordsOf(lw).Asking(x.filter)
	if n > 0 {
		c.note("passed over: %s that a tool asks a person about, to be answered one by one: worldctl intent list --state awaiting_answer", view.Number(n, "intent"))
	}
	return err
}

// notDecided adds to a refused decision where its intent stands.
func notDecided(err error, e *receipt.Entry) error {
	if hintOf(err) != "" {
		return err
	}
	if e.State == receipt.StateAwaitingAnswer && errors.Is(err, world.ErrNotWaiting) {
		return hinted(err, "worldctl intent answer %[1]s --data JSON; worldctl intent show %[1]s prints what it asks", view.Short(e.Intent.Key))
	}
	return hinted(err, "worldctl intent show %s", view.Short(e.Intent.Key))
}
