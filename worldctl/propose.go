package worldctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// proposeFlags are a change of the rules as a person types it.
type proposeFlags struct {
	name   string // of a manifest; empty: the world.yaml in the world's directory
	patch  string // a file, in the place of name
	reason string
	key    string // a file; empty: the author does not sign
}

func newProposeCommand(c *cli) *cobra.Command {
	var x proposeFlags
	cmd := &cobra.Command{
		Use: "propose [FILE]",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if x.name = args[0]; x.patch != "" {
					return usagef("type one of them", "a manifest and a patch do not go together")
				}
			}
			return c.with(func(lw *local.World) error { return c.propose(cmd.Context(), lw, &x) })
		},
	}
	cmd.Flags().StringVar(&x.patch, "patch", "", "propose what this `FILE` makes of the manifest in force")
	addMessage(cmd, &x.reason)
	addKey(cmd, &x.key)
	addActor(cmd, "does it")
	return cmd
}

func (c *cli) propose(ctx context.Context, lw *local.World, x *proposeFlags) error {
	name := cmp.Or(x.patch, x.name)
	if name == "" && (c.placed != nil || c.origin.Stored) {
		return usagef("worldctl propose FILE", "a world in a store has no %s beside it", local.ManifestFile)
	}
	name = cmp.Or(name, filepath.Join(lw.Dir(), local.ManifestFile))
	change, err := c.readCandidate(lw, name, x.patch != "")
	if err != nil {
		return unread(err, name)
	}
	return c.proposeChange(ctx, lw, x, name, change)
}

// proposeChange proposes what a change, which a person named so, makes of the rules.
func (c *cli) proposeChange(ctx context.Context, lw *local.World, x *proposeFlags, name string, change world.Amendment) error {
	p := world.Proposal{Actor: c.by, Reason: x.reason}
	var f governance.InForce
	lw.View(func(w *world.Moment) { _, f = w.Proposals() })
	p.Base = f.Manifest
	var err error
	if p.Candidate, p.Contents, err = change(inForce(lw)); err != nil {
		return unread(err, name)
	}
	candidate, err := view.EditionOf(name, p.Candidate, nil)
	if err != nil {
		return err
	}
	if lw.View(func(w *world.Moment) { err = w.ProposedAlready(candidate.Hash) }); err != nil {
		return err
	}
	if x.key != "" {
		s, err := c.sign(x.key, manifest.Terms{World: f.World, Base: f.Manifest, Candidate: candidate.Hash})
		if err != nil {
			return err
		}
		p.Signature = &s
	}
	_, n, err := lw.Propose(ctx, p)
	if err != nil {
		return notProposed(err, name)
	}
	ofFile := x.patch == "" && c.isFile(name)
	if ofFile {
		c.warnOf(name, lw.Dir())
	}
	return answer(c, "proposal", func(a *view.Proposal) {
		if !ofFile {
			c.warnOfCandidate(a)
		}
		fmt.Fprintf(c.stdout, "#%d %s is proposed by %s: %smanifest %s, in the place of %s\n",
			a.Record, a.Proposal, authorship(&a.ProposalLine), newVersion(a), a.Candidate, a.Base)
		c.showChanges(&a.ManifestChanges, a.Code)
		c.hintNext("worldctl shadow %s says what it would have done", a.Proposal)
	})(recordsOf(lw).Proposal(ctx, n))
}

// readCandidate reads the manifest, or the patch, that a person named.
func (c *cli) readCandidate(lw *local.World, name string, patch bool) (world.Amendment, error) {
	info, err := os.Stat(c.path(name))
	if err == nil && info.IsDir() {
		name = filepath.Join(name, local.ManifestFile)
	}
	if patch || c.isFile(name) {
		return c.readAmendment(name)
	}
	e, err := editionIn(lw, name)
	if err != nil {
		return nil, err
	}
	return func(*manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
		return e.Manifest, nil, nil
	}, nil
}

// unread makes what is wrong with a file that was to be proposed an error of who
// typed it.
func unread(err error, name string) error {
	if errors.Is(err, manifest.ErrOtherBase) {
		return &fault{
			err: err, code: exitConflict,
			hint: "worldctl manifest show is what is in force: make the change again there, as a FILE, then worldctl diff head FILE --patch prints the patch",
		}
	}
	code, hint := judge(err)
	if code != exitFailed {
		return err
	}
	return &fault{err: err, code: exitUsage, hint: cmp.Or(hint, "check "+name)}
}

// noEngine says what to do about a candidate that names an engine which this program does
// not have.
func noEngine(err error) error {
	if errors.As(err, new(*manifest.MissingEngineError)) {
		return &fault{
			err: err, code: exitUsage,
			hint: "name one of these, or leave the engines as they are: worldctl version lists them",
		}
	}
	return err
}

// notProposed says what to do about a candidate that the world does not take.
func notProposed(err error, name string) error {
	switch {
	case errors.As(err, new(*manifest.MissingEngineError)):
		return noEngine(err)
	case errors.Is(err, governance.ErrNoChange):
		err = fmt.Errorf("nothing to propose: %w", err)
	case errors.Is(err, world.ErrCandidate) && !errors.Is(err, journal.ErrNotFound) && hintOf(err) == "":
		return hinted(err, "correct %s, then propose it again", name)
	}
	return advised(err, []advice{
		{governance.ErrNoChange, 0, "change " + name + " first; worldctl manifest show is what is in force"},
		{governance.ErrRepeated, 0, "an author's signature proposes once: change the version in " + name + ", then propose that"},
		{journal.ErrNotFound, 0, "a patch names contents that the world has; a world.yaml brings its own along: worldctl propose world.yaml"},
	}...)
}
