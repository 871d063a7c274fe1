//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Real servers, of the npm registry.
const (
	npmScope      = "@modelcontextprotocol/"
	npmEverything = "server-everything"
	npmFilesystem = "server-filesystem"
	npmVersion    = "2026.8.31" // of both
)

// installed returns the main script of a server, fetched once into the user's
// cache. Where there is no npm, or it cannot reach the registry, the test is
// skipped.
func installed(t *testing.T, name string) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skipf("npm is not here: %v", err)
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	dir := filepath.Join(cache, "worldkernel-test", name+"-"+npmVersion)
	script := filepath.Join(dir, "node_modules", npmScope, name, "dist", "index.js")
	if _, err := os.Stat(script); err == nil {
		return script
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	fresh, err := os.MkdirTemp(filepath.Dir(dir), name) //nolint:usetesting // it is renamed, on one file system
	require.NoError(t, err)
	defer os.RemoveAll(fresh) //nolint:errcheck // a cache
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	run := func(args ...string) ([]byte, error) { return exec.CommandContext(ctx, npm, args...).CombinedOutput() }
	out, err := run("install", "--prefix", fresh, "--no-audit", "--no-fund", "--ignore-scripts", npmScope+name+"@"+npmVersion)
	if err != nil {
		if _, unreachable := run("ping"); unreachable != nil {
			t.Skipf("npm cannot reach its registry: %v", unreachable)
		}
		require.NoError(t, err, "%s", out)
	}
	if err := os.Rename(fresh, dir); err != nil { // another test was faster
		require.FileExists(t, script)
	}
	return script
}

func quote(t *testing.T, v any) string {
	out, err := json.Marshal(v)
	require.NoError(t, err)
	return string(out)
}

func TestRealServerEverything(t *testing.T) {
	script := installed(t, npmEverything)
	s := setupOf(t, `{"command":["node",`+quote(t, script)+`,"stdio"]}`, manifest.Effect{})
	a := adapterOf(t, s)
	got, err := a.Perform(t.Context(), callOf(t, "echo", `{"message":"hello ☃"}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
	require.Contains(t, at(t, got.Payload, "content"), "hello ☃")
	got, err = a.Perform(t.Context(), callOf(t, "get-structured-content", `{"location":"New York"}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
	require.NotEmpty(t, at(t, got.Payload, "structured", "temperature"))
	got, err = a.Perform(t.Context(), callOf(t, "no-such-tool", `{}`))
	require.NoError(t, err)
	require.True(t, got.Unsent)
	got, err = a.Perform(t.Context(), callOf(t, "get-sum", `{"a":"x"}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusError, got.Status, "%s", got.Payload)

	tools, err := Describe(t.Context(), s)
	require.NoError(t, err)
	require.NotEmpty(t, tools)
}

func TestRealServerOverHTTP(t *testing.T) {
	script := installed(t, npmEverything)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	require.NoError(t, l.Close())
	server := exec.Command("node", script, "streamableHttp")
	server.Env = append(os.Environ(), "PORT="+port)
	require.NoError(t, host.OwnGroup(server))
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = host.SignalGroup(server.Process.Pid, syscall.SIGKILL)
		_ = server.Wait()
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	a := adapterOf(t, setupOf(t, `{"url":"http://127.0.0.1:`+port+`/mcp"}`, manifest.Effect{}))
	for range 3 {
		got, err := a.Perform(t.Context(), callOf(t, "get-sum", `{"a":2,"b":40}`))
		require.NoError(t, err)
		require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
		require.Contains(t, at(t, got.Payload, "content"), "42")
	}
}

func TestRealServerFilesystem(t *testing.T) {
	script := installed(t, npmFilesystem)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := setupOf(t, `{"command":["node",`+quote(t, script)+`,`+quote(t, dir)+`]}`, manifest.Effect{})
	a := adapterOf(t, s)
	file := filepath.Join(dir, "a.txt")
	got, err := a.Perform(t.Context(), callOf(t, "write_file", `{"path":`+quote(t, file)+`,"content":"written"}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "written", string(data))
	got, err = a.Perform(t.Context(), callOf(t, "read_text_file", `{"path":"/etc/passwd"}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusError, got.Status)
	require.Equal(t, `true`, at(t, got.Payload, "is_error"))

	tools, err := Describe(t.Context(), s)
	require.NoError(t, err)
	classes := map[string]string{}
	for _, tool := range tools {
		classes[tool.Name] = tool.Class
	}
	require.Equal(t, manifest.ClassRead, classes["read_text_file"])
	require.Equal(t, manifest.ClassDestructive, classes["write_file"])
	require.Equal(t, manifest.ClassWrite, classes["create_directory"])
}
