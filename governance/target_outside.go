package governance

import (
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// OutsideTarget is the call of a tool that a program beside the world makes.
type OutsideTarget struct {
	Server string // as the program calls it
	Tool   string
}

// ParseOutside reads the config and the params of an outside effect. Config is empty, and params are
// what recorder.ToolRequest says. The error is a *CapError.
func ParseOutside(config, params canon.Raw) (*OutsideTarget, error) {
	if err := decodeConfig(config, &struct{}{}); err != nil {
		return nil, err
	}
	t := new(OutsideTarget)
	t.Server, _ = lookup[string](params, "server")
	if t.Tool, _ = lookup[string](params, "tool"); t.Tool == "" {
		return nil, capErrorf(CodeBadParams, "tool is missing")
	}
	return t, nil
}

// Allowed says which bound of a capability of type mcp t exceeds; nil: none.
func (t *OutsideTarget) Allowed(p *manifest.CapParams) *CapError {
	as := MCPTarget{Server: t.Server, Tool: t.Tool}
	return as.Allowed(p)
}

// outsideAdapter is the row of the adapter outside.
func outsideAdapter() adapter {
	return adapter{
		parse: func(config, params canon.Raw) (target, error) { return ParseOutside(config, params) },
		uses:  func(Unit) bool { return false }, // max_cost says what a call costs, where one does
		needs: func(config canon.Raw) (Needs, error) { return Needs{Roaming: true}, decodeConfig(config, &struct{}{}) },
	}
}
