package worldctl

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/gateway"
)

const toolsAt = "http://127.0.0.1:1/a/secret/mcp"

// asksForKey is a server over HTTP that wants a login, or the key k1.
func asksForKey(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k1" && r.Header.Get("X-Key") != "k1" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// rewritten returns the command line that an agent gets, the servers in the list that Claude Code reads last, and what was
// said.
func rewritten(t *testing.T, dir string, argv ...string) (out []string, servers map[string]map[string]any, said string) {
	t.Helper()
	var stderr bytes.Buffer
	c := &cli{stderr: &stderr, rawErr: &stderr}
	self, err := os.Executable()
	require.NoError(t, err)
	out, clean := c.withTools(argv, self, &attached{Dir: dir, Tools: toolsAt})
	for _, arg := range out {
		file, is := strings.CutPrefix(arg, "--mcp-config=")
		if !is {
			continue
		}
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, "the address is a secret")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var config struct {
			Servers map[string]map[string]any `json:"mcpServers"`
		}
		require.NoError(t, json.Unmarshal(text, &config))
		servers = config.Servers
	}
	clean()
	for _, arg := range out {
		if file, is := strings.CutPrefix(arg, "--mcp-config="); is {
			require.NoFileExists(t, file)
		}
	}
	return out, servers, stderr.String()
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// Claude Code gets a list in which worldctl stands before each server that it would have started, of all the places where it
// looks, and nothing of the user's is other than before.
func TestServersOfClaudeCodeComeBehindTheGateway(t *testing.T) {
	home := t.TempDir()
	web := asksForKey(t)
	t.Setenv("CLAUDE_CONFIG_DIR", home)
	t.Setenv("WK_KEY", "k1")
	project := filepath.Join(home, "work", "project")
	write(t, filepath.Join(home, ".claude.json"), `{"mcpServers":{"u":{"command":"user","env":{"A":"b"}},"s":{"command":"user"}},"projects":{`+
		quoteJSON(project)+`:{"mcpServers":{"l":{"type":"stdio","command":"local"}},"enabledMcpjsonServers":["yes"],"disabledMcpjsonServers":["off"]}}}`)
	mine := filepath.Join(project, ".mcp.json")
	write(t, mine, `{"mcpServers":{"s":{"command":"shared","args":["a b"]},"yes":{"command":"yes"},"off":{"command":"off"},"old":{"type":"sse","url":"http://h"},`+
		`"login":{"type":"http","url":"`+web.URL+`"},"web":{"type":"http","url":"${WK_URL:-`+web.URL+`}/mcp","headers":{"Authorization":"Bearer ${WK_KEY}"}}}}`)
	before, err := os.ReadFile(mine)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)

	out, servers, said := rewritten(t, project, "claude", "-p", "do it", "--", "x")
	require.Equal(t, []string{"claude", "-p", "do it"}, out[:3])
	require.True(t, strings.HasPrefix(out[3], "--mcp-config="), "%s", out)
	require.Equal(t, []string{"--", "x"}, out[4:])
	require.Len(t, servers, 5)
	require.Equal(t, map[string]any{"type": "http", "url": gateway.WebURL(toolsAt, "web", web.URL+"/mcp"), "headers": map[string]any{"Authorization": "Bearer ${WK_KEY}"}}, servers["web"])
	require.Equal(t, map[string]any{
		"command": self, "args": []any{"mcp", "--name", "s", "--", "shared", "a b"}, "env": map[string]any{toolsEnv: toolsAt},
	}, servers["s"])
	require.Equal(t, "b", servers["u"]["env"].(map[string]any)["A"])
	require.NotNil(t, servers["l"])
	require.Contains(t, said, "behind the gateway: l, s, u, web, yes")
	require.Contains(t, said, "not seen by the gateway: tools of login (it asks for a login), off, old")

	_, servers, said = rewritten(t, project, "claude")
	require.Len(t, servers, 3, "at a terminal it asks about what nobody has enabled")
	require.Contains(t, said, "not seen by the gateway: tools of login, off, old, s, web")

	write(t, filepath.Join(project, "other.json"), `{"mcpServers":{"o":{"command":"other"}}}`)
	_, servers, _ = rewritten(t, project, "claude", "--strict-mcp-config", "--mcp-config", "other.json", `{"mcpServers":{"j":{"command":"json"}}}`, "-p", "x")
	require.Len(t, servers, 2)
	require.Equal(t, []any{"mcp", "--name", "j", "--", "json"}, servers["j"]["args"])

	write(t, mine, `{"mcpServers":`)
	out, servers, said = rewritten(t, project, "claude", "-p", "x")
	require.Equal(t, []string{"claude", "-p", "x"}, out)
	require.Nil(t, servers)
	require.Contains(t, said, "not seen by the gateway: tools of MCP servers")
	write(t, mine, string(before))

	out, _, said = rewritten(t, project, "python", "agent.py")
	require.Equal(t, []string{"python", "agent.py"}, out)
	require.Empty(t, said)
}

func quoteJSON(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// Codex says itself which servers it has; its command line sets them anew.
func TestServersOfCodexComeBehindTheGateway(t *testing.T) {
	dir := t.TempDir()
	web := asksForKey(t)
	t.Setenv("WK_KEY", "k1")
	program := filepath.Join(dir, "codex")
	write(t, program, `#!/bin/sh
echo "$@" > `+filepath.Join(dir, "asked")+`
cat <<'END'
[{"name":"files","enabled":true,"transport":{"type":"stdio","command":"npx","args":["-y","a \"b"],"env":{"S":"t"},"env_vars":["O"]}},
 {"name":"off","enabled":false,"transport":{"type":"stdio","command":"x"}},
 {"name":"a.b","enabled":true,"transport":{"type":"stdio","command":"x"}},
 {"name":"web","enabled":true,"transport":{"type":"streamable_http","url":"`+web.URL+`","bearer_token_env_var":"WK_KEY"}},
 {"name":"login","enabled":true,"transport":{"type":"streamable_http","url":"`+web.URL+`","http_headers":{"X-Key":"k2"}}},
 {"name":"env","enabled":true,"transport":{"type":"streamable_http","url":"`+web.URL+`","http_headers":null,"env_http_headers":{"X-Key":"WK_KEY"}}}]
END
`)
	require.NoError(t, os.Chmod(program, 0o700))
	out, _, said := rewritten(t, dir, program, "exec", "-c", "k=v", "--profile=p", "do it")
	self, err := os.Executable()
	require.NoError(t, err)
	require.Equal(t, []string{
		program, "-c", "mcp_servers.files.command=" + quoteJSON(self), "-c", `mcp_servers.files.args=["mcp","--name","files","--","npx","-y","a \"b"]`,
		"-c", `mcp_servers.files.env_vars=["O","` + toolsEnv + `"]`, "-c", "mcp_servers.web.url=" + quoteJSON(gateway.WebURL(toolsAt, "web", web.URL)), "-c", "mcp_servers.env.url=" + quoteJSON(gateway.WebURL(toolsAt, "env", web.URL)), "exec", "-c", "k=v", "--profile=p", "do it",
	}, out)
	require.Contains(t, said, "not seen by the gateway: tools of a.b, login (it asks for a login)")
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	require.NoError(t, err)
	require.Equal(t, "mcp list --json -c k=v --profile=p\n", string(asked))
}

// Codex is told to ask worldctl before a tool, and to trust that hook and no other, on its command line. Where it does not list
// the hook, as a Codex that knows none, its command line stays as it is.
func TestCodexTrustsTheHookOfItsCommandLine(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "codex")
	argv := []string{program, "exec", "x"}
	for command, trusts := range map[string]bool{"worldctl hook || exit 2": true, "other hook": false} {
		answer := `{"id":2,"result":{"data":[{"hooks":[{"key":"k0","currentHash":"no","command":"theirs"},{"key":"k","currentHash":"sha256:1","command":"` + command + `"}]}]}}`
		require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho '{\"id\":1,\"result\":{}}'\necho '"+answer+"'\ncat >/dev/null\n"), 0o700)) //nolint:gosec // a program
		out, err := hookedCodex(argv, "worldctl", dir)
		if !trusts {
			require.Error(t, err)
			require.Equal(t, argv, out)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []string{
			program, "-c", `hooks.PreToolUse=[{matcher=".*",hooks=[{type="command",command="worldctl hook || exit 2"}]}]`,
			"-c", `hooks.state={"k"={trusted_hash="sha256:1"}}`, "exec", "x",
		}, out)
	}
}

// A list of servers is read as clients read theirs, and what is wrong with it is said.
func TestServersOfAListAreAGroup(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("KEY", "k1")
	t.Setenv(toolsEnv, "http://127.0.0.1:1/a/token/mcp")
	t.Setenv(hookVariable, "http://127.0.0.1:1/a/token/hook")
	for _, list := range []string{"mcpServers", "servers"} {
		write(t, "list.json", `{"`+list+`": {"b": {"command": "run", "args": ["${KEY}", "-y"], "env": {"A": "${KEY}", "MS": 3600000, "B": true, "NONE": null}, "cwd": "/x"},
			"a": {"type": "http", "url": "https://${NONE:-example.com}/mcp", "headers": {"X-Key": "${KEY}"}}}}`)
		servers, err := groupServers("list.json")
		require.NoError(t, err)
		require.Len(t, servers, 2)
		require.Equal(t, "https://example.com/mcp k1", servers[0].URL+" "+servers[0].Header.Get("X-Key"))
		require.Nil(t, servers[0].Command)
		require.Equal(t, "b /x", servers[1].Name+" "+servers[1].Command.Dir)
		require.Equal(t, []string{"run", "k1", "-y"}, servers[1].Command.Args)
		require.Contains(t, servers[1].Command.Env, "A=k1")
		require.Contains(t, servers[1].Command.Env, "MS=3600000")
		require.Contains(t, servers[1].Command.Env, "B=true")
		require.NotContains(t, strings.Join(servers[1].Command.Env, " "), "NONE")
		require.NotContains(t, strings.Join(servers[1].Command.Env, " "), "/a/token", "it has no way to answer for the agent")
	}
}

// What cannot be served is refused in plain words, before a world is made for it.
func TestAListOfServersIsReadBeforeAWorldIsMade(t *testing.T) {
	t.Chdir(t.TempDir())
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close() //nolint:errcheck // it is a test's
	const good = `{"mcpServers": {"a": {"url": "https://example.com/mcp"}}}`
	for _, of := range []struct{ text, args, says, hint string }{
		{`{`, "--config list.json", "list.json", "mcpServers"},
		{`{}`, "--config list.json", "lists no server", "mcpServers"},
		{`[1,2]`, "--config list.json", "no list of servers", "mcpServers"},
		{`{"mcpServers": {"a": 1}}`, "--config list.json", "no list of servers", "mcpServers"},
		{`{"mcpServers": {"a": {}}}`, "--config list.json", "neither command nor url", "mcpServers"},
		{`{"mcpServers": {"a": {"url": "u"}, "A": {"url": "u"}}}`, "--config list.json", "needs another name", ""},
		{good, "--config none.json", "none.json: no such file", ""},
		{good, "--config list.json -- true", "not both", "leave out"},
		{good, "--config list.json --listen " + taken.Addr().String(), "in use", "127.0.0.1:0"},
		{good, "--config list.json --listen :0", "this machine alone", "127.0.0.1:0"},
		{good, "--config list.json --name " + strings.Repeat("n", 101), "another name", ""},
		{good, "-- does-not-exist", "cannot be started", ""},
		{good, "", "needs the command", "npx"},
	} {
		write(t, "list.json", of.text)
		code, _, said := inProcess(t.Context(), append([]string{"mcp"}, strings.Fields(of.args)...)...)
		require.NotZero(t, code, of)
		require.Contains(t, said, of.says)
		require.Contains(t, said, of.hint)
		require.NotContains(t, said, "Go value")
		made, err := os.ReadDir(".")
		require.NoError(t, err)
		require.Len(t, made, 1, "only the list is there: %+v", of)
	}
}

// Servers of a list have an address, too, until the program ends: it is printed, and nothing else finds them.
func TestServersOfAListHaveAnAddress(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(toolsEnv, "http://127.0.0.1:1/a/token/mcp")
	write(t, "list.json", `{"mcpServers": {"a": {"url": "https://example.com/mcp"}}}`)
	code, _, said := inProcess(t.Context(), "mcp", "--listen", "127.0.0.1:0", "--", "true")
	require.Equal(t, exitUsage, code)
	require.Contains(t, said, "--listen is for --config")
	ctx, end := context.WithCancel(t.Context())
	from, to := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, released(), []string{"mcp", "--config", "list.json", "--name", "all", "--listen", "127.0.0.1:0"}, strings.NewReader(""), to, io.Discard)
	}()
	address, err := bufio.NewReader(from).ReadString('\n')
	require.NoError(t, err)
	address = strings.TrimSpace(address)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/a/\w+/mcp/all$`, address)
	for at, status := range map[string]int{address: http.StatusBadRequest, address + "x": http.StatusNotFound} {
		resp, err := http.Post(at, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, status, resp.StatusCode)
	}
	end()
	require.Equal(t, exitOK, <-ended)
}

// A server gets a name of its command where nobody gives it one.
func TestServersHaveNames(t *testing.T) {
	for command, name := range map[string]string{
		"npx -y @modelcontextprotocol/server-filesystem@1 /work": "server-filesystem",
		"node /opt/files/index.js":                               "index",
		"uvx --from x mcp-server-git":                            "x",
		"/usr/bin/github-mcp-server stdio":                       "github-mcp-server",
		"docker run -i ghcr.io/github/github-mcp-server":         "github-mcp-server",
		"npx": "npx",
	} {
		require.Equal(t, name, serverName(strings.Fields(command)), command)
	}
}

// What a client sends a server to log in goes to no other one: a redirect is not followed.
func TestALoginIsAskedForNowhereElse(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	require.False(t, wantsLogin(server.URL, http.Header{"X-Api-Key": {"secret"}}))
	require.Zero(t, elsewhere.Load())
	require.True(t, wantsLogin(other.URL, make(http.Header)))
}

// Servers of a client that are worldctl mcp come through the gateway by whatever name the client has for them, unless they are of another world.
func TestWorldctlMCPComesThroughByItsClientsName(t *testing.T) {
	servers := newToolServers(&attached{})
	servers.add(map[string]map[string]any{
		"all":     {"command": "/usr/bin/worldctl", "args": []any{"mcp", "--config", "servers.json"}},
		"another": {"command": "worldctl", "args": []any{"mcp", "-wother", "--", "server"}},
		"third":   {"command": "worldctl", "args": []any{"mcp", "--world=other", "--", "server"}},
		"verb":    {"command": "worldctl", "args": []any{"-w", "other", "mcp", "--", "server"}},
		"flags":   {"command": "worldctl", "args": []any{"mcp", "--name", "x", "--", "server", "-watch", "--store"}},
	}, anyServer)
	require.ElementsMatch(t, []string{"all", "flags"}, servers.own)
	require.Empty(t, servers.before)
	servers.add(map[string]map[string]any{"all": {"type": "sse"}, "flags": {"command": "other"}}, anyServer)
	require.Empty(t, servers.own, "calls of what has its name now come through nothing")
}
