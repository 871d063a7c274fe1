package host_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// The scripts of somebody else's manifest share what they may use before anyone has
// called them, whether or not they come to an end.
func TestScriptsOfAStrangerAreBoundedTogether(t *testing.T) {
	const loops = "def f():\n    for i in range(%d):\n        pass\nf()\n%s\ndef answer(kind, params, n):\n    return 1\n"
	for _, end := range []string{"", "fail(1)"} {
		s := new(setup)
		for i := range 4 {
			s.file(t, fmt.Sprint("e", i), "stub", "script", "s.star", fmt.Sprintf(loops, 100_000+i, end))
		}
		cfg := host.Config{
			Manifest: &manifest.Manifest{Effects: s.effects},
			Content:  func(h manifest.Hash) ([]byte, error) { return s.contents[h], nil },
		}
		free := len(host.Check(cfg))
		cfg.Within = &reducer.Bounds{Gas: 3_000_000, Memory: 1 << 30}
		require.Len(t, host.Check(cfg), free)

		cfg.Within.Gas = 1_000_000
		faults := host.Check(cfg)
		require.NotEmpty(t, faults)
		require.ErrorIs(t, faults[len(faults)-1], reducer.ErrBound)
		require.Equal(t, "e3", faults[len(faults)-1].Kind)

		cfg.Within.Ended = func() bool { return true }
		for _, fault := range host.Check(cfg) {
			require.ErrorIs(t, fault, reducer.ErrBound, fault.Kind)
		}
		require.Len(t, host.Check(cfg), 4)
	}
}
