package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// Whatever of what a replay puts aside cannot be kept or read, there is no verdict, neither of
// a good world nor of one that a part is gone of, and nothing is left.
func TestWhatCannotBePutAsideGivesNoVerdict(t *testing.T) {
	w := story(t)
	_, err := w.Snapshot(t.Context(), "", "", "ada")
	require.NoError(t, err)
	w.Submit("go", order("a", act{"effect": "tool.a", "param": "y"}))
	w.Run()
	_, _, err = w.Rollback(t.Context(), journal.RolledBack{Snapshot: w.Snapshots()[0].Name, Actor: "ada", Reason: "so", Ack: true})
	require.NoError(t, err)
	w.Submit("go", order("b", act{"emit": "ping", "to": "a"}))
	w.Run()
	p := told(t)
	redacted := struct { // its images are read piece by piece
		*tampered
		journal.Versions
	}{tamper(p.Journal), p.Journal}
	redacted.redact(t, 2)
	want := once(t, redacted, verify.Config{Keys: worldtest.Keyring(t, "test")})
	require.NotEmpty(t, want.Replay.Gaps)
	for name, h := range map[string]journal.History{"good": w.Journal, "redacted": redacted} {
		ops := 0
		fail := 0
		spills := &worldtest.Spills{Fail: func() error {
			if ops++; ops == fail {
				return worldtest.ErrInjected
			}
			return nil
		}}
		cfg := verify.Config{Keys: worldtest.Keyring(t, "test"), Spilling: spills.Spilling()}
		r := once(t, h, cfg)
		if name == "redacted" {
			require.Equal(t, want, r)
		}
		all := ops
		require.Greater(t, all, 20)
		for fail = 1; fail <= all; fail++ {
			ops = 0
			r, err := verify.Verify(t.Context(), h, cfg)
			require.Nil(t, r, "%s: operation %d fails", name, fail)
			require.ErrorAs(t, err, new(*world.SpillError))
			require.ErrorIs(t, err, worldtest.ErrInjected)
			require.Zero(t, spills.Open)
		}
	}
}
