//go:build unix

package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// oddities are the ways in which runOdd is no good server, with the answer of a call.
var oddities = map[string]string{
	"banner":      `[{"type":"text","text":"fine"}]`,
	"logs":        `[{"type":"text","text":"fine"}]`,
	"half lines":  `[{"type":"text","text":"fine"}]`,
	"ids as text": `[{"type":"text","text":"fine"}]`,
	"same cursor": `[{"type":"text","text":"fine"}]`,
	"circle":      `[{"type":"text","text":"fine"}]`,
	"structured":  `[]`,
	"no version":  `[{"type":"text","text":"fine"}]`,
	"error null":  `[{"type":"text","text":"fine"}]`,
	"a batch":     `[{"type":"text","text":"fine"}]`,
	"a mark":      `[{"type":"text","text":"fine"}]`,
	"a prefix":    `[{"type":"text","text":"fine"}]`,
	"two in one":  `[{"type":"text","text":"fine"}]`,
	"a rest":      `[{"type":"text","text":"fine"}]`,
	"echoes":      `[{"type":"text","text":"fine"}]`,
	"bad tools":   `[{"type":"text","text":"fine"}]`,
	"indented":    `[{"type":"text","text":"fine"}]`,
	"long banner": `[{"type":"text","text":"fine"}]`,
}

// runOdd is a server with one oddity.
func runOdd(odd string, in io.Reader, out io.Writer) {
	line := func(text string) { _, _ = io.WriteString(out, text+"\n") }
	stray := func() {
		if odd == "logs" {
			line("DEBUG slow")
			line(`{"level":30,"msg":"a log in JSON"}`)
			line(`{"jsonrpc":"2.0","id":`)
			line("")
		}
	}
	switch odd {
	case "banner":
		line("server ready")
	case "long banner":
		line(strings.Repeat("=", 2*maxMessageBytes))
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var msg struct {
			ID     json.RawMessage
			Method string
			Params struct {
				ProtocolVersion, Cursor string
			}
		}
		_ = json.Unmarshal(lines.Bytes(), &msg)
		if odd == "ids as text" {
			msg.ID = fmt.Appendf(nil, "%q", msg.ID)
		}
		answer := func(result string) {
			stray()
			text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, msg.ID, result)
			switch odd {
			case "no version":
				text = fmt.Sprintf(`{"id":%s.0,"result":%s}`, msg.ID, result)
			case "error null":
				text = fmt.Sprintf(`{"jsonrpc":2.0,"error":null,"extra":1,"id":%s,"result":%s}`, msg.ID, result)
			case "a batch":
				text = `[{"jsonrpc":"2.0","method":"notifications/x"},` + text + `]`
			case "a mark":
				text = utf8BOM + text
			case "a prefix":
				text = "2026-11-29 [12:00:01] INFO: " + text
			case "two in one":
				text = `{"jsonrpc":"2.0","method":"notifications/x"}` + text
			case "a rest":
				text += " done {"
			case "echoes": // logs of what it gets and says, but for the secrets
				line("DEBUG <- " + lines.Text())
				line(`DEBUG -> {"id":` + string(msg.ID) + `,"result":"***"}`)
			case "indented":
				var indented bytes.Buffer
				_ = json.Indent(&indented, []byte(text), "", "  ")
				line("{ a: 1,")
				line(`{"level":`)
				text = strings.Replace(indented.String(), `"result"`, `"rows": [`+"\n"+`{"id":1,"result":{}}],`+"\r\n\n"+`"result"`, 1)
			case "half lines":
				_, _ = io.WriteString(out, text[:20])
				text = text[20:]
			}
			line(text)
			stray()
		}
		switch msg.Method {
		case methodInitialize:
			answer(`{"protocolVersion":"` + msg.Params.ProtocolVersion + `","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`)
		case methodListTools:
			next := ""
			switch {
			case odd == "same cursor":
				next = `,"nextCursor":"same"`
			case odd == "circle" && msg.Params.Cursor == "a":
				next = `,"nextCursor":"b"`
			case odd == "circle":
				next = `,"nextCursor":"a"`
			}
			tools := `{"name":"look","inputSchema":{"type":"object"}}`
			if odd == "bad tools" {
				next = `,"nextCursor":7`
				tools += `,5,{"name":7},{"name":"a","inputSchema":"none","annotations":[1]},{"name":"b","annotations":{"readOnlyHint":"no"},"description":[]}`
			}
			answer(`{"tools":[` + tools + `]` + next + `}`)
		case methodCall:
			if odd == "structured" {
				answer(`{"structuredContent":{"paid":true}}`)
			} else {
				answer(`{"content":[{"type":"text","text":"fine"}]}`)
			}
		}
	}
}

func TestOddServersAnswer(t *testing.T) {
	for odd, content := range oddities {
		t.Run(odd, func(t *testing.T) {
			t.Parallel()
			a := adapterOf(t, setupOf(t, stdioConfig(t, odd), manifest.Effect{}))
			for range 3 {
				got, err := a.Perform(t.Context(), callOf(t, "look", `{}`))
				require.NoError(t, err)
				require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
				require.JSONEq(t, content, at(t, got.Payload, "content"))
			}
		})
	}
}

// lineOf writes a message in a line.
func lineOf(m *message) string {
	said := map[string]json.RawMessage{"id": m.from, "params": m.params}
	order := []string{"id", "method", "params"}
	if m.method != "" {
		said["method"], _ = json.Marshal(m.method)
	} else {
		said["id"], said["result"] = fmt.Append(nil, m.id), m.result
		order = []string{"id", "result", "error"}
	}
	if m.fault != nil {
		said["error"], _ = json.Marshal(m.fault)
	}
	var line bytes.Buffer
	line.WriteString(`{"jsonrpc":"2.0"`)
	for _, name := range order {
		if said[name] != nil {
			fmt.Fprintf(&line, `,%q:`, name)
			_ = json.Compact(&line, said[name])
		}
	}
	line.WriteString("}")
	return line.String()
}

// allOf returns the messages that a program prints, in a line each.
func allOf(p *process, printed *bufio.Reader) (all string) {
	for r := (&reader{process: p, lines: printed}); ; {
		messages, err := r.next()
		if err != nil {
			return all
		}
		for _, message := range messages {
			all += lineOf(message) + "\n"
		}
	}
}

func TestLinesThatAreNoMessagesAreKept(t *testing.T) {
	const message = `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"
	p := &process{stderr: host.Setup{}.Tail(maxStderrBytes), eof: make(chan struct{})}
	printed := "ready\n\n" + message + `{"level":30,"msg":"a log"}` + "\n[1\n" + message + `{"jsonrpc":"2.0","id":2,"res`
	require.Equal(t, message+message, allOf(p, bufio.NewReaderSize(strings.NewReader(printed), 16)), "and not what was cut") //nolint:testifylint // lines
	said := p.stderr.String()
	for _, stray := range []string{`on stdout: "ready"`, `on stdout: "{\"level\":30`, `on stdout: "[1"`} {
		require.Contains(t, said, stray)
	}
}

// A message may have several lines. What comes between two whole ones was cut.
func TestMessagesOfSeveralLinesAreRead(t *testing.T) {
	const one, two = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"result":{"a":"{\\\"["}}`
	const parts = "{\"jsonrpc\":\n\"2.0\",\"id\":2,\n\r\n\t\"result\":{\n\"a\":\"{\\\\\\\"[\"}}\n"
	long := strings.Repeat("x", 20<<10)
	for printed, want := range map[string]string{
		parts: two, one + "\n" + parts + one + "\n": one + two + one, utf8BOM + parts: two, "[\n" + one + ",\n" + parts + "]\n" + one + "\n": one + two + one,
		parts[:30] + "\n" + one + "\n" + parts:                                       one + two,
		parts[:30] + "broken\n" + parts:                                              two,
		"[1\n{\n\"id\"\n" + one[:1] + one[17:] + "\n{\n" + parts:                     one + two,
		`{"jsonrpc":"2.0","id":` + "\n" + one[:1] + one[17:] + "\n" + parts:          one + two,
		parts[:30] + "\n}}\n" + parts:                                                two,
		"{\n\"level\":30\n}\n" + parts:                                               two,
		parts[:12] + strings.Repeat(" ", 16<<20) + "\n" + parts:                      two,
		parts[:12] + strings.Repeat(strings.Repeat(" ", 1<<10)+"\n", 17<<10) + parts: two,
		strings.Repeat("=", 40<<20) + "\n" + parts:                                   two,
		parts[:len(parts)-1]:                                                         "",
		"[1\n" + `{"id":1,"result":"` + long + `"}` + "\n" + parts:                   `{"jsonrpc":"2.0","id":1,"result":"` + long + `"}` + two,
	} {
		p := &process{stderr: host.Setup{}.Tail(maxStderrBytes), eof: make(chan struct{})}
		require.Equal(t, want, strings.ReplaceAll(allOf(p, bufio.NewReader(strings.NewReader(printed))), "\n", ""), "%.200q", printed)
	}
}

// One tool that cannot be used keeps nobody from the others.
func TestToolsThatCannotBeUsedAreLeftOut(t *testing.T) {
	good := *readTool([]byte(`{"name":"good","inputSchema":{"type":"object"}}`))
	for name, tool := range map[string]string{
		"no schema":          `{"name":"bad"}`,
		"null":               `{"name":"bad","inputSchema":null}`,
		"a list":             `{"name":"bad","inputSchema":[1]}`,
		"false":              `{"name":"bad","inputSchema":false}`,
		"lookahead":          `{"name":"bad","inputSchema":{"properties":{"q":{"pattern":"a(?!b)"}}}}`,
		"back reference":     `{"name":"bad","inputSchema":{"properties":{"q":{"pattern":"(a)\\1"}}}}`,
		"elsewhere":          `{"name":"bad","inputSchema":{"properties":{"q":{"$ref":"https://example.com/q.json"}}}}`,
		"nowhere":            `{"name":"bad","inputSchema":{"$ref":"#/$defs/none"}}`,
		"nothing but itself": `{"name":"bad","inputSchema":{"$ref":"#"}}`,
		"dynamic":            `{"name":"bad","inputSchema":{"properties":{"q":{"$dynamicRef":"#n"}}}}`,
		"another draft":      `{"name":"bad","inputSchema":{"$schema":"https://example.com/draft"}}`,
		"wrong type":         `{"name":"bad","inputSchema":{"type":"strng"}}`,
		"a key twice":        `{"name":"bad","inputSchema":{"type":"object","type":"object"}}`,
		"half a pair":        `{"name":"bad","description":"\ud800","inputSchema":{"type":"object"}}`,
		"too deep":           `{"name":"bad","inputSchema":` + strings.Repeat(`{"not":`, 70) + `{}` + strings.Repeat(`}`, 71),
		"a long name":        `{"name":"` + strings.Repeat("bad", 200) + `","inputSchema":{"type":"object"}}`,
		"control characters": `{"name":"bad\u007f","inputSchema":{"type":"object"}}`,
		"no name":            `{"inputSchema":{"type":"object"}}`,
		"a number":           `5`,
		"name is a number":   `{"name":5,"inputSchema":{"type":"object"}}`,
	} {
		bad := *readTool([]byte(tool))
		got, err := sectionsOf(t.Context(), "s", "shop", map[string]any{"command": []string{"s"}}, []Tool{bad, good})
		require.NoError(t, err, name)
		require.Len(t, got.Effects, 1, name)
		require.Contains(t, got.Effects, "shop.good", name)
		require.Equal(t, []string{"good"}, got.Caps["shop"].Params["tools"], name)
		require.Len(t, got.Warnings, 1, name)
		require.Contains(t, got.Warnings[0], " is left out: ", name)
		_, err = sectionsOf(t.Context(), "s", "shop", map[string]any{"command": []string{"s"}}, []Tool{bad})
		require.ErrorContains(t, err, "no tool can be used", name)
	}
}

// Of two tools that would be one effect the first is it.
func TestToolsThatWouldBeOneEffect(t *testing.T) {
	var tools []Tool
	for _, name := range []string{"a.b", "a/b", "Look", "look", "good"} {
		tools = append(tools, *readTool([]byte(`{"name":"` + name + `","inputSchema":{"type":"object"}}`)))
	}
	got, err := sectionsOf(t.Context(), "s", "shop", map[string]any{"command": []string{"s"}}, tools)
	require.NoError(t, err)
	require.Equal(t, []string{"a.b", "Look", "good"}, got.Caps["shop"].Params["tools"])
	require.Len(t, got.Effects, 3)
	require.Equal(t, []string{
		`tool "a/b" is left out: "a.b" is shop.a_b already: write an effect of another kind by hand, with config.tool`,
		`tool "look" is left out: "Look" is shop.look already: write an effect of another kind by hand, with config.tool`,
	}, got.Warnings)
}

// What a server says of a tool and cannot mean is not used, and the tool is.
func TestAnnotationsThatCannotBeMeantAreDropped(t *testing.T) {
	for said, of := range map[string]struct {
		class      string
		idempotent bool
		dropped    int
	}{
		`{"name":"t"}`:                                                                                         {manifest.ClassDestructive, false, 0},
		`{"name":"t","annotations":null}`:                                                                      {manifest.ClassDestructive, false, 0},
		`{"name":"t","annotations":[]}`:                                                                        {manifest.ClassDestructive, false, 0},
		`{"name":"t","annotations":{"readOnlyHint":true}}`:                                                     {manifest.ClassRead, true, 0},
		`{"name":"t","annotations":{"readOnlyHint":"yes"}}`:                                                    {manifest.ClassDestructive, false, 1},
		`{"name":"t","annotations":{"readOnlyHint":true,"idempotentHint":1}}`:                                  {manifest.ClassDestructive, false, 1},
		`{"name":"t","annotations":{"destructiveHint":false,"idempotentHint":true}}`:                           {manifest.ClassWrite, true, 0},
		`{"name":"t","annotations":{"destructiveHint":null,"title":5}}`:                                        {manifest.ClassDestructive, false, 0},
		`{"name":"t","annotations":"read only","description":5}`:                                               {manifest.ClassDestructive, false, 2},
		`{"name":"t","annotations":{"readOnlyHint":false},"description":{"text":"a"},"execution":"in a task"}`: {manifest.ClassDestructive, false, 1},
	} {
		got := readTool([]byte(said))
		require.NoError(t, got.Fault, said)
		require.Equal(t, of.class, got.Class, said)
		require.Equal(t, of.idempotent, got.Idempotent, said)
		require.Len(t, got.Dropped, of.dropped, said)
	}
}

// A line is a response also where its form is not, unless it may be a log.
func TestResponsesAreReadInWhateverForm(t *testing.T) {
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":"7","result":{"n":12345678901234567890.50}}`: `{"jsonrpc":"2.0","id":7,"result":{"n":12345678901234567890.50}}`,
		`{"jsonrpc":"2.0","id":7}`:                                                      `{"jsonrpc":"2.0","id":7,"result":null}`,
		`{"id":7,"error":"no"}`:                                                         `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":1.5,"message":[1]}}`:                   `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"{\"code\":1.5,\"message\":[1]}"}}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"m"},"result":{}}`:        `{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":7,"error":false,"result":{}}`:                            `{"jsonrpc":"2.0","id":7,"result":{}}`,
		`{"jsonrpc":"2.0","id":7,"method":null,"params":null,"result":{},"error":null}`: `{"jsonrpc":"2.0","id":7,"result":{}}`,
		`{"level":30,"id":7,"error":"a log"}`:                                           "", `{"id":7}`: "", `{"jsonrpc":"2.0","id":null,"error":{}}`: "", `{"jsonrpc":"2.0","id":7.5,"result":{}}`: "", `7`: "",
	} {
		got, _ := plain([]byte(text))
		if want == "" {
			require.Empty(t, got, text)
			continue
		}
		require.Len(t, got, 1, text)
		require.JSONEq(t, want, lineOf(got[0]), text)
	}
}

// A call that was done has not failed, whatever form its result has, and one that failed says so in any form.
func TestResultsAreReadInWhateverForm(t *testing.T) {
	const fine = `[{"type":"text","text":"fine"}]`
	for result, want := range map[string]struct{ content, structured string }{
		`{"content":` + fine + `,"structuredContent":[1]}`: {fine, "[1]"},
		`{"content":` + fine + `,"structuredContent":"x"}`: {fine, `"x"`},
		`{"structuredContent":{"paid":true}}`:              {"[]", `{"paid":true}`},
		`{"structuredContent":[1]}`:                        {"[]", "[1]"},
		`{}`:                                               {"[]", "null"},
	} {
		for isError, failed := range map[string]bool{
			"": false, "null": false, "false": false, `"false"`: false, `"False"`: false, "0": false, "0.0": false, `""`: false, "[]": false, "{}": false,
			"true": true, `"true"`: true, `"True"`: true, "1": true, `"yes"`: true, `"no such file"`: true, `{"code":1}`: true,
		} {
			text := result
			if isError != "" {
				text = strings.Replace(strings.Replace(result, "{", `{"isError":`+isError+`,`, 1), ",}", "}", 1)
			}
			got := answered([]byte(text))
			require.JSONEq(t, want.content, at(t, got.Payload, "content"), text)
			require.JSONEq(t, want.structured, at(t, got.Payload, "structured"), text)
			require.Equal(t, strconv.FormatBool(failed), at(t, got.Payload, "is_error"), text)
			require.Equal(t, map[bool]receipt.Status{true: receipt.StatusError, false: receipt.StatusOK}[failed], got.Status, text)
		}
	}
	for _, text := range []string{"null", `"fine"`, "[]", "7", `{"task":{"taskId":"t"}}`} {
		require.Equal(t, `"not_a_result"`, at(t, answered([]byte(text)).Payload, "code"), text)
	}
}

// What is among other text is a message only where that is plain.
func TestMessagesAreFoundAmongOtherText(t *testing.T) {
	const one, two = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"result":{"a":{"jsonrpc":"2.0","id":3,"result":{}}}}`
	const asks = `{"jsonrpc":"2.0","id":4,"method":"ping"}`
	for text, want := range map[string]struct {
		messages []string
		stray    string
	}{
		utf8BOM + one:                      {[]string{one}, ""},
		one + two + asks:                   {[]string{one, two, asks}, ""},
		one + "\n" + utf8BOM + two:         {[]string{one, two}, ""},
		"[ " + one + " ,\n7, " + two + "]": {[]string{one, two}, ""},
		"INFO: " + one:                     {[]string{one}, "INFO: "},
		"[12:00] x " + one + " y":          {[]string{one}, "[12:00] x y"},
		"5 true " + one:                    {[]string{one}, "5true"},
		"DEBUG " + asks:                    {nil, "DEBUG " + asks},
		`x {"id":1,"result":{}}`:           {nil, `x {"id":1,"result":{}}`},
		one + two[:20] + one:               {[]string{one}, two[:20] + one},
		"x " + two[:50]:                    {nil, "x " + two[:50]},
		two[:len(two)-1]:                   {nil, two[:len(two)-1]},
		`{"a":` + one:                      {nil, `{"a":` + one},
	} {
		messages, stray := plain([]byte(text))
		var got []string
		for _, message := range messages {
			got = append(got, lineOf(message))
		}
		require.Equal(t, want.messages, got, text)
		require.Equal(t, want.stray, string(stray), text)
	}
}

func FuzzPlain(f *testing.F) {
	f.Add([]byte(`[{"jsonrpc":"2.0","id":"7","result":{"a":[1]}},{"id":1,"error":{"code":"x"}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		messages, _ := plain(data)
		for _, m := range messages {
			_, err := jsonrpc.DecodeMessage([]byte(lineOf(m)))
			require.NoError(t, err, "%+v of %q", m, data)
		}
	})
}
