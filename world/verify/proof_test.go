package verify_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// hashes returns the stored hashes of the tree over records.
func hashes(t require.TestingT, records []journal.Stored) tlog.HashReaderFunc {
	var all []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, x := range indexes {
			out[i] = all[x]
		}
		return out, nil
	})
	for i, s := range records {
		more, err := tlog.StoredHashes(int64(i), s.Bytes, reader)
		require.NoError(t, err)
		all = append(all, more...)
	}
	return reader
}

// proofOf returns the proof of a record, against a checkpoint of key 1.
func proofOf(t testing.TB, h journal.History, records []journal.Stored, id journal.Seq) verify.Proof {
	t.Helper()
	inclusion, err := tlog.ProveRecord(int64(len(records)), int64(id-1), hashes(t, records))
	require.NoError(t, err)
	p := verify.Proof{
		World: "test", Record: id, Bytes: records[id-1].Bytes, Inclusion: inclusion,
		Checkpoint: string(sign(t, "test", records, 1)), Signers: []string{text(t, "test", 1)},
	}
	rec, err := journal.DecodeRecord(p.Bytes)
	require.NoError(t, err)
	if !rec.Blob.IsZero() {
		p.Payload, err = h.Blob(rec.Blob)
		require.NoError(t, err)
	}
	return p
}

func consistencyOf(t testing.TB, records []journal.Stored, older int) verify.Proof {
	t.Helper()
	path, err := tlog.ProveTree(int64(len(records)), int64(older), hashes(t, records))
	require.NoError(t, err)
	return verify.Proof{
		World: "test", Checkpoint: string(sign(t, "test", records, 1)), Signers: []string{text(t, "test", 1), text(t, "test", 2)},
		Older: string(sign(t, "test", records[:older], 2)), Consistency: path,
	}
}

// celled returns the proof of what a cell was at a snapshot, before which the cells
// bot/a and bot/b took one step each.
func celled(t testing.TB, name string) verify.Proof {
	t.Helper()
	w := bots(t)
	w.Submit("go", order("a"))
	w.Submit("go", order("b"))
	w.Run()
	_, err := w.Snapshot(t.Context(), "one", "", "ada")
	require.NoError(t, err)
	w.Submit("go", order("a"))
	w.Run()
	id, _, made := find(t, w.Journal, journal.KindSnapshot)
	moment, err := world.At(t.Context(), w.Journal, made.(*journal.SnapshotCreated).At, nil)
	require.NoError(t, err)
	cell, err := reducer.ParseCell(name)
	require.NoError(t, err)
	path := moment.Prove(cell)
	encoded, err := path.Encode()
	require.NoError(t, err)
	p := proofOf(t, w.Journal, w.Journal.Records(), id)
	p.Cell = &verify.ProofOfCell{Name: name, Proof: encoded}
	if view, present := moment.Cell(cell); present {
		data, err := canon.Marshal(order("a"))
		require.NoError(t, err)
		event, err := canon.Marshal([]any{"go", cell.Key, canon.Raw(data)})
		require.NoError(t, err)
		p.Cell.Present, p.Cell.State = true, view.State
		p.Cell.Leaf = &world.CellLeaf{
			N: view.N, History: canon.Sum(event), State: canon.Sum(view.State), Reducer: w.Manifest().Reducers["bot"].Source,
		}
	}
	return p
}

func encode(t testing.TB, p verify.Proof) []byte {
	t.Helper()
	data, err := p.Encode()
	require.NoError(t, err)
	return data
}

// check returns what a proof shows to somebody who trusts keys.
func check(t testing.TB, p verify.Proof, trust ...byte) *verify.Proven {
	t.Helper()
	r, err := verify.CheckProof(encode(t, p), publics(trust...))
	require.NoError(t, err)
	require.Equal(t, len(r.Faults) == 0, r.OK)
	if !r.OK {
		require.Equal(t, &verify.Proven{Signers: []string{}, Faults: r.Faults}, r, "what does not hold claims nothing")
	}
	return r
}

func parts(r *verify.Proven) (out []string) {
	for _, f := range r.Faults {
		out = append(out, f.Place)
	}
	return out
}

func TestEveryRecordIsProvenToAThirdParty(t *testing.T) {
	w := story(t)
	all := w.Journal.Records()
	receipts, shown := 0, 0
	for n := range all {
		n++
		for _, id := range []journal.Seq{1, journal.Seq(n+1) / 2, journal.Seq(n)} {
			if id == 0 {
				continue
			}
			p := proofOf(t, w.Journal, all[:n], id)
			r := check(t, p, 1)
			require.True(t, r.OK, "%v", r.Faults)
			require.True(t, r.Trusted)
			require.Equal(t, []string{text(t, "test", 1)}, r.Signers)
			require.Equal(t, &checkpoint.Checkpoint{World: "test", Size: uint64(n), Root: worldtest.TreeOf(all[:n]).Root()}, r.Checkpoint)
			rec, err := journal.DecodeRecord(p.Bytes)
			require.NoError(t, err)
			require.NoError(t, rec.Load(w.Journal))
			body, err := rec.Body()
			require.NoError(t, err)
			require.Equal(t, &verify.ProvenRecord{
				ID: id, Time: rec.Time, Kind: rec.Kind, CausedBy: rec.CausedBy, Payload: body, PayloadHash: rec.Blob,
			}, r.Record)
			require.Contains(t, r.Says, "record #")
			if f, ok := body.(*journal.Finished); ok {
				want, err := receipt.Decode(f.Receipt)
				require.NoError(t, err)
				require.Equal(t, want, r.Receipt)
				require.Equal(t, verify.ProofReceipt, r.Kind)
				receipts++
			} else {
				require.Equal(t, verify.ProofRecord, r.Kind)
			}
			if len(p.Payload) > 0 {
				p.Payload = nil
				hidden := check(t, p, 1)
				require.True(t, hidden.OK)
				require.Nil(t, hidden.Record.Payload)
				require.Equal(t, rec.Blob, hidden.Record.PayloadHash)
				shown++
			}
		}
	}
	require.NotZero(t, receipts)
	require.NotZero(t, shown)
}

func TestProofIsTrustedBySignaturesOfWhoIsBelieved(t *testing.T) {
	w := story(t)
	p := proofOf(t, w.Journal, w.Journal.Records(), 3)
	r := check(t, p)
	require.True(t, r.OK)
	require.False(t, r.Trusted, "a key that the proof brings along is anybody's")
	require.False(t, check(t, p, 2).Trusted)
	p.Signers = nil
	require.True(t, check(t, p, 1).Trusted, "the caller's keys are enough")
	require.Equal(t, []string{"checkpoint"}, parts(check(t, p)), "nobody has signed it")
	c := consistencyOf(t, w.Journal.Records(), 5)
	require.True(t, check(t, c, 1, 2).Trusted)
	require.False(t, check(t, c, 1).Trusted, "of both heads")
	require.False(t, check(t, c, 2).Trusted, "of both heads")
}

func TestCellIsProvenPresentOrAbsent(t *testing.T) {
	p := celled(t, "bot/a")
	r := check(t, p, 1)
	require.Empty(t, r.Faults)
	require.Equal(t, verify.ProofCell, r.Kind)
	require.Equal(t, &verify.ProvenCell{
		Name: "bot/a", Present: true, Snapshot: "one", At: r.Record.ID - 1, Leaf: p.Cell.Leaf, State: p.Cell.State,
	}, r.Cell)
	require.EqualValues(t, 1, r.Cell.Leaf.N)

	absent := celled(t, "bot/z")
	r = check(t, absent, 1)
	require.Empty(t, r.Faults)
	require.False(t, r.Cell.Present)

	for name, c := range map[string]struct {
		change func(x, other *verify.ProofOfCell)
		part   string
	}{
		"another cell":    {func(x, _ *verify.ProofOfCell) { x.Name = "bot/b" }, "cell/proof"},
		"no such cell":    {func(x, _ *verify.ProofOfCell) { x.Name = "bot/z" }, "cell/proof"},
		"it was not":      {func(x, _ *verify.ProofOfCell) { x.Present = false }, "cell/present"},
		"no name":         {func(x, _ *verify.ProofOfCell) { x.Name = "" }, "cell/name"},
		"steps":           {func(x, _ *verify.ProofOfCell) { x.Leaf.N++ }, "cell/leaf"},
		"history":         {func(x, _ *verify.ProofOfCell) { x.Leaf.History[0]++ }, "cell/leaf"},
		"hash of state":   {func(x, _ *verify.ProofOfCell) { x.Leaf.State[0]++ }, "cell/leaf"},
		"reducer":         {func(x, _ *verify.ProofOfCell) { x.Leaf.Reducer[0]++ }, "cell/leaf"},
		"halted":          {func(x, _ *verify.ProofOfCell) { x.Leaf.Halted = true }, "cell/leaf"},
		"state":           {func(x, _ *verify.ProofOfCell) { x.State = []byte("\x01") }, "cell/state"},
		"no state":        {func(x, _ *verify.ProofOfCell) { x.State = nil }, "cell/state"},
		"no leaf":         {func(x, _ *verify.ProofOfCell) { x.Leaf = nil }, "cell/leaf"},
		"another's proof": {func(x, other *verify.ProofOfCell) { x.Proof = other.Proof }, "cell/proof"},
		"malformed proof": {func(x, _ *verify.ProofOfCell) { x.Proof = x.Proof[1:] }, "cell/proof"},
	} {
		t.Run(name, func(t *testing.T) {
			cell, leaf, other := *p.Cell, *p.Cell.Leaf, *absent.Cell
			cell.Leaf = &leaf
			c.change(&cell, &other)
			changed := p
			changed.Cell = &cell
			require.Contains(t, parts(check(t, changed, 1)), c.part)
		})
	}
	stated := *absent.Cell
	stated.State = []byte(canon.Null)
	absent.Cell = &stated
	require.Equal(t, []string{"cell/state"}, parts(check(t, absent, 1)))
}

func TestTwoHeadsAreOfOneHistory(t *testing.T) {
	all := story(t).Journal.Records()
	for n := range all {
		n++
		for older := 1; older <= n; older += 3 {
			r := check(t, consistencyOf(t, all[:n], older), 1, 2)
			require.Empty(t, r.Faults, "%d of %d", older, n)
			require.Equal(t, verify.ProofConsistency, r.Kind)
			require.EqualValues(t, older, r.Older.Size)
		}
	}
	p := consistencyOf(t, all, 5)
	p.Older = string(sign(t, "test", all[1:6], 2))
	require.Equal(t, []string{"consistency"}, parts(check(t, p, 1, 2)), "another history of as many records")
	p.Older = string(sign(t, "test", all[:4], 2))
	require.Equal(t, []string{"consistency"}, parts(check(t, p, 1, 2)), "another size")
	p.Older, p.Checkpoint = string(sign(t, "test", all, 2)), string(sign(t, "test", all[:5], 1))
	require.Equal(t, []string{"consistency"}, parts(check(t, p, 1, 2)), "the other way round")
}

func TestPartsOfAProofThatDoNotBelongTogetherAreNamed(t *testing.T) {
	w := story(t)
	all := w.Journal.Records()
	finished, _, _ := find(t, w.Journal, journal.KindFinished)
	long := journal.Seq(slices.IndexFunc(all, func(s journal.Stored) bool {
		rec, err := journal.DecodeRecord(s.Bytes)
		return err == nil && !rec.Blob.IsZero()
	}) + 1)
	other := proofOf(t, w.Journal, all, finished-1)
	for name, c := range map[string]struct {
		id     journal.Seq
		change func(p *verify.Proof)
		parts  []string
	}{
		"another number":              {finished, func(p *verify.Proof) { p.Record-- }, []string{"inclusion", "record"}},
		"a number beyond":             {finished, func(p *verify.Proof) { p.Record = 1 << 60 }, []string{"record", "record"}},
		"another record's bytes":      {finished, func(p *verify.Proof) { p.Bytes = other.Bytes }, []string{"inclusion", "record"}},
		"no record":                   {finished, func(p *verify.Proof) { p.Bytes = []byte("\xa0") }, []string{"inclusion", "bytes"}},
		"another record's path":       {finished, func(p *verify.Proof) { p.Inclusion = other.Inclusion }, []string{"inclusion"}},
		"a longer path":               {finished, func(p *verify.Proof) { p.Inclusion = append(p.Inclusion, tlog.Hash{}) }, []string{"inclusion"}},
		"another checkpoint":          {finished, func(p *verify.Proof) { p.Checkpoint = string(sign(t, "test", all[:len(all)-1], 1)) }, []string{"inclusion"}},
		"another world's checkpoint":  {finished, func(p *verify.Proof) { p.Checkpoint = string(sign(t, "city", all, 1)) }, []string{"checkpoint"}},
		"another signer's checkpoint": {finished, func(p *verify.Proof) { p.Checkpoint = string(sign(t, "test", all, 2)) }, []string{"checkpoint", "signers"}},
		"no checkpoint":               {finished, func(p *verify.Proof) { p.Checkpoint = "x" }, []string{"checkpoint", "signers"}},
		"another world":               {finished, func(p *verify.Proof) { p.World = "city" }, []string{"signers", "checkpoint"}},
		"another world's signer":      {finished, func(p *verify.Proof) { p.Signers = []string{text(t, "city", 1)} }, []string{"signers"}},
		"who has not signed":          {finished, func(p *verify.Proof) { p.Signers = append(p.Signers, text(t, "test", 2)) }, []string{"signers"}},
		"a signer twice":              {finished, func(p *verify.Proof) { p.Signers = append(p.Signers, p.Signers[0]) }, []string{"signers"}},
		"no signer":                   {finished, func(p *verify.Proof) { p.Signers = append(p.Signers, "ada") }, []string{"signers"}},
		"a payload":                   {finished, func(p *verify.Proof) { p.Payload = []byte("\xa0") }, []string{"payload"}},
		"another payload":             {long, func(p *verify.Proof) { p.Payload = bytes.Replace(p.Payload, []byte("long"), []byte("lang"), 1) }, []string{"payload"}},
		"a cell":                      {finished, func(p *verify.Proof) { p.Cell = &verify.ProofOfCell{Name: "bot/a"} }, []string{"cell"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := proofOf(t, w.Journal, all, c.id)
			c.change(&p)
			r, err := verify.CheckProof(encode(t, p), publics(1))
			require.NoError(t, err)
			require.Equal(t, c.parts, parts(r))
		})
	}
}

// editReceipt is edit for the receipt of a finished invocation.
func editReceipt(t testing.TB, j *worldtest.Journal, write func(*receipt.Receipt) ([]byte, error)) *tampered {
	t.Helper()
	return edit(t, j, journal.KindFinished, func(b journal.Body) {
		f := b.(*journal.Finished)
		r, err := receipt.Decode(f.Receipt)
		require.NoError(t, err)
		f.Receipt, err = write(r)
		require.NoError(t, err)
	})
}

// A receipt that was changed after it was signed, in a history that was signed.
func TestReceiptWithAnotherHashIsNotProven(t *testing.T) {
	w := story(t)
	id, _, _ := find(t, w.Journal, journal.KindFinished)
	x := editReceipt(t, w.Journal, func(r *receipt.Receipt) ([]byte, error) {
		r.StartedAt++
		return r.Encode()
	})
	require.Equal(t, []string{"receipt"}, parts(check(t, proofOf(t, x, x.records, id), 1)))
}

// Whoever has the store and the keys of receipts, and not the key of checkpoints,
// cannot make somebody who knows that one believe another receipt.
func TestReceiptIsForgedByTheKeyOfCheckpointsOnly(t *testing.T) {
	w := story(t)
	id, _, _ := find(t, w.Journal, journal.KindFinished)
	forged := editReceipt(t, w.Journal, func(r *receipt.Receipt) ([]byte, error) {
		r.Payload = receipt.Data(canon.Null)
		return worldtest.Keyring(t, "test").Sign(r)
	})
	honest := proofOf(t, w.Journal, w.Journal.Records(), id)
	p := proofOf(t, forged, forged.records, id)
	require.True(t, check(t, p, 1).Trusted, "with it, one can")

	p.Checkpoint = honest.Checkpoint
	require.Equal(t, []string{"inclusion"}, parts(check(t, p, 1)), "under what was signed")
	p.Checkpoint, p.Signers = string(sign(t, "test", forged.records, 2)), []string{text(t, "test", 2)}
	require.False(t, check(t, p, 1).Trusted, "under the forger's own signature")
	p.Signers = []string{text(t, "test", 1)}
	require.False(t, check(t, p, 1).OK, "which is not this one's")
	head := checkpoint.Checkpoint{World: "test", Size: uint64(len(forged.records)), Root: worldtest.TreeOf(forged.records).Root()}
	_, signature, _ := strings.Cut(honest.Checkpoint, "\n\n")
	p.Checkpoint = head.Text() + "\n" + signature
	require.False(t, check(t, p, 1).OK, "under a signature of something else")
}

func TestProofsOfAnyRecordOfAnyTree(t *testing.T) {
	w := story(t)
	all := w.Journal.Records()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, len(all)).Draw(rt, "size")
		id := rapid.IntRange(1, n).Draw(rt, "record")
		p := proofOf(t, w.Journal, all[:n], journal.Seq(id))
		require.True(rt, check(t, p, 1).Trusted)
		if n > 1 {
			p.Inclusion = slices.Clone(p.Inclusion)
			p.Inclusion[rapid.IntRange(0, len(p.Inclusion)-1).Draw(rt, "hash")][rapid.IntRange(0, 31).Draw(rt, "byte")] ^= 1
			require.Equal(rt, []string{"inclusion"}, parts(check(t, p, 1)))
		}
	})
}
