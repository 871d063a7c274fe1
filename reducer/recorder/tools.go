package recorder

import (
	"maps"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/reducer"
)

// MCPCall is the kind of the effect that the call of a tool asks for. Its params are the ToolRequest.
const MCPCall = "mcp.call"

// OwnTool is the kind of the effect that a tool of the agent's own asks for, such as Bash, of an agent with hooks. Its
// params are the ToolRequest.
const OwnTool = "tool.call"

// MaxPins is how many tools a session pins. Tools beyond count as changed.
const MaxPins = 1_000

// ToolRequest is the data of Called and the params of MCPCall and OwnTool: what policies see of a call, and the
// call itself.
type ToolRequest struct {
	Ask         string       `cbor:"ask"`          // the tag of the intent, unique in the session
	Incarnation uint64       `cbor:"incarnation"`  // in which it was called
	Principal   string       `cbor:"principal"`    // who has started the agent
	Server      string       `cbor:"server"`       // as the agent's client calls it; empty: the tool is the agent's own
	Tool        string       `cbor:"tool"`         // as the server calls it
	Arguments   reducer.Data `cbor:"arguments"`    // a map
	More        []byte       `cbor:"more"`         // JSON: what else the call says, such as answers of a person; empty: nothing
	ToolUseID   string       `cbor:"tool_use_id"`  // as the model calls it; empty: the client does not say
	ToolHash    string       `cbor:"tool_hash"`    // of what the server says of the tool; empty: it was not listed
	ToolChanged bool         `cbor:"tool_changed"` // that is other than before
	Before      string       `cbor:"before"`       // SHA-256 of the file that a tool of the agent's own is about to write; empty: it writes none, or there is none yet
}

// Name returns the tool's name: SERVER/TOOL of a server's.
func (r *ToolRequest) Name() string { return strings.TrimPrefix(r.Server+"/"+r.Tool, "/") }

// ToolAnswer is the payload of a receipt of MCPCall or OwnTool.
type ToolAnswer struct {
	Result  []byte `cbor:"result"`   // JSON as the server wrote it; empty: it has answered with an error
	Error   []byte `cbor:"error"`    // likewise, of JSON-RPC
	IsError bool   `cbor:"is_error"` // the tool says that it failed
	Text    string `cbor:"text"`     // what people read of it, shortened
	Late    bool   `cbor:"late"`     // no hook has told it: it is what the agent has told the model
}

// Given reports whether it is what a server or an agent has answered: a person may say that something else came of a call.
func (a *ToolAnswer) Given() bool { return len(a.Result)+len(a.Error) > 0 }

// Says returns the answer's text for people, or the server's JSON if it has no text.
func (a *ToolAnswer) Says() string {
	if a.Text != "" {
		return a.Text
	}
	return string(a.Result) + string(a.Error)
}

// Listing is the data of Listed: a description that a server gives of itself, new in this session.
type Listing struct {
	Server  string            `cbor:"server"`
	Method  string            `cbor:"method"`  // of the request: tools/list, or another that only describes
	Params  string            `cbor:"params"`  // likewise: canonical JSON without what differs each time
	Result  []byte            `cbor:"result"`  // JSON as the server wrote it
	Tools   map[string]string `cbor:"tools"`   // the hash of each; of tools/list only
	Changed []string          `cbor:"changed"` // tools that are other than before
}

// Pins are the tools of a server.
type Pins struct {
	Tick  uint64            `cbor:"tick"`  // when the last was pinned
	Tools map[string]string `cbor:"tools"` // hashes, by name
}

// Change names a tool under way, and the hash of its new description.
type Change struct {
	Server string `cbor:"server"`
	Tool   string `cbor:"tool"`
	Hash   string `cbor:"hash"`
}

// call notes a call of a changed tool: if it is permitted, the tool is pinned anew.
func (s Session) call(r *ToolRequest) Session {
	if !r.ToolChanged || r.ToolHash == "" || len(s.Changed) >= MaxPins {
		return s
	}
	s.Changed = with(s.Changed, r.Ask, Change{Server: r.Server, Tool: r.Tool, Hash: r.ToolHash})
	return s
}

// answer counts what came of a call.
func (s Session) answer(r *reducer.Receipt, now uint64) Session {
	switch r.Status {
	case "ok":
		s.Ran++
	case "denied":
		s.Denied++
	default:
		s.Failed++
	}
	c, changed := s.Changed[r.Tag]
	if !changed {
		return s
	}
	s.Changed = maps.Clone(s.Changed)
	delete(s.Changed, r.Tag)
	if r.Status == "ok" {
		s.Pins = pinned(s.Pins, c.Server, map[string]string{c.Tool: c.Hash}, now)
	}
	return s
}

// list pins tools that were never listed before, in no session.
func (s Session) list(l *Listing, now uint64) Session {
	fresh := maps.Clone(l.Tools)
	maps.DeleteFunc(fresh, func(name, _ string) bool {
		_, is := s.Pins[l.Server].Tools[name]
		return is || slices.Contains(l.Changed, name)
	})
	if len(fresh) > 0 {
		s.Pins = pinned(s.Pins, l.Server, fresh, now)
	}
	return s
}

// pinned returns pins with tools, whatever they were pinned to.
func pinned(all map[string]Pins, server string, tools map[string]string, now uint64) map[string]Pins {
	n := 0
	for _, p := range all { // order cannot show: a sum
		n += len(p.Tools)
	}
	next := make(map[string]string)
	maps.Copy(next, all[server].Tools)
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if _, is := next[name]; !is && n >= MaxPins {
			continue
		} else if !is {
			n++
		}
		next[name] = tools[name]
	}
	return with(all, server, Pins{Tick: now, Tools: next})
}

// with returns a map with another value, and leaves the map as it is: it is of a state before.
func with[V any](of map[string]V, name string, value V) map[string]V {
	next := make(map[string]V, len(of)+1)
	maps.Copy(next, of)
	next[name] = value
	return next
}
