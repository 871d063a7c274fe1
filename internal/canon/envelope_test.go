package canon_test

import (
	"bytes"
	"encoding/hex"
	"testing"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// The bytes and roots below were computed by a second implementation, in
// Python and from the specification alone (hashlib, base64, CBOR heads by hand).
func TestVectorsOfTheChain(t *testing.T) {
	blob := canon.Sum([]byte("blob"))
	var chain canon.Chain
	require.True(t, chain.Root().IsZero())
	for _, v := range []struct {
		e            canon.Envelope
		record, root string
	}{
		{
			canon.Envelope{ID: 1, Kind: "world.created", Payload: []byte{0xa0}},
			"8501006d776f726c642e637265617465640041a0",
			"e46b74f6cf88d12a26532525cdee6c2d60999433dfe41dcec7bd1765059e28c2",
		},
		{
			canon.Envelope{ID: 2, Time: 7, Kind: "event.submitted", Payload: []byte{0xa1, 0x61, 0x61, 1}},
			"8502076f6576656e742e7375626d69747465640044a1616101",
			"dc2ea9333ee48be649e6bbb21421a09729ea59907eee2b063c9fe6d46ff553f3",
		},
		{
			canon.Envelope{ID: 3, Time: 70000, Kind: "cell.stepped", CausedBy: 2, Blob: blob, BlobSize: 5000},
			"85031a000111706c63656c6c2e7374657070656402825820" +
				"fa2c8cc4f28176bbeed4b736df569a34c79cd3723e9ec42f9674b4d46ac6b8b8191388",
			"08703aaba6d30559020ee3a4877bd6de54536ea62e1b2995d56eecb096851cc9",
		},
		{
			canon.Envelope{ID: 1<<64 - 1, Time: 1<<64 - 1, Kind: "event.emitted", CausedBy: 1<<64 - 2, Payload: []byte{}},
			"851bffffffffffffffff1bffffffffffffffff6d6576656e742e656d69747465641bfffffffffffffffe40",
			"5911b5ba05cfbfcb865f603f5c73134412091b09269bed081e840370339c0176",
		},
	} {
		record := canon.AppendEnvelope(nil, v.e)
		require.Equal(t, v.record, hex.EncodeToString(record))
		back, err := canon.DecodeEnvelope(record)
		require.NoError(t, err)
		require.Equal(t, v.e, back)

		resumed := canon.ResumeChain(chain.Root())
		require.Equal(t, v.root, chain.Add(v.e.ID, v.e.Kind, record).String())
		require.Equal(t, v.root, chain.Root().String())
		require.Equal(t, chain.Root(), resumed.Add(v.e.ID, v.e.Kind, record), "a chain goes on from its root")
	}
}

func TestDecodeEnvelopeNamesTheOffsetOfAFault(t *testing.T) {
	for name, fault := range map[string]struct {
		hexed  string
		offset int
	}{
		"empty":              {"", 0},
		"four items":         {"84010061610040", 0},
		"six items":          {"8601006161004000", 0},
		"a map":              {"a0", 0},
		"long id":            {"8518010061610040", 1},
		"negative time":      {"85012061610040", 2},
		"kind is bytes":      {"85010041610040", 3},
		"kind is not UTF-8":  {"85010061ff0040", 3},
		"cause is null":      {"8501006161f640", 5},
		"payload is text":    {"85010061610060", 6},
		"payload is missing": {"850100616100", 6},
		"payload is cut":     {"85010061610042ff", 7},
		"trailing byte":      {"8501006161004000", 7},
		"blob of 3 items":    {"85010061610083400000", 6},
		"blob of 31 bytes":   {"85010061610082581f" + zeros(31) + "00", 7},
		"the zero blob":      {"850100616100825820" + zeros(32) + "00", 7},
		"blob without size":  {"850100616100825820" + zeros(32), 7},
		"blob size is text":  {"850100616100825820" + zeros(31) + "0160", 41},
	} {
		t.Run(name, func(t *testing.T) {
			var at *canon.SyntaxError
			e, err := canon.DecodeEnvelope(unhex(t, fault.hexed))
			require.ErrorAs(t, err, &at)
			require.Equal(t, fault.offset, at.Offset, at.Reason)
			require.Zero(t, e)
		})
	}
}

func zeros(n int) string { return hex.EncodeToString(make([]byte, n)) }

// The envelope once more, as the library would write it.
type inPlace struct {
	_        struct{} `cbor:",toarray"`
	ID, Time uint64
	Kind     string
	CausedBy uint64
	Payload  []byte
}

type blobName struct {
	_    struct{} `cbor:",toarray"`
	Hash []byte
	Size uint64
}

type asBlob struct {
	_        struct{} `cbor:",toarray"`
	ID, Time uint64
	Kind     string
	CausedBy uint64
	Blob     blobName
}

// FuzzEnvelopeEncoding holds the envelope written by hand equal to the
// library's encoding of the same struct.
func FuzzEnvelopeEncoding(f *testing.F) {
	f.Add(uint64(1), uint64(0), "world.created", uint64(0), []byte{0xa0}, false)
	f.Add(uint64(24), uint64(256), "cell.stepped", uint64(1<<16), bytes.Repeat([]byte{1}, 300), false)
	f.Add(uint64(1<<32), uint64(1<<63), "", uint64(23), []byte("name"), true)
	enc, err := cbor.CoreDetEncOptions().EncMode()
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, id, time uint64, kind string, cause uint64, payload []byte, blob bool) {
		if !utf8.ValidString(kind) {
			t.Skip()
		}
		e := canon.Envelope{ID: id, Time: time, Kind: kind, CausedBy: cause}
		var same any
		if blob {
			e.Blob, e.BlobSize = canon.Sum(payload), id^time
			same = asBlob{ID: id, Time: time, Kind: kind, CausedBy: cause, Blob: blobName{Hash: e.Blob[:], Size: e.BlobSize}}
		} else {
			e.Payload = append([]byte{}, payload...)
			same = inPlace{ID: id, Time: time, Kind: kind, CausedBy: cause, Payload: e.Payload}
		}
		want, err := enc.Marshal(same)
		require.NoError(t, err)
		got := canon.AppendEnvelope([]byte("before"), e)[len("before"):]
		require.Equal(t, want, got)
		back, err := canon.DecodeEnvelope(got)
		require.NoError(t, err)
		require.Equal(t, e, back)
	})
}

// FuzzEnvelope: what decodes is canonical and encodes to the same bytes.
func FuzzEnvelope(f *testing.F) {
	f.Add(canon.AppendEnvelope(nil, canon.Envelope{ID: 1, Kind: "world.created", Payload: []byte{0xa0}}))
	f.Add(canon.AppendEnvelope(nil, canon.Envelope{ID: 1 << 40, Time: 99, Kind: "k", CausedBy: 7, Blob: canon.Sum(nil), BlobSize: 5000}))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := canon.DecodeEnvelope(data)
		if err != nil {
			var at *canon.SyntaxError
			require.ErrorAs(t, err, &at)
			require.LessOrEqual(t, at.Offset, len(data))
			return
		}
		require.NoError(t, canon.Valid(data))
		require.Equal(t, data, canon.AppendEnvelope(nil, e))
	})
}
