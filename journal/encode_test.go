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
	KindParked, KindInDoubt, KindWaiting, KindEnded, KindCancelled,
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
	engines := Engines{{manifest.EngineCEL, text()}, {manifest.EngineStarlark, text()}}
	signature := manifest.Signature{Key: manifest.PublicKey(hash()), Bytes: rapid.SliceOfN(rapid.Byte(), 64, 64).Draw(rt, "signature")}
	return []Body{
		&Created{Version: V(EnginesVersion), World: text(), Name: text(), Seed: num(), Manifest: hash(), Kernel: text(), Engines: engines},
		&Advanced{Version: V(StillVersion), To: tick(), Still: flag},
		&Submitted{Version: V(KeyedVersion), Name: text(), Due: tick(), Direct: flag, To: texts(), Under: text(), Of: hash(), Nth: num(), Data: data()},
		&Finished{Version: V(1), Receipt: data()},
		&Resumed{Version: V(ResumedVersion), Cell: text(), Skip: flag, Actor: text(), Reason: text()},
		&Stepped{Version: V(1), Cell: text(), N: num(), Outcome: receipt.OutcomePure, State: hash(), Gas: num()},
		&Failed{Version: V(1), Cell: text(), N: num(), Parked: flag, Error: text()},
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
		&TimerSet{Version: V(TaggedTimerVersion), Cell: text(), Name: text(), Deadline: tick(), Tag: text(), Data: data()},
		&TimerFired{Version: V(1), Cell: text(), Name: text()},
		&TagCancelled{Version: V(1), Cell: text(), Tag: text(), Timer: Seq(num()), Receipts: []Seq{Seq(num()), Seq(num())}},
		&OperatorEffect{Version: V(1), Actor: text(), N: num(), Kind: text(), Cap: text(), Reason: text(), Params: data()},
		&Expired{Version: V(1), Key: key, Attempt: num(), Reason: text()},
		&Due{Version: V(1), Key: key, Attempt: num()},
		&Late{Version: V(1), Receipt: data()},
		&Resolved{Version: V(1), Key: key, How: Approve, Params: hash(), Actor: text(), Reason: text(), Payload: data()},
		&Confirmed{Version: V(1), Key: key, Mode: text(), Verdict: receipt.Happened, Actor: text(), Reason: text()},
		&KeysRotated{Version: V(1), KeyID: text(), Revoked: texts(), Actor: text()},
		&IntentParked{
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
		&Forked{Version: V(ForkSeedVersion), World: text(), Parent: text(), At: Seq(num()), ChainRoot: hash(), Effects: ForkHold, Live: []string{text()}, Manifest: hash(), Actor: text(), Seed: &seed},
		&Redacted{Version: V(1), Blob: hash(), Actor: text(), Reason: text()},
		&ManifestProposed{Version: V(1), Base: hash(), Candidate: hash(), Actor: text(), Signature: &signature, Reason: text()},
		&ManifestShadowed{Version: V(1), Proposal: num(), Hash: hash(), Report: data(), Actor: text()},
		&ManifestApproved{
			Version: V(1), Proposal: num(), World: text(), Base: hash(), Candidate: hash(), Report: hash(),
			Signature: signature, Actor: text(), Reason: text(),
		},
		&ManifestRejected{Version: V(1), Proposal: num(), Actor: text(), Reason: text()},
		&ManifestWithdrawn{Version: V(1), Proposal: num(), Actor: text(), Reason: text()},
		&Applied{Version: V(EnginesVersion), Proposal: num(), Manifest: hash(), Base: hash(), Actor: text(), Kernel: text(), Engines: engines},
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

// TestForkWithoutASeedKeepsItsBytes: version 1, as in journals of before, has none, and
// version 2 always one.
func TestForkWithoutASeedKeepsItsBytes(t *testing.T) {
	was := struct {
		Version
		World, Parent string
		At            Seq
		ChainRoot     Hash
		Effects       ForkEffects
		Live          []string
		Manifest      Hash
		Actor         string
	}{Version: V(1), World: "b", Parent: "a", At: 7, Effects: ForkLive, Live: []string{"model.ask"}, Actor: "ada"}
	old, err := canon.Marshal(was)
	require.NoError(t, err)
	f := &Forked{Version: V(1), World: "b", Parent: "a", At: 7, Effects: ForkLive, Live: []string{"model.ask"}, Actor: "ada"}
	require.Equal(t, old, Append(nil, f))
	read := func(f *Forked) (Body, error) {
		rec := Record{Kind: KindForked, Payload: Append(nil, f)}
		return rec.Body()
	}
	body, err := read(f)
	require.NoError(t, err)
	require.Equal(t, f, body)
	f.V = ForkSeedVersion
	_, err = read(f)
	require.Error(t, err, "it lacks the seed")
	seed := uint64(0)
	f.V, f.Seed = 1, &seed
	_, err = read(f)
	require.Error(t, err, "it has a seed")
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

// TestAdvancedOfVersion1IsReadAndWritten: it is what a tick begins with that somebody drives.
func TestAdvancedOfVersion1IsReadAndWritten(t *testing.T) {
	old, err := canon.Marshal([]any{uint64(1), uint64(7)})
	require.NoError(t, err)
	body, err := (&Record{Kind: KindAdvanced, Payload: old}).Body()
	require.NoError(t, err)
	driven, still := NewAdvanced(7, false), NewAdvanced(7, true)
	require.Equal(t, &driven, body)
	require.Equal(t, old, Append(nil, body))
	body, err = (&Record{Kind: KindAdvanced, Payload: Append(nil, &still)}).Body()
	require.NoError(t, err)
	require.Equal(t, &still, body)
	for _, bad := range [][]any{{1, 7, true}, {StillVersion, 7}, {StillVersion + 1, 7, true}} {
		b, err := canon.Marshal(bad)
		require.NoError(t, err)
		_, err = (&Record{Kind: KindAdvanced, Payload: b}).Body()
		require.Error(t, err, "%v", bad)
	}
}

// TestResumedOfVersion1IsReadAndWritten: nobody said then who decided, and its bytes stay.
func TestResumedOfVersion1IsReadAndWritten(t *testing.T) {
	old, err := canon.Marshal([]any{uint64(1), "bot/a", true})
	require.NoError(t, err)
	rec := Record{Kind: KindResumed, Payload: old}
	body, err := rec.Body()
	require.NoError(t, err)
	require.Equal(t, &Resumed{Version: V(1), Cell: "bot/a", Skip: true}, body)
	require.Equal(t, old, Append(nil, body))
	for _, bad := range [][]any{
		{uint64(1), "bot/a", true, "ada", ""}, {uint64(ResumedVersion), "bot/a", true}, {uint64(ResumedVersion + 1), "bot/a", true, "ada", ""},
	} {
		b, err := canon.Marshal(bad)
		require.NoError(t, err)
		rec := Record{Kind: KindResumed, Payload: b}
		_, err = rec.Body()
		require.Error(t, err, "%v", bad)
	}
}

// TestEngineFieldsOfVersion1AreRead: the bytes are those of a world that was made when
// it was today's.
func TestEngineFieldsOfVersion1AreRead(t *testing.T) {
	was := func(items ...any) []byte {
		b, err := canon.Marshal(items)
		require.NoError(t, err)
		return b
	}
	hash := Hash{7}
	want := Engines{{manifest.EngineCEL, "cel/2"}, {manifest.EngineStarlark, "starlark/1"}}
	for _, c := range []struct {
		kind    Kind
		payload []byte
		want    Body
	}{
		{
			KindCreated, was(1, "w-1", "w", 5, hash, "kernel/1", "starlark/1", "cel/2"),
			&Created{Version: V(1), World: "w-1", Name: "w", Seed: 5, Manifest: hash, Kernel: "kernel/1", Engines: want},
		},
		{
			KindApplied, was(1, 3, hash, Hash{8}, "ann", "kernel/1", "starlark/1", "cel/2"),
			&Applied{Version: V(1), Proposal: 3, Manifest: hash, Base: Hash{8}, Actor: "ann", Kernel: "kernel/1", Engines: want},
		},
	} {
		rec := Record{Kind: c.kind, Payload: c.payload}
		got, err := rec.Body()
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		require.Equal(t, c.payload, Append(nil, got))
	}
}

// TestEnginesAreListedInOneWay refuses every other list, and the shape of one version
// under the number of another.
func TestEnginesAreListedInOneWay(t *testing.T) {
	engine := func(name string) []any { return []any{name, "1"} }
	for what, tail := range map[string][]any{
		"unsorted":            {2, []any{engine("starlark"), engine("cel")}},
		"twice":               {2, []any{engine("cel"), engine("cel")}},
		"nothing":             {2, nil},
		"no version":          {2, []any{[]any{"cel"}}},
		"fields in version 2": {2, "starlark/1", "cel/2"},
		"list in version 1":   {1, []any{engine("cel")}},
		"a version to come":   {3, []any{engine("cel")}},
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
	frequent := map[Kind]bool{KindEmitted: true, KindFinished: true, KindStepped: true}
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
		if body.version() < rowOf(rec.Kind).first {
			return
		}
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

// TestSubmittedOfVersion1IsReadAndWritten: it is what is submitted without a key.
func TestSubmittedOfVersion1IsReadAndWritten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := *bodies(rt)[2].(*Submitted) //nolint:forcetypeassert // see allKinds
		x.V, x.Under, x.Of, x.Nth = BodyVersion, "", Hash{}, 0
		payload := x.Append(nil)
		got, err := (&Record{Kind: KindSubmitted, Payload: payload}).Body()
		require.NoError(rt, err)
		require.Equal(rt, &x, got)
		_, err = (&Record{Kind: KindSubmitted, Payload: append(payload, 0)}).Body()
		require.Error(rt, err)
		was, err := canon.Marshal([]any{1, x.Name, x.Due, x.Direct, x.To, x.Data})
		require.NoError(rt, err)
		require.Equal(rt, was, payload)
		for _, mixed := range [][]any{
			{2, x.Name, x.Due, x.Direct, x.To, x.Data},
			{1, x.Name, x.Due, x.Direct, x.To, "key", x.Of, 1, x.Data},
			{3, x.Name, x.Due, x.Direct, x.To, "key", x.Of, 1, x.Data},
		} {
			payload, err := canon.Marshal(mixed)
			require.NoError(rt, err)
			_, err = (&Record{Kind: KindSubmitted, Payload: payload}).Body()
			require.Error(rt, err)
		}
	})
}
