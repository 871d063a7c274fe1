package worldctl

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newAgentListCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		PreRunE: func(*cobra.Command, []string) error { return c.agentWorld(false) },
		RunE: c.onWorld(func(_ context.Context, lw *local.World, _ []string) error {
			all, err := sessions(lw)
			if err != nil {
				return err
			}
			for _, e := range recordsOf(lw).Ledger() {
				of := slices.IndexFunc(all, func(s session) bool { return e.Intent.Cell == recorder.Name+"/"+s.Name })
				if of >= 0 && e.State.AwaitsPerson() {
					all[of].Waits = append(all[of].Waits, e.Intent.Key)
				}
			}
			return list(c, "agent-list", "sessions", allItems(all), columns[session]{
				header: table.Row{"session", "starts", "state", "calls", "tools", "served", "denied", "failed", "tokens", "micros", "command"},
				row: func(s session) table.Row {
					return table.Row{s.Name, s.Incarnation, s.state(), s.Answered, s.Ran, s.Served, s.Denied, s.Failed, s.Tokens, s.Micros, strings.Join(s.Command, " ")}
				},
				none: "no agent has run in this world yet",
			})
		}),
	}
}

// state says in a few words how a session stands, and what a person has to decide about first.
func (s *session) state() string {
	state := "running, or killed"
	if !s.Running {
		state = endedBy(int(s.Code))
	}
	if len(s.Waits) == 0 {
		return state
	}
	waits := "waits for a person: " + view.Short(s.Waits[0])
	if !s.Running && s.Code == 0 { // it ended to wait
		return waits
	}
	return state + ", " + waits
}

// maxCell is how many letters of a text a row of a list has.
const maxCell = 60

// agentCall is a model call of a session, as a list has it.
type agentCall struct {
	Call   int            `json:"call"` // from 1, as agent fork --at has it
	Key    receipt.Key    `json:"key"`
	State  receipt.State  `json:"state"`
	Model  string         `json:"model"`
	Prompt string         `json:"prompt"`
	Answer string         `json:"answer"`
	Tools  []string       `json:"tools"`
	Usage  recorder.Usage `json:"usage"`
	Cost   receipt.Cost   `json:"cost"`
	Reason string         `json:"reason"`
}

func newAgentCallsCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "calls [NAME]",
		PreRunE: func(*cobra.Command, []string) error { return c.agentWorld(false) },
		RunE: c.onWorld(func(_ context.Context, lw *local.World, args []string) error {
			s, err := findSession(lw, args)
			if err != nil {
				return err
			}
			j, n := recordsOf(lw), 0
			return list(c, "agent-calls", "calls", each(modelCalls(j, s.Name), func(e receipt.Entry) (agentCall, error) {
				n++
				return callOf(j, n, &e)
			}), columns[agentCall]{
				header: table.Row{"call", "key", "state", "model", "tokens", "micros", "asked", "answered"},
				row: func(a agentCall) table.Row {
					said := a.Answer
					if len(a.Tools) > 0 {
						said = strings.TrimSpace(said + " → " + strings.Join(a.Tools, ", "))
					}
					return table.Row{
						a.Call, view.Short(a.Key), a.State, a.Model, strconv.FormatUint(a.Usage.Tokens(), 10), a.Cost.Micros,
						brief(a.Prompt, maxCell), brief(said+a.Reason, maxCell),
					}
				},
				none: "the session has made no model call yet",
			})
		}),
	}
}

// brief cuts a text for a line, to so many letters.
func brief(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}

// modelCalls returns the intents of a session's model calls, in order.
func modelCalls(j view.Journal, session string) (calls []receipt.Entry) {
	for _, e := range j.Ledger() {
		if e.Intent.Kind == recorder.Call && e.Intent.Cell == recorder.Name+"/"+session {
			calls = append(calls, e)
		}
	}
	return calls
}

func callOf(j view.Journal, n int, e *receipt.Entry) (a agentCall, err error) {
	in, asked, answer, err := exchangeOf[recorder.Request, recorder.Answer](j, e)
	if err != nil {
		return a, err
	}
	a = agentCall{
		Call: n, Key: in.Key, State: in.State, Cost: in.Cost, Reason: in.Reason, Model: asked.Model, Prompt: asked.Prompt, Answer: answer.Text, Usage: answer.Usage,
	}
	for _, t := range answer.Calls {
		a.Tools = append(a.Tools, t.Name)
	}
	return a, nil
}

// exchangeOf returns an intent of a session with its params and what came of it. What is not there, or another program's, is empty.
func exchangeOf[Q, A any](j view.Journal, e *receipt.Entry) (in *view.Intent, asked Q, answer A, err error) {
	if in, err = j.Intent(e); err != nil {
		return nil, asked, answer, err
	}
	_ = canon.UnmarshalTrusted(in.Params, &asked)
	found, err := j.AnswerTo(e, 0)
	if err == nil && found != nil {
		_ = canon.UnmarshalTrusted(found.Payload, &answer)
	}
	return in, asked, answer, err
}
