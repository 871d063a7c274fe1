package governance

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// CodeServerNotAllowed says that the capability names not the server of an mcp
// effect; see CodeToolNotAllowed for the tool.
const CodeServerNotAllowed Code = "server_not_allowed"

// MCPTarget is the call of a tool that an mcp effect would make.
type MCPTarget struct {
	// Server is what a capability's servers must name, exactly: the first element
	// of config.command, or config.url.
	Server string

	Command       []string          // the program that is the server, with its arguments; or
	Env           map[string]string // of that program; values may be references to secrets
	URL           *url.URL          // where the server is
	Headers       map[string]string // of requests to URL
	SecretHeaders map[string]string // likewise; values are references

	Tool      string
	Arguments canon.Raw // a map
	Task      bool      // the call is a task of the server where the tool can be one
}

// ParseMCP reads the config and the params of an mcp effect. Config is
//
//	command          the server's program and its arguments, a list, or the program alone
//	env              variables of the program, the only ones but for PATH and LANG
//	url              instead of command: the address of a streamable HTTP server
//	headers          names and values
//	secret_headers   names and references such as secret://NAME
//	tool             fixes the tool
//	task             true: a tool that can run as a task of the server does
//
// and params are {tool, arguments?}. The error is a *CapError.
func ParseMCP(config, params canon.Raw) (*MCPTarget, error) {
	t, err := ParseMCPConfig(config)
	if err != nil {
		return nil, err
	}
	fields, err := paramFields(params)
	if err != nil {
		return nil, err
	}
	if t.Tool, err = fixText(fields, "tool", t.Tool); err != nil {
		return nil, err
	}
	if t.Tool == "" {
		return nil, capErrorf(CodeBadParams, "tool is missing")
	}
	t.Arguments = fields["arguments"]
	if r := canon.NewReader(t.Arguments); len(t.Arguments) == 0 || r.Null() {
		t.Arguments = canon.AppendMap(nil, 0)
	} else if r.Kind() != canon.KindMap {
		return nil, capErrorf(CodeBadParams, "arguments are not a map")
	}
	delete(fields, "tool")
	delete(fields, "arguments")
	if len(fields) > 0 {
		name := slices.Sorted(maps.Keys(fields))[0]
		return nil, capErrorf(CodeParamNotAllowed, "there is no param %q", shortened(name))
	}
	return t, nil
}

// ParseMCPConfig returns what the config of an mcp effect says whatever the
// params: all but Arguments, and Tool only where config fixes it. The error is
// a *CapError.
func ParseMCPConfig(config canon.Raw) (*MCPTarget, error) {
	var c struct {
		Command       canon.Raw         `cbor:"command"`
		Env           map[string]string `cbor:"env"`
		URL           string            `cbor:"url"`
		Headers       map[string]string `cbor:"headers"`
		SecretHeaders map[string]string `cbor:"secret_headers"`
		Tool          string            `cbor:"tool"`
		Task          bool              `cbor:"task"`
	}
	if err := decodeConfig(config, &c); err != nil {
		return nil, err
	}
	t := &MCPTarget{Env: c.Env, Headers: c.Headers, SecretHeaders: c.SecretHeaders, Tool: c.Tool, Task: c.Task}
	switch {
	case len(c.Command) > 0 == (c.URL != ""):
		return nil, capErrorf(CodeBadConfig, "want either command or url")
	case c.URL != "" && c.Env != nil:
		return nil, capErrorf(CodeBadConfig, "env is for a command, not for a url")
	case c.URL == "" && (c.Headers != nil || c.SecretHeaders != nil):
		return nil, capErrorf(CodeBadConfig, "headers are for a url, not for a command")
	}
	var err error
	if c.URL != "" {
		t.Server = c.URL
		if t.URL, err = serverURL("url", c.URL); err != nil {
			return nil, err
		}
		if err := plainHeaders(c.Headers); err != nil {
			return nil, err
		}
		return t, nil
	}
	if t.Command, err = commandOf(c.Command); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || hasNUL(t.Env[name]) {
			return nil, capErrorf(CodeBadConfig, "env.%s cannot be set", shortened(name))
		}
	}
	t.Server = t.Command[0]
	return t, nil
}

func commandOf(command canon.Raw) ([]string, error) {
	r := canon.NewReader(command)
	var argv []string
	if r.Kind() == canon.KindText {
		argv = []string{r.Text()}
	} else {
		for range r.Array() {
			argv = append(argv, r.Text())
		}
	}
	if r.Close() != nil || len(argv) == 0 || argv[0] == "" || slices.ContainsFunc(argv, hasNUL) {
		return nil, capErrorf(CodeBadConfig, "command is not a program, nor a list of a program and its arguments")
	}
	for i, arg := range argv {
		if strings.HasPrefix(arg, "secret://") {
			return nil, capErrorf(CodeBadConfig, "command[%d] is a secret, but all users of the machine see arguments: use env", i)
		}
	}
	return argv, nil
}

// Allowed says which bound of a capability t exceeds; nil: none.
func (t *MCPTarget) Allowed(p *manifest.CapParams) *CapError {
	if !slices.Contains(p.Servers, t.Server) {
		return capErrorf(CodeServerNotAllowed, "server %q is not among %s", shortened(t.Server), quoted(p.Servers))
	}
	if !matchesAny(p.Tools, t.Tool) {
		return capErrorf(CodeToolNotAllowed, "tool %q is not among %s", shortened(t.Tool), quoted(p.Tools))
	}
	return nil
}

// CheckHeaders refuses headers of config that are the protocol's: Mcp-Name holds
// the tool once more, and a server, or what stands before it, reads it there.
func (t *MCPTarget) CheckHeaders() error {
	for _, headers := range []map[string]string{t.Headers, t.SecretHeaders} {
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			switch plain := plainHeader(name); {
			case strings.HasPrefix(plain, "mcp-"), reservedHeader(plain),
				plain == "accept", plain == "content-type", plain == "last-event-id":
				return capErrorf(CodeBadConfig, "header %q is the protocol's", shortened(name))
			}
		}
	}
	return nil
}

func mcpAdapter() adapter {
	return adapter{
		parse: func(config, params canon.Raw) (target, error) { return ParseMCP(config, params) },
		uses:  butTokens,
		fixed: func(config canon.Raw, p *manifest.CapParams) *CapError {
			t, err := ParseMCPConfig(config)
			if err != nil {
				return nil
			}
			exceeded := t.Allowed(p)
			if exceeded != nil && exceeded.Code == CodeToolNotAllowed && t.Tool == "" {
				return nil // params say it
			}
			return exceeded
		},
		needs: func(config canon.Raw) (Needs, error) {
			t, err := ParseMCPConfig(config)
			switch {
			case err != nil:
				return Needs{}, err
			case t.URL != nil:
				return goesTo(t.URL.String())
			default:
				return Needs{Program: t.Command, Env: t.Env}, nil
			}
		},
	}
}
