package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// FuzzLines reads lines of bounded length: each comes whole or as its two ends, and none is lost.
func FuzzLines(f *testing.F) {
	f.Add([]byte("one\ntwo\n\nnot ended"), uint8(2))
	f.Add([]byte(strings.Repeat("x", 9000)+"\nnext\n"), uint8(40))
	f.Fuzz(func(t *testing.T, data []byte, most uint8) {
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		lines := bytes.Split(data, []byte("\n"))
		for _, want := range lines[:len(lines)-1] {
			line, whole, err := readLine(r, int(most))
			require.NoError(t, err)
			require.Equal(t, len(want) <= int(most), whole)
			if whole {
				require.Equal(t, string(want), string(line))
				continue
			}
			head, tail := want[:min(len(want), lineEnds)], want[max(0, len(want)-lineEnds):]
			require.True(t, bytes.HasPrefix(line, head))
			require.True(t, bytes.HasSuffix(line, tail[min(1, len(tail)):]))
			require.LessOrEqual(t, len(line), 2*lineEnds+1)
		}
		_, _, err := readLine(r, int(most))
		require.Error(t, err)
	})
}

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
		out, _ := io.ReadAll(&events{in: bufio.NewReader(bytes.NewReader(data)), s: s})
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
