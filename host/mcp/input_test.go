//go:build unix

package mcp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// A server asks in its result, and one of before during the call. Both get what a
// person has said with the next call, and neither gets a call that nobody permitted.
func TestToolThatAsksGetsTheAnswerWithTheNextCall(t *testing.T) {
	old := serve(t, nil)
	old.old.Store(true)
	for name, a := range map[string]host.Adapter{
		"in its result":   adapterOf(t, setupOf(t, stdioConfig(t, "stdio"), manifest.Effect{})),
		"during the call": old.adapter(t),
	} {
		t.Run(name, func(t *testing.T) {
			call := callOf(t, "ask", `{}`)
			got, err := a.Perform(t.Context(), call)
			require.NoError(t, err)
			require.Equal(t, receipt.OutcomeInputRequired, got.Class, "%s", got.Payload)
			q, err := receipt.DecodeQuestion(got.Payload)
			require.NoError(t, err)
			require.Len(t, q.Names(), 1)
			asked := q.Requests[q.Names()[0]]
			require.Equal(t, "really?", asked.Message)
			require.Equal(t, fromJSON(t, `{"type":"object","properties":{"yes":{"type":"boolean"}}}`), asked.Schema)

			call.Permit.Attempt = 2
			call.Permit.Inputs = []receipt.Input{{Question: got.Payload, Answer: fromJSON(t, `{"yes":true}`)}}
			got, err = a.Perform(t.Context(), call)
			require.NoError(t, err)
			require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
			require.Equal(t, `"accept"`, at(t, got.Payload, "structured", "action"))
			require.Equal(t, `{"yes":true}`, at(t, got.Payload, "structured", "content"))
			require.Equal(t, `"half"`, at(t, got.Payload, "structured", "state"))
		})
	}
	require.EqualValues(t, 2, old.calls.Load())
}

func TestAnswerIsToTheSameQuestionOnly(t *testing.T) {
	schema := fromJSON(t, `{"type":"object"}`)
	q := receipt.Question{Requests: map[string]receipt.InputRequest{methodElicit: {Message: "one?", Schema: schema}}}
	payload, err := q.Encode()
	require.NoError(t, err)
	c := newCalls()
	x := &exchange{answers: answers{{Question: payload, Answer: fromJSON(t, `{"n":1}`)}}}
	require.NoError(t, c.beginCall(t.Context(), x))
	require.Equal(t, "accept", <-elicit(t, c, receipt.InputRequest{Message: "one?", Schema: schema}))
	require.Nil(t, x.asked)
	require.Equal(t, "cancel", <-elicit(t, c, receipt.InputRequest{Message: "one?", Schema: canon.Raw(canon.Null)}))
	require.Equal(t, "cancel", <-elicit(t, c, receipt.InputRequest{Message: "two?", Schema: schema}))
	asked, _ := c.endCall(x, true)
	require.Equal(t, "one?", asked.Message, "the first that had no answer")
}

func TestResultThatAsksWhatNobodyCanGiveIsAFailure(t *testing.T) {
	for text, code := range map[string]string{
		`{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":{}}}}`:         `"input_not_supported"`,
		`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url"}}}}`: `"input_not_supported"`,
		`{"resultType":"input_required","inputRequests":{}}`:                                                            `"not_a_question"`,
		`{"resultType":"input_required"}`:                   `"not_a_question"`,
		`{"resultType":"input_required","inputRequests":7}`: `"not_a_result"`,
	} {
		r := answered([]byte(text))
		require.Empty(t, r.Class, text)
		require.Equal(t, code, at(t, r.Payload, "code"), text)
	}
}
