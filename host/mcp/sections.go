package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// Sections are the parts of a world.yaml that the tools of a server come to.
type Sections struct {
	Effects  map[string]SectionEffect `yaml:"effects" json:"effects"`
	Caps     map[string]SectionCap    `yaml:"caps" json:"caps"`
	Policies []SectionPolicy          `yaml:"policies" json:"policies"`
}

// What is in Sections.
type (
	// SectionEffect is an effect.
	SectionEffect struct {
		Adapter    string         `yaml:"adapter" json:"adapter"`
		Params     map[string]any `yaml:"params" json:"params"` // a JSON Schema
		Config     map[string]any `yaml:"config,flow" json:"config"`
		Class      string         `yaml:"class" json:"class"`
		Idempotent bool           `yaml:"idempotent,omitempty" json:"idempotent"`
	}
	// SectionCap is a capability.
	SectionCap struct {
		Type   string              `yaml:"type" json:"type"`
		Params map[string][]string `yaml:"params" json:"params"`
	}
	// SectionPolicy is a policy.
	SectionPolicy struct {
		Name   string `yaml:"name" json:"name"`
		When   string `yaml:"when" json:"when"`
		Decide string `yaml:"decide" json:"decide"`
	}
)

// Import asks a server for its tools: the one at url, or the one that command starts.
// It makes an effect for each, whose class and idempotent are what the server's
// annotations say of it, and whose name begins with prefix; a capability that names
// them; and a policy that has a person approve each call. What a server calls
// harmless is its word: see AllowReads for who takes it.
func Import(ctx context.Context, url string, command []string, prefix string) (*Sections, error) {
	server, config := url, map[string]any{"url": url}
	if url == "" {
		server, config = command[0], map[string]any{"command": command}
	}
	data, err := canon.Marshal(config)
	if err != nil {
		return nil, err
	}
	tools, err := Describe(ctx, host.Setup{Kind: "import", Config: data, Dir: "."})
	if err != nil {
		return nil, err
	}
	return sectionsOf(server, prefix, config, tools)
}

// ErrSameName says that two tools of a server would be one effect.
var ErrSameName = errors.New("two tools would be one effect")

func sectionsOf(server, prefix string, config map[string]any, tools []Tool) (*Sections, error) {
	effects := make(map[string]SectionEffect, len(tools))
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
		kind := prefix + "." + effectName(t.Name)
		if other, taken := effects[kind]; taken {
			return nil, fmt.Errorf("mcp: %w: %q and %q are %s", ErrSameName, other.Config["tool"], t.Name, kind)
		}
		fixed := map[string]any{"tool": t.Name}
		for key, value := range config {
			fixed[key] = value
		}
		params, err := paramsOf(t)
		if err != nil {
			return nil, fmt.Errorf("mcp: tool %s: its schema: %w", t.Name, err)
		}
		effects[kind] = SectionEffect{
			Adapter: manifest.CapMCP, Params: params, Config: fixed, Class: t.Class, Idempotent: t.Idempotent,
		}
	}
	return &Sections{
		Effects: effects,
		Caps:    map[string]SectionCap{prefix: {Type: manifest.CapMCP, Params: map[string][]string{"servers": {server}, "tools": names}}},
		Policies: []SectionPolicy{{
			Name: prefix + ": a person approves", Decide: manifest.DecideRequireApproval,
			When: fmt.Sprintf("intent.kind.startsWith(%q)", prefix+"."),
		}},
	}, nil
}

// paramsOf returns the JSON Schema of the params of an effect that calls a tool: its
// description is the tool's, and its arguments are as the server says.
func paramsOf(t Tool) (map[string]any, error) {
	decoded, err := canon.Decode(t.Schema)
	if err != nil {
		return nil, err
	}
	arguments, ok := decoded.(map[string]any)
	if !ok {
		return nil, errors.New("it is no JSON object")
	}
	if text, err := canon.ToJSON(t.Schema); err != nil {
		return nil, err
	} else if arguments["$id"] == nil && bytes.Contains(text, []byte(`"$ref"`)) {
		arguments["$id"] = "arguments" // so that what it refers to is its own
	}
	params := map[string]any{"type": "object", "properties": map[string]any{"arguments": arguments}}
	if t.Description != "" {
		params["description"] = t.Description
	}
	if required, ok := arguments["required"].([]any); ok && len(required) > 0 {
		params["required"] = []any{"arguments"}
	}
	return params, nil
}

// AllowReads takes the server at its word: what it says only reads is allowed, and
// a person approves the rest. prefix is that of Import.
func (s *Sections) AllowReads(prefix string) {
	when := func(class string) string {
		return fmt.Sprintf("intent.kind.startsWith(%q) && intent.class %s %q", prefix+".", class, manifest.ClassRead)
	}
	s.Policies = []SectionPolicy{
		{Name: prefix + ": what only reads, as the server says", When: when("=="), Decide: manifest.DecideAllow},
		{Name: prefix + ": a person approves the rest", When: when("!="), Decide: manifest.DecideRequireApproval},
	}
}

// effectName makes the name of a tool one of an effect.
func effectName(tool string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, strings.ToLower(tool))
}
