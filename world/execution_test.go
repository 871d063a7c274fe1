package world_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// requireExecution requires what a world's execution hash is of, after the line
// of the manifest.
func (p *play) requireExecution(lines ...string) {
	p.t.Helper()
	x := journal.NewExecution()
	for _, s := range p.Journal.Records() {
		rec, err := journal.DecodeRecord(s.Bytes)
		require.NoError(p.t, err)
		require.NoError(p.t, rec.Load(p.Journal))
		body, err := rec.Body()
		require.NoError(p.t, err)
		require.NoError(p.t, x.Add(body))
	}
	created := worldtest.Bodies[*journal.Created](p.t, p.Journal)[0]
	want := fmt.Sprintf("manifest %s\n%s\n", created.Manifest, strings.Join(lines, "\n"))
	require.Equal(p.t, journal.Hash(sha256.Sum256([]byte(want))), x.Hash(), "%s", want)
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
		require.NoError(t, p.resolve(key, journal.Executed))
		p.requireExecution("bot/a@1:success", p.step(key)+":side_effect_committed")
	})
	t.Run("denied", func(t *testing.T) {
		p := live(t, approvals)
		key := p.ask()
		p.requireExecution("bot/a@1:success")
		require.NoError(t, p.resolve(key, journal.Disapprove))
		p.requireExecution("bot/a@1:success", p.step(key)+":permanent_failure")
	})
	t.Run("not confirmed", func(t *testing.T) {
		p := recorded(t, manifest.VerifyStrict, receipt.NotHappened)
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
	require.Len(t, worldtest.Bodies[*journal.Late](t, p.Journal), 1)
	p.requireExecution("bot/a@1:success", p.step(key)+":permanent_failure", "bot/a@2:pure")
}

func TestExecutionOfWhatIsAskedForAgain(t *testing.T) {
	t.Run("recorded and waits", func(t *testing.T) {
		p := live(t)
		p.ordered()
		key := p.Intents()[0].Intent.Key
		p.back("before")
		p.reply(worldtest.OK(nil))
		p.back("before")
		p.requireExecution("bot/a@1:success", "bot/a@1:success", p.step(key)+":side_effect_committed", "bot/a@2:pure",
			"bot/a@1:success", "bot/a@2:pure")
	})
	t.Run("cancelled", func(t *testing.T) {
		p := live(t, func(m *manifest.Manifest) { m.Limits.InFlight = 1 })
		p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}, {Effect: "tool.l", Param: "y"}}})
		p.snapshot("before")
		p.Drive()
		x, y := p.Intents()[0].Intent.Key, p.Intents()[1].Intent.Key
		p.back("before")
		p.reply(worldtest.OK(nil))
		p.reply(worldtest.OK(nil))
		p.requireExecution("bot/a@1:success", p.step(y)+":permanent_failure", "bot/a@1:success",
			p.step(x)+":side_effect_committed", "bot/a@2:pure", p.step(y)+":side_effect_committed", "bot/a@3:pure")
	})
	t.Run("compensated", func(t *testing.T) {
		p := undone(t)
		p.ordered()
		p.reply(worldtest.OK(map[string]any{"id": 7}))
		key := p.Intents()[0].Intent.Key
		p.back("before", compensating)
		p.reply(worldtest.OK(nil))
		p.requireExecution("bot/a@1:success", p.step(key)+":side_effect_committed", "bot/a@2:pure",
			"bot/a@1:success", p.step(key)+"!compensate:side_effect_committed", p.step(key)+":compensated", "bot/a@2:pure")
	})
	t.Run("reused", func(t *testing.T) {
		p := live(t, tool(func(e *manifest.Effect) { e.OnRepeat = manifest.RepeatReuse }))
		p.snapshot("before")
		p.done("x", worldtest.OK(nil))
		p.back("before")
		p.Submit("go", order{To: "a", Say: "another history", Do: []act{{Effect: "tool.a", Param: "x"}}})
		p.Drive()
		all := p.Intents()
		p.requireExecution("bot/a@1:success", string(all[0].Intent.Step)+":side_effect_committed", "bot/a@2:pure",
			"bot/a@1:success", string(all[1].Intent.Step)+":side_effect_committed", "bot/a@2:pure")
		require.Len(t, p.out.Performed, 1)
	})
}

func TestExecutionNamesEveryManifestInForce(t *testing.T) {
	p := live(t)
	p.Submit("go", order{To: "a"})
	p.Drive()
	next := *p.Manifest()
	next.Version++
	require.NoError(t, worldtest.Adopt(t.Context(), p.World.World, &next, nil))
	p.Submit("go", order{To: "b"})
	p.Drive()
	p.requireExecution("bot/a@1:pure", "manifest "+p.Status().Manifest.String(), "bot/b@1:pure")
}
