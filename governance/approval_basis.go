package governance

import (
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// ApprovalBasis returns digests of what a manifest says about an effect that a person is asked about:
// its declaration, its capability, and those of the rules that are policies. Each is the
// SHA-256 of canonical CBOR: of the effect as it stands in the manifest, of the capability's
// name and what stands under it, and of the list of the policies, without their names. What
// the manifest does not have has none.
func ApprovalBasis(m *manifest.Manifest, kind, capability string, rules []string) (seen receipt.ApprovalBasis) {
	if e, ok := m.Effects[kind]; ok {
		seen.Effect = digest(&e)
	}
	if c, ok := m.Caps[capability]; ok {
		seen.Cap = digest(struct {
			_    struct{} `cbor:",toarray"`
			Name string
			Cap  manifest.Cap
		}{Name: capability, Cap: c})
	}
	type policy struct {
		_            struct{} `cbor:",toarray"`
		When, Decide string
	}
	named := make(map[string]bool, len(rules))
	for _, rule := range rules {
		named[rule] = true
	}
	var decided []policy
	for i := range m.Policies {
		if p := &m.Policies[i]; named[p.Name] {
			decided = append(decided, policy{When: p.When, Decide: p.Decide})
		}
	}
	if len(decided) > 0 {
		seen.Rules = digest(decided)
	}
	return seen
}

func digest(v any) receipt.Hash {
	data, err := canon.Marshal(v)
	if err != nil {
		panic("governance: part of a manifest has no canonical form: " + err.Error()) // the manifest has one
	}
	return canon.Sum(data)
}
