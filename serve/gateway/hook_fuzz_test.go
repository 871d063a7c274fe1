package gateway

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/reducer/recorder"
)

// FuzzResults puts a recorded result in the place of each that a request has: what comes out is JSON, and has it.
func FuzzResults(f *testing.F) {
	f.Add([]byte(`{"messages":[{"content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}]}`), []byte(`{"stdout":"a","stderr":""}`), true)
	f.Add([]byte(`{"messages":[{"content":"text"},{"content":[1,{"tool_use_id":"b","is_error":true}]}]}`), []byte(`{"type":"text","file":{"content":"a\nb","startLine":7}}`), false)
	f.Add([]byte(`{"messages":{}}`), []byte(`{"filePath":"/a"}`), false)
	f.Fuzz(func(t *testing.T, body, response []byte, failed bool) {
		if !json.Valid(body) || !json.Valid(response) {
			return
		}
		out := body
		for b, raw := range relay.Results(body) {
			block, err := toldBy(b.ID, &recorder.ToolAnswer{Result: response, IsError: failed})
			require.NoError(t, err)
			require.True(t, json.Valid(block))
			out = bytes.Replace(out, raw, block, 1)
			require.Contains(t, string(out), string(block))
		}
		require.True(t, json.Valid(out))
	})
}
