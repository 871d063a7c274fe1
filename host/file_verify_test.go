package host

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

func fileVerifierIn(t testing.TB, dir, config string) Verifier {
	t.Helper()
	v, err := newFileVerifier(Setup{Kind: "f", Dir: dir, Effect: manifest.Effect{Adapter: "file", Config: liveData(t, config)}})
	require.NoError(t, err)
	return v
}

func TestFileVerifierTellsWhetherItHappened(t *testing.T) {
	dir := worldDir(t)
	v := fileVerifierIn(t, dir, `{"root": "out"}`)
	for _, c := range []struct {
		content, params string
		occurrence      uint64
		want            receipt.FoundVerdict
	}{
		{"new", `{"op": "write", "path": "x", "data": "new"}`, 0, receipt.Happened},
		{"old", `{"op": "write", "path": "x", "data": "new"}`, 0, receipt.NotHappened},
		{"newer", `{"op": "write", "path": "x", "data": "new"}`, 0, receipt.NotHappened},
		{"", `{"op": "write", "path": "x", "data": ""}`, 0, receipt.Happened},
		{"", `{"op": "write", "path": "none", "data": ""}`, 0, receipt.NotHappened},
		{"", `{"op": "write", "path": "../x", "data": ""}`, 0, receipt.NotHappened},
		{"a\nb\n", `{"op": "append", "path": "x", "data": "b\n"}`, 0, receipt.Happened},
		{"b\n", `{"op": "append", "path": "x", "data": "b\n"}`, 0, receipt.Happened},
		{"a\nb\n", `{"op": "append", "path": "x", "data": "b\n"}`, 1, receipt.Unknown},
		{"b\na\nb\n", `{"op": "append", "path": "x", "data": "b\n"}`, 0, receipt.Unknown},
		{"bbb", `{"op": "append", "path": "x", "data": "bb"}`, 0, receipt.Unknown},
		{"b\na\n", `{"op": "append", "path": "x", "data": "b\n"}`, 0, receipt.Unknown},
		{"a\nb", `{"op": "append", "path": "x", "data": "b\n"}`, 0, receipt.Unknown},
		{"a", `{"op": "append", "path": "x", "data": ""}`, 0, receipt.Unknown},
		{"a", `{"op": "append", "path": "none", "data": "b"}`, 0, receipt.Unknown},
		{"a", `{"op": "read", "path": "x"}`, 0, receipt.NotHappened},
		{"a", `{"op": "list"}`, 0, receipt.NotHappened},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "out", "x"), []byte(c.content), 0o600))
		before := treeOf(t, dir)
		found, err := v.Verify(t.Context(), liveCall(t, c.params, c.occurrence))
		require.NoError(t, err)
		require.Equal(t, c.want, found.Verdict, "%q %s", c.content, c.params)
		require.NotEmpty(t, found.Reason)
		require.Equal(t, before, treeOf(t, dir), "it changes nothing")
	}
}

// What a verifier says that happened is what the adapter would have said.
func TestFileVerifierGivesThePayloadOfTheAdapter(t *testing.T) {
	dir := worldDir(t)
	for _, params := range []string{`{"op": "write", "path": "x", "data": "new"}`, `{"op": "append", "path": "y", "data": "new"}`} {
		r := performed(t, fileIn(t, dir, `{"root": "out"}`), params)
		found, err := fileVerifierIn(t, dir, `{"root": "out"}`).Verify(t.Context(), liveCall(t, params, 0))
		require.NoError(t, err)
		require.Equal(t, receipt.Happened, found.Verdict)
		require.Equal(t, r.Payload, found.Payload)
	}
}

func TestFileVerifierConfirmsWhatIsStillThere(t *testing.T) {
	for _, root := range []string{"out", "./out/", ".", "/"} {
		dir := worldDir(t)
		below := map[string]string{".": "out/", "/": strings.TrimPrefix(dir, "/") + "/out/"}[root]
		config := `{"root": "` + root + `"}`
		a, v := fileIn(t, dir, config), fileVerifierIn(t, dir, config)
		receiptOf := func(op, data string) *receipt.Receipt {
			r := performed(t, a, `{"op": "`+op+`", "path": "`+below+op+`", "data": "`+data+`"}`)
			require.Equal(t, receipt.StatusOK, r.Status, payloadOf(t, r))
			return &receipt.Receipt{Status: r.Status, Payload: r.Payload, StateChange: r.StateChange}
		}
		confirm := func(want receipt.FoundVerdict, r *receipt.Receipt) {
			t.Helper()
			found, err := v.Confirm(t.Context(), Call{}, r)
			require.NoError(t, err)
			require.Equal(t, want, found.Verdict, found.Reason)
			require.NotEmpty(t, found.Reason)
		}
		change := func(name, content string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "out", name), []byte(content), 0o600))
		}
		written := receiptOf("write", "one")
		confirm(receipt.Happened, written)
		change("write", "two")
		confirm(receipt.NotHappened, written)
		confirm(receipt.Happened, receiptOf("write", "two"))
		require.NoError(t, os.Remove(filepath.Join(dir, "out", "write")))
		confirm(receipt.NotHappened, written)

		first, second := receiptOf("append", "one"), receiptOf("append", "two")
		confirm(receipt.Happened, first)
		confirm(receipt.Happened, second)
		change("append", "one2wo")
		confirm(receipt.Happened, first)
		confirm(receipt.NotHappened, second)
		change("append", "one")
		confirm(receipt.NotHappened, second)
	}
}

func TestFileVerifierDoesNotGuess(t *testing.T) {
	dir := worldDir(t)
	require.NoError(t, os.Symlink("../.world/keyring", filepath.Join(dir, "out", "link")))
	v := fileVerifierIn(t, dir, `{"root": "out"}`)
	for _, change := range []receipt.StateChange{
		{Resource: "elsewhere/x"}, {Resource: "out"}, {Resource: "out/../.world/keyring"}, {Resource: "out/link"}, {Resource: ""},
	} {
		found, err := v.Confirm(t.Context(), Call{}, &receipt.Receipt{StateChange: &change})
		require.NoError(t, err)
		require.Equal(t, receipt.Unknown, found.Verdict, "%+v", change)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "out", "x"), []byte("x"), 0o600))
	found, err := v.Confirm(t.Context(), Call{}, &receipt.Receipt{StateChange: &receipt.StateChange{Resource: "out/x", Version: "v2"}})
	require.NoError(t, err)
	require.Equal(t, receipt.Unknown, found.Verdict)
	found, err = v.Confirm(t.Context(), Call{}, &receipt.Receipt{})
	require.NoError(t, err)
	require.Equal(t, receipt.Happened, found.Verdict, "what changed nothing is as it was")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = v.Verify(ctx, liveCall(t, `{"op": "read", "path": "x"}`, 0))
	require.ErrorIs(t, err, context.Canceled)
	_, err = newFileVerifier(Setup{Config: liveData(t, `{"root": "out"}`), Effect: manifest.Effect{Config: liveData(t, `{"root": "out"}`)}})
	require.Error(t, err, "the effect's config says where")
	_, err = newFileVerifier(Setup{Effect: manifest.Effect{Adapter: "http", Config: liveData(t, `{"url": "http://x"}`)}})
	require.Error(t, err)
}
