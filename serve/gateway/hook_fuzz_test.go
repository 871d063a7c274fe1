package gateway

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
		edit, put := relay.Edit{Text: body}, []byte(nil)
		for b, raw := range relay.Results(body) {
			block, err := toldBy(b.ID, &recorder.ToolAnswer{Result: response, IsError: failed})
			require.NoError(t, err)
			require.True(t, json.Valid(block))
			edit.Replace(raw, block)
			if put == nil {
				put = block
			}
		}
		out := edit.Edited()
		require.Contains(t, string(out), string(put))
		require.True(t, json.Valid(out))
	})
}

// TestManyResultsAreReplacedAtOnce has what a long session sends with each request once it was restarted. However many results are in it,
// few copies of it are made, and each result is that on record.
func TestManyResultsAreReplacedAtOnce(t *testing.T) {
	const results = 1_000
	g := new(Gateway)
	g.hooks.begin()
	var sent, want []byte
	for i := range results {
		id := strconv.Itoa(i)
		block := fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"denied%1000d"}`, id, i)
		turn := fmt.Sprintf(`{"role":"user","content":[%s,%s]},`, block, block) // nobody sends the same twice, and it is replaced twice
		recorded := strings.Replace(block, "denied", "recorded", 1)
		g.hooks.given[id] = &asking{block: []byte(recorded)}
		sent, want = append(sent, turn...), append(want, strings.ReplaceAll(turn, block, recorded)...)
	}
	whole := func(turns []byte) []byte {
		return slices.Concat([]byte(`{"messages":[`), turns, []byte(`{"role":"user","content":"x"}]}`))
	}
	body := whole(sent)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := g.settleTools(body)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, string(whole(want)), string(got))
	require.Less(t, after.TotalAlloc-before.TotalAlloc, 30*uint64(len(body)))
}
