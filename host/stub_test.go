package host_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/receipt"
)

func TestAnswersPreferTheLineWithParams(t *testing.T) {
	var s setup
	const table = `{"kind": "look", "payload": "any"}
{"kind": "look", "params": {"id": 3}, "payload": "three", "status": "error"}
{"kind": "buy", "params": null, "payload": "null"}
{"kind": "buy", "params": 1, "payload": "busy", "status": "error", "outcome": "retryable_failure"}
`
	s.file(t, "look", "stub", "answers", "table.jsonl", table)
	s.file(t, "buy", "stub", "answers", "table.jsonl", table)
	h := s.open(t)
	for _, c := range []struct {
		kind, params string
		status       receipt.Status
		payload      string
	}{
		{"look", `{"id": 3}`, receipt.StatusError, `"three"`},
		{"look", `{"id": 4}`, receipt.StatusOK, `"any"`},
		{"look", `null`, receipt.StatusOK, `"any"`},
		{"buy", `null`, receipt.StatusOK, `"null"`},
	} {
		for n := range uint64(2) {
			r, err := ask(t, h, permit(t, "agent/1", c.kind, c.params, n))
			require.NoError(t, err)
			require.Equal(t, c.status, r.Status)
			require.Equal(t, data(t, c.payload), r.Payload)
		}
	}
	r, err := ask(t, h, permit(t, "agent/1", "buy", `1`, 0))
	require.NoError(t, err)
	require.Equal(t, receipt.OutcomeRetryableFailure, r.Class)
	_, err = ask(t, h, permit(t, "agent/1", "buy", `{"id": 3}`, 0))
	var miss *host.MissError
	require.ErrorAs(t, err, &miss)
	require.Contains(t, miss.Nearest, "line 4")
	require.Equal(t, "table.jsonl", miss.File)
}

func TestBadAnswerLineIsNamed(t *testing.T) {
	for name, bad := range map[string]string{
		"cell is no key":  `{"cell": "agent/1", "kind": "buy", "payload": 1}`,
		"no kind":         `{"payload": 1}`,
		"any twice":       `{"kind": "look", "payload": 1}`,
		"same ask twice":  `{"kind": "look", "params": 1, "payload": 1}`,
		"no payload":      `{"kind": "buy"}`,
		"number too long": `{"kind": "buy", "payload": 1e999}`,
	} {
		var s setup
		s.file(t, "look", "stub", "answers", "table.jsonl",
			`{"kind": "look", "payload": 1}`+"\n"+`{"kind": "look", "params": 1, "payload": 1}`+"\n"+bad)
		_, err := s.new(t)
		require.ErrorContains(t, err, "table.jsonl:3: ", name)
	}
}

func TestStubWantsAnswersOrScript(t *testing.T) {
	var s setup
	s.file(t, "look", "stub", "answers", "table.jsonl", "")
	for _, config := range []string{`{}`, `{"answers": "a", "script": "b"}`, `{"answer": "a"}`} {
		effect := s.effects["look"]
		effect.Config = data(t, config)
		s.effects["look"] = effect
		_, err := s.new(t)
		require.Error(t, err, config)
	}
}

func script(t testing.TB, source string) *setup {
	t.Helper()
	s := new(setup)
	s.file(t, "look", "stub", "script", "answer.star", source)
	s.file(t, "buy", "stub", "script", "answer.star", source)
	return s
}

const answerScript = `
prices = {"tea": 3, "cake": 5}

def answer(kind, params, n):
    if kind == "look":
        return {"seen": params, "times": n}
    if params not in prices:
        return error("no such thing: " + params)
    return prices[params]
`

func TestScriptAnswers(t *testing.T) {
	h := script(t, answerScript).open(t)
	for _, c := range []struct {
		kind, params string
		n            uint64
		status       receipt.Status
		payload      string
	}{
		{"look", `{"a": [1, 2.5, "x", null, true]}`, 7, receipt.StatusOK, `{"seen": {"a": [1, 2.5, "x", null, true]}, "times": 7}`},
		{"buy", `"tea"`, 0, receipt.StatusOK, `3`},
		{"buy", `"sword"`, 0, receipt.StatusError, `"no such thing: sword"`},
	} {
		r, err := ask(t, h, permit(t, "agent/1", c.kind, c.params, c.n))
		require.NoError(t, err)
		require.Equal(t, c.status, r.Status)
		require.Equal(t, data(t, c.payload), r.Payload)
	}
	_, err := ask(t, h, permit(t, "agent/1", "buy", `3`, 0))
	require.ErrorContains(t, err, "answer.star:8", "a script that fails makes no receipt, and says where")
}

func TestScriptNamesTheOutcomeOfAnError(t *testing.T) {
	h := script(t, `
def answer(kind, params, n):
    return error({"n": n}, outcome=params) if params else error("for good")
`).open(t)
	for params, want := range map[string]receipt.Outcome{
		`"retryable_failure"`: receipt.OutcomeRetryableFailure, `"compensatable_failure"`: receipt.OutcomeCompensatable, `null`: "",
	} {
		r, err := ask(t, h, permit(t, "agent/1", "buy", params, 0))
		require.NoError(t, err)
		require.Equal(t, receipt.StatusError, r.Status)
		require.Equal(t, want, r.Class)
	}
	for _, params := range []string{`"pure"`, `7`} {
		_, err := ask(t, h, permit(t, "agent/1", "buy", params, 0))
		require.Error(t, err)
	}
}

func TestScriptMayAnswerNone(t *testing.T) {
	r, err := ask(t, script(t, "def answer(kind, params, n): pass").open(t), permit(t, "agent/1", "buy", `1`, 0))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, r.Status)
	require.Equal(t, data(t, `null`), r.Payload)
}

func TestScriptIsBounded(t *testing.T) {
	for name, body := range map[string]string{
		"time":   "    for i in range(1000000000): pass",
		"memory": "    return [0] * 100000000",
		"bytes":  "    s = 'x'\n    for i in range(60): s = s + s\n    return s",
	} {
		h := script(t, "def answer(kind, params, n):\n"+body).open(t)
		_, err := ask(t, h, permit(t, "agent/1", "buy", `1`, 0))
		require.Error(t, err, name)
	}
}

func TestFaultyScriptIsRefused(t *testing.T) {
	for name, source := range map[string]string{
		"syntax":          "def answer(kind, params, n)\n",
		"no answer":       "def reply(kind, params, n): pass\n",
		"other params":    "def answer(kind): pass\n",
		"undefined name":  "def answer(kind, params, n):\n    return clock()\n",
		"fails at load":   "x = 1 // 0\ndef answer(kind, params, n): pass\n",
		"takes error":     "def error(a): pass\ndef answer(kind, params, n): pass\n",
		"takes our names": "def reduce(a): pass\ndef answer(kind, params, n): pass\n",
	} {
		_, err := script(t, source).new(t)
		require.ErrorContains(t, err, "answer.star", name)
	}
}

func TestScriptRunsInManyWorkers(t *testing.T) {
	s := script(t, answerScript)
	s.workers = 8
	h := s.open(t)
	var permits []receipt.Permit
	want := make(map[receipt.Key]receipt.Data)
	for i := range 300 {
		p := permit(t, "agent/1", "look", strconv.Itoa(i), uint64(i))
		permits = append(permits, p)
		want[p.Key] = data(t, `{"seen": `+strconv.Itoa(i)+`, "times": `+strconv.Itoa(i)+`}`)
	}
	start(h, permits...)
	for _, a := range await(t, h, len(permits)) {
		require.NoError(t, a.Err)
		r, err := receipt.Decode(a.Receipt)
		require.NoError(t, err)
		require.Equal(t, want[r.Key], r.Payload)
	}
}
