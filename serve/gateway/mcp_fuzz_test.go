package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host/mcp"
	"github.com/worldkernel/worldkernel/internal/canon"
)

// FuzzMessages reads what a client may write: what passes is one line, one object with keys that all readers see alike, and a
// call's params are what they were.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":1.0},"_meta":{"progressToken":1},"task":{}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"\u0061","result":{},"x":` + "\r" + `1}`))
	f.Add([]byte(`{"id":1e0,"method":"ping"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := readClient(line)
		if err != nil {
			return
		}
		require.True(t, json.Valid(m.line))
		require.Equal(t, byte('{'), m.line[0])
		require.NotContains(t, string(m.line), "\n")
		require.NotContains(t, string(m.line), "\r")
		before, err := canon.FromJSON(line)
		require.NoError(t, err)
		after, err := canon.FromJSON(m.line)
		require.NoError(t, err)
		require.Equal(t, before, after)
		if m.id != nil {
			require.Equal(t, m.key, idKey(m.id))
			require.NotEmpty(t, m.key)
		}
		c, err := readCall("s", m.params, true)
		if err != nil {
			return
		}
		require.NotEmpty(t, c.tool)
		again, err := canon.FromJSON(c.arguments)
		require.NoError(t, err)
		require.Equal(t, c.judged, again)
	})
}

// FuzzEvents reads what a server may stream: what a client gets has only messages that were judged, each in one line, in
// whatever way the client ends lines.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("id: 1\r\nretry: 5\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"method\":\"x\"}\r\n\r\n: c\n\nevent: endpoint\ndata: /x\n\n"))
	f.Add([]byte("data: {\"id\":1,\"result\":{}}\n\n:\r\rdata: {\"id\":1,\"result\":{}}\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &mcpServer{}
		out, _ := io.ReadAll(&events{in: mcp.NewEvents(bytes.NewReader(data)), s: s})
		for line := range strings.Lines(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(out))) {
			field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			switch value = strings.TrimPrefix(value, " "); field {
			case "", "id", "retry":
			case "data":
				if value != "" {
					m, err := readServer([]byte(value))
					require.NoError(t, err)
					require.NotEmpty(t, m.method)
				}
			default:
				require.Fail(t, line)
			}
		}
	})
}
