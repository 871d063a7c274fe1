package source

import (
	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/manifest"
)

func (d *decoder) capability(_, n *yaml.Node) manifest.Cap {
	var c manifest.Cap
	d.mapping(n, fields{
		"type":    d.text(&c.Type),
		"params":  d.capParams(&c.Params),
		"budget":  d.budget(&c.Budget),
		"expires": d.moment(&c.Expires),
	})
	return c
}

// capParams decodes the params of every type; which of them a type has is for
// Validate to say.
func (d *decoder) capParams(p *manifest.CapParams) func(*yaml.Node) {
	return d.object(fields{
		"kinds":      d.texts(&p.Kinds),
		"schemes":    d.texts(&p.Schemes),
		"hosts":      d.texts(&p.Hosts),
		"ports":      d.numbers(&p.Ports),
		"methods":    d.texts(&p.Methods),
		"paths":      d.texts(&p.Paths),
		"providers":  d.texts(&p.Providers),
		"models":     d.texts(&p.Models),
		"max_tokens": d.count(&p.MaxTokens),
		"servers":    d.texts(&p.Servers),
		"tools":      d.texts(&p.Tools),
		"root":       d.text(&p.Root),
		"access":     d.texts(&p.Access),
		"programs":   d.texts(&p.Programs),
		"args":       d.texts(&p.Args),
		"max_bytes":  d.size(&p.MaxBytes),
	})
}
