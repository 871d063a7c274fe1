package worldctl

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/store"
)

// TestALockedWorldIsWaitedForASecond: whoever has it may have it for a moment. It is not waited for where
// its owner listens, or anything else is wrong.
func TestALockedWorldIsWaitedForASecond(t *testing.T) {
	errOther := errors.New("something else")
	locked := &store.LockedError{Owner: "pid 1"}
	for name, x := range map[string]struct {
		after   time.Duration // it is locked no more
		held    error
		listens time.Duration // its owner does, from then on
		want    error
		waited  time.Duration
	}{
		"free":              {0, locked, time.Hour, nil, 0},
		"free in a moment":  {990 * time.Millisecond, locked, time.Hour, nil, time.Second},
		"locked for long":   {time.Hour, locked, time.Hour, locked, time.Second},
		"its owner listens": {time.Hour, locked, 0, locked, 0},
		"its owner will":    {time.Hour, locked, 500 * time.Millisecond, locked, 500 * time.Millisecond},
		"it cannot be read": {time.Hour, errOther, time.Hour, errOther, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := new(cli).unlocked(func() error {
					if time.Since(began) < x.after {
						return x.held
					}
					return nil
				}, func() bool { return time.Since(began) >= x.listens })
				require.Equal(t, x.want, err)
				require.Equal(t, x.waited, time.Since(began))
			})
		})
	}
}
