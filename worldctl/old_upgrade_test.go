package worldctl

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReturnToWhatAReleaseBeforeMadeUpForIsReplayed: the world was written by the
// release before, with a payment that a rollback had made up for. Its images say
// nothing of that, its records do: what is written after the upgrade has to follow
// from both.
func TestReturnToWhatAReleaseBeforeMadeUpForIsReplayed(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command("tar", "-xzf", "testdata/old/rollback-1-compensated.tar.gz", "-C", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	worldctl(t, nil, "-w", dir, "rollback", "s1", "--reason", "to what was made up for", "--ack")
	worldctl(t, nil, "-w", dir, "verify")
}
