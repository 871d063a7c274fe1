//go:build unix

package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// hostileArguments hold what could be taken for the end of a message, or for a
// message.
const hostileArguments = `{"z":"}}}\n{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\"}\n","y":[1,-2.5,1e300,true,null,{},[]],` +
	`"x":"\\\"\r\u2028\u2029\u0000☃𝄞","w":{"}":"{"},"":12345678901234567890123}`

// What a server gets of a session may end at any byte: where this process is
// killed, or a call's time is over in the middle of a write. Nothing that is not
// a whole message can be taken for one then, also if another message comes after
// the cut, whether the server reads lines, takes the end of its input for the
// end of a line, or reads one JSON value after the other.
func TestCutMessageIsNone(t *testing.T) {
	written := writtenInASession(t)
	whole := linesIn(written)
	var arguments []json.RawMessage
	for _, text := range whole {
		msg, err := jsonrpc.DecodeMessage([]byte(text))
		require.NoError(t, err)
		if r, ok := msg.(*jsonrpc.Request); ok && r.Method == methodCall {
			var params struct {
				Arguments json.RawMessage `json:"arguments"`
			}
			require.NoError(t, json.Unmarshal(r.Params, &params))
			arguments = append(arguments, params.Arguments)
		}
	}
	require.Len(t, arguments, 2)
	require.Equal(t, fromJSON(t, hostileArguments), fromJSON(t, string(arguments[0])))
	require.Equal(t, byte('\n'), written[len(written)-1], "a message is written with its end")

	later := whole[len(whole)-1] + "\n"
	for cut := range len(written) {
		got := written[:cut:cut]
		for name, read := range map[string]func([]byte) []string{"lines": linesIn, "lines and a rest": linesAndRestIn, "values": valuesIn} {
			messages := read(got)
			require.LessOrEqual(t, len(messages), len(whole))
			require.Equal(t, whole[:len(messages)], messages, "%s of %s", name, got)
		}
		begun := got[bytes.LastIndexByte(got, '\n')+1:]
		if len(begun) == 0 || json.Valid(begun) {
			continue
		}
		before := bytes.Count(got, []byte("\n"))
		got = append(got, later...)
		require.Equal(t, whole[:before], linesIn(got), "%s", got)
		require.Equal(t, whole[:before], valuesIn(got), "%s", got)
	}
}

// writtenInASession returns all bytes that a server gets in a session with two
// calls.
func writtenInASession(t *testing.T) []byte {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	s := setupOf(t, `{"command":["/bin/sh","-c","tee written | \"$SERVER\""],"env":{"SERVER":`+quote(t, self)+`,"`+serverEnv+`":"stdio"}}`, manifest.Effect{})
	a, err := New(s)
	require.NoError(t, err)
	for _, arguments := range []string{hostileArguments, `{"n":1}`} {
		got, err := a.Perform(t.Context(), callOf(t, "echo", arguments))
		require.NoError(t, err)
		require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
	}
	require.NoError(t, a.(io.Closer).Close())
	written, err := os.ReadFile(filepath.Join(s.Dir, "written"))
	require.NoError(t, err)
	return written
}

// linesIn returns the lines that are JSON.
func linesIn(data []byte) []string {
	messages := []string{}
	for line := range bytes.Lines(data) {
		if text, ended := bytes.CutSuffix(line, []byte("\n")); ended && json.Valid(text) {
			messages = append(messages, string(text))
		}
	}
	return messages
}

// linesAndRestIn is linesIn where a line need not end.
func linesAndRestIn(data []byte) []string { return linesIn(append(data[:len(data):len(data)], '\n')) }

// valuesIn returns one JSON value after the other, up to what is none.
func valuesIn(data []byte) []string {
	messages := []string{}
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return messages
		}
		messages = append(messages, string(value))
	}
}
