package worldctl

import (
	"crypto/ed25519"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// cancelling is a world whose cells set, move and cancel timers, and cancel what has
// begun and what has not; with a rollback over a timer.
func cancelling(t *testing.T) *life {
	t.Helper()
	loaded := botsOf(t)
	l := &life{t: t, rng: rand.New(rand.NewPCG(1, 2)), id: "test", out: new(worldtest.Outside)}
	m := *loaded.Manifest
	m.Policies = append(m.Policies, manifest.Policy{Name: "ask", When: `intent.kind == "tool.b"`, Decide: manifest.DecideRequireApproval})
	l.w = worldtest.New(t, m, loaded.Contents, worldtest.Options{ID: l.id, Outside: l.out})
	order := func(acts ...map[string]any) {
		l.w.Submit("go", map[string]any{"to": "a", "do": acts})
		l.next()
		require.NoError(t, l.w.Sync())
	}
	type act = map[string]any
	timer := func(ticks int, tag string) act { return act{"timer": ticks, "tag": tag} }
	order(timer(2, "moved"), timer(5, "ended"), timer(50, "left"), act{"effect": "tool.a", "param": "begun"}, act{"effect": "tool.b", "param": "asked"})
	data, err := canon.Marshal(map[string]any{"to": "b"})
	require.NoError(t, err)
	_, err = l.w.World.Submit(t.Context(), world.Keyed(world.Submission{Name: "go", Data: data}, "a key"))
	require.NoError(t, err)
	order(timer(4, "moved"), act{"cancel": "ended"}, act{"cancel": "begun"}, act{"cancel": "asked"})
	l.out.Reply(l.out.Task(receipt.Perform), worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure})
	l.next()
	require.NoError(t, l.w.Sync())
	_, err = l.w.Snapshot(t.Context(), "noon", "", "ada")
	require.NoError(t, err)
	order(timer(3, "over"))
	_, _, err = l.w.Rollback(t.Context(), journal.RolledBack{Snapshot: "noon", Actor: "ada", Reason: "so"})
	require.NoError(t, err)
	l.w.Drive()
	require.NoError(t, l.w.Sync())
	fired := len(worldtest.Bodies[*journal.TimerFired](t, l.w.Journal))
	require.Equal(t, 2, fired, "what was moved, and what was left alone")
	return l
}

// find returns the nth record of a kind, from 0 on.
func (f *counterfeit) find(kind journal.Kind, n int) int {
	for _, at := range f.records() {
		if e, ok := f.envelope(at); ok && journal.Kind(e.Kind) == kind {
			if n--; n < 0 {
				return at
			}
		}
	}
	f.t.Fatalf("there is no such %s", kind)
	return -1
}

// id returns the number that a record has.
func (f *counterfeit) id(at int) uint64 { e, _ := f.envelope(at); return e.ID }

// insert puts a record before another one.
func (f *counterfeit) insert(at int, kind journal.Kind, cause uint64, body journal.Body) {
	payload, err := canon.Marshal(body)
	require.NoError(f.t, err)
	next, _ := f.envelope(at)
	b := canon.AppendEnvelope(nil, canon.Envelope{ID: 1 << 40, Time: next.Time, Kind: string(kind), CausedBy: cause, Payload: payload})
	f.items = slices.Insert(f.items, at, item{sort: aRecord, bytes: b})
}

// twice puts a record there once more, right after it.
func (f *counterfeit) twice(at int) { f.items = slices.Insert(f.items, at+1, f.items[at]) }

// swap has a record and the next change places.
func (f *counterfeit) swap(at int) { f.items[at], f.items[at+1] = f.items[at+1], f.items[at] }

// leaveOut has a history go on from a record by a tick of a thousand later, and nothing else.
func (f *counterfeit) leaveOut(from int) {
	f.insert(from, journal.KindAdvanced, 0, &journal.Advanced{Version: journal.V(journal.BodyVersion), To: 1000})
	later := slices.DeleteFunc(f.records(), func(at int) bool { return at <= from })
	for _, at := range slices.Backward(later) {
		f.remove(at)
	}
}

// cause has a record be caused by another one.
func (f *counterfeit) cause(at int, by uint64) {
	e, _ := f.envelope(at)
	e.CausedBy = by
	f.items[at].bytes = canon.AppendEnvelope(nil, e)
}

// fire has a timer fire where another one does.
func (f *counterfeit) fire(set int, fired int) {
	b := f.body(set).(*journal.TimerSet)
	f.insert(f.find(journal.KindFired, fired), journal.KindFired, f.id(set), &journal.TimerFired{Version: journal.V(1), Cell: b.Cell, Name: b.Name})
}

// says changes what the nth record of a kind says.
func says[B journal.Body](kind journal.Kind, n int, change func(B)) func(*counterfeit) {
	return func(f *counterfeit) {
		at := f.find(kind, n)
		b := f.body(at).(B)
		change(b)
		f.say(at, b)
	}
}

// without removes the nth record of a kind.
func without(kind journal.Kind, n int) func(*counterfeit) {
	return func(f *counterfeit) { f.remove(f.find(kind, n)) }
}

// The timers of cancelling, and its cancels, in the order of their records.
const (
	setMoved = iota
	setEnded
	setLeft
	setAgain
	setOver
)

const (
	cancelEnded = iota
	cancelMoved
)

const (
	cancelBegun = iota
	cancelAsked
)

// forgedTags are histories that nobody can have had, by what is wrong with them.
var forgedTags = map[string]func(*counterfeit){
	"a timer that was cancelled fires":          func(f *counterfeit) { f.fire(f.find(journal.KindTimer, setEnded), 0) },
	"a timer that was moved fires":              func(f *counterfeit) { f.fire(f.find(journal.KindTimer, setMoved), 0) },
	"a timer that a rollback left behind fires": func(f *counterfeit) { f.fire(f.find(journal.KindTimer, setOver), 0) },
	"a timer fires early":                       func(f *counterfeit) { f.fire(f.find(journal.KindTimer, setLeft), 0) },
	"a timer fires twice":                       func(f *counterfeit) { f.twice(f.find(journal.KindFired, 0)) },
	"a timer does not fire":                     func(f *counterfeit) { f.leaveOut(f.find(journal.KindFired, 0)) },
	"the last timer does not fire":              func(f *counterfeit) { f.leaveOut(f.find(journal.KindFired, 1)) },
	"something is permitted where nobody performs": says(journal.KindAdvanced, 0, func(b *journal.Advanced) {
		b.Still = true
	}),
	"a timer fires late": func(f *counterfeit) {
		f.fire(f.find(journal.KindTimer, setAgain), 1)
		f.remove(f.find(journal.KindFired, 0))
	},
	"a timer fires that nobody set":                func(f *counterfeit) { f.cause(f.find(journal.KindFired, 0), f.id(f.find(journal.KindStepped, 0))) },
	"a timer fires in another cell":                says(journal.KindFired, 0, func(b *journal.TimerFired) { b.Cell = "bot/b" }),
	"a timer fires as another event":               says(journal.KindFired, 0, func(b *journal.TimerFired) { b.Name = "ping" }),
	"a timer is set for a tick that has come":      says(journal.KindTimer, setLeft, func(b *journal.TimerSet) { b.Deadline = 1 }),
	"a timer is set by another cell's step":        says(journal.KindTimer, setLeft, func(b *journal.TimerSet) { b.Cell = "bot/b" }),
	"a timer is set by no step":                    func(f *counterfeit) { f.cause(f.find(journal.KindTimer, setLeft), 1) },
	"a tag is set again, and was not cancelled":    without(journal.KindTagCancelled, cancelMoved),
	"a timer is cancelled twice":                   func(f *counterfeit) { f.twice(f.find(journal.KindTagCancelled, cancelEnded)) },
	"a timer is cancelled under another tag":       says(journal.KindTagCancelled, cancelEnded, func(b *journal.TagCancelled) { b.Tag = "left" }),
	"a timer that waits is not the cancelled one":  says(journal.KindTagCancelled, cancelEnded, func(b *journal.TagCancelled) { b.Timer = 0 }),
	"a tag is cancelled under which nothing waits": says(journal.KindTagCancelled, cancelEnded, func(b *journal.TagCancelled) { b.Timer, b.Tag = 0, "none" }),
	"a receipt is cancelled that nothing brought": says(journal.KindTagCancelled, cancelEnded, func(b *journal.TagCancelled) {
		b.Receipts = []journal.Seq{1}
	}),
	"a receipt is cancelled that comes later": says(journal.KindTagCancelled, cancelEnded, func(b *journal.TagCancelled) {
		b.Receipts = []journal.Seq{1 << 30}
	}),

	"a tag is cancelled by another cell":  says(journal.KindTagCancelled, cancelEnded, func(b *journal.TagCancelled) { b.Cell = "bot/b" }),
	"a tag is cancelled by no step":       func(f *counterfeit) { f.cause(f.find(journal.KindTagCancelled, cancelEnded), 1) },
	"a tag is set before it is cancelled": func(f *counterfeit) { f.swap(f.find(journal.KindTagCancelled, cancelMoved)) },
	"a tick comes before a timer fires":   func(f *counterfeit) { f.swap(f.find(journal.KindFired, 0) - 1) },
	"a timer is cancelled that had fired": func(f *counterfeit) {
		set := f.find(journal.KindTimer, setAgain)
		at := f.find(journal.KindFired, 0) + 1
		for _, ok := f.body(at).(*journal.Stepped); !ok; _, ok = f.body(at).(*journal.Stepped) {
			at++
		}
		f.insert(at+1, journal.KindTagCancelled, f.id(at), &journal.TagCancelled{
			Version: journal.V(1), Cell: "bot/a", Tag: "moved", Timer: journal.Seq(f.id(set)), Receipts: []journal.Seq{},
		})
	},
	"an intent is cancelled that had ended": func(f *counterfeit) {
		b := f.body(f.find(journal.KindCancelled, cancelAsked)).(*journal.IntentCancelled)
		for at := len(f.items) - 1; ; at-- {
			if x, ok := f.body(at).(*journal.Stepped); ok && x.Cell == b.Cell {
				f.insert(at+1, journal.KindCancelled, f.id(at), b)
				return
			}
		}
	},

	"an intent is cancelled by another cell": says(journal.KindCancelled, cancelBegun, func(b *journal.IntentCancelled) { b.Cell = "bot/b" }),
	"an intent is cancelled by another cell's step": func(f *counterfeit) {
		at := f.find(journal.KindCancelled, cancelBegun)
		b := f.body(at).(*journal.IntentCancelled)
		f.remove(at)
		b.Cell = "bot/b"
		for _, at := range f.records() {
			if x, ok := f.body(at).(*journal.Stepped); ok && x.Cell == b.Cell {
				f.insert(at+1, journal.KindCancelled, f.id(at), b)
				return
			}
		}
	},
	"an intent is cancelled twice":                 func(f *counterfeit) { f.twice(f.find(journal.KindCancelled, cancelBegun)) },
	"an intent that nobody asked for is cancelled": says(journal.KindCancelled, cancelBegun, func(b *journal.IntentCancelled) { b.Key.Hash[0] ^= 1 }),
	"an intent is cancelled by no step":            func(f *counterfeit) { f.cause(f.find(journal.KindCancelled, cancelBegun), 1) },
	"what has not begun ends uncancelled":          without(journal.KindCancelled, cancelAsked),
	"what has not begun is cancelled, and stays":   without(journal.KindEnded, 0),
	"what has not begun is cancelled, and begins": func(f *counterfeit) {
		at := f.find(journal.KindEnded, 0)
		key := f.body(at).(*journal.IntentEnded).Key
		f.insert(at+1, journal.KindStarted, f.id(at), &journal.Started{Version: journal.V(1), Key: key, Attempt: 1, Nonce: receipt.Nonce{7}})
	},
	"what had begun is cancelled, and begins again": func(f *counterfeit) {
		at := f.find(journal.KindFinished, 0) // with a receipt that could have led to another attempt
		key, cause := f.receiptOf(at).Key, f.id(at)
		f.insert(at+1, journal.KindStarted, cause, &journal.Started{Version: journal.V(1), Key: key, Attempt: 2, Nonce: receipt.Nonce{7}})
		f.insert(at+1, journal.KindWaiting, cause, &journal.IntentWaiting{
			Version: journal.V(1), Key: key, Cell: "bot/a", Attempt: 1, Outcome: receipt.OutcomeRetryableFailure,
		})
	},
}

// TestForgedTimersAndCancelsAreRefusedByBoth: by the records alone, where the forger is the
// owner, who has numbered, linked and signed it all anew.
func TestForgedTimersAndCancelsAreRefusedByBoth(t *testing.T) {
	l := cancelling(t)
	g := good{keys: []ed25519.PrivateKey{l.owner()}}
	g.data = l.bundleOf(1, nil, g.keys...)
	worlds, trust := owners(t)
	s := secondVerifier(t, worlds, trust...)
	require.Nil(t, s.judge(g.data).Fault)
	mutants := []mutant{{name: "nothing is wrong", data: g.data, due: agreement}}
	for name, forge := range forgedTags { // order cannot show: each is one by itself
		f := cutOpen(t, g.data, g.keys)
		data := f.edited(edit{do: func(f *counterfeit) bool { forge(f); return true }}, signed)
		require.NotNil(t, data, name)
		mutants = append(mutants, mutant{name, data, refusal})
		a := s.judge(data)
		require.False(t, a.OK, name)
		require.False(t, a.byReplay, "%s: only the replay finds out", name)
	}
	counts := make(tallies)
	require.True(t, s.hold(mutants, counts))
	require.NotEmpty(t, counts["nothing is wrong"]["another history of the owner's"])
}
