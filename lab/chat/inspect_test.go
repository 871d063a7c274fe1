package chat_test

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/lab/chat"
	"github.com/worldkernel/worldkernel/world"
)

// inspectSample has a call in its messages and in its events, and two of a sub-agent in its events alone, of which one was never run.
const inspectSample = `{
  "id": "a", "epoch": 2, "input": "hi", "scores": {"x": {"value": NaN}},
  "messages": [
    {"role": "user", "content": "NaN", "source": "input", "tool_call_id": ["z"]},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": "bash", "arguments": {"cmd": "attachment://h"}, "type": "function", "view": null}]},
    {"role": "tool", "content": "fine", "tool_call_id": "1", "function": "bash", "error": null}
  ],
  "events": [
    {"event": "model", "output": {"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "1", "function": "bash", "arguments": {"cmd": "ls"}}]}}]}},
    {"event": "tool", "id": "1", "function": "bash", "arguments": {"cmd": "attachment://h"}, "result": "fine", "error": null, "events": [
      {"event": "model", "output": {"choices": [{"message": {"role": "assistant", "tool_calls": [
        {"id": "1", "function": "bash", "arguments": {"cmd": "ls"}}, {"id": "2", "function": "look", "arguments": {}}]}}]}},
      {"event": "tool", "id": "1", "function": "bash", "arguments": {"cmd": "ls"}, "result": "", "error": {"type": "timeout", "message": "late"}}
    ]},
    {"event": "tool", "id": "3", "function": "look", "arguments": {}, "result": 3}
  ],
  "attachments": {"h": "ls"}
}`

func inspectLog(samples ...string) string {
	return `{"version": 2, "status": "success", "eval": {"task": "t", "n": -Infinity}, "samples": [` + "\n" + strings.Join(samples, ",\n") + "]}"
}

type archived struct {
	name, text string
	method     uint16
}

// archive packs members as Inspect does: deflated before 2026, zstd since then.
func archive(t testing.TB, members ...archived) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(93, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })
	for _, m := range members {
		w, err := z.CreateHeader(&zip.FileHeader{Name: m.name, Method: m.method})
		require.NoError(t, err)
		_, err = io.WriteString(w, m.text)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return out.Bytes()
}

// TestAllCallsOfAnInspectLogAreFound in the messages of its samples, and in the events of what the messages do not hold.
func TestAllCallsOfAnInspectLogAreFound(t *testing.T) {
	want := chat.Sums{Runs: 2, Messages: 2 + 2, Calls: 1 + 3, Failed: 1, Lost: 1}
	for name, data := range map[string][]byte{
		"a.json":  []byte(inspectLog(inspectSample)),
		"b.eval":  archive(t, archived{"header.json", "{}", zip.Deflate}, archived{"samples/a_epoch_2.json", inspectSample, zip.Deflate}),
		"c.eval":  archive(t, archived{"samples/", "", zip.Store}, archived{"samples/a_epoch_2.json", inspectSample, 93}),
		"d.jsonl": []byte(inspectLog(inspectSample)), // names tell nothing
	} {
		rec, err := chat.Read(name, data)
		require.NoError(t, err, name)
		require.Equal(t, want, rec.Sums(), name)
	}
}

// TestAnInspectLogThatCannotBeReadNamesItsPlace where calls would be lost, and where nothing is in it.
func TestAnInspectLogThatCannotBeReadNamesItsPlace(t *testing.T) {
	other := strings.Replace(inspectSample, `"a"`, `"b"`, 1)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"no samples":      {[]byte(inspectLog()), "f:1: there are no runs in it"},
		"header alone":    {[]byte(`{"status":"started","eval":{},"samples":null}`), "f:1: there are no runs in it"},
		"same sample":     {[]byte(inspectLog(other, inspectSample, inspectSample)), "f:38: run 2: two runs have the same name"},
		"calls in a form": {[]byte(inspectLog(other, strings.Replace(inspectSample, `"tool_calls"`, `"tools"`, 1))), "f:20: run 1, message 1: tools: calls are not read"},
		"calls in events": {[]byte(inspectLog(strings.Replace(inspectSample, `[{"id": "1", "function": "bash", "arguments": {"cmd": "ls"}}]}}]}},`, `3}}]}},`, 1))), "f:2: run 0: events: tool_calls: want a list"},
		"no epoch":        {[]byte(inspectLog(strings.Replace(inspectSample, `"epoch"`, `"trial"`, 1))), "f:2: run 0: want a sample with an id"},
		"not JSON":        {archive(t, archived{"samples/a_epoch_2.json", "{", 93}), "f/samples/a_epoch_2.json:1: run 0: "},
		"in chunks":       {archive(t, archived{"samples/a_epoch_1/sample.json", "{}", 93}), "f/samples/a_epoch_1/sample.json:1: samples in chunks"},
		"other members":   {archive(t, archived{"samples/a.json", "{}", 93}), "f/samples/a.json:1: is no sample"},
		"other archive":   {archive(t, archived{"x", "{}", 93}), "f:1: there are no runs in it"},
		"cut archive":     {archive(t, archived{"samples/a_epoch_2.json", inspectSample, 93})[:200], "f:1: zip: "},
	} {
		_, err := chat.Read("f", c.data)
		require.ErrorContains(t, err, c.want, name)
	}
}

// TestAnInspectLogUnpacksToABound that whoever reads it has set: of its members together, and of what they refer to.
func TestAnInspectLogUnpacksToABound(t *testing.T) {
	half := strings.Repeat(" ", 128<<20)
	sample := `{"id":"1","epoch":1,"attachments":{"h":"` + half[:2<<20] + `"},"messages":[{"role":"user","content":["attachment://h"` + strings.Repeat(`,"attachment://h"`, 128) + `]}]}`
	for name, data := range map[string][]byte{
		"members":     archive(t, archived{"samples/a_epoch_1.json", `{"id":"a","epoch":1,"messages":[]}` + half, zip.Deflate}, archived{"samples/b_epoch_1.json", half, 93}),
		"attachments": []byte(inspectLog(sample)),
	} {
		_, err := chat.Read("f", data)
		require.ErrorIs(t, err, world.ErrTooLarge, name)
	}
}
