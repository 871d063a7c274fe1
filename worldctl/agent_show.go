package worldctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newAgentShowCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "show [NAME]",
		PreRunE: func(*cobra.Command, []string) error { return c.agentWorld(false) },
		RunE: c.onWorld(func(_ context.Context, lw *local.World, args []string) error {
			s, err := findSession(lw, args)
			if err != nil {
				return err
			}
			return list(c, "agent-turns", "turns", conversation(recordsOf(lw), recorder.Name+"/"+s.Name), columns[*agentTurn]{
				line: (*agentTurn).line,
				none: "the session has made no call yet",
			})
		}),
	}
}

// agentTurn is something that was said or done in a session.
type agentTurn struct {
	Record journal.Seq         `json:"record"`
	Key    receipt.Key         `json:"key"`
	Who    string              `json:"who"`  // user, the model, or the tool: SERVER/TOOL of a server
	Says   string              `json:"says"` // the text; of a tool its arguments, as JSON
	Calls  []recorder.ToolCall `json:"calls"`
	State  receipt.State       `json:"state"`
	Result string              `json:"result"` // of a tool
	By     []string            `json:"by"`     // the policies and the people who decided
	Reason string              `json:"reason"`
	Tokens uint64              `json:"tokens"`
	Micros uint64              `json:"micros"`
}

// conversation yields what was said and done in a session's cell. What the user says is in each request, and is told once.
func conversation(j view.Journal, cell string) func(yield func(*agentTurn, error) bool) {
	return func(yield func(*agentTurn, error) bool) {
		last := ""
		for _, e := range j.Ledger() {
			if e.Intent.Cell != cell {
				continue
			}
			turns, err := turnsOf(j, &e, &last)
			for i := range turns {
				if !yield(&turns[i], nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// turnsOf returns what an intent of a session is in a conversation; last is what the user said before it.
func turnsOf(j view.Journal, e *receipt.Entry, last *string) (out []agentTurn, err error) {
	if e.Intent.Kind != recorder.Call {
		in, asked, answer, err := exchangeOf[recorder.ToolRequest, recorder.ToolAnswer](j, e)
		if err != nil || asked.Tool == "" { // another program's
			return nil, err
		}
		t := newTurn(e, in, asked.Name())
		text, err := canon.ToJSON(asked.Arguments)
		t.Says, t.Result = string(text), answer.Says()
		return []agentTurn{t}, err
	}
	in, asked, answer, err := exchangeOf[recorder.Request, recorder.Answer](j, e)
	if err != nil || asked.Model == "" { // it asks no model
		return nil, err
	}
	t := newTurn(e, in, asked.Model)
	if asked.Prompt != *last {
		*last = asked.Prompt
		out = append(out, agentTurn{Record: t.Record, Key: t.Key, Who: "user", Says: asked.Prompt, Calls: []recorder.ToolCall{}, By: []string{}})
	}
	t.Says, t.Tokens = answer.Text, answer.Usage.Believable()
	t.Calls = append(t.Calls, answer.Calls...)
	return append(out, t), nil
}

// newTurn returns what an intent says of itself.
func newTurn(e *receipt.Entry, in *view.Intent, who string) agentTurn {
	t := agentTurn{
		Record: journal.Seq(e.Emitted), Key: in.Key, Who: who, State: in.State, By: in.Rules, Reason: in.Reason, Calls: []recorder.ToolCall{}, Micros: in.Cost.Micros,
	}
	for _, d := range in.Decisions {
		t.By = append(t.By, d.How+" by "+d.Actor)
	}
	return t
}

// maxSaid is how many letters of a text a line of a conversation has.
const maxSaid = 200

// line is a turn as people read it.
func (t *agentTurn) line() string {
	var out strings.Builder
	fmt.Fprintf(&out, "#%d %s", t.Record, t.Who)
	switch {
	case t.State == "":
	case t.State != receipt.StateCommitted:
		fmt.Fprintf(&out, " [%s: %s]", t.State, t.Reason)
	case t.Tokens > 0:
		fmt.Fprintf(&out, " [%s, %d micros; %s]", view.Number(t.Tokens, "token"), t.Micros, strings.Join(t.By, ", "))
	default:
		fmt.Fprintf(&out, " [%s]", strings.Join(t.By, ", "))
	}
	fmt.Fprintf(&out, ": %s", brief(t.Says, maxSaid))
	for _, use := range t.Calls {
		fmt.Fprintf(&out, "\n    → %s %s", use.Name, brief(use.Input, maxSaid))
	}
	if t.Result != "" {
		fmt.Fprintf(&out, "\n    = %s", brief(t.Result, maxSaid))
	}
	return out.String()
}
