package governance

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/manifest"
)

// capFaults returns the names in capabilities that no effect has: kinds of those of type
// any, and the tools and models of those of type mcp and llm, where the configs of all such
// effects fix theirs. A capability that no effect can use at all names nothing wrong.
func capFaults(m *manifest.Manifest) (out []RuleFault) {
	kinds := slices.Sorted(maps.Keys(m.Effects))
	tools, models := fixedNames(m)
	for _, name := range slices.Sorted(maps.Keys(m.Caps)) {
		c := m.Caps[name]
		check := func(param, what string, patterns, names []string) {
			for i, pattern := range patterns {
				if len(out) < maxRuleFaults && len(names) > 0 && !matchesOne(pattern, names) {
					msg := fmt.Sprintf("no %s matches %q%s", what, pattern, instead(pattern, names))
					out = append(out, RuleFault{
						manifest.Pointer("caps", name, "params", param, strconv.Itoa(i)), &PolicyError{Msg: msg},
					})
				}
			}
		}
		switch c.Type {
		case manifest.CapAny:
			check("kinds", "declared kind of effect", c.Params.Kinds, kinds)
		case manifest.CapMCP:
			check("tools", "tool of an effect", c.Params.Tools, tools)
		case manifest.CapLLM:
			check("models", "model of an effect", c.Params.Models, models)
		}
	}
	return out
}

// instead is manifest.Instead for a pattern, which may be a slip of another pattern.
func instead(pattern string, names []string) string {
	if strings.HasSuffix(pattern, ".*") {
		var patterns []string
		for _, begin := range newNames("", wordsOf(names...)).parts(false) {
			if strings.HasSuffix(begin, ".") {
				patterns = append(patterns, begin+"*")
			}
		}
		if like := manifest.Nearest(pattern, patterns); like != "" {
			return fmt.Sprintf(": did you mean %q?", like)
		}
	}
	return manifest.Instead(pattern, names)
}

// matchesOne reports whether a pattern covers one of names, which are sorted.
func matchesOne(pattern string, names []string) bool {
	begin := pattern
	if n := len(pattern); n > 0 && pattern[n-1] == '*' {
		begin = pattern[:n-1]
	}
	i, _ := slices.BinarySearch(names, begin)
	return i < len(names) && manifest.Match(pattern, names[i])
}

// fixedNames returns the tools and the models that the configs of effects fix, sorted; none
// where the params of one decide.
func fixedNames(m *manifest.Manifest) (tools, models []string) {
	openTool, openModel := false, false
	for _, e := range m.Effects { // order cannot show: sorted below
		switch e.Adapter {
		case manifest.CapMCP:
			t, err := ParseMCPConfig(e.Config)
			if openTool = openTool || err != nil || t.Tool == ""; !openTool {
				tools = append(tools, t.Tool)
			}
		case manifest.AdapterRelay:
			openModel = true
		case manifest.AdapterOutside:
			openTool = true
		case manifest.CapLLM:
			t, err := ParseLLM(e.Config, nil)
			if openModel = openModel || err != nil || t.Model == ""; !openModel {
				models = append(models, t.Model)
			}
		}
	}
	if openTool {
		tools = nil
	}
	if openModel {
		models = nil
	}
	slices.Sort(tools)
	slices.Sort(models)
	return slices.Compact(tools), slices.Compact(models)
}
