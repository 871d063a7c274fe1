package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

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
	Schema      canon.Raw // JSON Schema of its arguments
}

// Describe asks the server of an effect for its tools, sorted by name. A server
// that does not say what a tool does is taken to mean the worst, as the
// protocol has it.
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
	var out []Tool
	for _, name := range slices.Sorted(maps.Keys(session.tools)) {
		tool := describe(session.tools[name])
		schema, err := json.Marshal(session.tools[name].InputSchema)
		if err == nil {
			tool.Schema, err = canon.FromJSON(schema)
		}
		if err != nil {
			return nil, fmt.Errorf("mcp: tool %s: its schema: %w", name, err)
		}
		out = append(out, tool)
	}
	return out, nil
}

// describe is Describe for one tool, without its schema.
func describe(t *mcp.Tool) Tool {
	tool := Tool{Name: t.Name, Description: t.Description, Class: manifest.ClassDestructive}
	switch hints := t.Annotations; {
	case hints == nil:
	case hints.ReadOnlyHint:
		tool.Class, tool.Idempotent = manifest.ClassRead, true
	default:
		tool.Idempotent = hints.IdempotentHint
		if hints.DestructiveHint != nil && !*hints.DestructiveHint {
			tool.Class = manifest.ClassWrite
		}
	}
	return tool
}
