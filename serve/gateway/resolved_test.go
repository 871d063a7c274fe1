package gateway_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/view"
)

// executed has a person say of all calls in doubt that they were made, with a payload that is no answer.
func (r *run) executed(payload any) {
	r.t.Helper()
	data, err := reducer.Encode(payload)
	require.NoError(r.t, err)
	n := 0
	for _, e := range (view.Journal{Local: r.lw}).Ledger() {
		if e.State != receipt.StateInDoubt {
			continue
		}
		n++
		_, err := view.Journal{Local: r.lw}.Decide(r.t.Context(), &journal.Resolved{
			Key: e.Intent.Key, How: journal.Executed, Params: e.Params, Actor: "ada", Reason: "it is in the log", Payload: data,
		}, &e)
		require.NoError(r.t, err)
	}
	require.Equal(r.t, 3, n)
}

// What a person says that came of a call in doubt need not be an answer: then the agent is told that there is none.
func TestAResolutionThatIsNoAnswerIsTold(t *testing.T) {
	for name, payload := range map[string]any{
		"nothing": map[string]string{}, "half": map[string]int{"status": 7}, "other": map[string]int{"id": 7}, "null": nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, "on_in_doubt: fail", "on_in_doubt: ask")
			s.answersBy(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			r := s.start()
			status, _ := r.post(relay.OpenAI, chatPath, ask("x"))
			require.Equal(t, http.StatusBadGateway, status)
			require.Empty(t, r.hook("PreToolUse", "one", "Bash", list))
			c := r.connect("files")
			c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"dies once","arguments":{}}}`)
			require.NoError(t, <-c.ended)
			r.stop()
			r = s.start()
			r.executed(payload)
			r.stop()
			r = s.start(again)
			status, text := r.post(relay.OpenAI, chatPath, ask("x"))
			require.Equal(t, http.StatusBadGateway, status)
			require.Contains(t, text, "the call was made, and its answer is not on record")
			require.Contains(t, r.hook("PreToolUse", "one", "Bash", list), "IN DOUBT")
			require.Contains(t, r.connect("files").call(1, "dies once", `{}`, `{}`), "this call was made, and its result is not on record")
			require.EqualValues(t, 1, s.paid.Load())
		})
	}
}
