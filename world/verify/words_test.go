package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// Nothing computes again what records say in a gap of the replay, or in a part of a
// journal. Words that no kernel writes are found there all the same.
func TestWordsThatNoKernelWritesAreFaults(t *testing.T) {
	p := told(t)
	key := keysOf(p, 0)[0]
	left := func(state receipt.State, d journal.Disposition) *journal.RolledBack {
		return &journal.RolledBack{Version: journal.V(1), Abandoned: []journal.SideEffect{{Key: key, State: state, Disposition: d}}}
	}
	for name, c := range map[string]struct {
		kind      journal.Kind
		good, bad journal.Body
	}{
		"outcome of a step":    {journal.KindStepped, &journal.Stepped{Version: journal.V(1), Outcome: receipt.OutcomePure}, &journal.Stepped{Version: journal.V(1), Outcome: "purer"}},
		"outcome of a receipt": {journal.KindWaiting, &journal.IntentWaiting{Version: journal.V(1), Key: key, Outcome: receipt.OutcomeCompensatable}, &journal.IntentWaiting{Version: journal.V(1), Key: key, Outcome: receipt.OutcomePure}},
		"what is done":         {journal.KindInDoubt, &journal.InDoubt{Version: journal.V(1), Key: key, Action: manifest.InDoubtAsk}, &journal.InDoubt{Version: journal.V(1), Key: key, Action: "hope"}},
		"mode":                 {journal.KindConfirmed, &journal.Confirmed{Version: journal.V(1), Key: key, Mode: manifest.VerifyStrict, Verdict: receipt.Happened}, &journal.Confirmed{Version: journal.V(1), Key: key, Mode: "lax", Verdict: receipt.Happened}},
		"verdict":              {journal.KindConfirmed, &journal.Confirmed{Version: journal.V(1), Key: key, Mode: manifest.VerifyWarn, Verdict: receipt.NotHappened}, &journal.Confirmed{Version: journal.V(1), Key: key, Mode: manifest.VerifyWarn, Verdict: receipt.Unknown}},
		"disposition":          {journal.KindRollback, left(receipt.StateFailed, journal.Kept), left(receipt.StateFailed, "lost")},
		"state":                {journal.KindRollback, left(receipt.StateCommitted, journal.Kept), left("lost", journal.Kept)},
		"decision":             {journal.KindIntent, claim(key, "allow"), claim(key, "perhaps")},
		"decision of a person": {journal.KindResolved, &journal.Resolved{Version: journal.V(1), Key: key, How: world.Reuse}, &journal.Resolved{Version: journal.V(1), Key: key, How: "perhaps"}},
	} {
		for _, part := range []bool{false, true} {
			faults := func(b journal.Body) int {
				x := tamper(p.Journal)
				x.redact(t, 2)
				x.add(t, c.kind, marshal(t, b))
				x.relink(t)
				cfg := verify.Config{}
				if part {
					past := x.records[:2]
					cfg.Begin = verify.Begin{First: 3, Root: past[1].Root, Nodes: worldtest.TreeOf(past).Nodes(), World: "test"}
					x.records = x.records[2:]
				}
				return len(run(t, imageless{x}, cfg).Faults)
			}
			more := 1
			if ledger := c.kind == journal.KindIntent || c.kind == journal.KindResolved; ledger && !part {
				more = 0 // the ledger takes neither
			}
			require.Equal(t, faults(c.good)+more, faults(c.bad), "%s, part: %t", name, part)
		}
	}
}
