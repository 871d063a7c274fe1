package worldctl

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/serve/gateway"
)

// Clients of the Model Context Protocol have a list of servers. An agent gets a copy of the list in which worldctl mcp
// stands before each: nobody edits anything.

// toolServers are the servers of an agent's client.
type toolServers struct {
	before map[string]map[string]any // by name: those that come behind the gateway, as the client has them
	unseen []string                  // those that do not
	own    []string                  // those that are worldctl mcp, which stands before servers of its own
	g      *attached
	file   string // that the client reads; empty: none
}

// clean ends what the client reads.
func (t *toolServers) clean() {
	if t.file != "" {
		_ = os.Remove(t.file)
	}
}

func newToolServers(g *attached) *toolServers {
	return &toolServers{before: make(map[string]map[string]any), g: g}
}

// add adds servers, of which the last of one name counts.
func (t *toolServers) add(servers map[string]map[string]any, may func(name string) bool) {
	for name, s := range servers { // order cannot show: names differ
		command, _ := s["command"].(string)
		kind, _ := s["type"].(string)
		isIt := func(n string) bool { return n == name }
		t.unseen, t.own = slices.DeleteFunc(t.unseen, isIt), slices.DeleteFunc(t.own, isIt)
		delete(t.before, name)
		switch {
		case command == "" && !slices.Contains(webKinds, kind) || !may(name):
			t.unseen = append(t.unseen, name)
		case strings.TrimSuffix(filepath.Base(command), ".exe") != ownName:
			t.before[name] = s
		case standsBefore(texts(s["args"])):
			t.own = append(t.own, name)
		}
	}
}

func anyServer(string) bool { return true }

// standsBefore reports whether arguments of worldctl are those with which it stands before servers, in the agent's world.
func standsBefore(args []string) bool {
	return slices.Index(args, "mcp") == 0 && !slices.ContainsFunc(beforeDashes(args), func(a string) bool {
		return strings.HasPrefix(a, "-w") || strings.HasPrefix(a, "--world") || strings.HasPrefix(a, "--store")
	})
}

// webKinds are what clients call servers over HTTP. Those of the protocol before, sse, have no single address.
var webKinds = []string{"http", "streamable-http", "streamable_http"} //nolint:gochecknoglobals // a table

// addresses returns the addresses of servers over HTTP behind the gateway, by name. Header returns the headers that the client
// sends a server. A server that wants a login stays at its own address, for which the login is.
func (t *toolServers) addresses(header func(server map[string]any) http.Header) map[string]string {
	out := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(t.before)) {
		where, _ := t.before[name]["url"].(string)
		if command, _ := t.before[name]["command"].(string); command != "" {
			continue
		}
		if where = withVariables(where); !t.g.Offline && wantsLogin(where, header(t.before[name])) {
			t.unseen = append(t.unseen, name+" (it asks for a login)")
			delete(t.before, name)
			continue
		}
		out[name] = gateway.WebURL(t.g.Tools, name, where)
	}
	return out
}

// wantsLogin asks a server whether it wants a login. One that is not there does not. It follows no redirect: the header has
// secrets that are for this server.
func wantsLogin(where string, header http.Header) bool {
	req, err := http.NewRequest(http.MethodPost, where, strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"ping"}`))
	if err != nil {
		return false
	}
	req.Header = header
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json, text/event-stream")
	client := http.Client{Timeout: 5 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close() //nolint:errcheck // nobody reads it
	return resp.StatusCode == http.StatusUnauthorized
}

// variable is a variable of the environment in a list of Claude Code: ${NAME} or ${NAME:-DEFAULT}.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}`)

// withVariables returns a text as Claude Code reads it.
func withVariables(text string) string {
	return variable.ReplaceAllStringFunc(text, func(v string) string {
		of := variable.FindStringSubmatch(v)
		return cmp.Or(os.Getenv(of[1]), of[2])
	})
}

// headers returns the texts of an object as a header, as read makes them.
func headers(v any, read func(string) string) http.Header {
	out := make(http.Header)
	of, _ := v.(map[string]any)
	for name, value := range of { // order cannot show: a map is built from a map
		if text, is := value.(string); is {
			out.Set(name, read(text))
		}
	}
	return out
}

// withTools returns the command line of an agent with its servers of tools behind the gateway, and what ends the file that it
// reads.
func (c *cli) withTools(argv []string, self string, g *attached) (out []string, clean func()) {
	t := newToolServers(g)
	known := clientOf(argv)
	if known.servers == nil || g.Tools == "" {
		return argv, t.clean
	}
	out, err := known.servers(t, argv, self)
	if err != nil {
		t.clean()
		c.note("note: not seen by the gateway: tools of MCP servers: %s", err)
		c.note("hint: worldctl mcp --name NAME -- COMMAND in the place of a server's COMMAND has them seen")
		return argv, func() {}
	}
	for _, name := range t.own { // by whatever name policies know it
		err = errors.Join(err, gateway.ComesThrough(g.Tools, name))
	}
	if err != nil {
		c.note("note: calls of worldctl mcp are judged twice: %s", err)
	}
	if len(t.before) > 0 {
		c.note("note: MCP servers behind the gateway: %s", strings.Join(slices.Sorted(maps.Keys(t.before)), ", "))
	}
	if len(t.unseen) > 0 {
		slices.Sort(t.unseen)
		c.note("note: not seen by the gateway: tools of %s", strings.Join(t.unseen, ", "))
	}
	return out, t.clean
}

// behindGateway returns the arguments with which worldctl stands before a server.
func behindGateway(name, command string, args []string) []string {
	return append([]string{"mcp", "--name", name, "--", command}, args...)
}

// ofClaude adds a list of servers to a command line of Claude Code, which beats all others that it has.
func (t *toolServers) ofClaude(argv []string, self string) ([]string, error) {
	if err := t.readClaude(argv, t.g.Dir); err != nil || len(t.before) == 0 {
		return argv, err
	}
	list := make(map[string]map[string]any)
	addresses := t.addresses(func(s map[string]any) http.Header { return headers(s["headers"], withVariables) })
	for name, s := range t.before { // order cannot show: a map is built from a map
		s = maps.Clone(s)
		list[name] = s
		if address := addresses[name]; address != "" {
			s["url"] = address
			continue
		}
		command, _ := s["command"].(string)
		was, _ := s["env"].(map[string]any)
		env := make(map[string]any)
		maps.Copy(env, was)
		env[toolsEnv] = t.g.Tools
		s["command"], s["args"], s["env"] = self, behindGateway(name, command, texts(s["args"])), env
	}
	text, err := json.Marshal(map[string]any{"mcpServers": list})
	if err != nil {
		return argv, err
	}
	f, err := os.CreateTemp("", "worldctl-mcp-*.json") // of this user alone
	if err != nil {
		return argv, err
	}
	t.file = f.Name()
	_, err = f.Write(text)
	return slices.Insert(slices.Clone(argv), len(beforeDashes(argv)), "--mcp-config="+t.file), errors.Join(err, f.Close())
}

// readClaude reads the servers that Claude Code starts with a command line, in the order in which a later one beats one of
// the same name.
func (t *toolServers) readClaude(argv []string, dir string) error {
	type list map[string]map[string]any
	type project struct {
		Servers  list     `json:"mcpServers"`
		Enabled  []string `json:"enabledMcpjsonServers"`
		Disabled []string `json:"disabledMcpjsonServers"`
	}
	if !hasFlag(argv, "--strict-mcp-config") {
		var user struct {
			Servers  list               `json:"mcpServers"`
			Projects map[string]project `json:"projects"`
		}
		home := os.Getenv("CLAUDE_CONFIG_DIR")
		if home == "" {
			home, _ = os.UserHomeDir()
		}
		if err := readJSON(filepath.Join(home, ".claude.json"), &user); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		here := user.Projects[dir]
		prints := hasFlag(argv, "-p", "--print")
		t.add(user.Servers, anyServer)
		for _, in := range slices.Backward(parents(dir)) {
			var shared project
			if err := readJSON(filepath.Join(in, ".mcp.json"), &shared); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			t.add(shared.Servers, func(name string) bool { // at a terminal Claude Code asks about others, and so it does
				return !slices.Contains(here.Disabled, name) && (prints || slices.Contains(here.Enabled, name))
			})
		}
		t.add(here.Servers, anyServer)
	}
	given, _ := flagged(argv, "--mcp-config", len(argv))
	for _, text := range given {
		var config project
		if err := readGiven(text, dir, &config); err != nil {
			return err
		}
		t.add(config.Servers, anyServer)
	}
	return nil
}

// parents returns a directory and those that it is in.
func parents(dir string) (out []string) {
	for ; ; dir = filepath.Dir(dir) {
		if out = append(out, dir); dir == filepath.Dir(dir) {
			return out
		}
	}
}

// bareKey is a key of TOML that needs no quotes.
var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func texts(v any) (out []string) {
	list, _ := v.([]any)
	for _, item := range list {
		if text, is := item.(string); is {
			out = append(out, text)
		}
	}
	return out
}

// ofCodex sets the servers of Codex on its command line. Codex itself says which there are.
func (t *toolServers) ofCodex(argv []string, self string) ([]string, error) {
	ask := []string{"mcp", "list", "--json"}
	own := beforeDashes(argv)
	for i, arg := range own {
		switch {
		case strings.HasPrefix(arg, "--config="), strings.HasPrefix(arg, "--profile="):
			ask = append(ask, arg)
		case slices.Contains([]string{"-c", "--config", "-p", "--profile"}, arg) && i+1 < len(own):
			ask = append(ask, arg, own[i+1])
		}
	}
	cmd := exec.Command(argv[0], ask...)
	cmd.Dir = t.g.Dir
	text, err := cmd.Output()
	if err != nil {
		return argv, err
	}
	var listed []struct {
		Name      string         `json:"name"`
		Enabled   bool           `json:"enabled"`
		Transport map[string]any `json:"transport"`
	}
	if err := json.Unmarshal(text, &listed); err != nil {
		return argv, err
	}
	out := []string{argv[0]}
	for _, s := range listed {
		if s.Enabled {
			t.add(map[string]map[string]any{s.Name: s.Transport}, bareKey.MatchString)
		}
	}
	addresses := t.addresses(codexHeaders)
	for _, s := range listed {
		if t.before[s.Name] == nil {
			continue
		}
		if address := addresses[s.Name]; address != "" {
			out = append(out, "-c", "mcp_servers."+s.Name+".url="+strconv.Quote(address))
			continue
		}
		command, _ := s.Transport["command"].(string)
		for _, set := range []struct {
			key   string
			value any
		}{
			{"command", self},
			{"args", behindGateway(s.Name, command, texts(s.Transport["args"]))},
			{"env_vars", append(texts(s.Transport["env_vars"]), toolsEnv)}, // the address is a secret: it is in no command line
		} {
			value, err := json.Marshal(set.value) // as TOML has it, too
			if err != nil {
				return argv, err
			}
			out = append(out, "-c", "mcp_servers."+s.Name+"."+set.key+"="+string(value))
		}
	}
	return append(out, argv[1:]...), nil
}

// codexHeaders returns the headers that Codex sends a server.
func codexHeaders(server map[string]any) http.Header {
	out := headers(server["http_headers"], strings.Clone)
	maps.Copy(out, headers(server["env_http_headers"], os.Getenv))
	if name, _ := server["bearer_token_env_var"].(string); name != "" {
		out.Set("Authorization", "Bearer "+os.Getenv(name))
	}
	return out
}
