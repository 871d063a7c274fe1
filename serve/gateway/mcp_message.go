package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// The methods of MCP that mean something here. All others pass.
const (
	methodCall        = "tools/call"
	methodTools       = "tools/list"
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodDiscover    = "server/discover"
	methodCancelled   = "notifications/cancelled"
)

// mcpMessage is a message of MCP, a line.
type mcpMessage struct {
	line   []byte          // the message, without white space between its parts
	id     json.RawMessage // nil: a notification
	key    string          // the id, however it is written
	method string          // empty: a response
	params json.RawMessage
	result json.RawMessage // of a response
	fault  json.RawMessage // likewise: its error

	session string    // that it is of, over HTTP
	changed bool      // on its way: see addTasks
	call    *toolCall // what answers a request here; nil: its server does
}

// maxID is how many bytes the id of a message may have.
const maxID = 256

// errMessage says that a line cannot be judged, since others may read it in another way.
var errMessage = errors.New("not a message")

// readClient reads a message of the client. What a server may read in another way than this is refused: a key
// that comes twice, or in another case, and what is no single object.
func readClient(line []byte) (*mcpMessage, error) {
	if _, err := canon.FromJSON(line); err != nil { // also finds keys that come twice, at any depth
		return nil, fmt.Errorf("%w: %w", errMessage, err)
	}
	if _, err := keysOf(line, "jsonrpc", "id", "method", "params", "result", "error"); err != nil {
		return nil, err
	}
	return readServer(line)
}

// keysOf returns the items of an object. A key that differs from one of the names only by case is refused.
func keysOf(object []byte, names ...string) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("%w: want an object", errMessage)
	}
	for key := range fields { // order cannot show: each is a fault
		for _, name := range names {
			if key != name && strings.EqualFold(key, name) {
				return nil, fmt.Errorf("%w: want the key %q, not %.50q", errMessage, name, key)
			}
		}
	}
	return fields, nil
}

// readServer reads a message of the server.
func readServer(line []byte) (*mcpMessage, error) {
	var short bytes.Buffer
	var fields map[string]json.RawMessage
	if bytes.ContainsAny(line, "\r\n") { // its parts are written in lines as they came
		line = bytes.ReplaceAll(bytes.ReplaceAll(line, []byte("\r"), []byte(" ")), []byte("\n"), []byte(" "))
	}
	if json.Compact(&short, line) != nil || json.Unmarshal(line, &fields) != nil || fields == nil {
		return nil, errMessage
	}
	m := &mcpMessage{line: short.Bytes(), params: fields["params"], result: fields["result"], fault: fields["error"]}
	if method, is := fields["method"]; is {
		if err := json.Unmarshal(method, &m.method); err != nil || m.method == "" {
			return nil, fmt.Errorf("%w: the method is no text", errMessage)
		}
		if m.result != nil || m.fault != nil { // some would read a response
			return nil, fmt.Errorf("%w: a method, and a result or an error", errMessage)
		}
	}
	id, is := fields["id"]
	if !is {
		if m.method == "" {
			return nil, fmt.Errorf("%w: neither id nor method", errMessage)
		}
		return m, nil
	}
	m.id = id
	if m.key = idKey(id); m.key == "" {
		return nil, fmt.Errorf("%w: the id is neither a text nor a whole number", errMessage)
	}
	return m, nil
}

// with returns the line of a request, with another value of one of its params.
func (m *mcpMessage) with(param string, value json.RawMessage) []byte {
	params := m.params
	if len(params) == 0 {
		params = []byte("{}")
	}
	if value != nil {
		params = with(params, value, param)
	}
	id := ""
	if m.id != nil {
		id = fmt.Sprintf(`"id":%s,`, m.id)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0",%s"method":%s,"params":%s}`, id, quoted(m.method), params)
}

// idKey returns one form for all ways to write an id; empty: it is none.
func idKey(id json.RawMessage) string {
	var text string
	switch {
	case len(id) > maxID:
		return ""
	case json.Unmarshal(id, &text) == nil && id[0] == '"':
		return "t" + text
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err == nil {
		return "n" + strconv.FormatInt(n, 10)
	}
	return ""
}

// callsTool reports whether some server may take a method for that of a call.
func callsTool(method string) bool { return strings.EqualFold(strings.TrimSpace(method), methodCall) }

// mcpCall are the params of a call of a tool.
type mcpCall struct {
	tool      string
	arguments json.RawMessage            // as the client wrote them
	judged    canon.Raw                  // likewise, canonical
	meta      map[string]json.RawMessage // none of it is judged
	more      json.RawMessage            // all else, an object; empty: nothing
	use       string                     // the model's id of the call; empty: the client does not say
	key       string                     // equal calls have equal ones
	told      bool                       // it is made again after an offer; see offer
	task      bool                       // its client wants a task in place of the answer
}

// maxUse is how many bytes of a model's id of a call count.
const maxUse = 128

// readCall reads the params of a call of a server's tool. Tasks says that what it says of a task is for the gateway.
func readCall(server string, params json.RawMessage, tasks bool) (*mcpCall, error) {
	fields, err := keysOf(params, "name", "arguments", "_meta")
	if err != nil {
		return nil, err
	}
	c := &mcpCall{arguments: fields["arguments"]}
	if json.Unmarshal(fields["name"], &c.tool) != nil || c.tool == "" {
		return nil, fmt.Errorf("%w: the name of the tool is missing", errMessage)
	}
	if len(c.arguments) == 0 || string(c.arguments) == "null" {
		c.arguments = json.RawMessage("{}")
	}
	if c.judged, err = canon.FromJSON(c.arguments); err != nil || canon.NewReader(c.judged).Kind() != canon.KindMap {
		return nil, fmt.Errorf("%w: the arguments are no object", errMessage)
	}
	if meta := fields["_meta"]; len(meta) > 0 && json.Unmarshal(meta, &c.meta) != nil {
		return nil, fmt.Errorf("%w: _meta is no object", errMessage)
	}
	names := []string{"name", "arguments", "_meta"}
	if c.told = string(fields["requestState"]) == string(quoted(offerState)); c.told {
		names = append(names, "requestState", "inputResponses")
	}
	if c.task = tasks && fields["task"] != nil; c.task {
		names = append(names, "task")
	}
	for _, name := range names {
		delete(fields, name)
	}
	if len(fields) > 0 {
		if c.more, err = json.Marshal(fields); err != nil {
			return nil, err
		}
	}
	c.use = c.useID()
	c.key = digest(server, c.tool, string(c.judged), string(c.more))
	return c, nil
}

// useID returns the model's id of a call, where the client of a known agent says it. Those that Codex makes up
// itself begin with "exec-", and are new each time.
func (c *mcpCall) useID() (id string) {
	for _, name := range []string{"claudecode/toolUseId", "callId"} {
		if json.Unmarshal(c.meta[name], &id) == nil && id != "" && len(id) <= maxUse && !strings.HasPrefix(id, "exec-") {
			return id
		}
	}
	return ""
}

// stateless reports whether a call is of the protocol without sessions.
func (c *mcpCall) stateless() bool { return c.meta["io.modelcontextprotocol/protocolVersion"] != nil }

// digest returns the digest of texts, 32 hex digits.
func digest(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// takenBack returns the key of the id of the request that a message takes back; empty: it takes back none.
func (m *mcpMessage) takenBack() string {
	var of struct {
		ID json.RawMessage `json:"requestId"`
	}
	if m.method != methodCancelled || json.Unmarshal(m.params, &of) != nil {
		return ""
	}
	return idKey(of.ID)
}

// The bodies of messages that are written here.

func response(id json.RawMessage, part string, of []byte) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%q:%s}`, id, part, of)
}

// The codes of JSON-RPC that are answered here.
const (
	codeParse    = -32700
	codeRequest  = -32600
	codeMethod   = -32601
	codeParams   = -32602
	codeInternal = -32603
)

// fault returns a response that is an error of JSON-RPC.
func fault(id json.RawMessage, code int, text string) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	return response(id, "error", fmt.Appendf(nil, `{"code":%d,"message":%s}`, code, quoted(text)))
}

// toolError returns the result of a tool that failed, whose text the model reads.
func toolError(text string, stateless bool) []byte {
	kind := ""
	if stateless {
		kind = `"resultType":"complete",`
	}
	return fmt.Appendf(nil, `{%s"content":[{"type":"text","text":%s}],"isError":true}`, kind, quoted(text))
}

// encoded returns as JSON what is made of texts, numbers and JSON.
func encoded(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // of nothing else
	}
	return data
}

func quoted(text string) []byte { return encoded(text) }

// readable returns what people read of a result, and whether the tool says that it failed.
func readable(result json.RawMessage) (text string, failed bool) {
	var said struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	}
	_ = json.Unmarshal(result, &said) // as far as it has this form
	for _, part := range said.Content {
		text += part.Text
	}
	return shorten(text, maxText), said.IsError
}

func shorten(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "")
}
