package world_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// play is a world of bots whose effects are live, and its outside.
type play struct {
	*worldtest.World
	out *worldtest.Outside
	t   *testing.T
}

// live returns a play of which every batch has one record or turn.
func live(t *testing.T, change ...func(*manifest.Manifest)) *play {
	t.Helper()
	out := new(worldtest.Outside)
	w := botsWith(t, worldtest.Options{Outside: out, BatchRecords: 1}, change...)
	p := &play{World: w, out: out, t: t}
	t.Cleanup(func() {
		if !t.Failed() {
			p.requireSound()
			p.requireSameFromImages(1 + p.Journal.Head().ID/100)
		}
	})
	return p
}

// tool changes what the manifest says about the effect tool.a.
func tool(change func(*manifest.Effect)) func(*manifest.Manifest) {
	return func(m *manifest.Manifest) {
		e := m.Effects["tool.a"]
		change(&e)
		m.Effects["tool.a"] = e
	}
}

func inDoubt(action string) func(*manifest.Manifest) {
	return tool(func(e *manifest.Effect) {
		e.OnInDoubt, e.Idempotent = action, action == manifest.InDoubtRetry
		if action == manifest.InDoubtVerify {
			e.Verify = &manifest.Verify{Adapter: "test"}
		}
	})
}

// ask lets the bot a ask for one tool.a and drives until the outside has it.
func (p *play) ask() receipt.Key {
	p.t.Helper()
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}}})
	p.Drive()
	all := p.Intents()
	return all[len(all)-1].Intent.Key
}

// performing returns the attempt that the outside has longest to perform.
func (p *play) performing() receipt.Task { return p.out.Task(receipt.Perform) }

func (p *play) reply(r worldtest.Reply) {
	p.t.Helper()
	p.out.Reply(p.performing(), r)
	p.Drive()
}

// due ends the backoff of the attempt that waits longest.
func (p *play) due() {
	p.t.Helper()
	p.out.Due(p.out.Task(receipt.Retry))
	p.Drive()
}

// lose leaves the oldest attempt in doubt, and returns it.
func (p *play) lose() receipt.Task {
	p.t.Helper()
	t := p.performing()
	p.out.Lose(t, "the line is dead")
	p.Drive()
	return t
}

// decided asks for an effect that is in doubt then, and has a person decide about it.
func (p *play) decided(how journal.Resolution) receipt.Key {
	p.t.Helper()
	key := p.ask()
	p.lose()
	p.decide(key, how)
	return key
}

func (p *play) entry(key receipt.Key) receipt.Entry {
	p.t.Helper()
	all := p.Intents()
	at := slices.IndexFunc(all, func(e receipt.Entry) bool { return e.Intent.Key == key })
	require.GreaterOrEqual(p.t, at, 0)
	return all[at]
}

// resolve decides about an intent, for a person.
func (p *play) resolve(key receipt.Key, how journal.Resolution) error {
	return worldtest.ErrorOf(p.Resolve(p.t.Context(), journal.Resolved{
		Key: key, How: how, Params: p.entry(key).Params, Actor: "ada", Reason: "she looked",
	}))
}

// decide is resolve, and what comes of it.
func (p *play) decide(key receipt.Key, how journal.Resolution) {
	p.t.Helper()
	require.NoError(p.t, p.resolve(key, how))
	p.Drive()
}

// tells requires what the bot a has seen of receipts.
func (p *play) tells(want ...string) {
	p.t.Helper()
	got := []string{}
	for _, line := range p.seen("a") {
		if _, text, ok := bytes.Cut([]byte(line), []byte(":receipt ")); ok {
			got = append(got, string(text))
		}
	}
	require.Equal(p.t, append([]string{}, want...), got)
}

func (p *play) seen(bot string) []string {
	p.t.Helper()
	var state botState
	decodeJSON(p.t, p.State("bot/"+bot), &state)
	return state.Seen
}

// crash loses what is not durable. The world is not driven.
func (p *play) crash() {
	p.t.Helper()
	p.Crash()
}

// requireSound holds the laws that every journal obeys: replay gives it,
// verification finds nothing, and nothing was performed twice
// under one permit.
func (p *play) requireSound() {
	p.RequireReplay()
	r, err := verify.Verify(context.Background(), p.Journal, verify.Config{
		Keys: worldtest.Keyring(p.t, "test"), Registry: botRegistry(), Anchor: p.Status().Head,
	})
	require.NoError(p.t, err)
	require.Empty(p.t, r.Faults)
	require.True(p.t, r.Ledger.OK)
	performed := make(map[receipt.Nonce]bool)
	for _, permit := range p.out.Performed {
		require.False(p.t, performed[permit.Nonce], "performed twice under one permit")
		performed[permit.Nonce] = true
		require.True(p.t, started(p.t, p.Journal, permit), "performed without a durable permit")
	}
}

// requireSameFromImages requires that an image at every so many records, with
// the records after it, gives what all records give.
func (p *play) requireSameFromImages(every journal.Seq) {
	all := p.Journal.Head().ID
	want := imageOf(p.t, p.Journal.Truncate(all))
	require.NotNil(p.t, want)
	units := 0
	for n := all % every; n <= all; n += every {
		then := p.Journal.Truncate(n)
		if imageOf(p.t, then) == nil {
			continue
		}
		units++
		j := p.Journal.Truncate(all)
		j.Images = then.Clone().Images
		require.Equal(p.t, want, imageOf(p.t, j), "from the image at #%d", n)
	}
	require.NotZero(p.t, units)
}

// imageOf opens a world and returns the image of all of it, nil where the
// journal ends inside a unit.
func imageOf(t *testing.T, j *worldtest.Journal) *journal.Image {
	t.Helper()
	if j.Head().ID == 0 {
		return nil
	}
	w, err := world.Open(world.Config{
		Journal: j, History: j, Registry: botRegistry(), Keys: worldtest.Keyring(t, "test"),
		NewHost: func(string, *manifest.Manifest) (world.Host, error) { return nil, nil },
	})
	if d := new(world.Divergence); err != nil {
		require.ErrorAs(t, err, &d)
		require.Equal(t, "nothing", d.Journal, "the journal ends inside a unit")
		return nil
	}
	require.NoError(t, w.Checkpoint())
	last, err := j.Image(journal.Last)
	require.NoError(t, err)
	img := &journal.Image{Head: last.Head, Core: last.Core, Cells: world.WithoutPastAlarms(t, last), Intents: slices.Clone(last.Intents)}
	for i := range img.Cells {
		img.Cells[i].At = 0 // when it was written is not what the cell is
	}
	slices.SortFunc(img.Cells, func(a, b journal.CellVersion) int { return bytes.Compare([]byte(a.Cell), []byte(b.Cell)) })
	slices.SortFunc(img.Intents, func(a, b journal.IntentVersion) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	return img
}
