package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/receipt"
)

const tape = `{"cell": "agent/1", "kind": "look", "params": {"id": 3, "at": 1.0}, "payload": "first"}
{"cell": "agent/1", "kind": "look", "params": {"at": 1.0, "id": 3}, "status": "error", "payload": "Error: second"}

{"cell": "agent/2", "kind": "look", "params": {"id": 3, "at": 1.0}, "payload": {"of": "another cell"}}
{"cell": "agent/1", "kind": "look", "params": {"id": 4}, "occurrence": 2, "payload": null}
{"cell": "agent/1", "kind": "buy", "params": [], "payload": 12345678901234567890123}
{"cell": "agent/1", "kind": "buy", "params": 1, "payload": "half", "status": "error", "outcome": "compensatable_failure"}
`

func tapeHost(t testing.TB) *host.Host {
	t.Helper()
	var s setup
	for _, kind := range []string{"look", "buy", "sing"} {
		s.file(t, kind, "recorded", "cassette", "tape.jsonl", tape)
	}
	return s.open(t)
}

func TestCassetteAnswersByCellKindParamsAndOccurrence(t *testing.T) {
	h := tapeHost(t)
	for _, c := range []struct {
		cell, kind, params string
		occurrence         uint64
		status             receipt.Status
		payload            string
	}{
		{"agent/1", "look", `{"id": 3, "at": 1.0}`, 0, receipt.StatusOK, `"first"`},
		{"agent/1", "look", `{"id": 3, "at": 1.0}`, 1, receipt.StatusError, `"Error: second"`},
		{"agent/2", "look", `{"id": 3, "at": 1.0}`, 0, receipt.StatusOK, `{"of": "another cell"}`},
		{"agent/1", "look", `{"id": 4}`, 2, receipt.StatusOK, `null`},
		{"agent/1", "buy", `[]`, 0, receipt.StatusOK, `12345678901234567890123`},
	} {
		r, err := ask(t, h, permit(t, c.cell, c.kind, c.params, c.occurrence))
		require.NoError(t, err)
		require.Equal(t, c.status, r.Status)
		require.Equal(t, data(t, c.payload), r.Payload)
		require.Empty(t, r.Class)
	}
	r, err := ask(t, h, permit(t, "agent/1", "buy", `1`, 0))
	require.NoError(t, err)
	require.Equal(t, receipt.OutcomeCompensatable, r.Class)
}

func TestMissNamesWhatWasAskedAndTheNearestEntry(t *testing.T) {
	h := tapeHost(t)
	for _, c := range []struct {
		cell, kind, params string
		occurrence         uint64
		nearest            []string
	}{
		{"agent/1", "look", `{"id": 3, "at": 1.0}`, 2, []string{"other occurrences: 2", "line 1"}},
		{"agent/1", "look", `{"id": 4}`, 0, []string{"other occurrences: 1", "line 5"}},
		{"agent/1", "look", `{"id": 3, "at": 1}`, 0, []string{"line 2", "agent/1", `{"at":1.0,"id":3}`}},
		{"agent/3", "look", `{"id": 4}`, 0, []string{"line 5", "agent/1"}},
		{"agent/3", "look", `{"id": 5}`, 0, []string{"line 5"}},
		{"agent/1", "sing", `{"id": 5}`, 0, []string{"nothing of kind sing"}},
	} {
		p := permit(t, c.cell, c.kind, c.params, c.occurrence)
		_, err := ask(t, h, p)
		var miss *host.MissError
		require.ErrorAs(t, err, &miss)
		require.Equal(t, "tape.jsonl", miss.File)
		require.Equal(t, p.Cell, miss.Cell)
		require.Equal(t, p.Step, miss.Step)
		require.Equal(t, p.Kind, miss.Kind)
		require.Equal(t, p.Params, miss.Params)
		require.Equal(t, p.Occurrence, miss.Occurrence)
		for _, words := range c.nearest {
			require.Contains(t, miss.Nearest, words)
		}
		for _, words := range []string{"tape.jsonl", p.Cell, string(p.Step), p.Kind, miss.Nearest} {
			require.ErrorContains(t, err, words)
		}
	}
}

// TestMissNamesTheFirstPathThatDiffers of the params of the nearest entry: of a long
// conversation that is what somebody looks for.
func TestMissNamesTheFirstPathThatDiffers(t *testing.T) {
	h := tapeHost(t)
	for _, c := range []struct{ cell, kind, params, where string }{
		{"agent/1", "look", `{"id": 3, "at": 2.0}`, "at /at: it has 1.0, asked for is 2.0"},
		{"agent/2", "look", `{"id": 3, "at": 1.0, "how": {}}`, "at /how: it has nothing there, asked for is {}"},
		{"agent/1", "look", `{"id": 3}`, "at /id: it has 4, asked for is 3"},
		{"agent/1", "look", `[3]`, `as a whole: it has {"at":1.0,"id":3}, asked for is [3]`}, // the last with as much in common
		{"agent/1", "look", `{"id": 4}`, ""},                                                 // of another occurrence
		{"agent/1", "sing", `{"id": 4}`, ""},
	} {
		_, err := ask(t, h, permit(t, c.cell, c.kind, c.params, 0))
		var miss *host.MissError
		require.ErrorAs(t, err, &miss)
		require.Equal(t, c.where, miss.Where(), c.params)
		if c.where != "" {
			require.ErrorContains(t, err, "They differ first "+c.where)
		}
	}
}

func TestBadCassetteLineIsNamed(t *testing.T) {
	const good = `{"cell": "agent/1", "kind": "look", "params": 1, "payload": 1}` + "\n"
	for name, bad := range map[string]string{
		"not JSON":         `{"cell": `,
		"not an object":    `[1]`,
		"two values":       `{} {}`,
		"unknown key":      `{"cell": "agent/1", "kind": "look", "params": 1, "payload": 1, "result": 2}`,
		"duplicate key":    `{"cell": "agent/1", "cell": "agent/2", "kind": "look", "params": 1, "payload": 1}`,
		"no cell":          `{"kind": "look", "params": 1, "payload": 1}`,
		"no params":        `{"cell": "agent/1", "kind": "look", "payload": 1}`,
		"no payload":       `{"cell": "agent/1", "kind": "look", "params": 1}`,
		"wrong type":       `{"cell": 7, "kind": "look", "params": 1, "payload": 1}`,
		"wrong status":     `{"cell": "agent/1", "kind": "look", "params": 2, "payload": 1, "status": "denied"}`,
		"wrong outcome":    `{"cell": "agent/1", "kind": "look", "params": 2, "payload": 1, "status": "error", "outcome": "pure"}`,
		"outcome of ok":    `{"cell": "agent/1", "kind": "look", "params": 2, "payload": 1, "outcome": "retryable_failure"}`,
		"occurrence below": `{"cell": "agent/1", "kind": "look", "params": 2, "payload": 1, "occurrence": -1}`,
		"occurrence twice": `{"cell": "agent/1", "kind": "look", "params": 1, "payload": 1, "occurrence": 0}`,
		"not UTF-8":        "{\"cell\": \"agent/\xff\"}",
	} {
		var s setup
		s.file(t, "look", "recorded", "cassette", "tape.jsonl", good+"\n"+bad+"\n"+good)
		_, err := s.new(t)
		require.ErrorContains(t, err, "effect look", name)
		require.ErrorContains(t, err, "tape.jsonl:3: ", name)
	}
}

func TestCassetteIsNeeded(t *testing.T) {
	var s setup
	s.file(t, "look", "recorded", "tape", "tape.jsonl", tape)
	_, err := s.new(t)
	require.Error(t, err)
	s.file(t, "look", "recorded", "cassette", "tape.jsonl", "")
	_, err = ask(t, s.open(t), permit(t, "agent/1", "look", "1", 0))
	var miss *host.MissError
	require.ErrorAs(t, err, &miss, "an empty cassette answers nothing")
}
