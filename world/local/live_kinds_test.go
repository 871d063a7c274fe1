package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

const kindsWorld = `outside.ask: {adapter: till, config: {model: old}}
  outside.mail: {adapter: till, class: write}
  outside.pay: {adapter: till, class: destructive}`

// shop opens a new world with three kinds of effects, whose cells ask for what they are told.
func shop(t *testing.T, p *till) *local.World {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{local.ManifestFile: worldtest.Caller("shop", kindsWorld), "caller.star": asker} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "parent"}, p.options()))
	return openPaying(t, dir, p.options())
}

func wantAll(t *testing.T, w *local.World) {
	t.Helper()
	for _, kind := range []string{"outside.ask", "outside.mail", "outside.pay"} {
		_, err := w.Submit(t.Context(), "go", map[string]any{"to": kind[8:], "kind": kind, "what": kind})
		require.NoError(t, err)
	}
}

// TestForkPerformsOnlyTheKindsThatAreNamed, whatever its mode: others wait for a person, or
// are unknown. It is so for whoever opens it, and a fork of it has its own.
func TestForkPerformsOnlyTheKindsThatAreNamed(t *testing.T) {
	for _, c := range []struct {
		live manifest.Live
		want []string
	}{
		{manifest.Live{"outside.ask"}, []string{"outside.ask"}},
		{manifest.Live{"outside.*"}, []string{"outside.ask", "outside.mail"}},
		{manifest.Live{"*"}, []string{"outside.ask", "outside.mail"}},
		{manifest.Live{"outside.pay"}, []string{"outside.pay"}},
		{manifest.Live{"outside.pay", "*"}, []string{"outside.ask", "outside.mail", "outside.pay"}},
	} {
		for _, mode := range []journal.ForkEffects{journal.ForkLive, journal.ForkRecorded} {
			p := new(till)
			w := shop(t, p)
			to := filepath.Join(t.TempDir(), "fork")
			done, err := w.Fork(t.Context(), to, local.ForkOptions{Effects: mode, Live: c.live})
			require.NoError(t, err)
			require.Equal(t, c.want, done.Live)
			require.NoError(t, w.Close())

			require.NoError(t, openPaying(t, to, p.options()).Close()) // from an image from here on
			f := openPaying(t, to, p.options())
			wantAll(t, f)
			err = f.Run(t.Context())
			if mode == journal.ForkRecorded && len(c.want) < 3 {
				require.Error(t, err, "nothing answers the others")
			} else {
				require.NoError(t, err)
				require.Equal(t, 3-len(c.want), f.Status().Intents[receipt.StateAwaitingApproval])
			}
			require.ElementsMatch(t, c.want, p.paid, "%s %v", mode, c.live)
			sound(t, f)
			require.NoError(t, f.Close())
		}
	}
}

// TestForkThatNamesNoKindPerformsNothing: no mode alone makes anything live.
func TestForkThatNamesNoKindPerformsNothing(t *testing.T) {
	p := new(till)
	w := shop(t, p)
	for name, f := range map[string]local.ForkOptions{
		"live without a kind": {Effects: journal.ForkLive}, "no such kind": {Effects: journal.ForkLive, Live: manifest.Live{"outside.asks"}},
		"destructive, by a pattern": {Effects: journal.ForkRecorded, Live: manifest.Live{"outside.pa*"}},
		"on hold":                   {Effects: journal.ForkHold, Live: manifest.Live{"outside.ask"}},
	} {
		to := filepath.Join(t.TempDir(), "fork")
		_, err := w.Fork(t.Context(), to, f)
		var wrong *world.InputError
		require.ErrorAs(t, err, &wrong, name)
		require.NoDirExists(t, to)
	}
	to := filepath.Join(t.TempDir(), "fork")
	_, err := w.Fork(t.Context(), to, local.ForkOptions{Effects: journal.ForkRecorded})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	f := openPaying(t, to, p.options())
	wantAll(t, f)
	require.Error(t, f.Run(t.Context()))
	require.Empty(t, f.Performs())
	require.Empty(t, p.paid)
	require.NoError(t, f.Close())
}

// TestAnswerUnderAnotherConfigIsNoAnswer: what was recorded of an effect that is declared
// otherwise now is counted, and unknown, or asked anew where that is said.
func TestAnswerUnderAnotherConfigIsNoAnswer(t *testing.T) {
	model := func(name string) world.Amendment {
		return func(base *manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
			next := *base
			next.Effects = map[string]manifest.Effect{"outside.mail": base.Effects["outside.mail"], "outside.pay": base.Effects["outside.pay"]}
			e := base.Effects["outside.ask"]
			var err error
			e.Config, err = canon.Marshal(map[string]any{"model": name})
			next.Effects["outside.ask"] = e
			return &next, nil, err
		}
	}
	for _, c := range []struct {
		model     string
		live      manifest.Live
		otherwise map[string]uint64
		unknown   int
		performed uint64
	}{
		{"old", nil, map[string]uint64{}, 0, 0},
		{"old", manifest.Live{"outside.ask"}, map[string]uint64{}, 0, 0},
		{"new", nil, map[string]uint64{"outside.ask": 2}, 2, 0},
		{"new", manifest.Live{"outside.mail"}, map[string]uint64{"outside.ask": 2}, 2, 0},
		{"new", manifest.Live{"outside.ask"}, map[string]uint64{"outside.ask": 2}, 0, 2},
	} {
		p := new(till)
		w := shop(t, p)
		before := w.Status().Head.ID
		for range 2 {
			wantAll(t, w)
			require.NoError(t, w.Run(t.Context()))
		}
		require.Len(t, p.paid, 6)
		scratch := t.TempDir()
		x, err := w.Suppose(t.Context(), local.WhatIf{
			At:    func(*local.World) (journal.Seq, error) { return before, nil },
			Amend: model(c.model), Live: c.live, Dir: filepath.Join(scratch, "fork"), Copy: filepath.Join(scratch, "copy"), Actor: "ada",
		})
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, x.Run(t.Context(), p.options()))
		require.Equal(t, c.otherwise, x.Otherwise, "%+v", c)
		require.Len(t, x.Unanswered, c.unknown, "%+v", c)
		for _, miss := range x.Unanswered {
			require.True(t, miss.OtherConfig)
			require.ErrorContains(t, miss, "under another config of outside.ask")
		}
		require.Equal(t, c.performed, x.Performed, "%+v", c)
		require.Len(t, p.paid, 6+int(c.performed), "nothing else is performed")
		require.NoError(t, x.Close())
	}
}

// TestForkUnderAnotherConfigIsNotAnswered by what its parent has recorded, nor by what was recorded before
// a change of the rules that its parent has applied since.
func TestForkUnderAnotherConfigIsNotAnswered(t *testing.T) {
	p := new(till)
	w := shop(t, p)
	at := w.Status().Head.ID
	wantAll(t, w)
	require.NoError(t, w.Run(t.Context()))
	to := filepath.Join(t.TempDir(), "fork")
	_, err := w.Fork(t.Context(), to, local.ForkOptions{At: at, Effects: journal.ForkRecorded, Amend: func(base *manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
		next := *base
		next.Effects = make(map[string]manifest.Effect)
		for kind, e := range base.Effects {
			e.Timeout = 1e9 // which changes no answer
			next.Effects[kind] = e
		}
		pay := next.Effects["outside.pay"]
		var err error
		pay.Config, err = canon.Marshal(map[string]any{"to": "secret://OTHER"})
		next.Effects["outside.pay"] = pay
		return &next, nil, err
	}})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	f := openPaying(t, to, p.options())
	wantAll(t, f)
	require.ErrorContains(t, f.Run(t.Context()), "under another config of outside.pay")
	require.Len(t, p.paid, 3)
	require.NoError(t, f.Close())
}
