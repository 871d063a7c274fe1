//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

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
