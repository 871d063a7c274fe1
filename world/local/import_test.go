package local_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/bundle"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// export returns the journal of the world in a directory, with all that its bytes are.
func export(t testing.TB, dir string, format local.Format) []byte {
	t.Helper()
	w := open(t, dir)
	var out bytes.Buffer
	require.NoError(t, w.Export(&out, format, nil))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// wholeOf returns the bundle of the world in a directory.
func wholeOf(t testing.TB, dir string) []byte {
	t.Helper()
	w := open(t, dir)
	var out bytes.Buffer
	require.NoError(t, w.ExportBundle(t.Context(), &out, local.BundleOptions{}))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// parts cuts a bundle where an item begins.
func parts(t testing.TB, data []byte) [][]byte {
	t.Helper()
	var out [][]byte
	for data = unzip(t, data); len(data) > 0; {
		rest, err := cbor.UnmarshalFirst(data, new(cbor.RawMessage))
		require.NoError(t, err)
		out = append(out, data[:len(data)-len(rest)])
		data = rest
	}
	return out
}

// joined is the bundle of some items.
func joined(t testing.TB, items [][]byte) []byte {
	t.Helper()
	data, err := io.ReadAll(zip(t, bytes.Join(items, nil)))
	require.NoError(t, err)
	return data
}

// importRefused requires that an import fails and leaves nothing behind.
func importRefused(t testing.TB, data, keyring []byte, msg ...any) {
	t.Helper()
	up := t.TempDir()
	require.Error(t, local.Import(t.Context(), filepath.Join(up, "a", "b"), bytes.NewReader(data), keyring, local.Options{}, nil), msg...)
	require.Empty(t, tree(t, up), msg...)
}

func TestExportComesBackByteForByte(t *testing.T) {
	dir, head := lived(t)
	data := wholeOf(t, dir)
	again := filepath.Join(t.TempDir(), "deep", "down")
	var done uint64
	require.NoError(t, local.Import(t.Context(), again, bytes.NewReader(data), ring(t, "test", 1), local.Options{}, func(n uint64) { done = n }))
	require.EqualValues(t, head.ID, done)
	require.Equal(t, data, wholeOf(t, again))
	for _, format := range local.Formats() {
		require.Equal(t, export(t, dir, format), export(t, again, format))
	}
	w := open(t, again)
	require.Equal(t, head, w.Status().Head)
	live(t, w)
	r, err := w.Verify(t.Context(), local.Verification{})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.NoError(t, w.Close())
	require.ErrorIs(t, local.Import(t.Context(), again, bytes.NewReader(data), nil, local.Options{}, nil), local.ErrExists)
}

// TestForkComesBackAsTheForkThatItIs: it has an id of its own, and a keyring.
func TestForkComesBackAsTheForkThatItIs(t *testing.T) {
	dir, _ := lived(t)
	w := open(t, dir)
	to := filepath.Join(t.TempDir(), "fork")
	_, err := w.Fork(t.Context(), to, local.ForkOptions{ID: "town-2"})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	again := t.TempDir()
	require.NoError(t, local.Import(t.Context(), again, bytes.NewReader(wholeOf(t, to)), keyringOf(t, to), local.Options{}, nil))
	w = open(t, again)
	require.Equal(t, "town-2", w.Status().ID)
	live(t, w)
	require.NoError(t, w.Close())
}

func TestUnknownFormatIsRefused(t *testing.T) {
	w := open(t, create(t))
	require.Error(t, w.Export(new(bytes.Buffer), "xml", nil))
	require.NoError(t, w.Close())
}

func TestWorldWithoutKeysCanBeReadAndNotRun(t *testing.T) {
	dir, head := lived(t)
	again := t.TempDir()
	require.NoError(t, local.Import(t.Context(), again, bytes.NewReader(wholeOf(t, dir)), nil, local.Options{}, nil))
	w := open(t, again)
	defer func() { require.NoError(t, w.Close()) }()
	r, err := w.Verify(t.Context(), local.Verification{})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.Equal(t, verify.Receipts{Unverifiable: 1}, r.Receipts)
	_, err = w.Replay(t.Context(), 0, nil)
	require.NoError(t, err)

	ctx := context.Background()
	_, err = w.Submit(ctx, "go", map[string]any{"to": "a"})
	require.ErrorIs(t, err, local.ErrNoKeys)
	_, _, err = w.SubmitAll(ctx, func(func(world.Submission, error) bool) {})
	require.ErrorIs(t, err, local.ErrNoKeys)
	require.ErrorIs(t, w.Step(ctx), local.ErrNoKeys)
	require.ErrorIs(t, w.Run(ctx), local.ErrNoKeys)
	err = w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Receive(nil)) })
	require.ErrorIs(t, err, local.ErrNoKeys, "nobody could tell whether it is forged")
	require.Equal(t, head, w.Status().Head)
}

func TestImportRefusesChangedSequences(t *testing.T) {
	dir, _ := lived(t)
	all := parts(t, wholeOf(t, dir))
	for i := range all {
		importRefused(t, joined(t, slices.Delete(slices.Clone(all), i, i+1)), nil, "without item %d", i)
		importRefused(t, joined(t, slices.Insert(slices.Clone(all), i, all[i])), nil, "item %d twice", i)
		if i > 0 && !isBlob(all[i]) && !isBlob(all[i-1]) {
			swapped := slices.Clone(all)
			swapped[i], swapped[i-1] = swapped[i-1], swapped[i]
			importRefused(t, joined(t, swapped), nil, "item %d before %d", i, i-1)
		}
	}
	importRefused(t, nil, nil, "nothing at all")
	importRefused(t, all[len(all)-1], nil, "only the end")
	importRefused(t, export(t, dir, local.JSONLines), nil, "another format")
}

// samples is at how many places of a file a test of all places looks: an import
// is synced to disk.
const samples = 24

// isBlob reports whether an item is a blob, in pieces or not, or a piece.
func isBlob(item []byte) bool {
	return item[0]>>5 == 2 || item[0] == 0x81 || item[0] == 0x82 && item[1]>>5 == 0
}

func TestImportOfACutFileIsRefused(t *testing.T) {
	dir, _ := lived(t)
	data := wholeOf(t, dir)
	for n := 0; n < len(data); n += 1 + len(data)/samples {
		importRefused(t, data[:n], nil, "%d bytes", n)
	}
}

func TestImportOfAFlippedByteIsRefused(t *testing.T) {
	dir, _ := lived(t)
	data := wholeOf(t, dir)
	items := bytes.Join(parts(t, data), nil)
	flip := func(data []byte, n int) []byte {
		flipped := bytes.Clone(data)
		flipped[n] ^= 1 << (n % 8)
		return flipped
	}
	for n := 0; n < len(data); n += 1 + len(data)/samples {
		importRefused(t, flip(data, n), ring(t, "test", 1), "byte %d", n)
	}
	for n := 0; n < len(items); n += 1 + len(items)/samples {
		importRefused(t, joined(t, [][]byte{flip(items, n)}), ring(t, "test", 1), "byte %d, unpacked", n)
	}
}

// TestImportIsOfAllOfAJournal refuses a part of it, and one without a payload that no record says
// to be redacted.
func TestImportIsOfAllOfAJournal(t *testing.T) {
	dir, _ := lived(t)
	large := largeOf(t, dir, journal.KindSubmitted)
	w := open(t, dir)
	for _, o := range []local.BundleOptions{{From: 3}, {Withhold: []journal.Seq{large}}} {
		var out bytes.Buffer
		require.NoError(t, w.ExportBundle(t.Context(), &out, o))
		importRefused(t, out.Bytes(), nil)
	}
	require.NoError(t, w.Close())
}

func TestImportRefusesAnotherWorldsKeyring(t *testing.T) {
	dir, _ := lived(t)
	data := wholeOf(t, dir)
	importRefused(t, data, ring(t, "other", 1), "another world's")
	young := wholeOf(t, create(t))
	importRefused(t, young, ring(t, "other", 1), "another world's, and no receipt would tell")
	importRefused(t, data, ring(t, "test", 2), "another secret")
	importRefused(t, data, []byte("keys"), "no keyring")
	importRefused(t, data, []byte{}, "an empty keyring")
}

func TestImportThatEndsBeforeItReadsSaysWhy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "copy")
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped by a signal")
	cancel(stopped)
	err := local.Import(ctx, dir, strings.NewReader("a journal"), nil, local.Options{}, nil)
	require.ErrorIs(t, err, stopped, "it was not empty, nobody has looked")
	err = local.Import(t.Context(), dir, strings.NewReader(""), nil, local.Options{}, nil)
	require.ErrorIs(t, err, bundle.ErrNotBundle)
	require.NoDirExists(t, dir)
}

func TestImportOverAFileIsRefused(t *testing.T) {
	dir, _ := lived(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	data := wholeOf(t, dir)
	for _, to := range []string{file, filepath.Join(file, "below")} {
		require.Error(t, local.Import(t.Context(), to, bytes.NewReader(data), nil, local.Options{}, nil))
	}
	left, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "mine", string(left))
}

func FuzzImport(f *testing.F) {
	dir, _ := lived(f)
	data := wholeOf(f, dir)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add(joined(f, parts(f, data)[:1]))
	f.Add([]byte{})
	f.Add([]byte("{"))
	f.Add([]byte{0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x5b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		to := filepath.Join(t.TempDir(), "world")
		if err := local.Import(t.Context(), to, bytes.NewReader(data), nil, local.Options{}, nil); err != nil {
			require.NoDirExists(t, to)
			return
		}
		w, err := local.Open(to, local.Options{})
		require.NoError(t, err)
		r, err := w.Verify(t.Context(), local.Verification{})
		require.NoError(t, err)
		require.Empty(t, r.Faults)
		require.NoError(t, w.Close())
	})
}
