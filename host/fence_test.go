package host_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/receipt"
)

// TestNothingIsMadeBeyondTheFence: what the fence lets through has its context, and
// the rest is given back.
func TestNothingIsMadeBeyondTheFence(t *testing.T) {
	type mark struct{}
	through := nth(t, 1)
	s := newLive(storeAt(t), func(ctx context.Context, call host.Call) (host.Result, error) {
		require.Equal(t, through.Key, call.Permit.Key)
		require.Equal(t, true, ctx.Value(mark{}))
		return host.Result{Status: receipt.StatusOK}, nil
	})
	more := s.more
	s.more = func(cfg *host.Config) {
		more(cfg)
		cfg.Fence = func(ctx context.Context, p receipt.Permit) (context.Context, error) {
			if p.Key != through.Key {
				return nil, errors.New("no")
			}
			return context.WithValue(ctx, mark{}, true), nil
		}
	}
	h := s.open(t)
	start(h, through, nth(t, 2))
	for _, a := range await(t, h, 2) {
		r := decoded(t, a)
		if a.Key == through.Key {
			require.Equal(t, receipt.StatusOK, r.Status)
			continue
		}
		require.True(t, r.Unsent)
		require.Equal(t, receipt.StatusCancelled, r.Status)
		require.Equal(t, receipt.OutcomeRetryableFailure, r.Outcome())
		require.Zero(t, r.Cost)
	}
}
