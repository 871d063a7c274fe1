package recording_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/recording"
)

var update = flag.Bool("update", false, "write the recordings that are made up")

// TestRecordingsThatAreMadeUp holds testdata to the functions that make it.
func TestRecordingsThatAreMadeUp(t *testing.T) {
	for name, want := range map[string][]byte{recording.Airline: conversations(t), recording.Ville: moves(t)} { // order cannot show: each is a file
		file := filepath.Join("testdata", name)
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
			require.NoError(t, os.WriteFile(file, packed(t, name, want), 0o600))
		}
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.HasSuffix(name, ".gz") {
			r, err := gzip.NewReader(bytes.NewReader(got))
			require.NoError(t, err)
			got, err = io.ReadAll(r)
			require.NoError(t, err)
		}
		require.Equal(t, string(want), string(got), "go test ./internal/recording -update writes it")
	}
}

func packed(t *testing.T, name string, data []byte) []byte {
	t.Helper()
	if !strings.HasSuffix(name, ".gz") {
		return data
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

type message struct {
	Role    string  `json:"role"`
	Content *string `json:"content"`
	Calls   []call  `json:"tool_calls,omitempty"`
	Answers string  `json:"tool_call_id,omitempty"`
	Name    string  `json:"name,omitempty"`
}

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// conversations are those of a ferry's desk, ten tasks tried once each: calls one after another and side
// by side, answers that are errors, a call that repeats an earlier one, and words that are long.
func conversations(t *testing.T) []byte {
	t.Helper()
	type run struct {
		Task   int       `json:"task_id"`
		Trial  int       `json:"trial"`
		Reward float64   `json:"reward"`
		Traj   []message `json:"traj"`
	}
	var runs []run
	for task := range 10 {
		r := run{Task: task, Reward: float64(task % 2)}
		say := func(role, text string, calls ...call) {
			r.Traj = append(r.Traj, message{Role: role, Content: &text, Calls: calls})
		}
		ask := func(tool, arguments string) call {
			c := call{ID: fmt.Sprintf("call_%d_%d", task, len(r.Traj)) + tool[:1], Type: "function"}
			c.Function.Name, c.Function.Arguments = tool, arguments
			return c
		}
		answer := func(c call, text string) {
			r.Traj = append(r.Traj, message{Role: "tool", Content: &text, Answers: c.ID, Name: c.Function.Name})
		}
		rules := "You sell tickets of the Millbrook ferry. Look up what you say."
		if task == 0 {
			rules += strings.Repeat(" A bicycle crosses for half, a dog for nothing; in fog nobody does.", 30)
		}
		say("system", rules)
		say("user", fmt.Sprintf("Two across on the %dth, bitte — and is there tea? ⛴", task+3))
		look, tea := ask("find_crossing", fmt.Sprintf(`{"day":%d,"seats":2}`, task+3)), ask("ask_kitchen", `{"for":"tea"}`)
		r.Traj = append(r.Traj, message{Role: "assistant", Calls: []call{look, tea}})
		answer(look, fmt.Sprintf(`{"crossing":"M%d","free":%d,"price":4.5}`, task+3, task))
		if task%3 == 0 {
			answer(tea, "Error: the kitchen does not answer")
			again := ask("ask_kitchen", `{"for":"tea"}`)
			say("assistant", "One moment.", again)
			answer(again, "yes")
		} else {
			answer(tea, "no")
		}
		if task > 1 {
			book := ask("book_seats", fmt.Sprintf(`{"crossing":"M%d","seats":2,"names":["Ada","Finn"]}`, task+3))
			say("assistant", "", book)
			answer(book, `{"booked":true}`)
		}
		say("assistant", fmt.Sprintf("That is crossing M%d.", task+3))
		runs = append(runs, r)
	}
	data, err := json.MarshalIndent(runs, "", " ")
	require.NoError(t, err)
	return append(data, '\n')
}

// moves are those of three villagers, who go between three places and meet there.
func moves(t *testing.T) []byte {
	t.Helper()
	places := []string{"ferry", "mill", "well"}
	var b bytes.Buffer
	for step := range 134 {
		for i, who := range []string{"Ada", "Finn", "Mara"} {
			place := (step/(4+3*i) + i) % len(places)
			line, err := json.Marshal(map[string]any{"event": "persona.moved", "data": map[string]any{
				"step": step, "time": fmt.Sprintf("March 1, 2026, 08:%02d:%02d", step*10/60, step*10%60), "who": who, "x": 10 * place, "y": step % 7,
				"doing": "resting @ Millbrook:" + places[place] + ":bench", "emoji": "🪑", "chat": nil,
			}})
			require.NoError(t, err)
			b.Write(append(line, '\n'))
		}
	}
	return b.Bytes()
}
