package host_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
)

// TestWhatIsWithheldIsNotPerformedAndWaits, without Config.Remote; the reason is told.
func TestWhatIsWithheldIsNotPerformedAndWaits(t *testing.T) {
	why := errors.New("nobody trusts it")
	s := newOwner(t, storeAt(t)) // whose adapter fails the test
	more := s.more
	s.more = func(cfg *host.Config) {
		more(cfg)
		cfg.Remote = false
		cfg.Withhold = func(string, *manifest.Effect) error { return why }
	}
	h := s.open(t)
	require.ErrorIs(t, h.Withheld("k"), why)
	require.NoError(t, h.Withheld("other"))
	start(h, nth(t, 1))
	none(t, h)
	require.Len(t, acquire(t, h, "w-1", 2), 1, "it waits, and nobody has begun it")
}
