package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

type intentLine struct {
	Key         receipt.Key    `json:"key"`
	Cell        string         `json:"cell"`
	Kind        string         `json:"kind"`
	State       receipt.State  `json:"state"`
	Attempt     uint64         `json:"attempt"`
	StepID      receipt.StepID `json:"step_id"`
	ExternalKey string         `json:"external_key"`
	Params      world.Data     `json:"params"`
	Cap         string         `json:"cap"`
	Decision    string         `json:"decision"`
	Rules       []string       `json:"rules"`
	Reason      string         `json:"reason"`
}

// intentAnswer is an intent with where the journal tells of it.
type intentAnswer struct {
	intentLine
	Tag        string    `json:"tag"`
	Occurrence uint64    `json:"occurrence"`
	Emitted    world.Seq `json:"emitted"`
	Started    world.Seq `json:"started"`  // 0: not yet
	Finished   world.Seq `json:"finished"` // 0: not yet
}

func newIntentCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "intent", Short: "Look at what cells asked of the outside"},
		newIntentListCommand(c), newIntentShowCommand(c))
}

func newIntentListCommand(c *cli) *cobra.Command {
	var state string
	var limit uint64
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List intents in the order in which they were made",
		Example: `  worldctl intent list
  worldctl intent list --state denied -o jsonl`,
		Args: args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if state != "" && !slices.Contains(receipt.States(), receipt.State(state)) {
				return usagef(fmt.Sprintf("states are %v", receipt.States()), "%q is not a state of an intent", state)
			}
			return c.with(func(lw *local.World) error {
				entries := slices.DeleteFunc(ledger(lw), func(e receipt.Entry) bool {
					return state != "" && e.State != receipt.State(state)
				})
				return list(c, "intent-list", "intents", first(each(entries, journal{lw}.intentLine), limit), columns[intentLine]{
					header: table.Row{"key", "cell", "kind", "state", "decision", "rules"},
					row: func(l intentLine) table.Row {
						return table.Row{short(l.Key), l.Cell, l.Kind, l.State, decision(&l), strings.Join(l.Rules, ", ")}
					},
					none: "no such intents",
				})
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only those in `STATE`: open, in_flight, committed, failed or denied")
	cmd.Flags().Uint64Var(&limit, "limit", 0, "only the first `N`")
	return cmd
}

func newIntentShowCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "show KEY",
		Short:   "Show an intent: what was asked, what the gate decided, and where it stands",
		Long:    "Show an intent: what was asked, what the gate decided, and where it stands.\nKEY may be cut short, to no less than 8 digits.",
		Example: "  worldctl intent show 9f86d081884c",
		Args:    args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.with(func(lw *local.World) error {
				e, err := findIntent(lw, args[0])
				if err != nil {
					return err
				}
				line, err := journal{lw}.intentLine(*e)
				if err != nil {
					return err
				}
				answer := intentAnswer{
					intentLine: line, Tag: e.Intent.Tag, Occurrence: e.Intent.Occurrence,
					Emitted: world.Seq(e.Emitted), Started: world.Seq(e.Started), Finished: world.Seq(e.Finished),
				}
				return c.object("intent", answer, func() { c.showIntent(&answer) })
			})
		},
	}
}

func (c *cli) showIntent(a *intentAnswer) {
	params, err := indented(a.Params)
	if err != nil {
		params = err.Error()
	}
	c.facts([2]any{"key", a.Key}, [2]any{"cell", a.Cell}, [2]any{"kind", a.Kind}, [2]any{"state", a.State},
		[2]any{"decision", decision(&a.intentLine)}, [2]any{"rules", strings.Join(a.Rules, ", ")}, [2]any{"capability", a.Cap},
		[2]any{"attempt", a.Attempt}, [2]any{"step", a.StepID}, [2]any{"external key", a.ExternalKey},
		[2]any{"emitted", numbered(a.Emitted)}, [2]any{"started", numbered(a.Started)}, [2]any{"finished", numbered(a.Finished)},
		[2]any{"params", params})
}

func numbered(id world.Seq) string {
	if id == 0 {
		return "not yet"
	}
	return fmt.Sprintf("#%d", id)
}

func decision(l *intentLine) string {
	if l.Reason == "" {
		return l.Decision
	}
	return l.Decision + ": " + l.Reason
}

// intentLine joins what the ledger knows of an intent with the record that
// made it.
func (j journal) intentLine(e receipt.Entry) (intentLine, error) {
	rec, err := j.entry(world.Seq(e.Emitted))
	if err != nil {
		return intentLine{}, err
	}
	line := intentLine{
		Key: e.Intent.Key, Cell: e.Intent.Cell, Kind: e.Intent.Kind, State: e.State, Attempt: e.Attempt,
		StepID: e.Intent.Step, ExternalKey: e.Intent.Key.External(j.lw.Keys().World()), Cap: e.Intent.Cap,
	}
	switch b := rec.body.(type) {
	case *world.IntentEmitted:
		line.Params, line.Decision, line.Rules = b.Params, b.Decision, b.Rules
	case *world.IntentDenied:
		line.Params, line.Decision, line.Rules = b.Params, "deny", b.Rules
		line.Reason = b.Code + ": " + b.Reason
	default:
		return line, fmt.Errorf("record #%d is %s, and the ledger says that it made intent %s", rec.ID, rec.Kind, e.Intent.Key)
	}
	if line.Rules == nil {
		line.Rules = []string{}
	}
	return line, nil
}

// minPrefix is the least number of digits that name an intent.
const minPrefix = 8

// findIntent returns the intent whose key begins with what a person typed.
func findIntent(lw *local.World, prefix string) (*receipt.Entry, error) {
	if len(prefix) < minPrefix || strings.Trim(prefix, "0123456789abcdef") != "" {
		return nil, usagef("worldctl intent list", "%q is not the key of an intent: want at least %d of its hex digits", prefix, minPrefix)
	}
	var found *receipt.Entry
	for _, e := range ledger(lw) {
		if !strings.HasPrefix(e.Intent.Key.String(), prefix) {
			continue
		}
		if found != nil {
			return nil, usagef("type more of its digits", "%q is the beginning of several intents: %s and %s", prefix, found.Intent.Key, e.Intent.Key)
		}
		found = &e
	}
	if found == nil {
		return nil, hinted(fmt.Errorf("%s: %w", prefix, receipt.ErrUnknownIntent), "worldctl intent list")
	}
	return found, nil
}
