//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// deafLink is the way to a server that takes nothing.
type deafLink struct{ sent atomic.Int64 }

func (l *deafLink) send(ctx context.Context, _ *outgoing, _ *exchange) error {
	l.sent.Add(1)
	<-ctx.Done()
	return ctx.Err()
}

func (l *deafLink) close() {}

// A server that asks more than anybody answers takes no memory for that, by other ids or by the same.
func TestAFloodOfRequestsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newClient(newCalls()), new(deafLink)
		c.link = l
		for n := range 3 * maxAsked {
			for range 2 {
				c.hear(&message{from: json.RawMessage(fmt.Sprint(n)), method: methodPing}, nil)
			}
		}
		synctest.Wait()
		require.EqualValues(t, maxAsked, l.sent.Load())
		c.endSession()
		synctest.Wait()
		require.Empty(t, c.asked)
	})
}

// What is asked after the connection has ended does not leave, so it can be asked in another session.
func TestNothingLeavesAfterTheConnectionHasEnded(t *testing.T) {
	c, l := newClient(newCalls()), new(deafLink)
	c.link = l
	c.fail(errEnded)
	x := new(exchange)
	_, err := c.ask(t.Context(), x, methodCall, nil)
	require.ErrorIs(t, err, errEnded)
	require.False(t, x.sent.Load())
	require.Zero(t, l.sent.Load())
}

// Requests of a server take no more memory at once than its longest message, however long they are.
func TestAFloodOfLongRequestsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newClient(newCalls()), new(deafLink)
		c.link = l
		params := json.RawMessage(`"` + strings.Repeat("x", maxMessageBytes/8) + `"`)
		for range 2 {
			for n := range 30 {
				c.hear(&message{from: json.RawMessage(fmt.Sprint(n)), method: methodPing, params: params}, nil)
			}
			synctest.Wait()
			c.mu.Lock()
			require.Len(t, c.asked, 7)
			c.mu.Unlock()
			time.Sleep(2 * silence) //nolint:forbidigo // by the clock of the bubble: what nobody takes is given up
			synctest.Wait()
			require.Empty(t, c.asked)
		}
		require.EqualValues(t, 14, l.sent.Load())
		c.endSession()
	})
}

// listLink is the way to a server whose list of tools has pages without end.
type listLink struct {
	deafLink
	c    *client
	tool string
}

func (l *listLink) send(_ context.Context, _ *outgoing, x *exchange) error {
	n := l.sent.Add(1)
	l.c.hear(&message{id: x.id, result: fmt.Appendf(nil, `{"tools":[%s],"nextCursor":"%d"}`, l.tool, n)}, x)
	return nil
}

// What a server says of its tools is bounded, also where it says much of few.
func TestListOfToolsIsBounded(t *testing.T) {
	for tool, most := range map[string]int64{
		`{"name":"a","description":"` + strings.Repeat("x", maxMessageBytes/2) + `"}`: 2 * maxListBytes / maxMessageBytes,
		`1` + strings.Repeat(",1", maxTools):                                          1,
	} {
		c := newClient(newCalls())
		l := &listLink{c: c, tool: tool}
		c.link = l
		require.ErrorIs(t, (&session{client: c}).list(t.Context()), errTooMany)
		require.Equal(t, most, l.sent.Load())
	}
}

// A message takes no memory for what is none in an array.
func TestArrayOfWhatIsNoMessageTakesLittleMemory(t *testing.T) {
	array := []byte("[1" + strings.Repeat(",1", 1<<20) + "]")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	messages, _ := plain(array)
	runtime.ReadMemStats(&after)
	require.Empty(t, messages)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<20))
}

// beginLink is the way to a server that answers requests of each method in turn.
type beginLink struct {
	deafLink
	c       *client
	answers map[string][]string
}

func (l *beginLink) send(_ context.Context, _ *outgoing, x *exchange) error {
	if x == nil {
		return nil
	}
	text := l.answers[x.method][0]
	l.answers[x.method] = l.answers[x.method][1:]
	messages, _ := plain(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,%s}`, x.id, text))
	l.c.hear(messages[0], x)
	return nil
}

// A server that begins no session of a version that is spoken here may have begun without one; if it has not, nothing is begun.
func TestServerThatBeginsNoSessionIsAskedAgain(t *testing.T) {
	const refuses, speaks = `"error":{"code":-32022,"message":"no"}`, `"result":{"supportedVersions":["` + withoutSessions + `"]}`
	for _, answer := range []string{`"result":{"protocolVersion":"` + withoutSessions + `"}`, `"result":"nonsense"`, `"error":{"code":-32601,"message":"what?"}`} {
		for second, version := range map[string]string{speaks: withoutSessions, refuses: ""} {
			c := newClient(newCalls())
			c.link = &beginLink{c: c, answers: map[string][]string{methodDiscover: {refuses, second}, methodInitialize: {answer}}}
			if err := c.begin(t.Context()); version == "" {
				require.Error(t, err, answer)
				continue
			}
			require.Equal(t, version, c.spoken.Load().version, answer)
			require.NotNil(t, c.spoken.Load().meta, answer)
		}
	}
}
