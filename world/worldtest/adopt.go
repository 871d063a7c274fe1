package worldtest

import (
	"bytes"
	"context"
	"crypto/ed25519"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// approver is the seed of the key with which Adopt approves.
const approver = "worldtest's approver, whose key i"

// Adopt puts another manifest in force, as people do: it is proposed, shadowed,
// approved and applied. That needs a world whose manifest lists no approvers.
// contents are those that next names and the world may not have. After an error,
// such as one of the journal, it can be called again and goes on.
func Adopt(ctx context.Context, w *world.World, next *manifest.Manifest, contents map[manifest.Hash][]byte) error {
	const who = "worldtest"
	p, err := proposal(ctx, w, next, contents, who)
	if err != nil {
		return err
	}
	if p.Stage == governance.Proposed {
		if _, _, err := w.Shadow(ctx, p.N, world.ShadowConfig{}, who); err != nil {
			return err
		}
	}
	if p.Stage == governance.Shadowed {
		terms, err := w.Terms(p.N)
		if err != nil {
			return err
		}
		key := ed25519.NewKeyFromSeed([]byte(approver)[:ed25519.SeedSize])
		if _, err := w.Approve(ctx, p.N, terms, manifest.Sign(key, terms), who, ""); err != nil {
			return err
		}
	}
	_, _, err = w.Apply(ctx, p.N, who)
	return err
}

// Key returns the key of a person, or of a signer, who is known by a number.
func Key(who byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{who}, ed25519.SeedSize))
}

// Public returns the public key.
func Public(who byte) ed25519.PublicKey { return Key(who).Public().(ed25519.PublicKey) }

// ErrorOf returns the error of a call with two results.
func ErrorOf(results ...any) error {
	err, _ := results[len(results)-1].(error)
	return err
}

// proposal returns an open proposal of a manifest.
func proposal(ctx context.Context, w *world.World, next *manifest.Manifest, contents map[manifest.Hash][]byte, who string) (*governance.Proposal, error) {
	encoded, err := next.Encode()
	if err != nil {
		return nil, err
	}
	base := w.Status().Manifest
	find := func() *governance.Proposal {
		all, _ := w.Proposals()
		for _, p := range all {
			if p.Open() && p.Base == base && p.Candidate == canon.Sum(encoded) {
				return p
			}
		}
		return nil
	}
	if p := find(); p != nil {
		return p, nil
	}
	_, _, err = w.Propose(ctx, world.Proposal{Candidate: next, Contents: contents, Base: base, Actor: who, Reason: "a test"})
	return find(), err
}
