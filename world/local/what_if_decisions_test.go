package local_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// careful asks a person about each payment.
var careful = strings.NewReplacer("decide: allow", "decide: require_approval", "version: 1\n", "version: 1\ndefaults: {approval_ttl: 9}\n").Replace(
	worldtest.Caller("shop", "outside.pay: {adapter: till, on_in_doubt: ask}"))

// asked is a world in which a person decided about a payment, or has yet to, and its backup.
func asked(t *testing.T, how journal.Resolution, payload string) *anew {
	t.Helper()
	a := &anew{t: t, till: new(till), home: t.TempDir(), copy: filepath.Join(t.TempDir(), "copy")}
	a.write(local.ManifestFile, careful)
	a.write("caller.star", asker)
	require.NoError(t, local.Create(a.home, local.CreateOptions{ID: "parent"}, a.till.options()))
	w := openPaying(t, a.home, a.till.options())
	_, err := w.Submit(t.Context(), "go", map[string]any{"to": "a", "kind": "outside.pay", "what": "rent"})
	require.NoError(t, err)
	for how != "" {
		require.NoError(t, w.Step(t.Context()))
		require.NoError(t, w.Step(t.Context()))
		stood := awaiting(w)
		if len(stood) == 0 {
			break
		}
		b := &journal.Resolved{Key: stood[0].Intent.Key, How: how, Params: stood[0].Params, Actor: "ben", Reason: "so it is"}
		if how == journal.Edit {
			b.Payload, err = canon.Marshal(payload)
			require.NoError(t, err)
		}
		require.NoError(t, w.Decide(t.Context(), b, &stood[0]))
		if how == journal.Edit {
			how = journal.Approve
		}
	}
	require.NoError(t, w.Close())
	a.backup()
	t.Cleanup(a.close)
	return a
}

func awaiting(w *local.World) (all []receipt.Entry) {
	w.View(func(m *world.Moment) { all = m.Undecided() })
	return all
}

// TestDecisionsAreRepeatedWhereTheSameIsAsked under the same policies: what comes after an
// approval, a denial and an edit is lived through again, in the ticks in which it was.
func TestDecisionsAreRepeatedWhereTheSameIsAsked(t *testing.T) {
	for how, want := range map[journal.Resolution]struct {
		decided, answered uint64
	}{journal.Approve: {1, 1}, journal.Disapprove: {1, 0}, journal.Edit: {2, 1}} {
		t.Run(string(how), func(t *testing.T) {
			a := asked(t, how, "half the rent")
			was, x := a.try()
			require.Equal(t, want.decided, x.Followed.Decided)
			require.Equal(t, want.answered, x.Answered)
			require.Empty(t, x.Followed.LeftOut)
			for _, other := range []*local.World{was.Fork, x.Fork} {
				d := differs(t, x.World, other)
				require.True(t, d.Same(), "%+v", d)
			}

			a.write("caller.star", strings.Replace(asker, "[event.data", `["told", event.data`, 1))
			_, x = a.try()
			require.Contains(t, toldOf(t, x.Fork, "a"), `["told",`)
			require.Len(t, a.till.paid, int(want.answered), "nothing is paid again")
		})
	}
}

// TestDecisionsAreRepeatedAboutNothingElse: other params, another policy or another effect
// wait for a person, and so does everything where that is asked for.
func TestDecisionsAreRepeatedAboutNothingElse(t *testing.T) {
	for name, edit := range map[string]func(*anew){
		"other params": func(a *anew) { a.write("caller.star", strings.Replace(asker, `data["what"]`, `data["what"] + "!"`, 1)) },
		"another policy": func(a *anew) {
			a.write(local.ManifestFile, strings.Replace(careful, `when: "true"`, `when: "true || false"`, 1))
		},
		"another effect": func(a *anew) {
			a.write(local.ManifestFile, strings.Replace(careful, "on_in_doubt: ask", "on_in_doubt: ask, timeout: 5s", 1))
		},
		"another cap":      func(a *anew) { a.write(local.ManifestFile, strings.Replace(careful, `["outside.*"]`, `["*"]`, 1)) },
		"none is repeated": func(a *anew) { a.undecided = true },
	} {
		t.Run(name, func(t *testing.T) {
			a := asked(t, journal.Approve, "")
			edit(a)
			_, x := a.try("outside.pay")
			require.Zero(t, x.Followed.Decided)
			require.Equal(t, []local.LeftOut{{Kind: journal.KindResolved, Records: 1}}, x.Followed.LeftOut)
			require.Equal(t, `[]`, toldOf(t, x.Fork, "a"))
			require.Equal(t, []string{"rent"}, a.till.paid)
		})
	}
}

// TestDecisionIsRepeatedWhereItIsAskedForLater than in the world, and the payment is that of
// the past: it is not made again, whatever is live.
func TestDecisionIsRepeatedWhereItIsAskedForLater(t *testing.T) {
	a := asked(t, journal.Approve, "")
	a.write("caller.star", strings.Replace(asker, `    ctx.effect(`, `    if event.data.get("what") == "rent":
        ctx.timer(20, "go", {"to": "a", "kind": "outside.pay", "what": "rent later"})
        return state
    ctx.effect(event.data["kind"], "rent")
    return state or []
    ctx.effect(`, 1))
	_, x := a.try("outside.pay")
	require.Equal(t, uint64(1), x.Followed.Decided)
	require.Empty(t, awaiting(x.Fork))
	require.Equal(t, `["paid rent"]`, toldOf(t, x.Fork, "a"))
	require.Equal(t, []string{"rent"}, a.till.paid)
}
