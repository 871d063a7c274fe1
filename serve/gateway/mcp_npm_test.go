package gateway_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
)

// Real servers, of the npm registry. The tests of host/mcp fetch two of them into the user's cache.
const npmServers = "2026.8.31"

// fetched returns the main script of a server. Where nobody has fetched it the test is skipped.
func fetched(t *testing.T, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	script := filepath.Join(cache, "worldkernel-test", name+"-"+npmServers, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		t.Skipf("the server is not here: %v", err)
	}
	return script
}

// What server-filesystem does it does once, behind a policy that sees its arguments.
func TestRealServerFilesystemBehindTheGateway(t *testing.T) {
	script := fetched(t, "server-filesystem")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := newStage(t, allowTools, allowTools+`  - {name: no secrets, when: 'intent.kind == "mcp.call" && intent.params.arguments.path.endsWith(".env")', decide: deny}
`)
	r := s.start()
	c := r.connect("files", "node", script, dir)
	c.hello()
	c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	require.Contains(t, c.hear(), `"write_file"`)
	write := func(id int, name, text, use string) string {
		arguments, err := json.Marshal(map[string]string{"path": filepath.Join(dir, name), "content": text})
		require.NoError(t, err)
		return c.call(id, "write_file", string(arguments), use)
	}
	require.Contains(t, write(2, "a.txt", "written", use("t1")), "Successfully wrote")
	require.Contains(t, write(3, ".env", "x", use("t2")), "no secrets")
	require.NoFileExists(t, filepath.Join(dir, ".env"))
	require.NoError(t, os.Remove(filepath.Join(dir, "a.txt")))
	r.stop()
	r = s.start(again)
	c = r.connect("files", "node", script, dir)
	c.hello()
	require.Contains(t, write(2, "a.txt", "written", use("t1")), "Successfully wrote")
	require.NoFileExists(t, filepath.Join(dir, "a.txt"), "it was written once")
}

// Over HTTP, too, with sessions and streams; a started agent's call is not made again.
func TestRealServerEverythingOverHTTPBehindTheGateway(t *testing.T) {
	script := fetched(t, "server-everything")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	server := exec.CommandContext(t.Context(), "node", script, "streamableHttp")
	server.Env = append(os.Environ(), "PORT="+address[strings.LastIndex(address, ":")+1:])
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Wait() })
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		return err == nil && conn.Close() == nil
	}, time.Minute, 50*time.Millisecond)
	s := newStage(t)
	echo := ""
	for n := range 2 {
		r := s.start(again)
		at := r.reach("http://" + address + "/mcp")
		resp, text := r.sendTo(t.Context(), http.MethodPost, at,
			`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, "Mcp-Session-Id", "")
		require.Contains(t, text, `"serverInfo"`)
		call := func(method, body string) (int, string) {
			said, text := r.sendTo(t.Context(), method, at, body, "Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id"))
			return said.StatusCode, text
		}
		status, _ := call(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		require.Equal(t, http.StatusAccepted, status)
		_, text = call(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello ☃"},"_meta":`+use("t1")+`}}`)
		require.Contains(t, text, "hello ☃")
		require.True(t, n == 0 || strings.HasSuffix(echo, text), text)
		echo = text
		_, text = call(http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"trigger-long-running-operation","arguments":{"duration":0.2,"steps":2},"_meta":{"progressToken":9}}}`)
		require.Contains(t, text, "completed")
		require.True(t, n == 1 || strings.Contains(text, `"notifications/progress"`))
		for _, method := range []string{"tools/list", "prompts/list", "resources/list"} {
			_, text = call(http.MethodPost, `{"jsonrpc":"2.0","id":3,"method":"`+method+`"}`)
			require.Contains(t, text, `"result"`, method)
		}
		status, _ = call(http.MethodDelete, "")
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, 2*n, r.stop().ToolsServed)
	}
}

// What server-everything shows of the protocol comes through: progress, structured content, pictures, prompts, resources.
func TestRealServerEverythingBehindTheGateway(t *testing.T) {
	script := fetched(t, "server-everything")
	s := newStage(t)
	r := s.start()
	c := r.connect("every", "node", script, "stdio")
	c.hello()
	require.Contains(t, c.call(1, "echo", `{"message":"hello ☃"}`, `{}`), "hello ☃")
	require.Contains(t, c.call(2, "get-structured-content", `{"location":"New York"}`, `{}`), `"structuredContent"`)
	require.Contains(t, c.call(3, "get-tiny-image", `{}`, `{}`), `"image/png"`)
	require.Contains(t, c.call(4, "get-sum", `{"a":"x"}`, `{}`), "validation")
	for id, method := range []string{"prompts/list", "resources/list", "resources/templates/list", "ping"} {
		c.say(`{"jsonrpc":"2.0","id":%d,"method":%q}`, 10+id, method)
		require.Contains(t, c.hear(), `"result"`, method)
	}
	require.NoError(t, c.in.Close())
	require.NoError(t, <-c.ended)
	states, _ := r.answersOf()
	require.Len(t, states, 4)
	require.NotContains(t, states, receipt.StateInDoubt)
}

// taskClient is a client of the TypeScript SDK that knows tasks: it says what it hears of two calls, of which it cancels the second.
const taskClient = `
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
const client = new Client({ name: "c", version: "1" }, { capabilities: { tasks: {} } });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[1])));
await client.listTools();
for (const a of [1, 2]) {
	for await (const m of client.experimental.tasks.callToolStream({ name: "append", arguments: { a } })) {
		console.log(m.type, JSON.stringify(m.result ?? m.error?.message ?? m.task));
		if (a === 2 && m.type === "taskCreated") await client.experimental.tasks.cancelTask(m.task.taskId);
	}
}
console.log("tasks", (await client.experimental.tasks.listTasks()).tasks.length);
await client.close();
`

// A real client that knows tasks gets the result of a call that a person approves by one.
func TestARealClientKnowsTasks(t *testing.T) {
	script := fetched(t, "server-everything") // which brings the SDK
	r, files := newStage(t, allowTools, needPerson).start(), newSite(t)
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", taskClient, r.reach(files.URL))
	cmd.Dir = filepath.Join(filepath.Dir(script), "..")
	said := make(chan string, 1)
	go func() {
		out, _ := cmd.CombinedOutput()
		said <- string(out)
	}()
	r.approve()
	out := <-said
	require.Regexp(t, `(?s)taskCreated .*result .*"done".*taskCreated .*error .*cancelled.*tasks 2`, out)
	require.Equal(t, []string{`append {"a":1}`}, files.calls())
}
