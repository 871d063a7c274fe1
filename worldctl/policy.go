package worldctl

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/view"
)

// policyAnswer compares what was decided with what a world.yaml would decide.
type policyAnswer struct {
	File    string            `json:"file"`
	From    uint64            `json:"from"`    // the record with which the history begins
	Decided int               `json:"decided"` // intents in it
	Changed uint64            `json:"changed"` // that would be decided otherwise
	Intents []judged          `json:"intents"` // those, or the first governance.MaxListed
	Counts  governance.Counts `json:"counts"`  // of all that would be otherwise
}

// judged is one intent: what was decided when it was made, and what a world.yaml
// would decide.
type judged struct {
	Key    receipt.Key   `json:"key"`
	Cell   string        `json:"cell"`
	Kind   string        `json:"kind"`
	Params string        `json:"params"` // the beginning of them, as JSON
	Record journal.Seq   `json:"record"`
	Time   manifest.Tick `json:"time"`
	Before ruling        `json:"before"`
	After  ruling        `json:"after"`
}

// ruling is what a gate says.
type ruling struct {
	Decision string   `json:"decision"` // allow, deny or require_approval
	Code     string   `json:"code"`     // of a denial
	Rules    []string `json:"rules"`
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
about the intents that the world has recorded? They are put in the place of those in
force, with the grants and budgets of the reducers and the classes and costs of the
effects, and the world lives through its history again, as shadow has it do: what is
decided otherwise has its consequences, and budgets are drawn on as they were. Nothing
is changed.

The history is what came since the manifest in force was applied; --history makes it
all there is.`,
		Example: `  worldctl policy eval
  worldctl policy eval --file stricter.yaml --history -o jsonl`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(func(lw *local.World) error {
				if file == "" {
					file = filepath.Join(lw.Dir(), local.ManifestFile)
				}
				return c.evalPolicies(cmd.Context(), lw, file, history)
			})
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the world.yaml to try: `FILE`; the world's own if not given")
	cmd.Flags().BoolVar(&history, "history", false, "begin with the first record, whatever was in force then")
	return cmd
}

func (c *cli) evalPolicies(ctx context.Context, lw *local.World, file string, history bool) error {
	loaded, err := source.Load(c.path(file))
	if err != nil {
		return toCorrect(err, file)
	}
	next, err := governedBy(inForce(lw), loaded.Manifest)
	if err != nil {
		return err
	}
	var s shadowing
	if history {
		s.last = math.MaxInt64 // so many records follow no snapshot
	}
	cfg, stop := c.shadowConfig(lw, &s)
	r, err := lw.Rehearse(ctx, next, nil, cfg)
	if stop(); err != nil {
		return err
	}
	a := policyAnswer{
		File: file, From: r.From, Decided: decidedSince(lw, r.From), Changed: r.Counts.Decisions, Intents: []judged{}, Counts: r.Counts,
	}
	for i := range r.Decisions {
		x, err := recordsOf(lw).judged(&r.Decisions[i])
		if err != nil {
			return err
		}
		a.Intents = append(a.Intents, x)
	}
	return c.showPolicies(&a)
}

// governedBy returns a manifest with what another one says about what may be done.
// What only one of them declares is as it was.
func governedBy(m, by *manifest.Manifest) (*manifest.Manifest, error) {
	next, err := cloned(m)
	if err != nil {
		return nil, err
	}
	next.Policies, next.Caps, next.Budget = by.Policies, by.Caps, by.Budget
	for name, r := range next.Reducers {
		if other, ok := by.Reducers[name]; ok {
			r.Grants, r.Budget = other.Grants, other.Budget
		} else {
			r.Grants = slices.DeleteFunc(r.Grants, func(name string) bool { _, ok := by.Caps[name]; return !ok })
		}
		next.Reducers[name] = r
	}
	for kind, e := range next.Effects {
		if other, ok := by.Effects[kind]; ok {
			e.Class, e.MaxCost = other.Class, other.MaxCost
		}
		next.Effects[kind] = e
	}
	return next, nil
}

// cloned returns a manifest that can be changed.
func cloned(m *manifest.Manifest) (*manifest.Manifest, error) {
	encoded, err := m.Encode()
	if err != nil {
		return nil, err
	}
	return manifest.Decode(encoded)
}

// decidedSince returns how many intents of the history were decided about since a
// record.
func decidedSince(lw *local.World, record uint64) int {
	n := 0
	for _, e := range recordsOf(lw).Ledger() {
		if !e.Abandoned && slices.ContainsFunc(e.Asked, func(at uint64) bool { return at >= record }) {
			n++
		}
	}
	return n
}

// judged reads what was decided about an intent then.
func (j records) judged(d *governance.DecisionDifference) (judged, error) {
	e, err := j.Entry(journal.Seq(d.Record))
	if err != nil {
		return judged{}, err
	}
	x := judged{
		Cell: d.Cell, Kind: d.Kind, Params: d.Params, Record: e.ID, Time: e.Time, Before: ruling{Decision: d.Was},
		After: ruling{Decision: d.Is, Code: d.Code, Rules: d.Rules},
	}
	x.Key, _ = e.Intent()
	switch b := e.Body.(type) {
	case *journal.IntentEmitted:
		x.Before.Rules = b.Rules
	case *journal.IntentParked:
		x.Before.Rules = b.Rules
	case *journal.IntentDenied:
		x.Before.Code, x.Before.Rules = b.Code, b.Rules
	}
	for _, v := range []*ruling{&x.Before, &x.After} {
		if v.Rules == nil {
			v.Rules = []string{}
		}
	}
	return x, nil
}

func (c *cli) showPolicies(a *policyAnswer) error {
	if c.output == formJSON {
		return c.object("policy-eval", a, nil)
	}
	err := list(c, "policy-eval", "intents", all(a.Intents), columns[judged]{
		header: table.Row{"key", "cell", "kind", "params", "was", "would be"},
		row: func(x judged) table.Row {
			return table.Row{short(x.Key), x.Cell, x.Kind, view.Brief(x.Params), x.Before.String(), x.After.String()}
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
		c.note("it would not have been the only difference: worldctl shadow %s tells what the whole file comes to", a.File)
	}
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
