package governance_test

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

func fromJSON(t testing.TB, json string) canon.Raw {
	t.Helper()
	data, err := canon.FromJSON([]byte(json))
	require.NoError(t, err, json)
	return data
}

func capCode(t testing.TB, err error) governance.Code {
	t.Helper()
	var e *governance.CapError
	require.ErrorAs(t, err, &e)
	require.NotEmpty(t, e.Reason)
	return e.Code
}

func TestFileTargetIsWhatConfigAndParamsSay(t *testing.T) {
	for _, c := range []struct {
		config, params string
		want           governance.FileTarget
		resource       string
	}{
		{
			`{"root": "out"}`, `{"op": "read", "path": "a/b.txt"}`,
			governance.FileTarget{Root: "out", Op: "read", Path: "a/b.txt", MaxBytes: 1 << 20},
			"out/a/b.txt",
		},
		{
			`{"root": "./out//x/", "op": "write", "max_bytes": 5}`, `{"path": "b.txt", "data": "héll"}`,
			governance.FileTarget{Root: "out/x", Op: "write", Path: "b.txt", Data: []byte("héll"), MaxBytes: 5},
			"out/x/b.txt",
		},
		{
			`{"root": "/srv/data", "op": "append"}`, `{"op": "append", "path": "log", "data": ""}`,
			governance.FileTarget{Root: "/srv/data", Op: "append", Path: "log", Data: []byte{}, MaxBytes: 1 << 20},
			"/srv/data/log",
		},
		{
			`{"root": "."}`, `{"op": "list"}`,
			governance.FileTarget{Root: ".", Op: "list", Path: ".", MaxBytes: 1 << 20},
			".",
		},
		{
			`{"root": "."}`, `{"op": "list", "path": "a/b/"}`,
			governance.FileTarget{Root: ".", Op: "list", Path: "a/b", MaxBytes: 1 << 20},
			"a/b",
		},
	} {
		got, err := governance.ParseFile(fromJSON(t, c.config), fromJSON(t, c.params))
		require.NoError(t, err, c.params)
		require.Equal(t, c.want, *got)
		require.Equal(t, c.resource, got.Resource())
	}
}

func TestFileDataMayBeBytes(t *testing.T) {
	params := canon.AppendMap(nil, 3)
	params = canon.AppendText(canon.AppendText(params, "op"), "write")
	params = canon.AppendBytes(canon.AppendText(params, "data"), []byte{0xff, 0})
	params = canon.AppendText(canon.AppendText(params, "path"), "x")
	got, err := governance.ParseFile(fromJSON(t, `{"root": "out"}`), params)
	require.NoError(t, err)
	require.Equal(t, []byte{0xff, 0}, got.Data)
}

func TestFileTargetIsRefusedWithItsCode(t *testing.T) {
	for _, c := range []struct {
		config, params string
		code           governance.Code
	}{
		{`{}`, `{"op": "read", "path": "x"}`, governance.CodeBadConfig},
		{`{"root": "../x"}`, `{"op": "read", "path": "x"}`, governance.CodeBadConfig},
		{`{"root": "a/../../x"}`, `{"op": "read", "path": "x"}`, governance.CodeBadConfig},
		{`{"root": ".world/store"}`, `{"op": "read", "path": "x"}`, governance.CodeBadConfig},
		{`{"root": "x", "op": "remove"}`, `{"path": "x"}`, governance.CodeBadConfig},
		{`{"root": "x", "mode": 7}`, `{"op": "read", "path": "x"}`, governance.CodeBadConfig},
		{`{"root": "x", "max_bytes": -1}`, `{"op": "read", "path": "x"}`, governance.CodeBadConfig},
		{`{"root": "x"}`, `{"path": "x"}`, governance.CodeBadParams},
		{`{"root": "x"}`, `{"op": "remove", "path": "x"}`, governance.CodeBadParams},
		{`{"root": "x"}`, `{"op": "write", "path": "x"}`, governance.CodeBadParams},
		{`{"root": "x"}`, `{"op": "write", "path": "x", "data": 7}`, governance.CodeBadParams},
		{`{"root": "x"}`, `{"op": "write", "path": "x", "data": null}`, governance.CodeBadParams},
		{`{"root": "x"}`, `["read", "x"]`, governance.CodeBadParams},
		{`{"root": "x"}`, `null`, governance.CodeBadParams},
		{`{"root": "x"}`, `{"op": "read", "path": "x", "data": "y"}`, governance.CodeParamNotAllowed},
		{`{"root": "x"}`, `{"op": "read", "path": "x", "root": "y"}`, governance.CodeParamNotAllowed},
		{`{"root": "x", "op": "read"}`, `{"op": "write", "path": "x", "data": "y"}`, governance.CodeParamNotAllowed},
		{`{"root": "x", "max_bytes": 3}`, `{"op": "write", "path": "x", "data": "four"}`, governance.CodeTooLarge},
	} {
		_, err := governance.ParseFile(fromJSON(t, c.config), fromJSON(t, c.params))
		require.Equal(t, c.code, capCode(t, err), "%s %s", c.config, c.params)
	}
	_, err := governance.ParseFile(fromJSON(t, `{"root": "x"}`), nil)
	require.Equal(t, governance.CodeBadParams, capCode(t, err))
	_, err = governance.ParseFile(canon.Raw{0xff}, nil)
	require.Equal(t, governance.CodeBadConfig, capCode(t, err))
}

func TestFilePathIsRefusedRatherThanCleaned(t *testing.T) {
	bad := []string{
		"", ".", "..", "./x", "../x", "x/..", "x/../y", "x/./y", "/", "/x", "//x", "x//y", "x/", "x/y/", "...", "x/...",
		"x\\y", "..\\x", "\\\\host\\x", "C:x", "c:/x", "file:x", "x:stream", "x\x00", "x\ny", "x\x7f", "x\u0085y",
		"%2e%2e/x", "%2E%2e%2Fx", "x%2fy", "x%5cy", "x%00", ".world", ".WORLD/keyring", "x/.world/anchor", ".world.",
		"x.", "x ", "x /y", "con", "CON", "con.txt", "aux", "NUL.tar.gz", "com1", "LPT9.log", "com¹", "x/prn",
		strings.Repeat("x", 256), strings.Repeat("x/", 2048) + "x",
	}
	for _, op := range []string{"read", "write", "append", "list"} {
		for _, p := range bad {
			if op == "list" && (p == "" || p == "." || p == "x/" || p == "x/y/") {
				continue // the root, and a directory that is called one
			}
			data := ""
			if op == "write" || op == "append" {
				data = `, "data": "x"`
			}
			params := fromJSON(t, fmt.Sprintf(`{"op": %q, "path": %s%s}`, op, inJSON(t, p), data))
			_, err := governance.ParseFile(fromJSON(t, `{"root": "."}`), params)
			require.Equal(t, governance.CodeBadPath, capCode(t, err), "%s %q", op, p)
		}
	}
	for _, p := range []string{".x", "x..y", "..x", "con1", "common", "com", "com10", "ünï", "a b", "%20", "50%", "~", "$HOME", "*", "-rf"} {
		_, err := governance.ParseFile(fromJSON(t, `{"root": "."}`), fromJSON(t, fmt.Sprintf(`{"op": "read", "path": %q}`, p)))
		require.NoError(t, err, p)
	}
}

func inJSON(t testing.TB, s string) string {
	t.Helper()
	text, err := canon.ToJSON(canon.AppendText(nil, s))
	require.NoError(t, err)
	return string(text)
}

func TestFileCapabilityBoundsRootAccessAndSize(t *testing.T) {
	read, write := []string{"read"}, []string{"write"}
	for _, c := range []struct {
		root, op string
		cap      manifest.CapParams
		code     governance.Code
	}{
		{"out/a", "read", manifest.CapParams{Root: "out/a", Access: read}, ""},
		{"out/a", "list", manifest.CapParams{Root: "out", Access: read}, ""},
		{"out/a", "write", manifest.CapParams{Root: "./out/", Access: write}, ""},
		{"out/a", "append", manifest.CapParams{Root: ".", Access: write, MaxBytes: 4}, ""},
		{"/srv/x", "read", manifest.CapParams{Root: "/", Access: read}, ""},
		{"/srv/x", "read", manifest.CapParams{Root: "/srv", Access: read}, ""},
		{"out/a", "read", manifest.CapParams{}, governance.CodeRootNotAllowed},
		{"out/a", "read", manifest.CapParams{Root: "out/ab", Access: read}, governance.CodeRootNotAllowed},
		{"out/ab", "read", manifest.CapParams{Root: "out/a", Access: read}, governance.CodeRootNotAllowed},
		{"out", "read", manifest.CapParams{Root: "out/a", Access: read}, governance.CodeRootNotAllowed},
		{".", "read", manifest.CapParams{Root: "out", Access: read}, governance.CodeRootNotAllowed},
		{"out", "read", manifest.CapParams{Root: "..", Access: read}, governance.CodeRootNotAllowed},
		{"out", "read", manifest.CapParams{Root: "x/..", Access: read}, governance.CodeRootNotAllowed},
		{"/srv/x", "read", manifest.CapParams{Root: ".", Access: read}, governance.CodeRootNotAllowed},
		{"srv/x", "read", manifest.CapParams{Root: "/", Access: read}, governance.CodeRootNotAllowed},
		{"out", "read", manifest.CapParams{Root: "out"}, governance.CodeAccessNotAllowed},
		{"out", "list", manifest.CapParams{Root: "out", Access: write}, governance.CodeAccessNotAllowed},
		{"out", "write", manifest.CapParams{Root: "out", Access: read}, governance.CodeAccessNotAllowed},
		{"out", "append", manifest.CapParams{Root: "out", Access: read}, governance.CodeAccessNotAllowed},
		{"out", "write", manifest.CapParams{Root: "out", Access: write, MaxBytes: 3}, governance.CodeTooLarge},
	} {
		data := ""
		if c.op == "write" || c.op == "append" {
			data = `, "data": "four"`
		}
		target, err := governance.ParseFile(
			fromJSON(t, fmt.Sprintf(`{"root": %q}`, c.root)), fromJSON(t, fmt.Sprintf(`{"op": %q, "path": "x"%s}`, c.op, data)),
		)
		require.NoError(t, err)
		denied := target.Allowed(&c.cap)
		if c.code == "" {
			require.Nil(t, denied, "%+v", c)
			continue
		}
		require.NotNil(t, denied, "%+v", c)
		require.Equal(t, c.code, denied.Code, "%+v", c)
	}
}

// Whatever parses stays below its root, on any system.
func FuzzParseFile(f *testing.F) {
	for _, p := range []string{"x", "a/b", "../x", "x/..", "a//b", `a\b`, "c:x", "\x00", "a/./b", ".world/x", "a/"} {
		for _, op := range []string{"read", "write", "append", "list", ""} {
			f.Add("out", op, p, []byte("data"), []byte{})
		}
	}
	f.Add("/", "read", "etc/passwd", []byte{}, []byte{0xa0})
	f.Fuzz(func(t *testing.T, root, op, p string, data, garbage []byte) {
		var denied *governance.CapError
		if _, err := governance.ParseFile(garbage, garbage); err != nil {
			require.ErrorAs(t, err, &denied)
		}
		config, err := canon.Marshal(map[string]any{"root": root})
		if err != nil {
			return
		}
		fields := map[string]any{"op": op, "path": p}
		if op == "write" || op == "append" {
			fields["data"] = data
		}
		params, err := canon.Marshal(fields)
		if err != nil {
			return
		}
		target, err := governance.ParseFile(config, params)
		if err != nil {
			require.ErrorAs(t, err, &denied)
			return
		}
		require.Equal(t, path.Clean(target.Path), target.Path)
		require.False(t, path.IsAbs(target.Path))
		require.NotContains(t, strings.Split(target.Path, "/"), "..")
		require.NotContains(t, strings.Split(target.Resource(), "/"), "..")
		require.NotContains(t, strings.Split(strings.ToLower(target.Resource()), "/"), ".world")
		require.Nil(t, target.Allowed(&manifest.CapParams{Root: root, Access: []string{"read", "write"}}))
		require.NotNil(t, target.Allowed(&manifest.CapParams{Root: root + "/x", Access: []string{"read", "write"}}))
		require.NotNil(t, target.Allowed(&manifest.CapParams{Root: root}))
	})
}
