package worldctl

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/internal/sshkey"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// hintKey says where a key to sign with comes from.
const hintKey = "type --key FILE, with an SSH key of type ed25519; worldctl keys new --approver FILE makes one"

func newApproveCommand(c *cli) *cobra.Command {
	var key, reason string
	cmd := &cobra.Command{
		Use: "approve PROPOSAL --key FILE",
		RunE: func(cmd *cobra.Command, args []string) error {
			if key == "" {
				return usagef(fmt.Sprintf("worldctl approve %s --key FILE: FILE is an SSH key of type ed25519, worldctl keys new --approver FILE makes one", shellWord(args[0])),
					"an approval is signed, and no key was given")
			}
			return c.onProposal(args[0], func(lw *local.World, n uint64) error {
				return c.approve(cmd.Context(), lw, n, governance.Approval{Actor: c.by, Reason: reason}, key)
			})
		},
	}
	addKey(cmd, &key)
	addMessage(cmd, &reason)
	addActor(cmd, "does it")
	return cmd
}

// addKey adds the flag that names a key to sign with.
func addKey(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "key", "", "sign with the private key in this `FILE`: an SSH key of type ed25519")
}

// approve signs what a proposal's last report is about. a says who does it.
func (c *cli) approve(ctx context.Context, lw *local.World, n uint64, a governance.Approval, key string) error {
	terms, err := termsOf(lw, n)
	if err != nil {
		return err
	}
	if a.Signature, err = c.sign(key, terms); err != nil {
		return err
	}
	id, err := local.Change(lw, func(w *world.World) (journal.Seq, error) {
		return w.Approve(ctx, n, terms, a.Signature, a.Actor, a.Reason)
	})
	if err != nil {
		return err
	}
	return answer(c, "proposal", func(p *view.Proposal) {
		own := slices.IndexFunc(p.Approvals, func(a view.Approval) bool { return a.Record == id })
		fmt.Fprintf(c.stdout, "#%d %s is approved with the key of %s: %s\n", id, p.Proposal, nameOf(&p.Approvals[own].Signer), approvals(&p.ProposalLine))
		if p.Stage == governance.Approved {
			c.hintNext("worldctl apply %s", p.Proposal)
		}
		for _, what := range missing(p) {
			c.note("missing: %s", what)
		}
	})(recordsOf(lw).Proposal(ctx, n))
}

// termsOf returns what an approval of a proposal signs now.
func termsOf(lw *local.World, n uint64) (terms manifest.Terms, err error) {
	lw.View(func(w *world.Moment) { terms, err = w.Terms(n) })
	return terms, err
}

// sign shows terms and signs them with the key in a file.
func (c *cli) sign(file string, t manifest.Terms) (manifest.Signature, error) {
	c.note("to sign with %s:\n%s", file, bytes.TrimSpace(t.Statement()))
	key, err := c.approverKey(file)
	if err != nil {
		return manifest.Signature{}, err
	}
	return manifest.Sign(key, t), nil
}

// approverKey reads the private key of an approver. A key that needs a passphrase
// gets it from where the keyring's comes from, but who is at the terminal is asked
// for each of the two.
func (c *cli) approverKey(name string) (ed25519.PrivateKey, error) {
	data, err := file.Read(c.path(name), sshkey.MaxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("worldctl keys new --approver "+name+" makes one; or type --key with the file of an SSH key of type ed25519", "%w", err)
	}
	if err != nil {
		return nil, err
	}
	own := passphrase{file: c.passphrase.file}
	key, err := sshkey.ParsePrivate(data, func() ([]byte, error) {
		return c.once(&own, func() ([]byte, error) {
			return c.onTerminal(func(prompt prompter) ([]byte, error) { return prompt("passphrase of " + name + ": ") })
		})
	})
	if err != nil {
		err = fmt.Errorf("key %s: %w", name, err)
	}
	switch {
	case errors.Is(err, sshkey.ErrPublic):
		return nil, usagef("give the file of the private key: it has the same name without "+sshkey.PublicSuffix, "%w", err)
	case errors.Is(err, sshkey.ErrPassphrase):
		return nil, &fault{err: err, code: exitUsage, hint: hintPassphrase}
	case err == nil:
		return key, nil
	}
	if code, hint := judge(err); code == exitFailed {
		err = &fault{err: err, code: exitUsage, hint: cmp.Or(hint, hintKey)}
	}
	return nil, err
}
