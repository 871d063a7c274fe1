package worldctl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/receipt"
)

// sample is a report with something of everything.
func sample() *governance.Report {
	r := &governance.Report{
		World: "desk-1", Snapshot: "noon", From: 12, To: 4711, Events: 2340,
		Counts: governance.Counts{
			Cells: 1, EventsNew: 1, EventsGone: 2, IntentsNew: 1, IntentsGone: 1, Decisions: 1216, Failed: 2, Mended: 1, Refused: 1,
			Unknown: 1, LeftOut: 2,
		},
		Divergence: &governance.Divergence{Record: 31, Cell: "agent/ada", Recorded: `{"id":31}`},
		Cells: []governance.CellDifference{{
			Cell: "agent/ada", What: "changed", StepsWas: 4, StepsIs: 3, ParkedIs: true, Unknown: true, More: 7,
			State: []governance.Change{
				{Path: "/a", Was: "1", Is: "2"}, {Path: "/b", Is: `"x"`}, {Path: "", Was: "[]"}, {Path: "/d", Was: "1", Is: "2"},
			},
		}},
		EventsNew:   []governance.EventDifference{{Cell: "agent/ada", Name: "ticket.logged", Data: "1", Record: 40}},
		EventsGone:  []governance.EventDifference{{Cell: "agent/ada", Name: "ticket.logged", To: []string{"log/main", "log/b"}, Data: "2", Record: 41}},
		IntentsNew:  []governance.IntentDifference{{Cell: "agent/ada", Kind: "tool.refund", Params: "{}", Decision: "allow", Record: 42}},
		IntentsGone: []governance.IntentDifference{{Cell: "agent/eve", Kind: "tool.lookup", Params: "{}", Decision: "deny", Record: 43}},
		Failed:      []governance.Failure{{Cell: "agent/ada", Step: 3, Error: "no | such `key`", Event: 44, Record: 45}},
		Mended:      []governance.Failure{{Cell: "agent/eve", Step: 4, Error: "thirteen", Event: 46, Record: 47}},
		Refused:     []governance.Refusal{{Record: 48, Error: "no such event"}},
		Unknown:     []governance.Unknown{{Cell: "agent/ada", Kind: "tool.refund", Params: "{}", Why: "the history has no answer to it"}},
		CostWas:     receipt.Cost{Calls: 12, Tokens: 100}, CostIs: receipt.Cost{Calls: 10, Tokens: 130},
	}
	for i := range 16 {
		r.Decisions = append(r.Decisions, governance.DecisionDifference{
			Cell: fmt.Sprintf("agent/c%d", i), Kind: "tool.refund", Params: `{"amount":60}`, Was: "deny", Is: "allow",
			Rules: []string{"refunds"}, Record: uint64(50 + i),
		})
	}
	return r
}

// shownBy returns what show has the program print.
func shownBy(show func(c *cli)) string {
	var out bytes.Buffer
	c := &cli{stdout: bufio.NewWriter(&out), output: formTable}
	show(c)
	_ = c.stdout.Flush()
	return out.String()
}

func TestReportTellsTheVerdictFirst(t *testing.T) {
	text := shownBy(func(c *cli) { c.showShadow("p1", sample()) })
	sections, facts, _ := strings.Cut(text, "┌")
	require.Equal(t, `p1 would have changed 1,216 decisions and 1 cell, asked for 1 effect more and 1 effect less, emitted 1 event more and 2 events less, failed in 2 steps, mended 1 step, refused 1 input, waited for 1 answer that nothing recorded gives, left out 2 decisions of persons, and cost 10 calls, 130 tokens instead of 12 calls, 100 tokens, in 2,340 events

decisions changed: 1,216
  times  was   would be  kind         by       record  cell      params
  16     deny  allow     tool.refund  refunds  #50     agent/c0  {"amount":60}
  … and 1,200 more

cells changed: 1
  cell       is                      steps   where its state differs
  agent/ada  changed, parked, waits  4 -> 3  /a: 1 -> 2
                                             /b: nothing -> "x"
                                             (all): [] -> nothing
                                             … and 8 more places

intents new: 1
  times  kind         decision  record  cell       params
  1      tool.refund  allow     #42     agent/ada  {}

intents gone: 1
  times  kind         decision  record  cell       params
  1      tool.lookup  deny      #43     agent/eve  {}

events new: 1
  times  event          reaches  record  from       data
  1      ticket.logged  nobody   #40     agent/ada  1

events gone: 2
  times  event          reaches          record  from       data
  1      ticket.logged  log/main, log/b  #41     agent/ada  2
  … and 1 more

steps that fail: 2
  times  record  cell       step  on   error
  1      #45     agent/ada  3     #44  no | such `+"`key`"+`
  … and 1 more

steps that fail no more: 1
  times  record  cell       step  on   error
  1      #47     agent/eve  4     #46  thirteen

inputs refused: 1
  times  record  error
  1      #48     no such event

unknown beyond here: 1
  times  kind         why                              cell       params
  1      tool.refund  the history has no answer to it  agent/ada  {}

the first record that would be another is #31 of agent/ada
  recorded  {"id":31}
  now       nothing

`, sections)
	for _, fact := range []string{
		"from snapshot noon, #12, to #4711; 2,340 events", "12 calls, 100 tokens -> 10 calls, 130 tokens",
		"2 decisions of persons, where there was nothing to decide",
	} {
		require.Contains(t, facts, fact)
	}
	hash, err := sample().Hash()
	require.NoError(t, err)
	require.Contains(t, facts, hash.String())

	full := shownBy(func(c *cli) {
		c.verbose = true
		c.showShadow("p1", sample())
	})
	require.Contains(t, full, "\n  1      deny  allow     tool.refund  refunds  #65     agent/c15  {\"amount\":60}\n")
	require.Contains(t, full, "/d: 1 -> 2")
}

func TestHeadlineSaysWhatThereIsAndNothingElse(t *testing.T) {
	for want, r := range map[string]governance.Report{
		"p1 would have changed nothing in 2,340 events":                    {},
		"p1 would have changed 16 decisions in 2,340 events; nothing else": {Counts: governance.Counts{Decisions: 16}},
		"p1 would have changed 1 cell, and emitted 1,000,000 events less, in 2,340 events": {
			Counts: governance.Counts{Cells: 1, EventsGone: 1_000_000},
		},
		"p1 would have come to the same in 2,340 events, by other records": {Divergence: new(governance.Divergence)},
	} {
		r.Events = 2340
		require.Equal(t, want, headline("p1", &r))
	}
	require.Equal(t, "p1 would have changed nothing in 1 event", headline("p1", &governance.Report{Events: 1}))
	require.Equal(t, "p1 would have changed nothing in 0 events", headline("p1", &governance.Report{}))
}

// TestReportHidesNothingFromATerminal has data hold what moves a cursor.
func TestReportHidesNothingFromATerminal(t *testing.T) {
	const evil = "a\x1b[2Kb\r\nc\u202e\u009b"
	text := shownBy(func(c *cli) { c.showShadow(evil, evilReport(evil)) })
	for _, r := range "\x1b\r\u202e\u009b" {
		require.NotContains(t, text, string(r))
	}
	require.Contains(t, text, "a<U+001B>[2Kb<U+000D><U+000A>c<U+202E><U+009B>")
}

// evilReport has all its texts, from whomever they come, say the same.
func evilReport(evil string) *governance.Report {
	return &governance.Report{
		Snapshot: evil, Divergence: &governance.Divergence{Cell: evil, Recorded: evil, Computed: evil},
		Counts: governance.Counts{
			Cells: 1, EventsNew: 1, EventsGone: 1, IntentsNew: 1, IntentsGone: 1, Decisions: 1, Failed: 1, Mended: 1, Refused: 1, Unknown: 1,
		},
		Cells:       []governance.CellDifference{{Cell: evil, What: "changed", State: []governance.Change{{Path: evil, Was: evil, Is: evil}}}},
		EventsNew:   []governance.EventDifference{{Cell: evil, Name: evil, To: []string{evil}, Data: evil}},
		EventsGone:  []governance.EventDifference{{Cell: evil, Name: evil, To: []string{evil}, Data: evil}},
		IntentsNew:  []governance.IntentDifference{{Cell: evil, Kind: evil, Params: evil, Decision: evil}},
		IntentsGone: []governance.IntentDifference{{Cell: evil, Kind: evil, Params: evil, Decision: evil}},
		Decisions:   []governance.DecisionDifference{{Cell: evil, Kind: evil, Params: evil, Was: evil, Is: evil, Rules: []string{evil}}},
		Failed:      []governance.Failure{{Cell: evil, Error: evil}}, Mended: []governance.Failure{{Cell: evil, Error: evil}},
		Refused: []governance.Refusal{{Error: evil}},
		Unknown: []governance.Unknown{{Cell: evil, Kind: evil, Params: evil, Why: evil}},
	}
}

func TestMarkdownIsAReportForAPullRequest(t *testing.T) {
	var out bytes.Buffer
	r := sample()
	r.Counts = governance.Counts{Decisions: 18, Failed: 1}
	r.Divergence = nil
	writeMarkdown(&out, "p1", r, markdownLines, "worldctl approve p1 --key FILE")
	body, facts, found := strings.Cut(out.String(), "|  |  |\n")
	require.True(t, found)
	require.Equal(t, "### `p1` would have changed 18 decisions, failed in 1 step, and cost 10 calls, 130 tokens instead of 12 calls, 100 tokens, in 2,340 events\n"+`
| what | how many |
|---|--:|
| decisions changed | 18 |
| cells changed | 0 |
| intents new | 0 |
| intents gone | 0 |
| events new | 0 |
| events gone | 0 |
| steps that fail | 1 |
| steps that fail no more | 0 |
| inputs refused | 0 |
| unknown beyond here | 0 |

<details open><summary>decisions changed: 18</summary>

| times | was | would be | kind | by | record | cell | params |
|---|---|---|---|---|---|---|---|
`+"| `16` | `deny` | `allow` | `tool.refund` | `refunds` | `#50` | `agent/c0` | `{\"amount\":60}` |\n"+`
… and 2 more

</details>

<details><summary>steps that fail: 1</summary>

| times | record | cell | step | on | error |
|---|---|---|---|---|---|
`+"| `1` | `#45` | `agent/ada` | `3` | `#44` | <code>no &#124; such &#96;key&#96;</code> |\n"+`
</details>

`, body)
	require.True(t, strings.HasSuffix(facts, "\nNext: `worldctl approve p1 --key FILE`\n"), facts)
	hash, err := r.Hash()
	require.NoError(t, err)
	require.Contains(t, facts, "| `report` | `"+hash.String()+"` |\n")
}

// TestMarkdownHoldsWhateverData has texts of all kinds in all places: every line of
// a table has its columns, and says what the data says.
func TestMarkdownHoldsWhateverData(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.OneOf(rapid.SampledFrom([]string{
			"|", "`", "``", "\\", "\n", "\r\n", "</details>", "<b>", "&#124;", "@ann", "#12", "**", "~", " ", "[x](y)", "\x00",
		}), rapid.String())
		evil := "x" + strings.Join(rapid.SliceOfN(parts, 0, 5).Draw(rt, "text"), "")
		evil = string([]rune(evil)[:min(60, len([]rune(evil)))])

		span := codeSpan(evil)
		require.Equal(rt, visible(evil, ""), readSpan(rt, span))
		require.Equal(rt, visible(evil, ""), readSpan(rt, code(evil)))

		var out bytes.Buffer
		writeMarkdown(&out, evil, evilReport(evil), markdownLines, evil)
		columns := 0
		for line := range strings.SplitSeq(out.String(), "\n") {
			switch {
			case !strings.HasPrefix(line, "|"):
				columns = 0
				known := line == "" || slices.ContainsFunc([]string{"### ", "<details", "</details>", "Next: "}, func(begin string) bool {
					return strings.HasPrefix(line, begin)
				})
				require.True(rt, known, line)
			case columns == 0:
				columns = strings.Count(line, "|")
			default:
				require.Equal(rt, columns, strings.Count(line, "|"), line)
			}
		}
		begun := strings.Count(out.String(), "\n<details")
		require.Equal(rt, begun, strings.Count(out.String(), "\n</details>\n"))
	})
}

// readSpan reads code in Markdown as CommonMark does: a span ends with the next
// backtick, and in HTML what is escaped is no mark.
func readSpan(rt *rapid.T, span string) string {
	if inner, ok := strings.CutPrefix(span, "<code>"); ok {
		inner, ok = strings.CutSuffix(inner, "</code>")
		require.True(rt, ok)
		require.NotRegexp(rt, "[<>|`*_~\\[\\]\\\\@\n]", inner)
		return html.UnescapeString(inner)
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(span, "`"), "`")
	require.Equal(rt, "`"+inner+"`", span)
	require.NotRegexp(rt, "[|`\n]|^ | $", inner)
	return inner
}

func TestShadowJSONKeepsItsKeys(t *testing.T) {
	for _, r := range []*governance.Report{sample(), {}} {
		var out bytes.Buffer
		c := &cli{stdout: bufio.NewWriter(&out), stderr: new(bytes.Buffer), output: formJSON}
		name := "p1"
		err := c.showShadowAnswer(&shadowAnswer{Proposal: &name, Report: r}, formatText)
		if r.NoOp() {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, errDifferent)
		}
		require.NoError(t, c.stdout.Flush())
		var answer map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &answer))
		require.Equal(t, []string{
			"all", "base", "candidate", "cells_changed", "cost_delta", "cost_is", "cost_was", "counts", "decisions_changed", "diverged",
			"events", "events_gone", "events_new", "failed", "first_divergence", "from", "intents_gone", "intents_new", "kernel", "mended", "no_op",
			"proposal", "refused", "report_hash", "root", "schema", "snapshot", "to", "unknown", "world",
		}, slices.Sorted(maps.Keys(answer)))
		require.Equal(t, "worldctl/shadow/v1", answer["schema"])
		require.Equal(t, r.NoOp(), answer["no_op"])
		require.Equal(t, r.Divergence != nil, answer["diverged"])
		require.IsType(t, []any{}, answer["cells_changed"], "none is an empty list")
		hash, err := r.Hash()
		require.NoError(t, err)
		require.Equal(t, hash.String(), answer["report_hash"])
		if !r.NoOp() {
			require.Equal(t, map[string]any{"calls": -2.0, "tokens": 30.0, "bytes": 0.0, "micros": 0.0}, answer["cost_delta"])
		}
	}
}
