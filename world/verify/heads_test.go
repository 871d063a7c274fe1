package verify_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func publics(list ...byte) (out []ed25519.PublicKey) {
	for _, b := range list {
		out = append(out, worldtest.Public(b))
	}
	return out
}

func text(t testing.TB, id string, b byte) string {
	t.Helper()
	s, err := checkpoint.FormatKey(id, worldtest.Public(b))
	require.NoError(t, err)
	return s
}

// sign returns a checkpoint of a world's records.
func sign(t testing.TB, id string, records []journal.Stored, by ...byte) []byte {
	t.Helper()
	var keys []ed25519.PrivateKey
	for _, b := range by {
		keys = append(keys, worldtest.Key(b))
	}
	note, err := checkpoint.Checkpoint{World: id, Size: uint64(len(records)), Root: worldtest.TreeOf(records).Root()}.Sign(keys...)
	require.NoError(t, err)
	return note
}

func notes(list ...[]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, note := range list {
			if !yield(note, nil) {
				return
			}
		}
	}
}

func placeOfHead(n int) string { return fmt.Sprintf("checkpoint #%d", n) }

func TestSignedHistoryIsTrustedByWhoBelievesItsSigner(t *testing.T) {
	all := story(t).Journal.Records()
	n := len(all)
	for name, c := range map[string]struct {
		signers, trust []byte
		notes          [][]byte
		kept           [][]byte
		want           verify.Checkpoints
		trusted        bool
	}{
		"nobody is trusted": {
			[]byte{1},
			nil,
			[][]byte{sign(t, "test", all[:3], 1), sign(t, "test", all, 1)},
			nil,
			verify.Checkpoints{Checked: 2, Last: journal.Seq(n), Signers: []string{text(t, "test", 1)}},
			false,
		},
		"the signer is": {
			[]byte{1},
			[]byte{1},
			[][]byte{sign(t, "test", all[:3], 1), sign(t, "test", all, 1)},
			nil,
			verify.Checkpoints{Checked: 2, Last: journal.Seq(n), Trusted: journal.Seq(n), Signers: []string{text(t, "test", 1)}},
			true,
		},
		"one of two signers is": {
			[]byte{1},
			[]byte{2},
			[][]byte{sign(t, "test", all, 1, 2)},
			nil,
			verify.Checkpoints{Checked: 1, Last: journal.Seq(n), Trusted: journal.Seq(n), Signers: []string{text(t, "test", 1), text(t, "test", 2)}},
			true,
		},
		"the signer of an older one is": {
			[]byte{1, 2},
			[]byte{2},
			[][]byte{sign(t, "test", all[:3], 2), sign(t, "test", all, 1)},
			nil,
			verify.Checkpoints{Checked: 2, Last: journal.Seq(n), Trusted: 3, Signers: []string{text(t, "test", 1)}},
			false,
		},
		"not of all": {
			nil,
			[]byte{1},
			[][]byte{sign(t, "test", all[:n-1], 1)},
			nil,
			verify.Checkpoints{Checked: 1, Last: journal.Seq(n - 1), Trusted: journal.Seq(n - 1), Signers: []string{text(t, "test", 1)}},
			false,
		},
		"by what somebody kept": {
			nil,
			[]byte{1},
			nil,
			[][]byte{sign(t, "test", all, 1), sign(t, "test", all[:3], 1)},
			verify.Checkpoints{Checked: 2, Last: journal.Seq(n), Trusted: journal.Seq(n), Signers: []string{text(t, "test", 1)}},
			true,
		},
		"without any key": {
			nil, nil,
			[][]byte{sign(t, "test", all, 1)},
			nil,
			verify.Checkpoints{Unverifiable: 1, Signers: []string{}},
			false,
		},
		"nobody signed": {nil, []byte{1}, nil, nil, verify.Checkpoints{Signers: []string{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, story(t).Journal, verify.Config{
				Checkpoints: notes(c.notes...), Kept: c.kept, Signers: publics(c.signers...), Trust: publics(c.trust...),
			})
			require.Empty(t, r.Faults)
			require.Equal(t, c.want, r.Checkpoints)
			require.Equal(t, c.trusted, r.Trusted)
		})
	}
}

func TestCheckpointThatDoesNotHoldIsNamed(t *testing.T) {
	w := story(t)
	all := w.Journal.Records()
	n := len(all)
	good := sign(t, "test", all, 1)
	forged := bytes.Clone(good)
	forged[len(forged)-8] ^= 1
	longer := tamper(w.Journal)
	longer.add(t, journal.KindAdvanced, marshal(t, &journal.Advanced{Version: journal.V(1), To: 99}))
	last := fmt.Sprintf("checkpoint #%d", n)
	for name, c := range map[string]struct {
		notes [][]byte
		place string
	}{
		"another signature":   {[][]byte{forged}, last},
		"malformed":           {[][]byte{good, []byte("worldkernel/test\n")}, "checkpoint no. 2"},
		"of an unknown key":   {[][]byte{sign(t, "test", all, 2)}, last},
		"of another world":    {[][]byte{sign(t, "city", all, 1)}, last},
		"of another history":  {[][]byte{sign(t, "test", longer.records[1:n+1], 1)}, last},
		"of records to come":  {[][]byte{sign(t, "test", longer.records, 1)}, fmt.Sprintf("checkpoint #%d", n+1)},
		"out of order":        {[][]byte{good, sign(t, "test", all[:3], 1)}, "checkpoint #3"},
		"one of two does not": {[][]byte{sign(t, "test", all[1:4], 1), good}, "checkpoint #3"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, w.Journal, verify.Config{Checkpoints: notes(c.notes...), Signers: publics(1), Trust: publics(1)})
			require.Equal(t, []string{c.place}, places(r))
			require.EqualValues(t, 1, r.Checkpoints.Bad)
			require.EqualValues(t, len(c.notes)-1, r.Checkpoints.Checked)
			require.False(t, r.Trusted)
			if name == "out of order" {
				return // it is of this history
			}
			r = run(t, w.Journal, verify.Config{Kept: c.notes, Trust: publics(1)})
			require.Equal(t, []string{"kept " + c.place}, places(r))
			require.EqualValues(t, 1, r.Checkpoints.Bad)
			require.False(t, r.Trusted)
		})
	}
	r := run(t, w.Journal, verify.Config{Kept: [][]byte{good}})
	require.Equal(t, []string{"kept " + last}, places(r), "nobody knows whose it is")
}

func TestUnreadableCheckpointsAreAFault(t *testing.T) {
	broken := errors.New("a bad block")
	r := run(t, story(t).Journal, verify.Config{Checkpoints: func(yield func([]byte, error) bool) { yield(nil, broken) }})
	require.Equal(t, []string{"checkpoints"}, places(r))
}

func TestWhatIsNoKeyIsAnError(t *testing.T) {
	_, err := verify.Verify(t.Context(), story(t).Journal, verify.Config{Trust: []ed25519.PublicKey{{1}}})
	require.ErrorIs(t, err, checkpoint.ErrBadKey)
}

// Whoever changes a record changes the root of every checkpoint that covers it, and
// no other: also where the chain was computed anew.
func TestEveryCheckpointCoversTheRecordsBeforeIt(t *testing.T) {
	w := bots(t)
	w.Submit("go", order("a", act{"effect": "tool.a", "param": "x"}, act{"emit": "ping", "to": "b"}))
	w.Run()
	all := w.Journal.Records()
	var list [][]byte
	for n := range all {
		list = append(list, sign(t, "test", all[:n+1], 1))
	}
	cfg := verify.Config{Checkpoints: notes(list...), Signers: publics(1)}
	require.Empty(t, run(t, w.Journal, cfg).Faults)
	for i := range all {
		x := tamper(w.Journal)
		x.records[i].Bytes = bytes.Clone(all[i].Bytes)
		x.records[i].Bytes[1+i%(len(all[i].Bytes)-1)] ^= 4
		found := places(run(t, x, cfg))
		for n := range all {
			if n < i {
				require.NotContains(t, found, placeOfHead(n+1), "#%d was changed", i+1)
			} else {
				require.Contains(t, found, placeOfHead(n+1), "#%d was changed", i+1)
			}
		}
		found = places(run(t, w.Journal.Truncate(journal.Seq(i)), cfg))
		for n := range all {
			if n < i {
				require.NotContains(t, found, placeOfHead(n+1), "cut after #%d", i)
			} else {
				require.Contains(t, found, placeOfHead(n+1), "cut after #%d", i)
			}
		}
	}
}

func TestJournalThatHasToEndWithACheckpointDoes(t *testing.T) {
	w := story(t)
	all := w.Journal.Records()
	cfg := verify.Config{Sealed: true, Signers: publics(1), Checkpoints: notes(sign(t, "test", all[:3], 1))}
	require.Equal(t, []string{"checkpoints"}, places(run(t, w.Journal, cfg)))
	cfg.Kept = [][]byte{sign(t, "test", all, 1)}
	require.Equal(t, []string{"checkpoints"}, places(run(t, w.Journal, cfg)), "what came from elsewhere is no end of it")
	cfg.Checkpoints = nil
	require.Equal(t, []string{"checkpoints"}, places(run(t, w.Journal, cfg)))
	cfg.Kept, cfg.Checkpoints = nil, notes(sign(t, "test", all[:3], 1), sign(t, "test", all, 1))
	require.Empty(t, run(t, w.Journal, cfg).Faults)
	cfg.Signers = nil
	require.Equal(t, []string{placeOfHead(3), placeOfHead(len(all))}, places(run(t, w.Journal, cfg)), "nobody's signature is none")
}

func TestCheckpointIsOfTheWorldThatItsRecordWas(t *testing.T) {
	p := parent(t)
	before := len(p.Journal.Records())
	child := p.fork(journal.ForkHold)
	all := child.Journal.Records()
	for n := 1; n <= len(all); n++ {
		is, isNot := "test", "child"
		if n > before {
			is, isNot = isNot, is
		}
		good := run(t, child.Journal, verify.Config{Kept: [][]byte{sign(t, is, all[:n], 1)}, Signers: publics(1)})
		require.Empty(t, good.Faults, n)
		require.Equal(t, []string{text(t, is, 1)}, good.Checkpoints.Signers)
		bad := run(t, child.Journal, verify.Config{Kept: [][]byte{sign(t, isNot, all[:n], 1)}, Signers: publics(1)})
		require.Equal(t, []string{"kept " + placeOfHead(n)}, places(bad))
	}
}

// The tree is of bytes: also of those that only a later version reads.
func TestCheckpointCoversWhatCannotBeRead(t *testing.T) {
	x := tamper(story(t).Journal)
	id := x.add(t, "later.kind", []byte(canon.Null))
	x.add(t, journal.KindAdvanced, marshal(t, &journal.Advanced{Version: journal.V(1), To: 99}))
	x.relink(t)
	cfg := verify.Config{Trust: publics(1), Checkpoints: notes(sign(t, "test", x.records, 1))}
	r := run(t, x, cfg)
	require.Contains(t, places(r), place(id))
	require.True(t, r.Trusted)
	require.Equal(t, x.records[id].Root, r.EventChainRootHash, "its kind is all that the chain needs")

	x.records[id-1].Bytes = []byte("\xff")
	cfg.Checkpoints = notes(sign(t, "test", x.records, 1))
	r = run(t, x, cfg)
	require.Contains(t, places(r), place(id))
	require.NotContains(t, places(r), place(id+1), "once is enough")
	require.True(t, r.Trusted)
	require.Zero(t, r.EventChainRootHash)
}

func TestForkOfAnotherWorldThanThisIsNamed(t *testing.T) {
	p := parent(t).fork(journal.ForkHold)
	id, _, _ := find(t, p.Journal, journal.KindForked)
	x := edit(t, p.Journal, journal.KindForked, func(b journal.Body) { b.(*journal.Forked).Parent = "nobody" })
	require.Contains(t, places(run(t, x, verify.Config{})), place(id))

	twice := p.Fork(journal.ForkHold, worldtest.Options{ID: "grandchild", Outside: new(worldtest.Outside)})
	y, begin := partOf(twice.Journal, "grandchild", id)
	require.Empty(t, run(t, y, verify.Config{Begin: begin}).Faults)
	last := len(p.Journal.Records()) - int(id) + 1
	forked := worldtest.Bodies[*journal.Forked](t, twice.Journal)[1]
	forked.Parent = "nobody"
	e, err := canon.DecodeEnvelope(y.records[last].Bytes)
	require.NoError(t, err)
	e.Payload = marshal(t, forked)
	y.records[last].Bytes = canon.AppendEnvelope(nil, e)
	y.relinkFrom(t, begin.Root)
	require.Equal(t, []string{place(id + journal.Seq(last))}, places(run(t, y, verify.Config{Begin: begin})))
}

func TestWorldThatTheCallerExpectsIsCompared(t *testing.T) {
	w := story(t)
	require.Empty(t, run(t, w.Journal, verify.Config{Begin: verify.Begin{World: "test"}}).Faults)
	require.Equal(t, []string{"world"}, places(run(t, w.Journal, verify.Config{Begin: verify.Begin{World: "city"}})))
}

// A store that breaks is one fault, and what could not be compared is said to be so.
func TestJournalThatCannotBeReadToItsEnd(t *testing.T) {
	w := story(t)
	all := w.Journal.Records()
	r := run(t, breaks{w.Journal, 5}, verify.Config{
		Checkpoints: notes(sign(t, "test", all[:5], 1), sign(t, "test", all, 1)), Signers: publics(1), Sealed: true,
	})
	require.Equal(t, []string{place(6), placeOfHead(len(all))}, places(r)[:2])
	require.EqualValues(t, 5, r.Checkpoints.Last)
	require.NotContains(t, places(r), "checkpoints")
}

// breaks is a history that cannot be read after a record.
type breaks struct {
	journal.History
	after journal.Seq
}

func (b breaks) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		for s, err := range b.History.Scan(after) {
			if s.ID > b.after {
				yield(journal.Scanned{}, errors.New("a bad block"))
				return
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// endless is a part of a journal of many ticks, made while it is read.
type endless struct {
	worldtest.Journal
	first, last journal.Seq
	visit       func(journal.Seq)
}

func (e *endless) records(yield func(journal.Stored) bool) {
	chain := canon.ResumeChain(journal.Hash{1})
	for id := e.first; id <= e.last; id++ {
		payload := journal.Append(nil, &journal.Advanced{Version: journal.V(1), To: manifest.Tick(id)})
		data := canon.AppendEnvelope(nil, canon.Envelope{ID: uint64(id), Time: uint64(id), Kind: string(journal.KindAdvanced), Payload: payload})
		if !yield(journal.Stored{ID: id, Bytes: data, Root: chain.Add(uint64(id), string(journal.KindAdvanced), data)}) {
			return
		}
	}
}

func (e *endless) Scan(journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		for s := range e.records {
			e.visit(s.ID)
			if !yield(journal.NewScanned(s.ID, s.Bytes, s.Root[:]), nil) {
				return
			}
		}
	}
}

// signed yields a checkpoint every so many records.
func (e *endless) signed(t testing.TB, nodes []checkpoint.Hash, every uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		tree, err := checkpoint.Resume(uint64(e.first-1), nodes)
		require.NoError(t, err)
		for s := range e.records {
			tree.Add(s.Bytes)
			if tree.Size()%every > 0 {
				continue
			}
			note, err := checkpoint.Checkpoint{World: "test", Size: tree.Size(), Root: tree.Root()}.Sign(worldtest.Key(1))
			if !yield(note, err) {
				return
			}
		}
	}
}

func TestMemoryDoesNotGrowWithJournalAndCheckpoints(t *testing.T) {
	const last, every = 100_000, 20
	nodes := []checkpoint.Hash{{1}}
	var heap []uint64
	e := &endless{first: 2, last: last, visit: func(id journal.Seq) {
		if id%(last/10) == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			heap = append(heap, m.HeapAlloc)
		}
	}}
	r := run(t, e, verify.Config{
		Begin:       verify.Begin{First: e.first, Root: journal.Hash{1}, Nodes: nodes, World: "test"},
		Checkpoints: e.signed(t, nodes, every), Trust: publics(1), Sealed: true,
	})
	require.Empty(t, r.Faults)
	require.True(t, r.Trusted)
	require.EqualValues(t, last/every, r.Checkpoints.Checked)
	begin, end := heap[len(heap)-10], heap[len(heap)-1] // the pass before was for forks
	const underway = 512 << 10                          // more than the chunks that were read ahead
	require.Less(t, end, begin+underway, "%v", heap)
}
