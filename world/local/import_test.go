package local_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func formats() []local.Format { return []local.Format{local.CBORSeq, local.JSONLines} }

// export returns the journal of the world in a directory.
func export(t testing.TB, dir string, format local.Format) []byte {
	t.Helper()
	w := open(t, dir)
	var out bytes.Buffer
	require.NoError(t, w.Export(&out, format, nil))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// parts cuts an export where a record begins or a blob does.
func parts(t testing.TB, data []byte, format local.Format) [][]byte {
	t.Helper()
	if format == local.JSONLines {
		return slices.Collect(bytes.Lines(data))
	}
	var out [][]byte
	for len(data) > 0 {
		rest, err := cbor.UnmarshalFirst(data, new(cbor.RawMessage))
		require.NoError(t, err)
		out = append(out, data[:len(data)-len(rest)])
		data = rest
	}
	return out
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
	for _, format := range formats() {
		t.Run(string(format), func(t *testing.T) {
			data := export(t, dir, format)
			again := filepath.Join(t.TempDir(), "deep", "down")
			var done uint64
			require.NoError(t, local.Import(t.Context(), again, bytes.NewReader(data), ring(t, "test", 1), local.Options{}, func(n uint64) { done = n }))
			require.EqualValues(t, head.ID, done)
			for _, other := range formats() {
				require.Equal(t, export(t, dir, other), export(t, again, other))
			}
			w := open(t, again)
			require.Equal(t, head, w.Status().Head)
			live(t, w)
			r, err := w.Verify(t.Context(), local.Verification{})
			require.NoError(t, err)
			require.Empty(t, r.Faults)
			require.NoError(t, w.Close())
			require.ErrorIs(t, local.Import(t.Context(), again, bytes.NewReader(data), nil, local.Options{}, nil), local.ErrExists)
		})
	}
}

func TestUnknownFormatIsRefused(t *testing.T) {
	w := open(t, create(t))
	require.Error(t, w.Export(new(bytes.Buffer), "xml", nil))
	require.NoError(t, w.Close())
}

func TestWorldWithoutKeysCanBeReadAndNotRun(t *testing.T) {
	dir, head := lived(t)
	again := t.TempDir()
	require.NoError(t, local.Import(t.Context(), again, bytes.NewReader(export(t, dir, local.CBORSeq)), nil, local.Options{}, nil))
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
	for _, format := range formats() {
		t.Run(string(format), func(t *testing.T) {
			all := parts(t, export(t, dir, format), format)
			for i := range all {
				if i < len(all)-1 { // without the last it is a shorter journal, see below
					importRefused(t, bytes.Join(slices.Delete(slices.Clone(all), i, i+1), nil), nil, "without part %d", i)
				}
				repeated := slices.Insert(slices.Clone(all), i, all[i])
				if format == local.JSONLines || !isBlob(all[i]) { // a blob may come twice
					importRefused(t, bytes.Join(repeated, nil), nil, "part %d twice", i)
				}
				if i > 0 && !isBlob(all[i]) && !isBlob(all[i-1]) {
					swapped := slices.Clone(all)
					swapped[i], swapped[i-1] = swapped[i-1], swapped[i]
					importRefused(t, bytes.Join(swapped, nil), nil, "part %d before %d", i, i-1)
				}
			}
			importRefused(t, nil, nil, "nothing at all")
			importRefused(t, all[len(all)-1], nil, "only the end")
		})
	}
}

// samples is at how many places of a file a test of all places looks: an import
// is synced to disk.
const samples = 24

// isBlob reports whether a part of an export is a CBOR byte string.
func isBlob(part []byte) bool { return part[0]>>5 == 2 }

func TestImportOfACutFileIsRefusedOrAShorterJournal(t *testing.T) {
	dir, head := lived(t)
	for _, format := range formats() {
		t.Run(string(format), func(t *testing.T) {
			data := export(t, dir, format)
			for n := 0; n < len(data)-1; n += 1 + len(data)/samples {
				cut := t.TempDir()
				if err := local.Import(t.Context(), cut, bytes.NewReader(data[:n]), nil, local.Options{}, nil); err != nil {
					require.Empty(t, tree(t, cut))
					continue
				}
				w := open(t, cut)
				require.Less(t, w.Status().Head.ID, head.ID)
				require.NoError(t, w.Close())
				require.True(t, bytes.HasPrefix(data, bytes.TrimSuffix(export(t, cut, format), []byte("\n"))))
			}
		})
	}
}

func TestImportOfAFlippedByteIsRefusedOrMeansTheSame(t *testing.T) {
	dir, _ := lived(t)
	for _, format := range formats() {
		t.Run(string(format), func(t *testing.T) {
			data := export(t, dir, format)
			for n := 0; n < len(data); n += 1 + len(data)/samples {
				flipped := bytes.Clone(data)
				flipped[n] ^= 1 << (n % 8)
				to := t.TempDir()
				if err := local.Import(t.Context(), to, bytes.NewReader(flipped), ring(t, "test", 1), local.Options{}, nil); err != nil {
					require.Empty(t, tree(t, to))
					continue
				}
				require.Equal(t, local.JSONLines, format, "byte %d", n) // e.g. a letter's case in a field's name
				require.Equal(t, data, export(t, to, format), "byte %d", n)
			}
		})
	}
}

func TestImportRefusesALineThatSaysOtherwiseThanItsBytes(t *testing.T) {
	dir, _ := lived(t)
	lines := parts(t, export(t, dir, local.JSONLines), local.JSONLines)
	for name, c := range map[string]struct{ from, to string }{
		"id":        {`"id":3`, `"id":4`},
		"time":      {`"time":1`, `"time":2`},
		"kind":      {`"kind":"cell.stepped"`, `"kind":"cell.deleted"`},
		"caused by": {`"caused_by":2`, `"caused_by":1`},
		"payload":   {`"gas":`, `"gas":1`},
		"a field":   {`"payload":`, `"pay_load":`},
		"raw":       {`"raw":"h`, `"raw":"g`},
	} {
		changed := slices.Clone(lines)
		at := slices.IndexFunc(lines, func(line []byte) bool { return bytes.Contains(line, []byte(c.from)) })
		changed[at] = bytes.Replace(lines[at], []byte(c.from), []byte(c.to), 1)
		importRefused(t, bytes.Join(changed, nil), nil, name)
	}
}

func TestImportRefusesAnotherWorldsKeyring(t *testing.T) {
	dir, _ := lived(t)
	data := export(t, dir, local.CBORSeq)
	importRefused(t, data, ring(t, "other", 1), "another world's")
	young := export(t, create(t), local.CBORSeq)
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
	require.EqualError(t, err, "import: the file is empty")
	require.NoDirExists(t, dir)
}

func TestImportOverAFileIsRefused(t *testing.T) {
	dir, _ := lived(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	data := export(t, dir, local.CBORSeq)
	for _, to := range []string{file, filepath.Join(file, "below")} {
		require.Error(t, local.Import(t.Context(), to, bytes.NewReader(data), nil, local.Options{}, nil))
	}
	left, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "mine", string(left))
}

func FuzzImport(f *testing.F) {
	dir, _ := lived(f)
	for _, format := range formats() {
		data := export(f, dir, format)
		f.Add(data)
		f.Add(data[:len(data)/2])
		f.Add(parts(f, data, format)[0])
	}
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
