package worldctl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
)

// shownBy returns what show has the program print.
func shownBy(show func(c *cli)) string {
	var out bytes.Buffer
	c := &cli{stdout: bufio.NewWriter(&out), output: formTable}
	show(c)
	_ = c.stdout.Flush()
	return out.String()
}

func TestReportTellsTheVerdictFirst(t *testing.T) {
	data, err := os.ReadFile("../show/view/testdata/report.json")
	require.NoError(t, err)
	sample := new(governance.Report)
	require.NoError(t, json.Unmarshal(data, sample))
	text := shownBy(func(c *cli) { c.showShadow("p1", sample, nil) })
	sections, facts, _ := strings.Cut(text, "┌")
	require.Equal(t, `p1 would have changed 1,216 decisions and 1 cell, asked for 1 effect more and 1 effect less, emitted 1 event more and 2 events less, failed in 2 steps, mended 1 step, refused 1 input, waited for 1 answer that nothing recorded gives, left out 2 decisions of persons, and cost 10 calls, 130 tokens instead of 12 calls, 100 tokens, in 2,340 events

decisions changed: 1,216
  times  was   would be  kind         by       record  cell      params
  16     deny  allow     tool.refund  refunds  #50     agent/c0  {"amount":60}
  … and 1,200 more

cells changed: 1
  cell       is                      steps   where its state differs
  agent/ada  changed, halted, waits  4 -> 3  /a: 1 -> 2
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
	hash, err := sample.Hash()
	require.NoError(t, err)
	require.Contains(t, facts, hash.String())

	full := shownBy(func(c *cli) {
		c.verbose = true
		c.showShadow("p1", sample, nil)
	})
	require.Contains(t, full, "\n  1      deny  allow     tool.refund  refunds  #65     agent/c15  {\"amount\":60}\n")
	require.Contains(t, full, "/d: 1 -> 2")
}

// TestReportHidesNothingFromATerminal has data hold what moves a cursor.
func TestReportHidesNothingFromATerminal(t *testing.T) {
	const evil = "a\x1b[2Kb\r\nc\u202e\u009b"
	evilReport := &governance.Report{
		Snapshot: evil, Divergence: &governance.Divergence{Cell: evil, Recorded: evil, Computed: evil}, Counts: governance.Counts{Decisions: 1},
		Decisions: []governance.DecisionDifference{{Cell: evil, Kind: evil, Params: evil, Was: evil, Is: evil, Rules: []string{evil}}},
	}
	text := shownBy(func(c *cli) { c.showShadow(evil, evilReport, nil) })
	for _, r := range "\x1b\r\u202e\u009b" {
		require.NotContains(t, text, string(r))
	}
	require.Contains(t, text, "a<U+001B>[2Kb<U+000D><U+000A>c<U+202E><U+009B>")
}
