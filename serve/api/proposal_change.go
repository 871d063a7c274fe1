package api

import (
	"context"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
)

// ProposeRequest asks for other rules: those that a patch makes of the manifest in
// force.
type ProposeRequest struct {
	Amendment
	Reason    string     `json:"reason"`
	Signature *Signature `json:"signature"` // the author's, over base and candidate; nil: a name is all there is
}

// Signature is an Ed25519 signature that was made elsewhere.
type Signature struct {
	Key   manifest.PublicKey `json:"key"`
	Bytes []byte             `json:"signature"` // base64
}

// ApproveRequest approves a proposal, with a signature over its statement.
type ApproveRequest struct {
	Signature
	Reason string `json:"reason"`
}

// ReasonRequest says why.
type ReasonRequest struct {
	Reason string `json:"reason"`
}

// ShadowRequest says on how much of the history a proposal is run.
type ShadowRequest struct {
	From string      `json:"from"` // a moment; empty: see world.ShadowConfig
	Last journal.Seq `json:"last"` // the last snapshot that so many records follow
}

func propose(c *call, req *ProposeRequest) error {
	if len(req.Patch) == 0 {
		return badRequest("patch", "a proposal is a patch of the manifest in force")
	}
	patch, err := manifest.ParsePatchJSON(req.Patch)
	if err != nil {
		return err
	}
	p := world.Proposal{Base: patch.Base, Actor: c.actor(), Reason: req.Reason}
	if p.Contents, err = contentsOf(req.Contents); err != nil {
		return err
	}
	if s := req.Signature; s != nil {
		p.Signature = &manifest.Signature{Key: s.Key, Bytes: s.Bytes}
	}
	base, err := c.world.Manifest(c.world.Local.Status().Manifest)
	if err != nil {
		return err
	}
	if p.Candidate, err = patch.Apply(base); err != nil {
		return err
	}
	_, n, err := c.world.Local.Propose(c.Context(), p)
	if err != nil {
		return err
	}
	made, err := c.world.Proposal(c.Context(), n)
	if err != nil {
		return err
	}
	return c.created(c.link("proposals", made.Proposal), object{"proposal", made})
}

// contentsOf returns contents by their hashes.
func contentsOf(named map[string][]byte) (map[manifest.Hash][]byte, error) {
	contents := make(map[manifest.Hash][]byte, len(named))
	for name, content := range named { // order cannot show: a map is built from a map
		h, err := canon.ParseHash(name)
		if err != nil || canon.Sum(content) != h {
			return nil, badRequest("contents", "they stand under their SHA-256, 64 hex digits")
		}
		contents[h] = content
	}
	return contents, nil
}

func shadowProposal(c *call, req *ShadowRequest) error {
	if req.From != "" && req.Last != 0 {
		return badRequest("last", "from and last do not go together")
	}
	n, err := c.proposal()
	if err != nil {
		return err
	}
	cfg, err := c.world.ShadowFrom(req.From, req.Last)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), c.server.cfg.Limits.Shadow)
	defer cancel()
	id, r, err := c.world.Local.Shadow(ctx, n, cfg, c.actor())
	if err != nil {
		return err
	}
	migration, err := c.world.MigrationOf(ctx, r.Candidate)
	if err != nil {
		return err
	}
	return c.answer("shadow")(view.ShadowOf(n, id, r, migration))
}

// approveProposal takes a signature over the statement that showProposal shows.
func approveProposal(c *call, req *ApproveRequest) error {
	return c.change(func(w *world.World, n uint64) error {
		terms, err := w.Terms(n)
		if err != nil {
			return err
		}
		s := manifest.Signature{Key: req.Key, Bytes: req.Bytes}
		_, err = w.Approve(c.Context(), n, terms, s, c.actor(), req.Reason)
		return err
	})
}

// endProposal is the answer to requests that a proposal ends.
func endProposal(end func(w *world.World, ctx context.Context, n uint64, actor, reason string) (journal.Seq, error)) func(*call) error {
	return withBody(func(c *call, req *ReasonRequest) error {
		return c.change(func(w *world.World, n uint64) error {
			_, err := end(w, c.Context(), n, c.actor(), req.Reason)
			return err
		})
	})
}

// change changes the proposal that the path names and answers with what it is then.
func (c *call) change(how func(w *world.World, n uint64) error) error {
	n, err := c.proposal()
	if err == nil {
		err = c.world.Local.Update(func(w *world.World) error { return how(w, n) })
	}
	if err != nil {
		return err
	}
	return c.answer("proposal")(c.world.Proposal(c.Context(), n))
}

func applyProposal(c *call) error {
	if err := c.decode(&struct{}{}); err != nil {
		return err
	}
	n, err := c.proposal()
	if err != nil {
		return err
	}
	id, done, err := c.world.Local.ApplyTrusted(c.Context(), n, c.actor())
	if err != nil {
		return err
	}
	p, err := c.world.Proposal(c.Context(), n)
	if err != nil {
		return err
	}
	return c.ok(object{"apply", c.world.Applied(p, id, done)})
}
