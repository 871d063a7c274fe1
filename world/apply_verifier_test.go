package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// unverified drops the verifier of a kind.
func unverified(kind string) func(map[string]manifest.Effect) {
	return func(effects map[string]manifest.Effect) {
		e := effects[kind]
		e.Verify, e.OnInDoubt = nil, manifest.InDoubtPark
		effects[kind] = e
	}
}

// Where the candidate has no verifier, nobody is left to ask: it is as if the
// verifier could not tell.
func TestVerifierThatIsDroppedWhileItIsAskedLeavesAPersonToDecide(t *testing.T) {
	p := live(t, inDoubt(manifest.InDoubtVerify))
	key := p.ask()
	p.lose()
	require.Len(t, p.out.Tasks(receipt.Verify), 1)
	require.NoError(t, p.council().apply(p.ready(p.candidate(unverified("tool.a")))))
	for range 2 {
		progress, err := p.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, world.Idle, progress, "there is nothing to wait for")
		require.Empty(t, p.out.Tasks(receipt.Verify))
		require.Equal(t, receipt.StateInDoubt, p.entry(key).State)
		require.True(t, p.Idle())
		p.crash()
	}
	p.decide(key, journal.Executed)
	p.tells("x0 ok")
}

// A verdict that has come and is not yet taken is of the host before.
func TestVerdictsOfTheHostBeforeAreAskedForAgain(t *testing.T) {
	happened := func(p *play) { p.out.Find(p.out.Task(receipt.Verify), receipt.Happened, nil, "it is there") }
	for name, hold := range map[string]func(*play){
		"held until the tick is over": func(p *play) {
			p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.l"}}})
			happened(p)
			require.ErrorIs(p.t, p.World.World.Step(p.t.Context()), worldtest.ErrNoAnswer)
		},
		"held beside a confirmation": func(p *play) {
			p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.a"}}})
			p.Drive()
			data, err := worldtest.Sign(worldtest.Keyring(p.t, "test"), "test", p.performing().Permit, worldtest.OK(nil))
			require.NoError(p.t, err)
			p.Submit("go", order{To: "c"}) // ends the tick: b handles the receipt in the next one
			_, err = p.Receive(data)
			require.NoError(p.t, err)
			happened(p)
			p.out.Play = func(task receipt.Task) {
				if task.Work == receipt.Confirm {
					p.out.Find(task, receipt.Happened, nil, "it is there")
				}
			}
			_, err = p.Confirm(p.t.Context())
			require.NoError(p.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, change := range []func(map[string]manifest.Effect){same, unverified("tool.a")} {
				p := live(t, inDoubt(manifest.InDoubtVerify))
				key := p.ask()
				p.lose()
				hold(p)
				require.Equal(t, receipt.StateInDoubt, p.entry(key).State)
				next := p.candidate(change)
				require.NoError(t, p.council().apply(p.ready(next)))
				p.Drive()
				require.Equal(t, receipt.StateInDoubt, p.entry(key).State)
				if next.Effects["tool.a"].Verify == nil {
					require.Empty(t, p.out.Tasks(receipt.Verify))
					continue
				}
				progress, err := p.Next(t.Context())
				require.NoError(t, err)
				require.Equal(t, world.Waiting, progress)
				happened(p)
				p.Drive()
				require.Equal(t, receipt.StateCommitted, p.entry(key).State)
			}
		})
	}
}

func TestRecordedResultIsToldWhereItsVerifierIsDropped(t *testing.T) {
	for name, drop := range map[string]func(map[string]manifest.Effect){
		"the verifier": unverified("tool.a"), "the kind": without("tool.a"),
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t, tool(func(e *manifest.Effect) { e.Verify = &manifest.Verify{Adapter: "test", Mode: manifest.VerifyStrict} }))
			p.order("x")
			p.Drive()
			p.snapshot("waiting")
			p.reply(worldtest.OK(nil))
			_, err := p.Rollback(t.Context(), journal.RolledBack{Snapshot: "waiting", Actor: "ada", Reason: "a try", Ack: true})
			require.NoError(t, err)
			p.Drive()
			require.Len(t, p.out.Tasks(receipt.Confirm), 1)
			p.tells()
			require.NoError(t, p.council().apply(p.ready(p.candidate(drop))))
			applied := p.Status().Head.ID
			p.crash()
			p.Drive()
			require.Empty(t, p.out.Tasks(receipt.Confirm))
			p.tells("x0 ok")
			require.Len(t, p.out.Performed, 1)
			last, err := journal.DecodeRecord(p.Journal.Records()[p.Status().Head.ID-1].Bytes)
			require.NoError(t, err)
			require.Equal(t, []any{journal.KindStepped, applied}, []any{last.Kind, last.CausedBy})
		})
	}
}
