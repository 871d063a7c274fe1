package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// leaving is a world.Spill that notes which intents verify itself puts aside: its images,
// other than those of a replay, are no world's.
type leaving struct {
	world.Spill
	left map[journal.Hash]bool
}

// Checkpoint implements world.Spill.
func (x leaving) Checkpoint(img *journal.Image) error {
	for _, in := range img.Intents {
		if img.Core == nil {
			x.left[in.Key] = true
		}
	}
	return x.Spill.Checkpoint(img)
}

// What has ended and was put aside is remembered: whatever the journal goes on to say of it is
// found as if all were in memory.
func TestIntentThatWasPutAsideIsAnsweredOnce(t *testing.T) {
	p := live(t)
	for range 4 {
		p.order(act{"effect": "tool.a", "param": "x"})
		p.Drive()
		p.reply(worldtest.OK(nil))
	}
	p.order(act{"effect": "tool.a", "param": "x"})
	p.Drive()
	p.proven()
	first := p.Intents()[0]
	_, answer, _ := find(t, p.Journal, journal.KindFinished)
	_, permit, _ := find(t, p.Journal, journal.KindStarted)
	_, decision, _ := find(t, p.Journal, journal.KindIntent)
	f := &forger{t: t}
	const dup, lone = "duplicate", "orphan"
	for name, c := range map[string]struct {
		kind    journal.Kind
		payload []byte
		list    string
	}{
		"its receipt again":            {journal.KindFinished, answer, dup},
		"its permit again":             {journal.KindStarted, permit, dup},
		"its decision again":           {journal.KindIntent, decision, dup},
		"a receipt of another attempt": {journal.KindFinished, marshal(t, &journal.Finished{Version: journal.V(1), Receipt: f.receipt(first, 2, receipt.Nonce{7})}), lone},
		"a late receipt":               {journal.KindLate, marshal(t, &journal.Late{Version: journal.V(1), Receipt: f.receipt(first, 1, receipt.Nonce{7})}), lone},
		"an end of the kernel's":       {journal.KindEnded, marshal(t, end(first.Intent.Key, receipt.StatusOK)), dup},
	} {
		t.Run(name, func(t *testing.T) {
			x := tamper(p.Journal)
			id := x.add(t, c.kind, c.payload)
			x.relink(t)
			left := make(map[journal.Hash]bool)
			cfg := verify.Config{Keys: worldtest.Keyring(t, "test")}
			want := once(t, x, cfg)
			spills := new(worldtest.Spills).Spilling()
			cfg.Spilling = world.Spilling{Memory: 1, Spill: func() (world.Spill, error) {
				s, err := spills.Spill()
				return leaving{s, left}, err
			}}
			r := once(t, x, cfg)
			require.True(t, left[first.Intent.Key.Hash], "it was put aside")
			require.Equal(t, want, r)
			require.Contains(t, places(r), place(id))
			lists := map[string][]receipt.Key{dup: r.Ledger.DuplicateKeys, lone: r.Ledger.OrphanKeys}
			require.Contains(t, lists[c.list], first.Intent.Key)
			require.False(t, r.Ledger.OK)
		})
	}
}
