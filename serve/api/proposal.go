package api

import (
	"github.com/worldkernel/worldkernel/show/view"
)

// listProposals answers with a page of proposals, from the oldest.
func listProposals(c *call) error {
	closed, err := c.flag("all")
	if err != nil {
		return err
	}
	all := c.world.Proposals(closed)
	page, next := pageOf(c, all, func(i int) uint64 { return all[i].N })
	return c.list("proposals", "proposals", page, next, nil)
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
