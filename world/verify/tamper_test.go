package verify_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// tampered is a journal that somebody changed.
type tampered struct {
	journal.History
	records []journal.Stored
	blobs   map[journal.Hash][]byte // instead of the history's; nil: gone
}

func tamper(j *worldtest.Journal) *tampered {
	return &tampered{History: j, records: slices.Clone(j.Records()), blobs: make(map[journal.Hash][]byte)}
}

func (x *tampered) Record(id journal.Seq) ([]byte, error) {
	if id == 0 || int(id) > len(x.records) {
		return nil, journal.ErrNotFound
	}
	return x.records[id-1].Bytes, nil
}

func (x *tampered) Blob(h journal.Hash) ([]byte, error) {
	if b, ok := x.blobs[h]; ok {
		if b == nil {
			return nil, journal.ErrNotFound
		}
		return b, nil
	}
	return x.History.Blob(h)
}

func (x *tampered) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		for _, s := range x.records {
			if s.ID <= after {
				continue
			}
			if !yield(journal.NewScanned(s.ID, s.Bytes, s.Root[:]), nil) {
				return
			}
		}
	}
}

// set replaces the payload of record id.
func (x *tampered) set(t testing.TB, id journal.Seq, payload []byte) {
	t.Helper()
	e, err := canon.DecodeEnvelope(x.records[id-1].Bytes)
	require.NoError(t, err)
	e.Payload, e.Blob, e.BlobSize = payload, journal.Hash{}, 0
	x.records[id-1].Bytes = canon.AppendEnvelope(nil, e)
}

// add appends a record.
func (x *tampered) add(t testing.TB, kind journal.Kind, payload []byte) journal.Seq {
	t.Helper()
	last, err := canon.DecodeEnvelope(x.records[len(x.records)-1].Bytes)
	require.NoError(t, err)
	cause := journal.Seq(last.ID)
	if kind.Input() {
		cause = 0
	}
	return x.addCausedBy(t, kind, cause, payload)
}

func (x *tampered) addCausedBy(t testing.TB, kind journal.Kind, cause journal.Seq, payload []byte) journal.Seq {
	t.Helper()
	last, err := canon.DecodeEnvelope(x.records[len(x.records)-1].Bytes)
	require.NoError(t, err)
	id := last.ID + 1
	bytes := canon.AppendEnvelope(nil, canon.Envelope{ID: id, Time: last.Time, Kind: string(kind), CausedBy: uint64(cause), Payload: payload})
	x.records = append(x.records, journal.Stored{ID: journal.Seq(id), Bytes: bytes})
	return journal.Seq(id)
}

func marshal(t testing.TB, body journal.Body) []byte {
	t.Helper()
	payload, err := canon.Marshal(body)
	require.NoError(t, err)
	return payload
}

// relink computes the chain anew, as a forger would.
func (x *tampered) relink(t testing.TB) *tampered {
	t.Helper()
	chain := new(canon.Chain)
	for i := range x.records {
		s := &x.records[i]
		e, err := canon.DecodeEnvelope(s.Bytes)
		require.NoError(t, err)
		s.Root = chain.Add(e.ID, e.Kind, s.Bytes)
	}
	return x
}

// find returns the id, payload and body of the first record of a kind.
func find(t testing.TB, j *worldtest.Journal, kind journal.Kind) (journal.Seq, []byte, journal.Body) {
	t.Helper()
	for _, s := range j.Records() {
		rec, err := journal.DecodeRecord(s.Bytes)
		require.NoError(t, err)
		if rec.Kind == kind {
			require.NoError(t, rec.Load(j))
			body, err := rec.Body()
			require.NoError(t, err)
			return rec.ID, rec.Payload, body
		}
	}
	t.Fatalf("the journal holds no %s", kind)
	return 0, nil, nil
}

// edit changes the body of the first record of a kind and computes the chain
// anew.
func edit(t testing.TB, j *worldtest.Journal, kind journal.Kind, change func(journal.Body)) *tampered {
	t.Helper()
	id, _, body := find(t, j, kind)
	change(body)
	payload, err := canon.Marshal(body)
	require.NoError(t, err)
	x := tamper(j)
	x.set(t, id, payload)
	return x.relink(t)
}

func keyring(t testing.TB, epochs ...receipt.Epoch) *receipt.Keyring {
	t.Helper()
	keys, err := receipt.NewKeyring("test", epochs)
	require.NoError(t, err)
	return keys
}

// resign signs a receipt with other keys and may change it after that.
func resign(t testing.TB, data []byte, keys *receipt.Keyring, after func(*receipt.Receipt)) []byte {
	t.Helper()
	r, err := receipt.Decode(data)
	require.NoError(t, err)
	out, err := keys.Sign(r)
	require.NoError(t, err)
	if after == nil {
		return out
	}
	// The name of the key is part of what is hashed: sign as if it were the one.
	after(r)
	unsigned := *r
	unsigned.Hash, unsigned.MAC = receipt.Hash{}, receipt.Hash{}
	content, err := canon.Marshal(unsigned)
	require.NoError(t, err)
	r.Hash = canon.Sum(content)
	out, err = r.Encode()
	require.NoError(t, err)
	return out
}

func places(r *verify.Report) []string {
	var out []string
	for _, f := range r.Faults {
		out = append(out, f.Place)
	}
	return out
}

func place(id journal.Seq) string { return fmt.Sprintf("record #%d", id) }
