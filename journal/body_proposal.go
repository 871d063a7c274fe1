package journal

import (
	"github.com/worldkernel/worldkernel/manifest"
)

// ManifestProposed is the payload of manifest.proposed: somebody asks for other
// rules. Proposals are numbered by their order in the journal.
type ManifestProposed struct {
	Version
	Base      Hash                `json:"base"` // the manifest in force
	Candidate Hash                `json:"candidate"`
	Actor     string              `json:"actor"` // the author
	Signature *manifest.Signature `json:"signature"`
	Reason    string              `json:"reason"`
}

// ManifestShadowed is the payload of manifest.shadowed: what a proposal would
// have done with the history before this record.
type ManifestShadowed struct {
	Version
	Proposal uint64 `json:"proposal"`
	Hash     Hash   `json:"report_hash"`
	Report   Data   `json:"report"` // a governance.Report
	Actor    string `json:"actor"`
}

// ManifestApproved is the payload of manifest.approved. What is signed is
// manifest.Terms; all of them are here, so that the record can be checked alone.
type ManifestApproved struct {
	Version
	Proposal  uint64             `json:"proposal"`
	World     string             `json:"world"`
	Base      Hash               `json:"base"`
	Candidate Hash               `json:"candidate"`
	Report    Hash               `json:"report_hash"`
	Signature manifest.Signature `json:"signature"`
	Actor     string             `json:"actor"`
	Reason    string             `json:"reason"`
}

// Terms returns the signed terms of an approval.
func (x *ManifestApproved) Terms() manifest.Terms {
	return manifest.Terms{World: x.World, Base: x.Base, Candidate: x.Candidate, Report: x.Report}
}

// ManifestRejected is the payload of manifest.rejected.
type ManifestRejected struct {
	Version
	Proposal uint64 `json:"proposal"`
	Actor    string `json:"actor"`
	Reason   string `json:"reason"`
}

// ManifestWithdrawn is the payload of manifest.withdrawn.
type ManifestWithdrawn struct {
	Version
	Proposal uint64 `json:"proposal"`
	Actor    string `json:"actor"`
	Reason   string `json:"reason"`
}

// Applied is the payload of manifest.applied: other rules are in force.
type Applied struct {
	Version
	Proposal uint64  `json:"proposal"`
	Manifest Hash    `json:"manifest"`
	Base     Hash    `json:"base"` // the manifest that was in force
	Actor    string  `json:"actor"`
	Kernel   string  `json:"kernel"` // what replay needs from here on, as in Created
	Engines  Engines `json:"engines"`
}

// Migrated is the payload of cell.migrated: the code of the cell's reducer has
// changed, and has taken over its state.
type Migrated struct {
	Version
	Cell  string `json:"cell"`
	N     uint64 `json:"n"`     // steps taken
	State Hash   `json:"state"` // of the new state
	Gas   uint64 `json:"gas"`
}
