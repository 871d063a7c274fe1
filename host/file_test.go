package host

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// liveData is canonical data from JSON.
func liveData(t testing.TB, json string) receipt.Data {
	t.Helper()
	d, err := canon.FromJSON([]byte(json))
	require.NoError(t, err, json)
	return d
}

// liveCall is the n-th call of effect f with params.
func liveCall(t testing.TB, params string, n uint64) Call {
	t.Helper()
	step := receipt.NewStepID("agent/1", n+1, 0, receipt.History{})
	p := liveData(t, params)
	key := receipt.NewKey("town", step, "f", p)
	return Call{
		Permit:   receipt.Permit{Intent: receipt.Intent{Key: key, Step: step, Cell: "agent/1", Kind: "f", Params: p, Occurrence: n}, Attempt: 1},
		External: key.External("town"),
	}
}

// payloadOf returns a result's payload as JSON.
func payloadOf(t testing.TB, r Result) string {
	t.Helper()
	text, err := canon.ToJSON(r.Payload)
	require.NoError(t, err)
	return string(text)
}

func codeIn(t testing.TB, r Result) string {
	t.Helper()
	raw, err := canon.Lookup(r.Payload, "code")
	require.NoError(t, err)
	return canon.NewReader(raw).Text()
}

// worldDir makes a world's directory with an empty directory out in it.
func worldDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".world"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".world", "keyring"), []byte("KEYRING-CANARY"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "out"), 0o755))
	return dir
}

func fileIn(t testing.TB, dir, config string) Adapter {
	t.Helper()
	a, err := newFile(Setup{Kind: "f", Dir: dir, Config: liveData(t, config)})
	require.NoError(t, err)
	return a
}

func performed(t testing.TB, a Adapter, params string) Result {
	t.Helper()
	r, err := a.Perform(t.Context(), liveCall(t, params, 0))
	require.NoError(t, err, params)
	require.NoError(t, canon.Valid(r.Payload))
	return r
}

func TestFileDoesWhatItIsAskedTo(t *testing.T) {
	dir := worldDir(t)
	a := fileIn(t, dir, `{"root": "out"}`)
	hash := func(s string) string { return canon.Sum([]byte(s)).String() }

	r := performed(t, a, `{"op": "write", "path": "x.txt", "data": "hello\n"}`)
	require.Equal(t, receipt.StatusOK, r.Status)
	require.JSONEq(t, `{"bytes": 6, "content_hash": "`+hash("hello\n")+`"}`, payloadOf(t, r))
	require.Equal(t, &receipt.StateChange{Resource: "out/x.txt", ContentHash: canon.Sum([]byte("hello\n"))}, r.StateChange)
	require.Equal(t, receipt.Cost{Bytes: 6}, r.Cost)

	r = performed(t, a, `{"op": "append", "path": "x.txt", "data": "wörld"}`)
	require.JSONEq(t, `{"bytes": 6, "content_hash": "`+hash("wörld")+`"}`, payloadOf(t, r))
	require.Equal(t, &receipt.StateChange{Resource: "out/x.txt", Version: "bytes 6-12", ContentHash: canon.Sum([]byte("wörld"))}, r.StateChange)
	require.Equal(t, receipt.StatusOK, performed(t, a, `{"op": "append", "path": "new.txt", "data": "1"}`).Status)

	r = performed(t, a, `{"op": "read", "path": "x.txt"}`)
	require.Equal(t, receipt.StatusOK, r.Status)
	require.JSONEq(t, `{"data": "hello\nwörld", "size": 12, "content_hash": "`+hash("hello\nwörld")+`"}`, payloadOf(t, r))
	require.Nil(t, r.StateChange)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "out", "bin"), []byte{0xff, 0}, 0o600))
	bin, err := canon.Lookup(performed(t, a, `{"op": "read", "path": "bin"}`).Payload, "data")
	require.NoError(t, err)
	require.Equal(t, canon.Raw(canon.AppendBytes(nil, []byte{0xff, 0})), bin)

	require.NoError(t, os.Mkdir(filepath.Join(dir, "out", "d"), 0o755))
	require.NoError(t, os.Symlink("x.txt", filepath.Join(dir, "out", "l")))
	r = performed(t, a, `{"op": "list"}`)
	require.JSONEq(t, `{"entries": [{"name": "bin", "type": "file", "size": 2}, {"name": "d", "type": "dir"}, {"name": "l", "type": "link"},
		{"name": "new.txt", "type": "file", "size": 1}, {"name": "x.txt", "type": "file", "size": 12}]}`, payloadOf(t, r))
	require.JSONEq(t, `{"entries": []}`, payloadOf(t, performed(t, a, `{"op": "list", "path": "d/"}`)))
	require.Equal(t, receipt.StatusOK, performed(t, a, `{"op": "write", "path": "d/y", "data": ""}`).Status)
	require.NotContains(t, payloadOf(t, performed(t, fileIn(t, dir, `{"root": "."}`), `{"op": "list"}`)), ".world")
}

func TestFileWriteKeepsTheMode(t *testing.T) {
	dir := worldDir(t)
	name := filepath.Join(dir, "out", "x")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	require.NoError(t, os.Chmod(name, 0o750))
	require.Equal(t, receipt.StatusOK, performed(t, fileIn(t, dir, `{"root": "out"}`), `{"op": "write", "path": "x", "data": "y"}`).Status)
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o750), info.Mode())
}

func TestFileFailureThatChangedNothingSaysSo(t *testing.T) {
	dir := worldDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "out", "ten"), []byte("0123456789"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "out", "d"), 0o755))
	for _, c := range []struct{ config, params, code string }{
		{`{"root": "out"}`, `{"op": "read", "path": "none"}`, "not_found"},
		{`{"root": "out"}`, `{"op": "list", "path": "none"}`, "not_found"},
		{`{"root": "out"}`, `{"op": "write", "path": "none/x", "data": ""}`, "not_found"},
		{`{"root": "none"}`, `{"op": "write", "path": "x", "data": ""}`, "not_found"},
		{`{"root": "out/ten"}`, `{"op": "read", "path": "x"}`, "failed"},
		{`{"root": "out"}`, `{"op": "read", "path": "d"}`, "refused"},
		{`{"root": "out"}`, `{"op": "write", "path": "d", "data": ""}`, "refused"},
		{`{"root": "out"}`, `{"op": "append", "path": "ten/x", "data": ""}`, "refused"},
		{`{"root": "out"}`, `{"op": "list", "path": "ten"}`, "refused"},
		{`{"root": "out", "max_bytes": 9}`, `{"op": "read", "path": "ten"}`, "too_large"},
		{`{"root": "out", "max_bytes": 9}`, `{"op": "write", "path": "ten", "data": "0123456789"}`, "too_large"},
		{`{"root": "out"}`, `{"op": "write", "path": "../x", "data": ""}`, "bad_path"},
		{`{"root": "out"}`, `{"op": "remove", "path": "ten"}`, "bad_params"},
	} {
		before := treeOf(t, dir)
		r := performed(t, fileIn(t, dir, c.config), c.params)
		require.Equal(t, receipt.StatusError, r.Status, c.params)
		require.Empty(t, r.Class, c.params)
		require.True(t, r.Unsent, c.params)
		require.Equal(t, c.code, codeIn(t, r), "%s %s", c.config, c.params)
		require.NotContains(t, payloadOf(t, r), dir, "the machine's paths are not the cell's business")
		require.Equal(t, before, treeOf(t, dir), c.params)
	}
	for _, config := range []string{`{}`, `{"root": "../x"}`, `{"root": ".world"}`, `{"root": "out", "op": "remove"}`, `{"root": "out", "x": 1}`} {
		_, err := newFile(Setup{Dir: dir, Config: liveData(t, config)})
		require.Error(t, err, config)
	}
}

func TestFileCapabilityBoundsWhatIsRead(t *testing.T) {
	dir := worldDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "out", "ten"), []byte("0123456789"), 0o600))
	call := liveCall(t, `{"op": "read", "path": "ten"}`, 0)
	for limit, want := range map[uint64]receipt.Status{0: receipt.StatusOK, 10: receipt.StatusOK, 9: receipt.StatusError} {
		call.Cap = manifest.Cap{Type: manifest.CapFile, Params: manifest.CapParams{MaxBytes: limit}}
		r, err := fileIn(t, dir, `{"root": "out"}`).Perform(t.Context(), call)
		require.NoError(t, err)
		require.Equal(t, want, r.Status)
	}
}

func TestFileOutOfTimeChangesNothing(t *testing.T) {
	dir := worldDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := treeOf(t, dir)
	r, err := fileIn(t, dir, `{"root": "out"}`).Perform(ctx, liveCall(t, `{"op": "write", "path": "x", "data": "y"}`, 0))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusTimeout, r.Status)
	require.Equal(t, receipt.OutcomeRetryableFailure, r.Class)
	require.True(t, r.Unsent)
	require.Equal(t, before, treeOf(t, dir))
}

// A reader sees the old content or the new one, all of it.
func TestFileWriteIsAtomic(t *testing.T) {
	dir := worldDir(t)
	a := fileIn(t, dir, `{"root": "out"}`)
	contents := []string{strings.Repeat("a", 100_000), strings.Repeat("b", 70_000)}
	params := func(i int) string {
		return fmt.Sprintf(`{"op": "write", "path": "x", "data": %q}`, contents[i])
	}
	require.Equal(t, receipt.StatusOK, performed(t, a, params(0)).Status)
	calls := []Call{liveCall(t, params(0), 0), liveCall(t, params(1), 1)}
	failed := make(chan error, 1)
	go func() {
		defer close(failed)
		for i := range 100 {
			r, err := a.Perform(context.Background(), calls[i%2])
			if err != nil || r.Status != receipt.StatusOK {
				failed <- fmt.Errorf("write %d: %s, %w", i, r.Status, err)
				return
			}
		}
	}()
	for open := true; open; {
		select {
		case err := <-failed:
			require.NoError(t, err)
			open = false
		default:
		}
		data, err := os.ReadFile(filepath.Join(dir, "out", "x"))
		require.NoError(t, err)
		require.Contains(t, contents, string(data))
		require.JSONEq(t, fmt.Sprintf(`{"entries": [{"name": "x", "type": "file", "size": %d}]}`, len(data)), sizeless(t, a, len(data)))
	}
	names, err := os.ReadDir(filepath.Join(dir, "out"))
	require.NoError(t, err)
	require.Len(t, names, 1, "nothing is left behind")
}

// sizeless lists out, with the one size that may have changed since replaced.
func sizeless(t *testing.T, a Adapter, size int) string {
	t.Helper()
	text := payloadOf(t, performed(t, a, `{"op": "list"}`))
	for _, other := range []string{"100000", "70000"} {
		text = strings.ReplaceAll(text, other, fmt.Sprint(size))
	}
	return text
}

// treeOf hashes all that there is to see below a directory.
func treeOf(t testing.TB, dir string) canon.Hash {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&all, "%q %s %d ", name, info.Mode(), info.ModTime().UnixNano())
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			all.Write(data)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			if err != nil {
				return err
			}
			all.WriteString(to)
		}
		return nil
	}))
	return canon.Sum([]byte(all.String()))
}
