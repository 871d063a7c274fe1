package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/node"
)

// TestAWorldThatOpensForLongHoldsUpNoOther: so many are opened or closed at once, and one that takes
// longer than 5 s does not count among these.
func TestAWorldThatOpensForLongHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := node.NewPlaces(t.Context())
		end := make(chan struct{})
		for id := range node.Most {
			p.Do(string(rune('a'+id)), func() { <-end })
		}
		synctest.Wait()
		began, waited := time.Now(), make(chan time.Duration, 1)
		p.Do("next", func() { waited <- time.Since(began) })
		require.Equal(t, 5*time.Second, <-waited)
		synctest.Wait()
		require.Zero(t, p.Taken())

		for id := range node.Most { // of those before nobody gives a place back that is another's now
			p.Do(string(rune('A'+id)), func() { <-time.After(time.Second) })
		}
		synctest.Wait()
		close(end)
		synctest.Wait()
		require.Equal(t, node.Most, p.Taken())
		p.Wait()
		require.Zero(t, p.Taken())
	})
}
