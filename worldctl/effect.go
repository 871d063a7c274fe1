package worldctl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newEffectCommand(c *cli) *cobra.Command {
	var b journal.OperatorEffect
	cmd := &cobra.Command{
		Use: "effect KIND [JSON|@FILE|-] --cap NAME --reason TEXT",
		RunE: func(cmd *cobra.Command, args []string) error {
			b.Kind = args[0]
			return c.using(c.options(), func(lw *local.World) error { return c.effect(cmd.Context(), lw, b, args[1:]) })
		},
	}
	cmd.Flags().StringVar(&b.Cap, "cap", "", "the capability that allows it: `NAME`")
	cmd.Flags().StringVar(&b.Reason, "reason", "", "why, for those who read the journal: `TEXT`")
	addActor(cmd, "asks")
	return cmd
}

func (c *cli) effect(ctx context.Context, lw *local.World, b journal.OperatorEffect, params []string) error {
	if b.Actor = c.by; b.Cap == "" {
		return usagef("name one of the world's capabilities: "+named(lw, capsOf), "--cap is missing")
	}
	if len(params) > 0 {
		var err error
		if b.Params, err = c.parseData("params", params[0]); err != nil {
			return err
		}
	}
	c.noteEdited(lw)
	var key receipt.Key
	err := lw.Update(func(w *world.World) (err error) {
		_, key, err = w.Emit(ctx, b)
		return err
	})
	if errors.Is(err, world.ErrNoEffect) {
		return hinted(err, "the world's effects are %s", named(lw, effectsOf))
	}
	if err == nil {
		err = lw.RunIntent(ctx, key)
	}
	if err != nil {
		return err
	}
	return c.showEffect(lw, key)
}

func (c *cli) showEffect(lw *local.World, key receipt.Key) error {
	a, err := recordsOf(lw).Effect(key)
	if err != nil {
		return err
	}
	err = c.object("effect", a, func() {
		if a.Receipt != nil {
			c.showReceipt(a.Receipt)
		} else {
			c.showIntent(a.Intent)
		}
	})
	return errors.Join(err, unsuccessful(lw, a.Intent))
}

// unsuccessful says what is wrong with an operator's effect; nil: it happened.
func unsuccessful(lw *local.World, a *view.Intent) error {
	key := view.Short(a.Key)
	switch a.State {
	case receipt.StateCommitted:
		return nil
	case receipt.StateDenied:
		return hinted(fmt.Errorf("%w: %s", errDenied, a.Reason), "worldctl intent show %s", key)
	case receipt.StateAwaitingAnswer:
		return hinted(fmt.Errorf("%w: %s", errUndecided, a.Reason), "worldctl intent answer %s --data JSON, then worldctl run", key)
	case receipt.StateAwaitingApproval:
		err := errNotApproved
		if a.Deadline != 0 {
			err = fmt.Errorf("%w until %s", err, recordsOf(lw).Tick(a.Deadline))
		}
		return hinted(err, "worldctl intent approve %s --reason TEXT, then worldctl run", key)
	case receipt.StateInDoubt:
		return hinted(fmt.Errorf("%w: %s", errUndecided, a.Reason), "worldctl intent resolve %s --executed or --not-executed, --reason TEXT", key)
	case receipt.StateCancelled:
		return hinted(fmt.Errorf("the effect is %s: %s", a.State, a.Reason), "worldctl intent show %s", key)
	default:
		return hinted(fmt.Errorf("the effect is %s: %s", a.State, a.Outcome), "worldctl intent show %s", key)
	}
}

// parseData reads JSON as it is given on a command line: itself, @FILE, or - for
// stdin.
func (c *cli) parseData(field, arg string) (canon.Raw, error) {
	text := []byte(arg)
	if name, isFile := strings.CutPrefix(arg, "@"); isFile || arg == "-" {
		var err error
		if text, err = c.readContent(name); err != nil {
			return nil, err
		}
	}
	data, err := canon.FromJSON(text)
	if err == nil {
		return data, nil
	}
	hint := field + ` is one JSON value with finite numbers, such as '{"field": 1}', or @FILE`
	if _, missing := os.Stat(c.path(arg)); missing == nil {
		hint = "that is the name of a file, whose content is @" + shellWord(arg)
	}
	return nil, hinted(&world.InputError{Err: world.ErrBadData, Field: field, Rule: strings.TrimPrefix(err.Error(), "canon: $: ")}, "%s", hint)
}

// named lists names of the manifest in force for a hint.
func named(lw *local.World, of func(*world.Moment) []string) string {
	var names []string
	lw.View(func(w *world.Moment) { names = of(w) })
	return strings.Join(names, ", ")
}

func capsOf(w *world.Moment) []string    { return slices.Sorted(maps.Keys(w.Manifest().Caps)) }
func effectsOf(w *world.Moment) []string { return slices.Sorted(maps.Keys(w.Manifest().Effects)) }
