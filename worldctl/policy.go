package worldctl

import (
	"context"
	"math"
	"path/filepath"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newPolicyCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "policy"}, newPolicyEvalCommand(c))
}

func newPolicyEvalCommand(c *cli) *cobra.Command {
	var file string
	var history bool
	cmd := &cobra.Command{
		Use: "eval",
		RunE: c.onWorld(func(ctx context.Context, lw *local.World, _ []string) error {
			if file == "" {
				file = filepath.Join(lw.Dir(), local.ManifestFile)
			}
			ctx, cancel := c.timed(ctx)
			defer cancel()
			return c.evalPolicies(ctx, lw, file, history)
		}),
	}
	cmd.Flags().StringVar(&file, "file", "", "the world.yaml to try: `FILE`; the world's own if not given")
	c.addBounds(cmd)
	c.addTime(cmd)
	cmd.Flags().BoolVar(&history, "history", false, "begin with the first record, whatever was in force then")
	return cmd
}

func (c *cli) evalPolicies(ctx context.Context, lw *local.World, file string, history bool) error {
	loaded, err := local.Read(c.path(file), c.options())
	if err != nil {
		return toCorrect(err, file)
	}
	next, err := inForce(lw).GovernedBy(loaded.Manifest)
	if err != nil {
		return err
	}
	var s shadowing
	if history {
		s.last = math.MaxInt64 // so many records follow no snapshot
	}
	r, err := c.shadowed(lw, &s, func(cfg world.ShadowConfig) (*governance.Report, error) {
		cfg.Governed = true
		return lw.Rehearse(ctx, next, nil, cfg)
	})
	if err != nil {
		return err
	}
	a, err := recordsOf(lw).PolicyEval(file, r)
	if err != nil {
		return err
	}
	return c.showPolicies(a)
}

func (c *cli) showPolicies(a *view.PolicyEval) error {
	if c.output == formJSON {
		return c.object("policy-eval", a, nil)
	}
	err := list(c, "policy-eval", "intents", allItems(a.Intents), columns[view.Judged]{
		header: table.Row{"key", "cell", "kind", "params", "was", "would be"},
		row: func(x view.Judged) table.Row {
			return table.Row{view.Short(x.Key), x.Cell, x.Kind, view.Brief(x.Params), x.Before.String(), x.After.String()}
		},
		none: "no decision would be another",
	})
	if err != nil || c.output != formTable {
		return err
	}
	c.facts([2]any{"decided", a.Decided}, [2]any{"changed", a.Changed})
	if more := a.Changed - uint64(len(a.Intents)); more > 0 {
		c.note("… and %s more, which are not listed", view.Thousands(more))
	}
	besides := a.Counts
	besides.Decisions = 0
	if besides != (governance.Counts{}) {
		c.note("it would not have been the only difference: worldctl shadow %s shows what the whole file would change", a.File)
	}
	return nil
}
