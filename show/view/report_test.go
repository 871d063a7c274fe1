package view

import (
	"bytes"
	"encoding/json"
	"html"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/world"
)

// sample is a report with something of everything.
func sample(t *testing.T) *governance.Report {
	t.Helper()
	text, err := os.ReadFile("testdata/report.json")
	require.NoError(t, err)
	r := new(governance.Report)
	require.NoError(t, json.Unmarshal(text, r))
	return r
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
		require.Equal(t, want, Headline("p1", &r, nil))
	}
	require.Equal(t, "p1 would have changed nothing in 1 event", Headline("p1", &governance.Report{Events: 1}, nil))
	require.Equal(t, "p1 would have changed nothing in 0 events", Headline("p1", &governance.Report{}, nil))
}

func TestHeadlineTellsWhatApplyMigrates(t *testing.T) {
	same := &governance.Report{Events: 3}
	for want, m := range map[string]*Migration{
		"p1 would have changed nothing in 3 events":                                        {},
		"p1 would have changed nothing in 3 events; applied now, it migrates 1 cell":       {Cells: 1},
		"p1 would have changed nothing in 3 events; applied now, it would be refused: why": {Error: "why"},

		"p1 would have changed nothing in 3 events; applied now, it changes the due time of 2 timers, as each keeps its tick": {Moved: 2},
	} {
		require.Equal(t, want, Headline("p1", same, m))
		a, err := ShadowOf(1, 9, same, m)
		require.NoError(t, err)
		require.Equal(t, !m.any(), a.Same)
	}
}

// TestFirstOtherSaysWhoseNumbersTheSecondHas: a record of the shadow has another number than it would have in the
// history.
func TestFirstOtherSaysWhoseNumbersTheSecondHas(t *testing.T) {
	record, cell, recorded, computed := FirstOther(&governance.Divergence{Record: 12, Cell: "desk/a", Recorded: `{"id":12}`, Computed: `{"id":7}`})
	require.Equal(t, [4]string{"#12", " of desk/a", `{"id":12}`, `{"id":7} of the shadow`}, [4]string{record, cell, recorded, computed})
	_, _, _, computed = FirstOther(&governance.Divergence{Record: 12, Recorded: `{"id":12}`})
	require.Equal(t, "nothing", computed)
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
	r := sample(t)
	r.Counts = governance.Counts{Decisions: 18, Failed: 1}
	r.Divergence = nil
	WriteMarkdown(&out, "p1", r, nil, 20, "worldctl approve p1 --key FILE")
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
		require.Equal(rt, Visible(evil, ""), readSpan(rt, span))
		require.Equal(rt, Visible(evil, ""), readSpan(rt, code(evil)))

		var out bytes.Buffer
		WriteMarkdown(&out, evil, evilReport(evil), &Migration{Cells: 1, First: []world.Takeover{{Cell: evil, State: []governance.Change{{Path: evil, Was: evil, Is: evil}}}}, Error: evil}, 20, evil)
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
	for _, r := range []*governance.Report{sample(t), {}} {
		shadow, err := ShadowOf(1, 9, r, new(Migration))
		require.NoError(t, err)
		text, err := json.Marshal(shadow)
		require.NoError(t, err)
		var answer map[string]any
		require.NoError(t, json.Unmarshal(text, &answer))
		require.Equal(t, []string{
			"all", "base", "candidate", "cells_changed", "cost_delta", "cost_is", "cost_was", "counts", "decisions_changed", "diverged",
			"events", "events_gone", "events_new", "failed", "first_divergence", "from", "intents_gone", "intents_new", "kernel", "mended", "migration", "no_op",
			"proposal", "record", "refused", "report_hash", "root", "snapshot", "to", "unknown", "world",
		}, slices.Sorted(maps.Keys(answer)))
		require.Equal(t, r.NoOp(), answer["no_op"])
		require.EqualValues(t, 9, answer["record"])
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

// A rule that allows, and cannot be evaluated, denies: what is shown must not look as if
// it had been meant to.
func TestRuleThatCouldNotBeEvaluatedIsShownAsThat(t *testing.T) {
	for _, x := range []struct {
		Ruling
		said, by string
	}{
		{Ruling{"deny", "policy_error", []string{"small gifts"}}, "deny by small gifts: policy_error", "small gifts: policy_error"},
		{Ruling{"deny", "policy_denied", []string{"no gifts"}}, "deny by no gifts", "no gifts"},
		{Ruling{"deny", "budget_exceeded", nil}, "deny: budget_exceeded", "budget_exceeded"},
		{Ruling{"allow", "", []string{"small gifts"}}, "allow by small gifts", "small gifts"},
	} {
		require.Equal(t, x.said, x.String())
		_, row := decisionRow(&governance.DecisionDifference{Is: x.Decision, Code: x.Code, Rules: x.Rules})
		require.Contains(t, row, x.by)
	}
}
