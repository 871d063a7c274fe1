package journal

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

var allKinds = []Kind{
	KindCreated, KindAdvanced, KindSubmitted, KindFinished, KindResumed, KindStepped, KindFailed, KindDeleted,
	KindEmitted, KindDropped, KindIntent, KindDenied, KindStarted, KindTimer, KindFired, KindTagCancelled,
	KindOperator, KindExpired, KindDue, KindLate, KindResolved, KindConfirmed, KindRotated,
	KindAwaitingApproval, KindInDoubt, KindWaiting, KindEnded, KindCancelled,
	KindSnapshot, KindPinned, KindPruned, KindRetention, KindRollback, KindForked, KindRedacted,
	KindProposed, KindShadowed, KindApproved, KindRejected, KindWithdrawn, KindApplied, KindMigrated, KindRests,
}

// bodies draws a body of every kind, with all its fields set.
func bodies(rt *rapid.T) []Body {
	text := func() string { return rapid.String().Draw(rt, "text") }
	num := func() uint64 { return rapid.Uint64().Draw(rt, "number") }
	hash := func() (h Hash) {
		copy(h[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(rt, "hash"))
		return h
	}
	texts := func() []string {
		return append([]string{}, rapid.SliceOfN(rapid.String(), 0, 3).Draw(rt, "texts")...)
	}
	data := func() Data {
		b, err := canon.Marshal(map[string]any{text(): []any{num(), text(), nil, 1.5}})
		require.NoError(rt, err)
		return b
	}
	tick := func() manifest.Tick { return manifest.Tick(num()) }
	flag := rapid.Bool().Draw(rt, "flag")
	nonce := func() (n receipt.Nonce) { h := hash(); copy(n[:], h[:]); return n }
	key := receipt.Key{Hash: hash()}
	seed := num()
	under, of, nth := "", Hash{}, uint64(0)
	if flag {
		under, of, nth = "key "+text(), hash(), num()
	}
	engines := Engines{{manifest.EngineCEL, text()}, {manifest.EngineStarlark, text()}}
	signature := manifest.Signature{Key: manifest.PublicKey(hash()), Bytes: rapid.SliceOfN(rapid.Byte(), 64, 64).Draw(rt, "signature")}
	return []Body{
		&Created{Version: V(1), World: text(), Name: text(), Seed: num(), Manifest: hash(), Kernel: text(), Engines: engines},
		&Advanced{Version: V(1), To: tick(), Still: flag},
		&Submitted{Version: V(1), Name: text(), Due: tick(), Direct: flag, To: texts(), Under: under, Of: of, Nth: nth, Data: data()},
		&Finished{Version: V(1), Receipt: data()},
		&Resumed{Version: V(1), Cell: text(), Skip: flag, Actor: text(), Reason: text()},
		&Stepped{Version: V(1), Cell: text(), N: num(), Outcome: receipt.OutcomePure, State: hash(), Gas: num()},
		&Failed{Version: V(1), Cell: text(), N: num(), Halted: flag, Error: text()},
		&Deleted{Version: V(1), Cell: text(), N: num()},
		&Emitted{Version: V(1), Name: text(), To: texts(), Data: data()},
		&Dropped{Version: V(1), Name: text(), Reason: text()},
		&IntentEmitted{
			Version: V(1), Key: key, Step: receipt.StepID(text()), Cell: text(), Kind: text(), Tag: text(), Cap: text(),
			Occurrence: num(), Decision: text(), Rules: texts(), Params: data(),
		},
		&IntentDenied{
			Version: V(1), Key: key, Step: receipt.StepID(text()), Cell: text(), Kind: text(), Tag: text(), Cap: text(),
			Occurrence: num(), Code: text(), Reason: text(), Rules: texts(), Params: data(),
		},
		&Started{Version: V(1), Key: key, Attempt: num(), Owner: num(), Nonce: nonce()},
		&TimerSet{Version: V(1), Cell: text(), Name: text(), Deadline: tick(), Tag: text(), Data: data()},
		&TimerFired{Version: V(1), Cell: text(), Name: text()},
		&TagCancelled{Version: V(1), Cell: text(), Tag: text(), Timer: Seq(num()), Receipts: []Seq{Seq(num()), Seq(num())}},
		&OperatorEffect{Version: V(1), Actor: text(), N: num(), Kind: text(), Cap: text(), Reason: text(), Params: data()},
		&Expired{Version: V(1), Key: key, Attempt: num(), Reason: text()},
		&Due{Version: V(1), Key: key, Attempt: num()},
		&Late{Version: V(1), Receipt: data()},
		&Resolved{Version: V(1), Key: key, How: Approve, Params: hash(), Actor: text(), Reason: text(), Payload: data()},
		&Confirmed{Version: V(1), Key: key, Mode: text(), Verdict: receipt.Happened, Actor: text(), Reason: text()},
		&KeysRotated{Version: V(1), KeyID: text(), Revoked: texts(), Actor: text()},
		&IntentAwaitingApproval{
			Version: V(1), Key: key, Step: receipt.StepID(text()), Cell: text(), Kind: text(), Tag: text(), Cap: text(),
			Occurrence: num(), Rules: texts(), Deadline: num(), Params: data(),
		},
		&InDoubt{Version: V(1), Key: key, Cell: text(), Attempt: num(), Action: text(), Reason: text()},
		&IntentWaiting{Version: V(1), Key: key, Cell: text(), Attempt: num(), Outcome: receipt.OutcomeRetryableFailure},
		&IntentEnded{
			Version: V(1), Key: key, Cell: text(), Step: receipt.StepID(text()), Status: receipt.StatusRejected,
			Outcome: receipt.OutcomePermanentFailure, Payload: data(),
		},
		&IntentCancelled{Version: V(1), Key: key, Cell: text(), Attempt: num()},
		&SnapshotCreated{
			Version: V(1), Name: text(), At: Seq(num()), ChainRoot: hash(), StateRoot: hash(), Cells: num(), Label: text(), Actor: text(), Pruned: texts(),
		},
		&SnapshotPinned{Version: V(1), Name: text(), Pinned: flag, Actor: text()},
		&SnapshotPruned{Version: V(1), Name: text(), Actor: text()},
		&SnapshotRetention{Version: V(1), Max: num(), Actor: text(), Pruned: texts()},
		&RolledBack{
			Version: V(1), Snapshot: text(), Hash: hash(), SnapshotLen: Seq(num()), PriorLen: Seq(num()), Reason: text(), Actor: text(),
			Ack: flag, Compensate: flag, Fresh: flag, Abandoned: []SideEffect{
				{Key: key, Step: receipt.StepID(text()), Cell: text(), Kind: text(), State: receipt.StateCommitted, Record: Seq(num()), Disposition: Kept},
			},
		},
		&Forked{Version: V(1), World: text(), Parent: text(), At: Seq(num()), ChainRoot: hash(), Effects: ForkHold, Live: []string{text()}, Manifest: hash(), Actor: text(), Seed: &seed},
		&Redacted{Version: V(1), Blob: hash(), Actor: text(), Reason: text()},
		&ManifestProposed{Version: V(1), Base: hash(), Candidate: hash(), Actor: text(), Signature: &signature, Reason: text()},
		&ManifestShadowed{Version: V(1), Proposal: num(), Hash: hash(), Report: data(), Actor: text()},
		&ManifestApproved{
			Version: V(1), Proposal: num(), World: text(), Base: hash(), Candidate: hash(), Report: hash(),
			Signature: signature, Actor: text(), Reason: text(),
		},
		&ManifestRejected{Version: V(1), Proposal: num(), Actor: text(), Reason: text()},
		&ManifestWithdrawn{Version: V(1), Proposal: num(), Actor: text(), Reason: text()},
		&Applied{Version: V(1), Proposal: num(), Manifest: hash(), Base: hash(), Actor: text(), Kernel: text(), Engines: engines},
		&Migrated{Version: V(1), Cell: text(), N: num(), State: hash(), Gas: num()},
		&Rests{Version: V(1), Key: key, Cell: text(), Attempt: num(), Cap: text(), Said: receipt.Cost{Tokens: num(), Micros: num()}, Charged: receipt.Cost{Tokens: num()}},
	}
}

func TestHandWrittenBodiesEqualTheLibrarys(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := bodies(rt)
		require.Len(rt, all, len(allKinds))
		for i, body := range all {
			want, err := canon.Marshal(body)
			require.NoError(rt, err)
			got := Append(nil, body)
			require.Equal(rt, want, got, "%s", allKinds[i])
			rec := Record{Kind: allKinds[i], Payload: got}
			back, err := rec.Body()
			require.NoError(rt, err)
			require.Equal(rt, body, back)
		}
	})
}

func TestEveryKindHasABody(t *testing.T) {
	for _, k := range allKinds {
		require.True(t, k.Known())
		require.NotNil(t, newBody(k), k)
		require.NoError(t, EachCell(k, Append(nil, newBody(k)), func([]byte) {}), k)
	}
	require.False(t, Kind("cell.danced").Known())
	require.Nil(t, newBody("cell.danced"))
}

// TestEnginesAreListedInOneWay refuses every other list, and the shape of one version
// under the number of another.
func TestEnginesAreListedInOneWay(t *testing.T) {
	engine := func(name string) []any { return []any{name, "1"} }
	for what, tail := range map[string][]any{
		"unsorted":          {1, []any{engine("starlark"), engine("cel")}},
		"twice":             {1, []any{engine("cel"), engine("cel")}},
		"nothing":           {1, nil},
		"no version":        {1, []any{[]any{"cel"}}},
		"fields, no list":   {1, "starlark/1", "cel/2"},
		"a version to come": {2, []any{engine("cel")}},
	} {
		for kind, head := range map[Kind][]any{
			KindCreated: {"w-1", "w", 5, Hash{7}, "kernel/1"},
			KindApplied: {3, Hash{7}, Hash{8}, "ann", "kernel/1"},
		} {
			payload, err := canon.Marshal(append(append([]any{tail[0]}, head...), tail[1:]...))
			require.NoError(t, err)
			_, err = (&Record{Kind: kind, Payload: payload}).Body()
			require.Error(t, err, "%s %s", kind, what)
		}
	}
}

// libraryBody is Record.Body without the decoders written by hand.
func libraryBody(kind Kind, payload []byte) (Body, error) {
	body := newBody(kind)
	if err := canon.Unmarshal(payload, body); err != nil {
		return nil, err
	}
	return body, nil
}

func TestFrequentBodiesAreDecodedAsTheLibraryDoes(t *testing.T) {
	frequent := map[Kind]bool{KindAdvanced: true, KindSubmitted: true, KindTimer: true, KindEmitted: true, KindFinished: true, KindStepped: true}
	rapid.Check(t, func(rt *rapid.T) {
		for i, body := range bodies(rt) {
			payload := Append(nil, body)
			got := decodeFrequent(allKinds[i], payload)
			if !frequent[allKinds[i]] {
				require.Nil(rt, got)
				continue
			}
			library, err := libraryBody(allKinds[i], payload)
			require.NoError(rt, err)
			require.Equal(rt, library, got)
			require.Nil(rt, decodeFrequent(allKinds[i], append(payload, 0)), "what follows it is the library's to refuse")
			require.Nil(rt, decodeFrequent(allKinds[i], payload[:len(payload)-1]))
		}
	})
}

func FuzzBody(f *testing.F) {
	for i, k := range allKinds {
		f.Add(byte(i), Append(nil, newBody(k)))
	}
	f.Fuzz(func(t *testing.T, kind byte, payload []byte) {
		rec := Record{ID: 1, Kind: allKinds[int(kind)%len(allKinds)], Payload: payload}
		body, err := rec.Body()
		if err != nil {
			return
		}
		require.Equal(t, payload, Append(nil, body))
		library, err := libraryBody(rec.Kind, payload)
		require.NoError(t, err)
		require.Equal(t, library, body)
		_, err = rec.MarshalJSON()
		require.NoError(t, err)
	})
}

func FuzzRecord(f *testing.F) {
	f.Add(canon.AppendEnvelope(nil, canon.Envelope{ID: 1, Kind: string(KindCreated), Payload: []byte{1}}))
	f.Add(canon.AppendEnvelope(nil, canon.Envelope{ID: math.MaxUint64, Time: 7, Kind: string(KindFired), Blob: Hash{1}, BlobSize: 9}))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := DecodeRecord(data)
		if err != nil {
			return
		}
		again := canon.AppendEnvelope(nil, canon.Envelope{
			ID: uint64(rec.ID), Time: uint64(rec.Time), Kind: string(rec.Kind), CausedBy: uint64(rec.CausedBy),
			Payload: rec.Payload, Blob: rec.Blob, BlobSize: rec.BlobSize,
		})
		require.Equal(t, data, again)
	})
}

// TestAKeyIsOneItemOfASubmit has its bytes, and what is no key refused.
func TestAKeyIsOneItemOfASubmit(t *testing.T) {
	of := Hash{7}
	read := func(key any) (*Submitted, error) {
		payload, err := canon.Marshal([]any{1, "go", 3, true, []string{"bot/a"}, key, 5})
		require.NoError(t, err)
		body, err := (&Record{Kind: KindSubmitted, Payload: payload}).Body()
		if err != nil {
			return nil, err
		}
		require.Equal(t, payload, Append(nil, body))
		return body.(*Submitted), nil //nolint:forcetypeassert // its kind says so
	}
	want := Submitted{Version: V(1), Name: "go", Due: 3, Direct: true, To: []string{"bot/a"}, Data: Data{5}}
	got, err := read(nil)
	require.NoError(t, err)
	require.Equal(t, &want, got)
	got, err = read([]any{"key", of, 2})
	require.NoError(t, err)
	want.Under, want.Of, want.Nth = "key", of, 2
	require.Equal(t, &want, got)
	for _, bad := range []any{"key", []any{}, []any{"", of, 1}, []any{"key", of[:31], 1}, []any{"key", of}, []any{"key", of, 1, 1}} {
		_, err := read(bad)
		require.Error(t, err, "%v", bad)
	}
}

// TestAnotherVersionIsRefused: a later one may mean another thing by the same items.
func TestAnotherVersionIsRefused(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		for i, body := range bodies(rt) {
			payload := Append(nil, body)
			payload[1]++ // the first item, behind the array's head
			_, err := (&Record{Kind: allKinds[i], Payload: payload}).Body()
			require.ErrorContains(rt, err, "unknown version 2", "%s", allKinds[i])
		}
	})
}
