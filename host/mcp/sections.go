package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/schema"
	"github.com/worldkernel/worldkernel/manifest"
)

// Sections are the parts of a world.yaml that the tools of a server come to.
type Sections struct {
	Effects  map[string]SectionEffect `yaml:"effects" json:"effects"`
	Caps     map[string]SectionCap    `yaml:"caps" json:"caps"`
	Policies []SectionPolicy          `yaml:"policies" json:"policies"`

	Warnings []string `yaml:"-" json:"warnings,omitempty"` // about schemas, and tools that are left out for theirs
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

// Import lists the tools of a server: at url, or started by command in dir.
// It makes an effect for each, whose class and idempotent are what the server's
// annotations say of it, and whose name begins with prefix; a capability that names
// them; and a policy that has a person approve each call. What a server calls
// harmless is its word: see AllowReads for who takes it.
func Import(ctx context.Context, dir, url string, command []string, prefix string) (*Sections, error) {
	server, config := url, map[string]any{"url": url}
	if url == "" {
		server, config = command[0], map[string]any{"command": command}
	}
	data, err := canon.Marshal(config)
	if err != nil {
		return nil, err
	}
	tools, err := Describe(ctx, host.Setup{Kind: "import", Config: data, Dir: dir})
	if err != nil {
		return nil, err
	}
	return sectionsOf(ctx, server, prefix, config, tools)
}

func sectionsOf(ctx context.Context, server, prefix string, config map[string]any, tools []Tool) (*Sections, error) {
	out := &Sections{Effects: make(map[string]SectionEffect, len(tools))}
	names := make([]string, 0, len(tools))
	for _, t := range tools {
		if ctx.Err() != nil { // a tool can take a second
			return nil, context.Cause(ctx)
		}
		kind := prefix + "." + effectName(t.Name)
		effect, notes, err := effectOf(kind, config, t)
		if other, taken := out.Effects[kind]; err == nil && taken {
			err = fmt.Errorf("%q is %s already: write an effect of another kind by hand, with config.tool", other.Config["tool"], kind)
		}
		if err != nil {
			out.Warnings = append(out.Warnings, fmt.Sprintf("tool %.100q is left out: %v", t.Name, err))
			continue
		}
		for _, note := range notes {
			out.Warnings = append(out.Warnings, fmt.Sprintf("tool %.100q: %s", t.Name, note))
		}
		names = append(names, t.Name)
		out.Effects[kind] = effect
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("mcp: no tool can be used: %s", append(out.Warnings, "the server lists none")[0])
	}
	out.Caps = map[string]SectionCap{prefix: {Type: manifest.CapMCP, Params: map[string][]string{"servers": {server}, "tools": names}}}
	out.Policies = []SectionPolicy{{
		Name: prefix + ": a person approves", Decide: manifest.DecideRequireApproval,
		When: fmt.Sprintf("intent.kind.startsWith(%q)", prefix+"."),
	}}
	return out, validate(manifest.Manifest{Caps: capOf(prefix, server, names...)})
}

// effectOf returns the effect that calls a tool, with what is to be said of it. The error says why
// no world.yaml could have it.
func effectOf(kind string, config map[string]any, t Tool) (effect SectionEffect, notes []string, err error) {
	if t.Fault != nil {
		return effect, nil, t.Fault
	}
	fixed := maps.Clone(config)
	fixed["tool"] = t.Name
	params, err := paramsOf(t)
	var growth string
	if err == nil {
		growth, err = growthOf(params)
	}
	if err != nil {
		return effect, nil, fmt.Errorf("its schema: %w", err)
	}
	if notes = t.Dropped; growth != "" {
		notes = append(slices.Clone(notes), "its schema: "+growth)
	}
	e := manifest.Effect{Adapter: manifest.CapMCP, Class: t.Class, Idempotent: t.Idempotent}
	if e.Config, err = canon.Marshal(fixed); err == nil {
		_, err = governance.ParseMCPConfig(e.Config)
	}
	if err != nil {
		return effect, nil, err
	}
	effect = SectionEffect{Adapter: e.Adapter, Params: params, Config: fixed, Class: e.Class, Idempotent: e.Idempotent}
	return effect, notes, validate(manifest.Manifest{Effects: map[string]manifest.Effect{kind: e}, Caps: capOf("tool", "server", t.Name)})
}

func capOf(name, server string, tools ...string) map[string]manifest.Cap {
	return map[string]manifest.Cap{name: {Type: manifest.CapMCP, Params: manifest.CapParams{Servers: []string{server}, Tools: tools}}}
}

// validate says why no manifest has such effects and capabilities, or nil.
func validate(m manifest.Manifest) error {
	m = m.WithDefaults()
	for _, f := range m.Validate() {
		if strings.HasPrefix(f.Path, "/effects") || strings.HasPrefix(f.Path, "/caps") {
			return fmt.Errorf("%s: %s", f.Path, f.Msg)
		}
	}
	return nil
}

// growthOf says why the params of an effect can cost much to check; "": they cannot.
func growthOf(params map[string]any) (string, error) {
	data, err := canon.Marshal(params)
	if err != nil {
		return "", err
	}
	text, err := canon.ToJSON(data)
	if err != nil {
		return "", err
	}
	s, err := schema.Compile(text)
	if err != nil {
		return "", err
	}
	return s.Growth(canon.MaxDepth - 2), nil
}

// paramsOf returns the JSON Schema of the params of an effect that calls a tool: its
// description is the tool's, and its arguments are as the server says, in today's words.
func paramsOf(t Tool) (map[string]any, error) {
	if len(t.Schema) == 0 {
		return nil, errors.New("the server says none")
	}
	decoded, err := canon.Decode(t.Schema)
	if err != nil {
		return nil, err
	}
	arguments, err := schema.Modernize(decoded)
	if err != nil {
		return nil, err
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
	if !slices.ContainsFunc(slices.Collect(maps.Values(s.Effects)), func(e SectionEffect) bool { return e.Class == manifest.ClassRead }) {
		return // a policy about none would be a fault
	}
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
