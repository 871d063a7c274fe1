package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/manifest/source"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// policyAnswer compares what was decided with what a world.yaml would decide.
type policyAnswer struct {
	File    string        `json:"file"`
	Before  verdictCounts `json:"before"`
	After   verdictCounts `json:"after"`
	Changed int           `json:"changed"`
	Intents []judged      `json:"intents"` // those that changed, or all
}

type verdictCounts struct {
	Allow           int `json:"allow"`
	Deny            int `json:"deny"`
	RequireApproval int `json:"require_approval"`
}

// judged is one intent: what was decided when it was made, and what a world.yaml
// would decide.
type judged struct {
	Key     receipt.Key   `json:"key"`
	Cell    string        `json:"cell"`
	Kind    string        `json:"kind"`
	Record  world.Seq     `json:"record"`
	Time    manifest.Tick `json:"time"`
	Changed bool          `json:"changed"` // the decision; its rules, code and capability may differ besides
	Before  ruling        `json:"before"`
	After   ruling        `json:"after"`
}

// ruling is what a gate says.
type ruling struct {
	Decision string   `json:"decision"` // allow, deny or require_approval
	Code     string   `json:"code"`     // of a denial
	Cap      string   `json:"cap"`
	Rules    []string `json:"rules"`
	Reason   string   `json:"reason"`
}

func newPolicyCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "policy", Short: "Try policies out"}, newPolicyEvalCommand(c))
}

func newPolicyEvalCommand(c *cli) *cobra.Command {
	var file string
	var history bool
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "What would the policies of a world.yaml have decided about the recorded intents?",
		Long: `What would the policies, capabilities and budgets of a world.yaml have decided
about the intents that the world has recorded? Each is judged as it was when it
was made, in the order of the journal, and what is allowed draws on the budgets
as it did: what an effect used is known if it was performed, else it counts with
its max_cost. Nothing is changed.

The journal tells which capability was used or failed, not which one was asked
for. An intent is judged under the one that was used if its cell still holds it,
and else under the first that fits.`,
		Example: `  worldctl policy eval
  worldctl policy eval --file stricter.yaml --history -o jsonl`,
		Args: args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return c.with(func(lw *local.World) error {
				if file == "" {
					file = filepath.Join(lw.Dir(), local.ManifestFile)
				}
				return c.evalPolicies(lw, file, history)
			})
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the world.yaml to try: `FILE`; the world's own if not given")
	cmd.Flags().BoolVar(&history, "history", false, "list every intent, not only those that would be decided otherwise")
	return cmd
}

func (c *cli) evalPolicies(lw *local.World, file string, history bool) error {
	loaded, err := source.Load(file)
	if err != nil {
		return toCorrect(err, file)
	}
	trial, err := newTrial(loaded.Manifest, lw.Status().ID)
	if err != nil {
		return err
	}
	a := policyAnswer{File: file, Intents: []judged{}}
	for e, err := range (journal{lw}).scan(0, trialKinds()...) {
		if err != nil {
			return err
		}
		x, err := trial.add(e)
		if err != nil {
			return fmt.Errorf("record #%d: %w", e.ID, err)
		}
		if x != nil {
			a.count(x, history)
		}
	}
	return c.showPolicies(&a)
}

func (a *policyAnswer) count(x *judged, history bool) {
	a.Before.count(x.Before.Decision)
	a.After.count(x.After.Decision)
	if x.Changed {
		a.Changed++
	}
	if x.Changed || history {
		a.Intents = append(a.Intents, *x)
	}
}

func (n *verdictCounts) count(decision string) {
	switch decision {
	case manifest.DecideAllow:
		n.Allow++
	case manifest.DecideRequireApproval:
		n.RequireApproval++
	default:
		n.Deny++
	}
}

func (n verdictCounts) String() string {
	return fmt.Sprintf("%d allowed, %d denied, %d to be approved", n.Allow, n.Deny, n.RequireApproval)
}

func (c *cli) showPolicies(a *policyAnswer) error {
	if c.output == formJSON {
		return c.object("policy-eval", a, nil)
	}
	err := list(c, "policy-eval", "intents", all(a.Intents), columns[judged]{
		header: table.Row{"key", "cell", "kind", "was", "would be", "why"},
		row: func(x judged) table.Row {
			return table.Row{short(x.Key), x.Cell, x.Kind, x.Before.String(), x.After.String(), x.After.Reason}
		},
		none: "no decision would be another",
	})
	if err != nil || c.output != formTable {
		return err
	}
	c.facts([2]any{"was", a.Before}, [2]any{"would be", a.After}, [2]any{"changed", a.Changed})
	return nil
}

func (v ruling) String() string {
	if len(v.Rules) > 0 {
		return v.Decision + " by " + strings.Join(v.Rules, ", ")
	}
	if v.Code != "" {
		return v.Decision + ": " + v.Code
	}
	return v.Decision
}
