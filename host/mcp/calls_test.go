//go:build unix

package mcp

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

func newCalls() *calls { return &calls{asks: new(atomic.Bool)} }

// elicit has a server ask, and returns how it is answered; refused: with an error.
func elicit(t testing.TB, c *calls, asked receipt.InputRequest) <-chan string {
	action := make(chan string, 1)
	go func() {
		r, err := c.elicited(t.Context(), asked, "")
		if err != nil {
			action <- "refused"
			return
		}
		action <- r.Action
	}()
	return action
}

func beginAll(t testing.TB, c *calls, n int) (all []*exchange) {
	for range n {
		x := new(exchange)
		require.NoError(t, c.beginCall(t.Context(), x))
		all = append(all, x)
	}
	return all
}

// A question during several calls is that of the one which does not end without an answer.
func TestQuestionDuringSeveralCallsIsThatOfTheOneWhichWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls()
		all := beginAll(t, c, 3)
		action := elicit(t, c, receipt.InputRequest{Message: "really?"})
		for _, works := range all[1:] {
			synctest.Wait()
			require.Empty(t, action, "nobody knows yet whose it is")
			asked, perhaps := c.endCall(works, true)
			require.Nil(t, asked)
			require.Nil(t, perhaps)
		}
		require.Equal(t, "cancel", <-action)
		asked, _ := c.endCall(all[0], true)
		require.Equal(t, "really?", asked.Message)
	})
}

// Where each of several calls asks they end one after the other, with its own question.
func TestEachOfSeveralCallsThatAskGetsItsOwnQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls()
		asking := map[string]*exchange{}
		actions := map[string]<-chan string{}
		for i, x := range beginAll(t, c, 3) {
			name := string(rune('a' + i))
			asking[name], actions[name] = x, elicit(t, c, receipt.InputRequest{Message: name})
			synctest.Wait()
		}
		for _, name := range []string{"a", "b", "c"} {
			synctest.Wait()
			require.Equal(t, "cancel", <-actions[name], name)
			require.Equal(t, "cancel", <-elicit(t, c, receipt.InputRequest{Message: "and " + name}), "whose turn it is asks once more")
			asked, _ := c.endCall(asking[name], true)
			require.Equal(t, name, asked.Message)
		}
	})
}

// Who is given up while a question waits may have asked it: nobody else is told so, and no
// answer of a person goes to a call that has not asked.
func TestQuestionOfACallThatWasGivenUpIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls()
		all := beginAll(t, c, 3)
		action := elicit(t, c, receipt.InputRequest{Message: "really?"})
		synctest.Wait()
		asked, perhaps := c.endCall(all[0], false)
		require.Nil(t, asked)
		require.Equal(t, "really?", perhaps.Message)
		for _, x := range all[1:] {
			synctest.Wait()
			require.Empty(t, action)
			asked, perhaps = c.endCall(x, true)
			require.Nil(t, asked)
			require.Nil(t, perhaps)
		}
		require.Equal(t, "refused", <-action)

		action = elicit(t, c, receipt.InputRequest{Message: "really?"})
		require.Equal(t, "refused", <-action, "no call is under way")
		x := beginAll(t, c, 1)[0]
		require.Equal(t, "cancel", <-elicit(t, c, receipt.InputRequest{Message: "really?"}))
		asked, _ = c.endCall(x, true)
		require.NotNil(t, asked, "what was given up is over")
	})
}

func TestQuestionThatIsTakenBackHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls()
		all := beginAll(t, c, 2)
		ctx, cancel := context.WithCancel(t.Context())
		refused := make(chan error, 1)
		go func() {
			_, err := c.elicited(ctx, receipt.InputRequest{Message: "really?"}, "")
			refused <- err
		}()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-refused, context.Canceled)
		for _, x := range all {
			asked, perhaps := c.endCall(x, false)
			require.Nil(t, asked)
			require.Nil(t, perhaps)
		}
	})
}

// A server that asks during calls gets them one at a time from then on.
func TestServerThatAsksGetsOneCallAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls()
		x := beginAll(t, c, 1)[0]
		require.Equal(t, "cancel", <-elicit(t, c, receipt.InputRequest{Message: "really?"}))
		next := make(chan error, 1)
		go func() { next <- c.beginCall(t.Context(), new(exchange)) }()
		synctest.Wait()
		require.Empty(t, next)
		require.NoError(t, c.beginCall(t.Context(), &exchange{task: "t"}), "a task says whose question it is")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, c.beginCall(ctx, new(exchange)), context.Canceled)
		c.endCall(x, true)
		require.NoError(t, <-next)

		for name, during := range map[string]bool{methodElicit: true, "confirm": false} {
			q := receipt.Question{Requests: map[string]receipt.InputRequest{name: {}}}
			payload, err := q.Encode()
			require.NoError(t, err)
			c := newCalls()
			require.NoError(t, c.beginCall(t.Context(), &exchange{answers: answers{{Question: payload}}}))
			require.Equal(t, during, c.asks.Load(), "so does one that asked in another process")
		}
	})
}

// Two calls share a session, and the server asks during both. Each gets its own question,
// and then what a person has said to that.
func TestCallsThatShareASessionAskEachForItself(t *testing.T) {
	a := adapterOf(t, setupOf(t, stdioConfig(t, "tasks"), manifest.Effect{}))
	performed := func(calls map[string]host.Call) map[string]host.Result {
		type named struct {
			name string
			host.Result
		}
		results := make(chan named)
		for name, call := range calls {
			go func() {
				r, err := a.Perform(t.Context(), call)
				if err != nil {
					r.Payload = fault("in doubt", err.Error())
				}
				results <- named{name, r}
			}()
		}
		all := make(map[string]host.Result)
		for range calls {
			r := <-results
			all[r.name] = r.Result
		}
		return all
	}
	calls := map[string]host.Call{}
	for _, name := range []string{"ann", "bob", "cid"} {
		calls[name] = callOf(t, "short", `{"ask":"delete `+name+`?","both":3}`)
	}
	for name, r := range performed(calls) {
		require.Equal(t, receipt.OutcomeInputRequired, r.Class, "%s", r.Payload)
		q, err := receipt.DecodeQuestion(r.Payload)
		require.NoError(t, err)
		require.Equal(t, "delete "+name+"?", q.Requests[methodElicit].Message)
		call := calls[name]
		call.Permit.Attempt, call.Permit.Inputs = 2, []receipt.Input{{Question: r.Payload, Answer: fromJSON(t, `{"yes":"`+name+`"}`)}}
		calls[name] = call
	}
	for name, r := range performed(calls) {
		require.Equal(t, receipt.StatusOK, r.Status, "%s", r.Payload)
		require.Equal(t, `{"yes":"`+name+`"}`, at(t, r.Payload, "structured", "answer", "content"))
	}
}
