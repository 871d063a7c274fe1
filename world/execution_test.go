package world_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// requireExecution requires what a world's execution hash is of, after the line
// of the manifest.
func (p *play) requireExecution(lines ...string) {
	p.t.Helper()
	x := world.NewExecution()
	for _, s := range p.Journal.Records() {
		rec, err := world.DecodeRecord(s.Bytes)
		require.NoError(p.t, err)
		require.NoError(p.t, rec.Load(p.Journal))
		require.NoError(p.t, x.Add(&rec))
	}
	want := fmt.Sprintf("manifest %s\n%s\n", p.Status().Manifest, strings.Join(lines, "\n"))
	require.Equal(p.t, world.Hash(sha256.Sum256([]byte(want))), x.Hash(), "%s", want)
}

func (p *play) step(key receipt.Key) string { return string(p.entry(key).Intent.Step) }

func TestExecutionHasOneLineForAllAttempts(t *testing.T) {
	p := live(t)
	key := p.ask()
	p.reply(retryable())
	p.due()
	p.requireExecution("bot/a@1:success")
	p.reply(worldtest.OK(nil))
	p.requireExecution("bot/a@1:success", p.step(key)+":side_effect_committed", "bot/a@2:pure")
}

func TestExecutionCallsExhaustedAttemptsPermanent(t *testing.T) {
	p := live(t, tool(func(e *manifest.Effect) { e.Retry.Attempts = 1 }))
	key := p.ask()
	p.reply(retryable())
	p.requireExecution("bot/a@1:success", p.step(key)+":permanent_failure", "bot/a@2:pure")
}

func TestExecutionEndsACompensatedIntentAfterItsCompensation(t *testing.T) {
	p := live(t, undo)
	key := p.ask()
	p.reply(halfDone())
	p.requireExecution("bot/a@1:success")
	p.reply(worldtest.OK(nil))
	p.requireExecution("bot/a@1:success", p.step(key)+"!compensate:side_effect_committed", p.step(key)+":compensated", "bot/a@2:pure")
}

func TestExecutionOfDecisions(t *testing.T) {
	t.Run("in doubt", func(t *testing.T) {
		p := live(t)
		key := p.ask()
		p.lose()
		p.requireExecution("bot/a@1:success")
		require.NoError(t, p.resolve(key, world.Executed))
		p.requireExecution("bot/a@1:success", p.step(key)+":side_effect_committed")
	})
	t.Run("denied", func(t *testing.T) {
		p := live(t, approvals)
		key := p.ask()
		p.requireExecution("bot/a@1:success")
		require.NoError(t, p.resolve(key, world.Disapprove))
		p.requireExecution("bot/a@1:success", p.step(key)+":permanent_failure")
	})
	t.Run("not confirmed", func(t *testing.T) {
		p := recorded(t, manifest.VerifyStrict, world.NotHappened)
		_, err := p.Confirm(t.Context())
		require.NoError(t, err)
		all := p.Intents()
		a, b := string(all[0].Intent.Step), string(all[1].Intent.Step)
		p.requireExecution("bot/a@1:success", "bot/b@1:success",
			a+":side_effect_committed", b+":side_effect_committed", a+":permanent_failure")
	})
}

// A late receipt, a person's name and what time it was are not what happened.
func TestLateReceiptIsNotPartOfTheExecution(t *testing.T) {
	p := live(t, inDoubt(manifest.InDoubtFail))
	key := p.ask()
	lost := p.lose()
	p.out.Reply(lost, worldtest.OK(nil))
	p.Drive()
	require.Len(t, bodies[*world.Late](t, p.Journal), 1)
	p.requireExecution("bot/a@1:success", p.step(key)+":permanent_failure", "bot/a@2:pure")
}
