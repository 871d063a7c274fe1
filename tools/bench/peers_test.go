package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// standIn is a peer that does nothing, see tools/peers for those that do.
func standIn(peer string) {
	switch peer {
	case "quick":
		fmt.Println(`{"promise": "nothing at all", "wall": 1000000, "cpu": 12000}`)
	case "absent":
		fmt.Println(`{"promise": "much", "skipped": "there is no server"}`)
	default:
		fmt.Fprintln(os.Stderr, "it broke")
		os.Exit(1)
	}
}

// TestPeersAreBesideTheWorldWithWhatTheyPromise measures the world and a peer, says why
// another was not, and fails where one fails.
func TestPeersAreBesideTheWorldWithWhatTheyPromise(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	bench := func(args ...string) (string, error) {
		var out strings.Builder
		root := newRootCommand(&program{stdout: &out, stderr: io.Discard})
		root.SetArgs(append([]string{"peers", "--cells", "2", "--effects", "3", "--rounds", "2", "--dir", t.TempDir()}, args...))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	said, err := bench("--program", self, "--peers", "quick,absent")
	withSQLite(t, err)
	require.NoError(t, err)
	for _, line := range []string{
		`(?m)^worldkernel  +\d.* effects/s`,
		`(?m)^SQLite, lean, CPU  +\d.* us/effect`,
		`(?m)^quick +6000 +6000 +6000 +effects/s`,
		`(?m)^quick, CPU +2 +2 +2 +us/effect`,
		`(?m)^quick / worldkernel, CPU +\d.* ratio`,
		`(?m)^quick: nothing at all$`,
		`(?m)^absent: skipped: there is no server$`,
	} {
		require.Regexp(t, line, said)
	}
	require.Equal(t, 1, strings.Count(said, "nothing at all"), "once for all rounds")
	require.NotContains(t, said, "much")

	_, err = bench("--program", self, "--peers", "broken")
	require.ErrorContains(t, err, "broken: exit status 1: it broke")
	said, err = bench("--program", self+".none", "--peers", "quick")
	require.NoError(t, err)
	require.Contains(t, said, "quick: skipped: there is no "+self+".none: make bin/peers")
}
