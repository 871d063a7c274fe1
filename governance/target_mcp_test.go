package governance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

func TestMCPConfig(t *testing.T) {
	target, err := ParseMCP(rawJSON(t, `{"command":["npx","-y","server"],"env":{"TOKEN":"secret://T"}}`),
		rawJSON(t, `{"tool":"add","arguments":{"a":9007199254740993}}`))
	require.NoError(t, err)
	require.Equal(t, []string{"npx", "-y", "server"}, target.Command)
	require.Equal(t, "npx", target.Server)
	require.Equal(t, map[string]string{"TOKEN": "secret://T"}, target.Env)
	require.Equal(t, rawJSON(t, `{"a":9007199254740993}`), target.Arguments)

	target, err = ParseMCP(rawJSON(t, `{"command":"./my server"}`), rawJSON(t, `{"tool":"add","arguments":null}`))
	require.NoError(t, err)
	require.Equal(t, []string{"./my server"}, target.Command, "nothing splits words")
	require.Equal(t, canon.Raw{0xa0}, target.Arguments)

	target, err = ParseMCP(rawJSON(t, `{"url":"http://127.0.0.1:9/mcp","secret_headers":{"Authorization":"secret://T"},"tool":"add"}`), nil)
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:9/mcp", target.Server)
	require.Equal(t, "add", target.Tool)

	for _, config := range []string{
		`{}`, `{"command":"a","url":"http://h"}`, `{"command":[]}`, `{"command":[""]}`, `{"command":[1]}`, `{"command":["a","b\u0000"]}`,
		`{"command":null}`, `{"command":["a","secret://T"]}`, `{"url":"file:///x"}`, `{"url":"http://u:p@h"}`, `{"url":"http://h","env":{"A":"b"}}`,
		`{"command":"a","headers":{"A":"b"}}`, `{"command":"a","env":{"A=B":"c"}}`, `{"command":"a","args":[]}`,
		`{"url":"http://h","headers":{"A":"secret://T"}}`, `{"url":"http://h/?k=secret://T"}`,
	} {
		t.Log(config)
		_, err := ParseMCP(rawJSON(t, config), rawJSON(t, `{"tool":"t"}`))
		requireCode(t, CodeBadConfig, err)
		_, err = ParseMCPConfig(rawJSON(t, config))
		requireCode(t, CodeBadConfig, err)
	}
}

func TestMCPParams(t *testing.T) {
	config := rawJSON(t, `{"command":"server","tool":"add"}`)
	for params, code := range map[string]Code{
		`{"tool":"rm"}`:              CodeParamNotAllowed,
		`{"tool":"add","command":1}`: CodeParamNotAllowed,
		`{"tool":1}`:                 CodeBadParams,
		`{"arguments":[]}`:           CodeBadParams,
		`"add"`:                      CodeBadParams,
	} {
		t.Log(params)
		_, err := ParseMCP(config, rawJSON(t, params))
		requireCode(t, code, err)
	}
	_, err := ParseMCP(rawJSON(t, `{"command":"server"}`), nil)
	requireCode(t, CodeBadParams, err)
}

func TestMCPCapability(t *testing.T) {
	target, err := ParseMCP(rawJSON(t, `{"command":["./server","--all"]}`), rawJSON(t, `{"tool":"read_file"}`))
	require.NoError(t, err)
	for _, c := range []struct {
		name   string
		params manifest.CapParams
		code   Code
		value  string
	}{
		{"exact", manifest.CapParams{Servers: []string{"./server"}, Tools: []string{"read_file"}}, "", ""},
		{"prefix of a tool", manifest.CapParams{Servers: []string{"./server"}, Tools: []string{"read_*"}}, "", ""},
		{"nothing", manifest.CapParams{}, CodeServerNotAllowed, "./server"},
		{"servers have no wildcards", manifest.CapParams{Servers: []string{"*"}, Tools: []string{"*"}}, CodeServerNotAllowed, "./server"},
		{"no tools", manifest.CapParams{Servers: []string{"./server"}}, CodeToolNotAllowed, "read_file"},
		{"other tools", manifest.CapParams{Servers: []string{"./server"}, Tools: []string{"read", "write*"}}, CodeToolNotAllowed, "read_file"},
	} {
		denied := target.Allowed(&c.params)
		if c.code == "" {
			require.Nil(t, denied, c.name)
			continue
		}
		require.NotNil(t, denied, c.name)
		require.Equal(t, c.code, denied.Code, c.name)
		require.Contains(t, denied.Reason, c.value, c.name)
	}
}
