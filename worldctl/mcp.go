package worldctl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/serve/gateway"
)

// toolsEnv names the gateway of the agent that a client runs for, where servers of tools come in.
const toolsEnv = "WORLDKERNEL_MCP"

const (
	mcpExample  = "such as worldctl mcp --name files -- npx -y @modelcontextprotocol/server-filesystem /work"
	listExample = `such as {"mcpServers": {"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/work"]}}}`
)

// mcpBridge is what was asked for of a server's place.
type mcpBridge struct {
	name, session string
	hold          time.Duration
	command       []string
	config        string // a list of servers, in place of a command
	listen        string // where these are served; empty: on stdin and stdout
	on            net.Listener
}

func newMCPCommand(c *cli) *cobra.Command {
	var m mcpBridge
	x := agentRun{Joins: true}
	cmd := &cobra.Command{
		Use: "mcp [--name SERVER] {-- COMMAND [ARGUMENT...] | --config FILE}",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 && m.config != "" {
				return usagef("leave out one of them", "mcp takes the command of a server, after --, or --config FILE, and not both")
			} else if len(args) == 0 && m.config == "" {
				return usagef(mcpExample, "mcp needs the command of a server, after --, or else --config FILE")
			} else if m.listen != "" && m.config == "" {
				return usagef("worldctl mcp --config servers.json --listen 127.0.0.1:0", "--listen is for --config")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if m.command = args; m.name == "" {
				m.name = serverName(append(args, m.config))
			}
			return c.runMCP(cmd.Context(), &m, &x)
		},
	}
	cmd.Flags().StringVar(&m.name, "name", "", "the `SERVER` as policies know it; made of the command if not given")
	cmd.Flags().StringVar(&m.config, "config", "", "the `FILE` that lists servers: {\"mcpServers\": {NAME: {\"command\": …} or {\"url\": …}}}")
	cmd.Flags().StringVar(&m.listen, "listen", "", "the `HOST:PORT` on this machine where clients reach the servers of --config over HTTP")
	cmd.Flags().StringVar(&m.session, "session", "", "the `NAME` of the session, beside no agent run; that of the server if not given")
	cmd.Flags().StringVar(&x.As, "as", "", "who starts it: `NAME`; your login if not given")
	cmd.Flags().DurationVar(&m.hold, "hold", 0, "how long a call waits for a person before the model is told to call again; as the client allows if not given")
	return cmd
}

// runMCP runs what is in a server's place at the gateway of the agent that it is below, or at one of its own.
func (c *cli) runMCP(ctx context.Context, m *mcpBridge, x *agentRun) error {
	if err := m.check(); err != nil {
		return err
	}
	if m.on != nil {
		defer m.on.Close() //nolint:errcheck // who serves it has closed it
	}
	if at := os.Getenv(toolsEnv); at != "" && c.world == "" && c.storeURL() == "" {
		code, err := c.bridge(ctx, m, at)
		return errors.Join(err, endedWith(code))
	}
	if len(m.command) > 0 { // below a replay it need not be there
		if _, err := exec.LookPath(m.command[0]); err != nil {
			return usagef(mcpExample, "the server cannot be started: %w", err)
		}
	}
	x.Name = cmp.Or(m.session, m.name)
	x.serve = func(ctx context.Context, a *attached) (int, error) {
		if a.Tools == "" {
			return 0, hinted(errors.New("the rules of the world have no effect "+recorder.MCPCall), "worldctl init --template gateway DIR shows one")
		}
		return c.bridge(ctx, m, a.Tools)
	}
	return c.runAgent(ctx, x)
}

// endedWith returns an exit code of another program as an error, nil for 0.
func endedWith(code int) error {
	if code == 0 {
		return nil
	}
	return (&agentError{code}).fault()
}

// bridge runs the server behind a gateway, and returns its exit code.
func (c *cli) bridge(ctx context.Context, m *mcpBridge, at string) (code int, err error) {
	if m.config != "" {
		return 0, c.bridgeAll(ctx, m, at)
	}
	cmd := serverCommand(m.command)
	b := gateway.Bridge{URL: at + "/" + url.PathEscape(m.name), Hold: m.hold, Server: cmd, Client: c.stdin, Out: os.Stdout}
	err = b.Run(ctx)
	if cmd.ProcessState != nil && err == nil {
		code = max(cmd.ProcessState.ExitCode(), 0) // one that a signal has ended was ended here, mostly
	}
	return code, err
}

// check finds out what is wrong with what was typed before a world is made for it, and listens.
func (m *mcpBridge) check() (err error) {
	if m.config == "" {
		return nil
	}
	if _, err := m.group("", nil); err != nil {
		return err
	}
	if m.listen != "" {
		if m.on, err = gateway.Listen(m.listen); err != nil {
			return usagef("such as --listen 127.0.0.1:0, which takes a port that is free", "--listen: %w", err)
		}
	}
	return nil
}

// group reads the servers of the list, which come in at a gateway, and whose client is here or somewhere else.
func (m *mcpBridge) group(at string, client io.Reader) (*gateway.Group, error) {
	servers, err := groupServers(m.config)
	if err != nil {
		return nil, err
	}
	g := &gateway.Group{URL: at, Name: m.name, Hold: m.hold, Client: client, Out: os.Stdout, Servers: servers}
	return g, g.Check()
}

// bridgeAll runs the servers of a list behind a gateway as one.
func (c *cli) bridgeAll(ctx context.Context, m *mcpBridge, at string) error {
	if m.on == nil {
		g, err := m.group(at, c.stdin)
		if err != nil {
			return err
		}
		return g.Run(ctx)
	}
	site := gateway.GroupSite{Name: m.name, New: func() (*gateway.Group, error) { return m.group(at, nil) }}
	return site.Serve(ctx, m.on, func(url string) {
		_, _ = fmt.Fprintln(c.stdout, url)
		_ = c.stdout.Flush() // who does not see it ends this
	})
}

// serverCommand returns the command of a server, which does not know of the gateway.
func serverCommand(argv []string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, toolsEnv+"=") || strings.HasPrefix(pair, hookVariable+"=")
	})
	return cmd
}

// groupServers reads the servers of a client's list.
func groupServers(file string) (out []gateway.GroupServer, err error) {
	var list struct {
		Servers, MCPServers map[string]map[string]any
	}
	if err := readJSON(file, &list); errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("--config takes the file of a client's servers", "%w", err)
	} else if errors.As(err, new(*json.UnmarshalTypeError)) {
		return nil, usagef(listExample, "%s is no list of servers, which is an object that has each by its name", file)
	} else if err != nil {
		return nil, hinted(err, listExample)
	}
	if list.MCPServers == nil { // as VS Code has it
		list.MCPServers = list.Servers
	}
	for _, name := range slices.Sorted(maps.Keys(list.MCPServers)) {
		of := list.MCPServers[name]
		s := gateway.GroupServer{Name: name}
		if command, _ := of["command"].(string); command != "" {
			argv := append([]string{command}, texts(of["args"])...)
			for i := range argv {
				argv[i] = withVariables(argv[i])
			}
			s.Command = serverCommand(argv)
			s.Command.Dir, _ = of["cwd"].(string)
			env, _ := of["env"].(map[string]any)
			for key, value := range env { // order cannot show: keys differ
				if text, is := value.(string); is {
					s.Command.Env = append(s.Command.Env, key+"="+withVariables(text))
				} else if text, err := json.Marshal(value); err == nil && value != nil {
					s.Command.Env = append(s.Command.Env, key+"="+string(text))
				}
			}
		} else if where, _ := of["url"].(string); where != "" {
			s.URL, s.Header = withVariables(where), headers(of["headers"], withVariables)
		} else {
			return nil, hinted(fmt.Errorf("%s: the server %q has neither command nor url", file, name), listExample)
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		err = usagef(listExample, "%s lists no server", file)
	}
	return out, err
}

// launchers are programs that run the server which their first argument names.
var launchers = []string{"npx", "bunx", "uvx", "uv", "node", "bun", "deno", "python", "python3", "docker"} //nolint:gochecknoglobals // a table

// serverName makes a name of the command of a server: of the program, or of what it launches.
func serverName(argv []string) string {
	base := func(text string) string {
		text = path.Base(filepath.ToSlash(text))
		if name, _, versioned := strings.Cut(text, "@"); versioned && name != "" {
			text = name
		}
		return strings.TrimSuffix(text, path.Ext(text))
	}
	name := base(argv[0])
	if !slices.Contains(launchers, name) {
		return name
	}
	for _, arg := range argv[1:] {
		if !strings.HasPrefix(arg, "-") && arg != "run" {
			return base(arg)
		}
	}
	return name
}
