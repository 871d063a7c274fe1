package source

import (
	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/manifest"
)

func (d *decoder) capability(_, n *yaml.Node) manifest.Cap {
	var c manifest.Cap
	d.mapping(n, fields{
		"type":    d.text(&c.Type),
		"params":  d.object(d.fieldsOf(&c.Params, "max_bytes")), // which of them a type has is for Validate to say
		"budget":  d.budget(&c.Budget),
		"expires": d.moment(&c.Expires),
	})
	return c
}
