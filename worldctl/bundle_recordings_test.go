package worldctl

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/recording"
	"github.com/worldkernel/worldkernel/world/verify"
)

func TestAirlineAndVilleAreProvenFromBundles(t *testing.T) {
	t.Parallel()
	airline := filepath.Join(t.TempDir(), "airline")
	worldctl(t, nil, "import", "chat", recording.Shared(t, recording.Airline), "-w", airline)
	ville := villeSent(t)

	for _, dir := range []string{airline, ville} {
		base := t.TempDir()
		kept, trust, bundle := filepath.Join(base, "checkpoint"), filepath.Join(base, "pub"), filepath.Join(base, "bundle")
		worldctl(t, nil, "-w", dir, "run", "--ticks", "5")
		worldctl(t, nil, "-w", dir, "checkpoint", kept)
		worldctl(t, nil, "-w", dir, "run", "--until-idle")
		require.NoError(t, os.WriteFile(trust, worldctl(t, nil, "-w", dir, "keys", "list", "--signers"), 0o600))
		worldctl(t, nil, "-w", dir, "export", bundle, "--format", "bundle")

		believe := []string{"-o", "json", "--trust", trust, "--checkpoint", kept}
		store := reported(t, append([]string{"-w", dir, "verify"}, believe...)...)
		require.NoError(t, os.RemoveAll(dir))
		whole := reported(t, append([]string{"verify", bundle}, believe...)...)
		for _, r := range []*verify.Report{store, whole} {
			require.True(t, r.OK)
			require.True(t, r.Trusted)
			require.True(t, r.Ledger.OK)
			require.True(t, r.Replay.OK)
			require.Empty(t, r.Replay.Gaps)
			require.Zero(t, r.Receipts.Bad+r.Snapshots.Bad+r.Governance.Bad+r.Checkpoints.Bad)
		}
		require.Equal(t, store.Records, whole.Records)
		require.Equal(t, store.EventChainRootHash, whole.EventChainRootHash)
		require.Equal(t, store.ExecutionHash, whole.ExecutionHash)
		require.Equal(t, store.StateRoot, whole.StateRoot)
		require.Equal(t, store.Ledger, whole.Ledger)
		require.Equal(t, store.Receipts.Checked, whole.Receipts.Unverifiable, "their signatures need the world's secrets")
	}
}

func reported(t *testing.T, args ...string) *verify.Report {
	t.Helper()
	r := new(verify.Report)
	require.NoError(t, json.Unmarshal(worldctl(t, nil, args...), r))
	return r
}
