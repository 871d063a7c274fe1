package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// utf8BOM may begin a text, and is none of it.
const utf8BOM = "\ufeff"

// The codes of JSON-RPC that are said or heard here.
const (
	codeNoMethod = -32601
	codeParams   = -32602
	codeInternal = -32603
)

// message is a message of a server.
type message struct {
	id             int64           // of a response
	from           json.RawMessage // the id of a request; nil: a notification
	method         string          // empty: it is a response
	params, result json.RawMessage
	fault          *rpcError // in the place of a result
}

// size returns how many bytes of a request are kept.
func (m *message) size() int { return len(m.from) + len(m.params) }

// rpcError is an error of JSON-RPC.
type rpcError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// name names the error in payloads.
func (e *rpcError) name() string { return fmt.Sprintf("jsonrpc_%d", e.Code) }

// plain returns the messages that a text holds, and what stands around them: a text without a brace before the first,
// say, or a log. A response may lack its version, have a text for an id, nothing beside that, or an error that is none of
// JSON-RPC's: it is one nevertheless, and whose id it has is not in doubt.
func plain(data []byte) (messages []*message, stray []byte) {
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
		before := len(messages)
		take := func(one json.RawMessage) error {
			if m := readMessage(one, len(stray) > 0); m != nil {
				messages = append(messages, m)
			}
			return nil
		}
		if value[0] == '[' {
			_ = EachOf(value, take) // it is an array
		} else {
			_ = take(value)
		}
		if len(messages) == before {
			stray = append(stray, value...)
		}
		data = data[d.InputOffset():]
	}
}

// EachOf calls a function with each element of an array, until it returns an error. A slice of many short elements would be
// many times as large as the array.
func EachOf(array json.RawMessage, take func(json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(array))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return cmp.Or(err, errors.New("it is no array"))
	}
	for d.More() {
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			return err
		}
		if err := take(one); err != nil {
			return err
		}
	}
	return nil
}

// readMessage reads a message; nil: it is none. What is not alone may be the log of one:
// it has to be a response with its version then.
func readMessage(data []byte, logged bool) *message {
	var said map[string]json.RawMessage
	if data[0] != '{' || json.Unmarshal(data, &said) != nil {
		return nil
	}
	if string(said["method"]) == "null" { // some write all members that any message has
		delete(said, "method")
	}
	if logged && (said["method"] != nil || said["jsonrpc"] == nil) {
		return nil
	}
	if said["method"] == nil {
		return readResponse(said)
	}
	m := &message{params: said["params"], from: said["id"]}
	var id any
	if string(said["jsonrpc"]) != `"2.0"` || json.Unmarshal(said["method"], &m.method) != nil || m.method == "" {
		return nil
	}
	if m.from != nil {
		_ = json.Unmarshal(m.from, &id) // it is JSON
		switch id.(type) {
		case string, float64:
		default:
			return nil
		}
	}
	return m
}

// readResponse reads a response; nil: it is none.
func readResponse(said map[string]json.RawMessage) *message {
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
	m := &message{id: int64(id), result: said["result"]}
	if fault := said["error"]; fault != nil && string(fault) != "null" && string(fault) != "false" {
		m.result, m.fault = nil, readFault(fault)
	} else if m.result == nil {
		m.result = json.RawMessage("null")
	}
	return m
}

// readFault reads an error in whatever form.
func readFault(fault json.RawMessage) *rpcError {
	var said struct {
		Code, Message json.RawMessage
	}
	_ = json.Unmarshal(fault, &said)
	e := new(rpcError)
	if json.Unmarshal(said.Code, &e.Code) != nil {
		e.Code = codeInternal
	}
	if json.Unmarshal(said.Message, &e.Message) != nil && json.Unmarshal(fault, &e.Message) != nil {
		e.Message = string(fault)
	}
	return e
}
