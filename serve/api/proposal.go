package api

import (
	"github.com/worldkernel/worldkernel/show/view"
)

// Proposals is a page of proposals, from the oldest.
type Proposals struct {
	Schema    string              `json:"schema"`
	Proposals []view.ProposalLine `json:"proposals"`
	Next      *string             `json:"next"` // the path of what comes after it; null: nothing does
}

func listProposals(c *call) error {
	closed, err := c.flag("all")
	if err != nil {
		return err
	}
	out := Proposals{Schema: view.SchemaOf("proposals")}
	out.Proposals, out.Next, err = pageOf(c, c.world.Proposals(closed), func(l *view.ProposalLine) uint64 { return l.N })
	if err != nil {
		return err
	}
	return c.ok(out)
}

// proposal returns the number of the proposal that the path names.
func (c *call) proposal() (uint64, error) { return view.ParseProposal(c.PathValue("n")) }

func showProposal(c *call) error {
	n, err := c.proposal()
	if err != nil {
		return err
	}
	return c.answer("proposal")(c.world.Proposal(c.Context(), n))
}
