package bundle_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/bundle"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

const (
	vectorFile  = "testdata/vector.txt" // what -update writes
	vectorFirst = 4                     // record of the second bundle, a range
	vectorCode  = "def reduce(ctx, state, event):\n    return (state or 0) + 1\n"
)

var updateVector = flag.Bool("update", false, "write "+vectorFile)

// counted is the world of the vectors: a cell that counts, and is told something
// long, which the bundles withhold.
func counted(t *testing.T) *worldtest.World {
	t.Helper()
	code := canon.Sum([]byte(vectorCode))
	m := manifest.Manifest{
		World: "counter", Version: 1,
		Reducers: map[string]manifest.Reducer{"counter": {Engine: manifest.EngineStarlark, Source: code}},
		Events:   map[string]manifest.Event{"said": {}},
		Routing:  []manifest.Route{{Event: "said", Reducer: "counter", Key: `"a"`}},
	}
	w := worldtest.New(t, m, map[manifest.Hash][]byte{code: []byte(vectorCode)}, worldtest.Options{})
	w.Submit("said", "hello")
	w.Submit("said", strings.Repeat("long ", 1000))
	w.Run()
	return w
}

// vectorBundle writes a bundle with a checkpoint of record 2, where it is in it,
// and one of the last, which another key has signed, too, that is not listed.
func vectorBundle(t *testing.T, j *worldtest.Journal, first journal.Seq) []byte {
	t.Helper()
	h := headerOf(j, cut{first: first})
	h.Keys = []ed25519.PublicKey{worldtest.Public(2)}
	if first == 1 {
		h.Withheld, h.Keys = payloads(t, j), append(h.Keys, worldtest.Public(1))
	}
	var out bytes.Buffer
	w, err := bundle.NewWriter(&out, h)
	require.NoError(t, err)
	for s, err := range j.Scan(first - 1) {
		require.NoError(t, err)
		for _, b := range blobsOf(t, j, s.Record) {
			require.NoError(t, w.Blob(b))
		}
		require.NoError(t, w.Record(s))
		switch s.ID {
		case 2:
			require.NoError(t, w.Checkpoint(sign(t, j, 2, worldtest.Key(1))))
		case h.Last:
			require.NoError(t, w.Checkpoint(sign(t, j, h.Last, worldtest.Key(2), worldtest.Key(3))))
		}
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// describe writes a bundle down: its items, in hex with what is text, and what a
// verifier computes of them.
func describe(t *testing.T, out *strings.Builder, data []byte) {
	t.Helper()
	items := unpack(t, data)
	r := open(t, data)
	require.Empty(t, slices.Collect(r.Damage()))
	h := r.Header()
	chain := canon.ResumeChain(h.Root)
	tree, err := checkpoint.Resume(uint64(h.First-1), h.Nodes)
	require.NoError(t, err)
	at := 0
	for i, item := range split(t, items) {
		fmt.Fprintf(out, "item %d, byte %d\n", i+1, at)
		for chunk := range slices.Chunk(item, 32) {
			fmt.Fprintf(out, "  %x\n", chunk)
		}
		at += len(item)
		x := canon.NewReader(item)
		switch {
		case i == 0:
		case item[0]&0xe0 == aBlob:
			fmt.Fprintf(out, "  blob %s\n", canon.Sum(x.Bytes()))
		case item[0]&0xe0 == aRecord:
			x.ArrayOf(2)
			record := x.Raw()
			e, err := canon.DecodeEnvelope(record)
			require.NoError(t, err)
			leaf := sha256.Sum256(append([]byte{0}, record...))
			tree.Add(record)
			fmt.Fprintf(out, "  record #%d %s\n  chain root %s\n  leaf %x\n  tree root %s\n", e.ID, e.Kind, chain.Add(e.ID, e.Kind, record), leaf, tree.Root())
		default:
			for line := range strings.Lines(x.Text()) {
				fmt.Fprintf(out, "  | %s", line)
			}
		}
	}
	fmt.Fprintf(out, "end, byte %d\n  sha256 of the items %s\n", at, canon.Sum(items))
}

// vectors describes two bundles: one of a whole world, and a range of it.
func vectors(t *testing.T, whole, part []byte) string {
	t.Helper()
	out := new(strings.Builder)
	for b := range byte(3) {
		fmt.Fprintf(out, "key %d: seed %s, public %x\n", b+1, strings.Repeat(hex.EncodeToString([]byte{b + 1}), ed25519.SeedSize), []byte(worldtest.Public(b+1)))
		text, err := checkpoint.FormatKey("test", worldtest.Public(b+1))
		require.NoError(t, err)
		fmt.Fprintf(out, "  %s\n", text)
	}
	out.WriteString("\nthe whole world\n\n")
	describe(t, out, whole)
	fmt.Fprintf(out, "  execution hash %s\n", judge(t, open(t, whole)).ExecutionHash)
	out.WriteString("\na range of it\n\n")
	describe(t, out, part)
	out.WriteString("\nthe range, packed, in base64\n\n")
	for chunk := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString(part)), 88) {
		fmt.Fprintf(out, "  %s\n", chunk)
	}
	return out.String()
}

// bundlesOf reads the file of vectors: the items of the first bundle, and the
// second one.
func bundlesOf(t *testing.T, text string) (items, part []byte) {
	t.Helper()
	whole, rest, _ := strings.Cut(text, "a range of it")
	for line := range strings.Lines(whole) {
		if b, err := hex.DecodeString(strings.TrimSpace(line)); err == nil && strings.HasPrefix(line, "  ") {
			items = append(items, b...)
		}
	}
	_, packed, _ := strings.Cut(rest, "base64")
	part, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(packed), ""))
	require.NoError(t, err)
	return items, part
}

// The vectors stay readable, and mean what they meant, whatever worlds write today.
func TestVectorsOfBundles(t *testing.T) {
	if *updateVector {
		j := counted(t).Journal
		whole, part := vectorBundle(t, j, 1), vectorBundle(t, j, vectorFirst)
		require.Empty(t, judge(t, open(t, whole)).Faults)
		require.Empty(t, judge(t, open(t, part)).Faults)
		require.NoError(t, os.WriteFile(vectorFile, []byte(vectors(t, whole, part)), 0o644))
	}
	text, err := os.ReadFile(vectorFile)
	require.NoError(t, err)
	items, part := bundlesOf(t, string(text))
	whole := pack(t, items)
	require.Equal(t, items, unpack(t, again(t, open(t, whole), split(t, items))))
	require.Equal(t, string(text), vectors(t, whole, part))
}
