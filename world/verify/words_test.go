package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/verify"
)

// Nothing computes again what records say in a gap of the replay, or in a part of a
// journal. Words that no kernel writes are found there all the same.
func TestWordsThatNoKernelWritesAreFaults(t *testing.T) {
	p := told(t)
	key := keysOf(p, 0)[0]
	left := func(state receipt.State, d world.Disposition) *world.RolledBack {
		return &world.RolledBack{V: 1, Abandoned: []world.SideEffect{{Key: key, State: state, Disposition: d}}}
	}
	for name, c := range map[string]struct {
		kind      world.Kind
		good, bad world.Body
	}{
		"outcome of a step":    {world.KindStepped, &world.Stepped{V: 1, Outcome: receipt.OutcomePure}, &world.Stepped{V: 1, Outcome: "purer"}},
		"outcome of a receipt": {world.KindWaiting, &world.IntentWaiting{V: 1, Key: key, Outcome: receipt.OutcomeCompensatable}, &world.IntentWaiting{V: 1, Key: key, Outcome: receipt.OutcomePure}},
		"what is done":         {world.KindInDoubt, &world.InDoubt{V: 1, Key: key, Action: manifest.InDoubtPark}, &world.InDoubt{V: 1, Key: key, Action: "hope"}},
		"mode":                 {world.KindConfirmed, &world.Confirmed{V: 1, Key: key, Mode: manifest.VerifyStrict, Verdict: world.Happened}, &world.Confirmed{V: 1, Key: key, Mode: "lax", Verdict: world.Happened}},
		"verdict":              {world.KindConfirmed, &world.Confirmed{V: 1, Key: key, Mode: manifest.VerifyWarn, Verdict: world.NotHappened}, &world.Confirmed{V: 1, Key: key, Mode: manifest.VerifyWarn, Verdict: world.Unknown}},
		"disposition":          {world.KindRollback, left(receipt.StateFailed, world.Kept), left(receipt.StateFailed, "lost")},
		"state":                {world.KindRollback, left(receipt.StateCommitted, world.Kept), left(receipt.StateDenied, world.Kept)},
		"decision":             {world.KindIntent, claim(key, "allow"), claim(key, "perhaps")},
		"decision of a person": {world.KindResolved, &world.Resolved{V: 1, Key: key, How: world.Reuse}, &world.Resolved{V: 1, Key: key, How: "perhaps"}},
	} {
		for _, part := range []bool{false, true} {
			faults := func(b world.Body) int {
				x := tamper(p.Journal)
				x.redact(t, 2)
				x.add(t, c.kind, marshal(t, b))
				x.relink(t)
				cfg := verify.Config{}
				if part {
					past := x.records[:2]
					cfg.Begin = verify.Begin{First: 3, Root: past[1].Root, Nodes: treeOf(past).Nodes(), World: "test"}
					x.records = x.records[2:]
				}
				return len(run(t, imageless{x}, cfg).Faults)
			}
			more := 1
			if ledger := c.kind == world.KindIntent || c.kind == world.KindResolved; ledger && !part {
				more = 0 // the ledger takes neither
			}
			require.Equal(t, faults(c.good)+more, faults(c.bad), "%s, part: %t", name, part)
		}
	}
}
