package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// Tool is what a server says of one of its tools.
type Tool struct {
	Name        string
	Description string
	Class       string    // manifest.ClassRead, ClassWrite or ClassDestructive
	Idempotent  bool      // calling it twice does what calling it once does
	Schema      canon.Raw // JSON Schema of its arguments; empty: the server has none

	Dropped []string // what the server says of it and cannot mean
	Fault   error    // why nothing that the server says of it can be read; nil: it can

	task string // see taskRequired
}

// errNoName says that a server lists something that cannot be called.
var errNoName = errors.New("it has no name")

// Describe asks the server of an effect for its tools, sorted by name. A server
// that does not say what a tool does is taken to mean the worst, as the
// protocol has it. Tools that have no name are the first.
func Describe(ctx context.Context, s host.Setup) ([]Tool, error) {
	p := &pool{servers: map[string]*server{}}
	sv, err := p.get(s)
	if err != nil {
		return nil, err
	}
	defer p.put(sv)
	session, err := sv.session(ctx)
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	out := slices.Clone(session.unnamed)
	for _, name := range slices.Sorted(maps.Keys(session.tools)) {
		out = append(out, *session.tools[name])
	}
	return out, nil
}

// readTool reads what a server says of a tool, whatever it says of others.
func readTool(data json.RawMessage) *Tool {
	tool := &Tool{Class: manifest.ClassDestructive}
	said, err := canon.FromJSON(data)
	if err != nil {
		var named struct{ Name string }
		_ = json.Unmarshal(data, &named)
		tool.Name, tool.Fault = named.Name, err
		return tool
	}
	tool.Name = textOf(item(said, "name"))
	if tool.Name == "" {
		tool.Fault = errNoName
	}
	tool.Schema, _ = canon.Lookup(said, "inputSchema")
	tool.task = textOf(item(item(said, "execution"), "taskSupport"))
	switch description := item(said, "description"); canon.NewReader(description).Kind() {
	case canon.KindText:
		tool.Description = textOf(description)
	case canon.KindNull:
	default:
		tool.Dropped = append(tool.Dropped, "its description is no text")
	}
	if err := tool.annotate(item(said, "annotations")); err != nil {
		tool.Class, tool.Idempotent = manifest.ClassDestructive, false
		tool.Dropped = append(tool.Dropped, err.Error())
	}
	return tool
}

// annotate takes the hints of a server about its tool.
func (t *Tool) annotate(hints canon.Raw) error {
	switch r := canon.NewReader(hints); {
	case r.Null() || r.Kind() == canon.KindArray && r.Array() == 0: // the latter as PHP has no hints
		return nil
	case r.Kind() != canon.KindMap:
		return errors.New("its annotations are no JSON object")
	}
	is := map[string]bool{"readOnlyHint": false, "idempotentHint": false, "destructiveHint": true}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		switch r := canon.NewReader(item(hints, name)); {
		case r.Null():
		case r.Kind() == canon.KindBool:
			is[name] = r.Bool()
		default:
			return fmt.Errorf("its annotations are not used, since %s is neither true nor false", name)
		}
	}
	if is["readOnlyHint"] {
		t.Class, t.Idempotent = manifest.ClassRead, true
		return nil
	}
	t.Idempotent = is["idempotentHint"]
	if !is["destructiveHint"] {
		t.Class = manifest.ClassWrite
	}
	return nil
}
