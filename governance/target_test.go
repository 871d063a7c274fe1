package governance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// typedGate returns the gate of a world whose reducer agent holds caps, in
// their order, and whose effects are of the typed adapters.
func typedGate(t *testing.T, caps ...manifest.Cap) *Gate {
	t.Helper()
	config := func(text string) manifest.Data {
		data, err := canon.FromJSON([]byte(text))
		require.NoError(t, err)
		return data
	}
	m := &manifest.Manifest{
		Effects: map[string]manifest.Effect{
			"web.get":    {Adapter: "http", Config: config(`{"url": "https://api.example.com/v1/", "method": "GET"}`)},
			"disk.read":  {Adapter: "file", Config: config(`{"root": "data"}`)},
			"tool.run":   {Adapter: "exec", Config: config(`{"program": "./lookup", "args": ["-v"]}`)},
			"model.chat": {Adapter: "llm", Config: config(`{"base_url": "https://llm.example.com/v1"}`)},
			"mcp.call":   {Adapter: "mcp", Config: config(`{"command": "server"}`)},
			"stub.call":  {Adapter: "stub"},
		},
		Caps:     map[string]manifest.Cap{},
		Policies: []manifest.Policy{allow("anything", anything)},
	}
	var grants []string
	for i, c := range caps {
		name := string(rune('a' + i))
		m.Caps[name] = c
		grants = append(grants, name)
	}
	m.Reducers = map[string]manifest.Reducer{"agent": {Grants: grants}}
	g, err := NewGate(m, nil)
	require.NoError(t, err)
	return g
}

func webCap(hosts ...string) manifest.Cap {
	return manifest.Cap{Type: manifest.CapHTTP, Params: manifest.CapParams{
		Schemes: []string{"https"}, Hosts: hosts, Ports: []uint64{443}, Methods: []string{"GET"}, Paths: []string{"/v1"},
	}}
}

func execCap(program string, args ...string) manifest.Cap {
	return manifest.Cap{Type: manifest.CapExec, Params: manifest.CapParams{Programs: []string{program}, Args: args}}
}

func TestTypedCapabilitiesJudgeTheirTarget(t *testing.T) {
	disk := manifest.Cap{Type: manifest.CapFile, Params: manifest.CapParams{Root: "data", Access: []string{"read"}}}
	model := manifest.Cap{Type: manifest.CapLLM, Params: manifest.CapParams{
		Providers: []string{"llm.example.com"}, Models: []string{"small*"},
	}}
	server := manifest.Cap{Type: manifest.CapMCP, Params: manifest.CapParams{Servers: []string{"server"}, Tools: []string{"add"}}}
	for _, c := range []struct {
		cap          manifest.Cap
		kind, params string
		code         Code
		value        string // named in the reason
	}{
		{webCap("api.example.com"), "web.get", `{}`, "", ""},
		{webCap("other.example.com"), "web.get", `{}`, CodeHostNotAllowed, "api.example.com"},
		{webCap(), "web.get", `{}`, CodeHostNotAllowed, "api.example.com"},
		{disk, "disk.read", `{"op": "read", "path": "a"}`, "", ""},
		{disk, "disk.read", `{"op": "write", "path": "a", "data": "x"}`, CodeAccessNotAllowed, "write"},
		{disk, "disk.read", `{"op": "read", "path": "../a"}`, CodeBadPath, "../a"},
		{execCap("./lookup", "-*"), "tool.run", `{}`, "", ""},
		{execCap("./other", "-*"), "tool.run", `{}`, CodeProgramNotAllowed, "./lookup"},
		{execCap("./lookup"), "tool.run", `{}`, CodeArgNotAllowed, "-v"},
		{model, "model.chat", `{"model": "small-1", "messages": []}`, "", ""},
		{model, "model.chat", `{"model": "great-1", "messages": []}`, CodeModelNotAllowed, "great-1"},
		{server, "mcp.call", `{"tool": "add"}`, "", ""},
		{server, "mcp.call", `{"tool": "drop"}`, CodeToolNotAllowed, "drop"},
		// A capability of one type covers no effect of another.
		{execCap("./lookup", "-*"), "web.get", `{}`, CodeKindNotAllowed, "web.get"},
		{execCap("./lookup", "-*"), "stub.call", `{}`, CodeKindNotAllowed, "stub.call"},
		{manifest.Cap{Type: "stub"}, "stub.call", `{}`, CodeKindNotAllowed, "stub.call"},
		{execCap("./lookup", "-*"), "no.such", `{}`, CodeKindNotAllowed, "no.such"},
		{capFor(0, "*"), "tool.run", `{}`, "", ""},
	} {
		d := typedGate(t, c.cap).Decide(request(t, c.kind, c.params))
		require.Equal(t, c.code, d.Code, "%s %s: %s", c.kind, c.params, d.Reason)
		require.Equal(t, "a", d.Cap)
		require.Contains(t, d.Reason, c.value)
		require.Equal(t, c.code == "", d.Verdict == Allow)
	}
}

func TestFirstGrantThatAllowsWinsElseTheLastTypedOneSpeaks(t *testing.T) {
	lookup, other, expired := execCap("./lookup", "-*"), execCap("./other"), execCap("./lookup", "-*")
	expired.Expires = 1
	for _, c := range []struct {
		name string
		caps []manifest.Cap
		cap  string // that wins or speaks
		code Code
	}{
		{"a later one allows", []manifest.Cap{other, webCap(), lookup, lookup}, "c", ""},
		{"any before typed", []manifest.Cap{capFor(0, "tool.*"), other}, "a", ""},
		{"any after typed", []manifest.Cap{other, capFor(0, "tool.*")}, "b", ""},
		{"the last typed one speaks", []manifest.Cap{other, execCap("./lookup"), capFor(0, "x"), webCap()}, "b", CodeArgNotAllowed},
		{"not an expired one", []manifest.Cap{expired, other}, "b", CodeProgramNotAllowed},
		{"an expired one where none is left", []manifest.Cap{webCap(), expired}, "b", CodeExpired},
		{"the first of two expired", []manifest.Cap{expired, expired}, "a", CodeExpired},
		{"expired is skipped", []manifest.Cap{expired, lookup}, "b", ""},
	} {
		d := typedGate(t, c.caps...).Decide(request(t, "tool.run", `{}`))
		require.Equal(t, c.code, d.Code, "%s: %s", c.name, d.Reason)
		require.Equal(t, c.cap, d.Cap, c.name)
	}
	req := request(t, "tool.run", `{}`)
	req.Cap = "a"
	require.Equal(t, CodeProgramNotAllowed, typedGate(t, other, lookup).Decide(req).Code)
}

// Params that fit no call are denied by every typed capability, but do not
// concern one of type any.
func TestTargetThatCannotBeParsedIsDenied(t *testing.T) {
	req := request(t, "mcp.call", `{"tool": 7}`)
	server := manifest.Cap{Type: manifest.CapMCP, Params: manifest.CapParams{Servers: []string{"server"}, Tools: []string{"*"}}}
	d := typedGate(t, server, server).Decide(req)
	require.Equal(t, CodeBadParams, d.Code)
	require.Equal(t, "b", d.Cap)
	require.Equal(t, Allow, typedGate(t, server, capFor(0, "*")).Decide(req).Verdict)
}

func TestOnlyWhatSurelyReadsReads(t *testing.T) {
	web, disk := `{"url": "https://api.example.com/v1/"}`, `{"root": "data"}`
	for _, c := range []struct {
		effect         manifest.Effect
		config, params string
		reads          bool
	}{
		{manifest.Effect{Adapter: "http"}, web, `{}`, true},
		{manifest.Effect{Adapter: "http"}, web, `{"method": "head"}`, true},
		{manifest.Effect{Adapter: "http"}, web, `{"method": "OPTIONS"}`, true},
		{manifest.Effect{Adapter: "http"}, web, `{"json": 1}`, false},
		{manifest.Effect{Adapter: "http"}, web, `{"method": "DELETE"}`, false},
		{manifest.Effect{Adapter: "http"}, web, `{"url": "no place"}`, false},
		{manifest.Effect{Adapter: "http", Class: manifest.ClassWrite}, web, `{}`, false},
		{manifest.Effect{Adapter: "http", Class: manifest.ClassRead}, web, `{"json": 1}`, true},
		{manifest.Effect{Adapter: "http", Compensate: new(manifest.Compensate)}, web, `{}`, false},
		{manifest.Effect{Adapter: "stub", Class: manifest.ClassRead, Compensate: new(manifest.Compensate)}, `{}`, `{}`, false},
		{manifest.Effect{Adapter: "stub", Class: manifest.ClassRead}, `{}`, `{}`, true},
		{manifest.Effect{Adapter: "stub", Class: manifest.ClassDestructive}, `{}`, `{}`, false},
		{manifest.Effect{Adapter: "stub"}, `{}`, `{}`, false},
		{manifest.Effect{Adapter: "file"}, disk, `{"op": "read", "path": "a"}`, true},
		{manifest.Effect{Adapter: "file"}, disk, `{"op": "list", "path": "a"}`, true},
		{manifest.Effect{Adapter: "file"}, disk, `{"op": "append", "path": "a", "data": "x"}`, false},
		{manifest.Effect{Adapter: "file"}, disk, `{"op": "write", "path": "a", "data": "x"}`, false},
	} {
		var err error
		c.effect.Config, err = canon.FromJSON([]byte(c.config))
		require.NoError(t, err)
		params, err := canon.FromJSON([]byte(c.params))
		require.NoError(t, err)
		require.Equal(t, c.reads, Reads(&c.effect, params), "%s %s %s", c.effect.Adapter, c.effect.Class, c.params)
	}
}
