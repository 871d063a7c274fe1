package source

import (
	"path"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/internal/sshkey"
	"github.com/worldkernel/worldkernel/manifest"
)

// governance decodes who can change the rules.
func (d *decoder) governance(to *manifest.Governance) func(*yaml.Node) {
	return func(n *yaml.Node) {
		taken := make(map[string]bool) // files
		d.mapping(n, fields{
			"approvals": d.count(&to.Approvals),
			"four_eyes": d.boolean(&to.FourEyes),
			"approvers": func(n *yaml.Node) {
				to.Approvers = listed(d, n, func(item *yaml.Node) manifest.Approver { return d.approver(item, taken) })
			},
		})
	}
}

// approver reads the key that an item names; taken has the files before it.
func (d *decoder) approver(n *yaml.Node, taken map[string]bool) manifest.Approver {
	file, data := d.file(n, sshkey.MaxFileBytes)
	if data == nil {
		return manifest.Approver{}
	}
	if taken[file] {
		d.refuse(n, "the key %q is listed already", file)
		return manifest.Approver{}
	}
	taken[file] = true
	key, _, err := sshkey.ParsePublic(data)
	if err != nil {
		d.refuse(n, "the key %q: %s", file, err)
		return manifest.Approver{}
	}
	return manifest.Approver{Name: strings.TrimSuffix(path.Base(file), ".pub"), File: file, Key: manifest.PublicKey(key)}
}
