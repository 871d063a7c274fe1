package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// plain returns the messages that a text holds, each in one line as the SDK takes it, and what stands
// around them: a text without a brace before the first, say, or a log. A response may lack its version,
// have a text for an id, nothing beside that, or an error that is none of JSON-RPC's: it is one
// nevertheless, and whose id it has is not in doubt.
func plain(data []byte) (messages [][]byte, stray []byte) {
	for {
		data = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(data), []byte(utf8BOM)))
		if len(data) == 0 {
			return messages, stray
		}
		var value json.RawMessage
		d := json.NewDecoder(bytes.NewReader(data))
		if d.Decode(&value) != nil {
			begin := bytes.IndexByte(data, '{')
			if begin <= 0 { // a message that was cut: what is in it is none
				return messages, append(stray, data...)
			}
			stray, data = append(stray, data[:begin]...), data[begin:]
			continue
		}
		batch := []json.RawMessage{value}
		if value[0] == '[' {
			_ = json.Unmarshal(value, &batch) // it is one
		}
		before := len(messages)
		for _, one := range batch {
			if line := plainMessage(one, len(stray) > 0); line != nil {
				messages = append(messages, line)
			}
		}
		if len(messages) == before {
			stray = append(stray, value...)
		}
		data = data[d.InputOffset():]
	}
}

// plainMessage returns a message in one line; nil: it is none. What is not alone may be the log of one:
// it has to be a response with its version then.
func plainMessage(data []byte, logged bool) []byte {
	var said map[string]json.RawMessage
	if json.Unmarshal(data, &said) != nil || said["id"] == nil && said["method"] == nil {
		return nil
	}
	if logged && (said["method"] != nil || said["jsonrpc"] == nil) {
		return nil
	}
	if said["method"] == nil {
		return plainResponse(said)
	}
	var line bytes.Buffer
	if _, err := jsonrpc.DecodeMessage(bytes.Clone(data)); err != nil || json.Compact(&line, data) != nil {
		return nil
	}
	return line.Bytes()
}

// plainResponse writes a response anew; nil: it is none.
func plainResponse(said map[string]json.RawMessage) []byte {
	known := 0
	for _, name := range []string{"jsonrpc", "id", "result", "error"} {
		if said[name] != nil {
			known++
		}
	}
	if said["jsonrpc"] == nil && (known < len(said) || known < 2) { // a log, say
		return nil
	}
	id, err := strconv.ParseFloat(string(bytes.Trim(said["id"], `"`)), 64) // some servers answer under the text of a number
	if err != nil || id != math.Trunc(id) || math.Abs(id) > 1<<53 {
		return nil
	}
	var line bytes.Buffer
	fmt.Fprintf(&line, `{"jsonrpc":"2.0","id":%d,`, int64(id))
	part, of := "result", said["result"]
	if fault := said["error"]; fault != nil && string(fault) != "null" && string(fault) != "false" {
		part, of = "error", plainError(fault)
	} else if of == nil {
		of = json.RawMessage("null")
	}
	fmt.Fprintf(&line, `"%s":`, part)
	if json.Compact(&line, of) != nil {
		return nil
	}
	return append(line.Bytes(), '}')
}

// plainError returns an error as JSON-RPC has it.
func plainError(fault json.RawMessage) json.RawMessage {
	var said struct {
		Code, Message json.RawMessage
	}
	_ = json.Unmarshal(fault, &said)
	code := int64(jsonrpc.CodeInternalError)
	if json.Unmarshal(said.Code, &code) != nil {
		code = jsonrpc.CodeInternalError
	}
	message := ""
	if json.Unmarshal(said.Message, &message) != nil && json.Unmarshal(fault, &message) != nil {
		message = string(fault)
	}
	text, err := json.Marshal(map[string]any{"code": code, "message": message})
	if err != nil {
		return fault
	}
	return text
}
