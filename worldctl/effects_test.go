package worldctl

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

// attempts counts the permits in the journal of a world, and those of them that
// were given back because nothing was done.
func attempts(t *testing.T, dir string) (started, returned int) {
	t.Helper()
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	for s, err := range lw.Scan(0) {
		require.NoError(t, err)
		require.NoError(t, s.Err)
		switch s.Record.Kind {
		case journal.KindStarted:
			started++
		case journal.KindFinished:
			require.NoError(t, s.Record.Load(lw))
			body, err := s.Record.Body()
			require.NoError(t, err)
			r, err := receipt.Decode(body.(*journal.Finished).Receipt)
			require.NoError(t, err)
			if r.Unsent {
				returned++
			}
		}
	}
	require.NoError(t, lw.Close())
	return started, returned
}

// told adds up what the cells of a sinkWorld were told.
func (w *sinkWorld) told() map[string]int {
	w.t.Helper()
	sum := make(map[string]int)
	for _, state := range states[map[string]int](w.t, w.dir) {
		for status, n := range state {
			sum[status] += n
		}
	}
	return sum
}

// spent counts the calls that a world has spent.
func (w *sinkWorld) spent() int {
	w.t.Helper()
	started, returned := attempts(w.t, w.dir)
	return started - returned
}

const (
	budgetCells, budgetEffects = 20, 10
	budgetCalls                = 100 // of 200 that are wanted
	budgeted                   = "budget: {calls: 100}"
)

func TestBudgetIsSpentToTheLastCall(t *testing.T) {
	w := newSinkWorld(t, newSink(t), budgetCells, budgetEffects, 64, "external_key: per_attempt", budgeted)
	worldctl(t, nil, "-w", w.dir, "run")
	require.Len(t, w.sink.puts(), budgetCalls)
	sum := w.told()
	require.Equal(t, budgetCalls, sum["ok"])
	require.Equal(t, budgetCells*budgetEffects-budgetCalls, sum["denied"])
	verified(t, w.dir)
}

// TestKilledWorldNeverOverspends kills a world at random moments. An attempt
// that was cut off has spent its call, whether or not it was made.
func TestKilledWorldNeverOverspends(t *testing.T) {
	t.Parallel()
	random, kills := seeded(t), 8
	w := newSinkWorld(t, newSink(t), budgetCells, budgetEffects, 8, "external_key: per_attempt", budgeted)
	for range kills {
		cmd, done := w.starts()
		if ended, _ := w.sink.await(random.IntN(budgetCalls/kills), done); !ended {
			require.NoError(t, cmd.Process.Kill())
			<-done //nolint:errcheck // however it ended
		}
		w.sink.settle()
		require.LessOrEqual(t, w.spent(), budgetCalls)
		require.LessOrEqual(t, len(w.sink.puts()), w.spent(), "no effect without a call")
		if random.IntN(2) == 0 {
			w.decide()
		}
	}
	for {
		code, _, said := outcome(t, "-w", w.dir, "run")
		if code == exitOK {
			break
		}
		require.Equal(t, exitUndecided, code, said)
		w.decide()
	}
	require.Equal(t, budgetCalls, w.spent(), "all of it is spent, and none of it twice")
	once := make(map[string]bool)
	for _, p := range w.sink.puts() {
		require.False(t, once[unattempted(p.Key)], p.Key)
		once[unattempted(p.Key)] = true
	}
	require.LessOrEqual(t, len(once), budgetCalls)
	require.Equal(t, len(once), w.told()["ok"])
	require.Positive(t, w.told()["denied"])
	verified(t, w.dir)
	worldctl(t, nil, "-w", w.dir, "replay")
}

// TestDoubtDoesNotGiveItsCallBack lets effects come to nothing that nobody
// knows of, and spends the rest of the budget before a person says so.
func TestDoubtDoesNotGiveItsCallBack(t *testing.T) {
	t.Parallel()
	w := newSinkWorld(t, newSink(t, "-deaf"), budgetCells, budgetEffects, 64, "external_key: per_attempt\n    timeout: 5s", budgeted)
	code, _, said := outcome(t, "-w", w.dir, "run")
	require.Equal(t, exitUndecided, code, said)
	require.Len(t, w.intents("--state", "in_doubt"), budgetCells)
	require.Equal(t, budgetCells, w.spent())

	w.sink.kill()
	w.sink.args = nil
	w.sink.start()
	w.begin(budgetCells)
	code, _, said = outcome(t, "-w", w.dir, "run")
	require.Equal(t, exitUndecided, code, said)
	require.Equal(t, budgetCalls, w.spent())
	key := w.intents("--state", "in_doubt")[0].Key
	code, _, said = outcome(t, "-w", w.dir, "intent", "retry", key, "--reason", "do it")
	require.Zero(t, code, said) // it waits: the outside may still say that it refused the calls that are in doubt
	require.Equal(t, budgetCalls, w.spent())
	w.decide() // they did not happen, and there is no call left for another attempt
	worldctl(t, nil, "-w", w.dir, "run")
	require.Equal(t, budgetCalls, w.spent())
	require.LessOrEqual(t, len(w.sink.puts()), budgetCalls-budgetCells)
	require.Equal(t, budgetCells, w.told()["rejected"])
	verified(t, w.dir)
}

func TestCtrlCLeavesNoEffectInDoubt(t *testing.T) {
	raced(t) // the signal comes while effects are performed
	w := newSinkWorld(t, newSink(t, "-slow", "1", "-delay", "500ms"), 20, 3, 64, "external_key: per_attempt", "")
	cmd, done := w.starts("--workers", "2")
	ended, _ := w.sink.await(3, done)
	require.False(t, ended)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	require.ErrorAs(t, <-done, &exit)
	require.Equal(t, exitInterrupted, exit.ExitCode())

	w.sink.settle()
	before := len(w.sink.puts())
	require.Less(t, before, w.cells, "most were still queued")
	require.Empty(t, w.intents("--state", "in_doubt"))
	worldctl(t, nil, "-w", w.dir, "run")
	w.exact(false)
	started, returned := attempts(t, w.dir)
	require.Positive(t, returned, "queued attempts are given back")
	require.Equal(t, w.cells*w.effects, started-returned, "and made later, once")
}

func TestRecordedWorldAnswersAnother(t *testing.T) {
	s := newSink(t)
	past := newSinkWorld(t, s, 5, 4, 64, "", "")
	worldctl(t, nil, "-w", past.dir, "run")
	past.exact(false)
	again, more := newSinkWorld(t, s, 5, 4, 64, "", ""), newSinkWorld(t, s, 5, 5, 64, "", "")
	s.kill() // from here on the outside is not there

	worldctl(t, nil, "-w", again.dir, "run", "--effects", "recorded:"+past.dir)
	again.exact(false)
	require.Equal(t, past.answers(), again.answers())
	require.Len(t, again.answers(), 20)

	code, _, said := outcome(t, "-w", more.dir, "run", "--effects", "recorded:"+past.dir)
	require.Equal(t, exitFailed, code)
	require.Contains(t, said, `"n":4`, "what was asked")
	require.Contains(t, said, `"n":3,"cell":"`, "the nearest that is recorded of the same cell")
	verified(t, more.dir)
	s.start()
	worldctl(t, nil, "-w", more.dir, "run") // what was missing was given back: nothing is in doubt
	require.Len(t, s.puts(), 20+5, "only what was never asked")
	require.Equal(t, 25, more.told()["ok"])
}

// answers returns the payloads of all receipts, by the step that asked.
func (w *sinkWorld) answers() map[string]string {
	w.t.Helper()
	out := make(map[string]string)
	for _, r := range jsonLines[struct {
		StepID  string          `json:"step_id"`
		Payload json.RawMessage `json:"payload"`
	}](w.t, worldctl(w.t, nil, "-w", w.dir, "receipt", "list", "-o", "jsonl")) {
		out[r.StepID] = string(r.Payload)
	}
	return out
}
