package main

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// snapshotAnswer is a snapshot and, where it was asked for, what a cell was in it.
type snapshotAnswer struct {
	snapshot.Snapshot
	Proof *proofAnswer `json:"proof,omitempty"`
}

// proofAnswer shows what a cell was, or that it was not there, to whoever knows
// the state root.
type proofAnswer struct {
	Cell    string      `json:"cell"`
	Present bool        `json:"present"`
	Leaf    *world.Hash `json:"leaf"`   // its value; null where the cell was not there
	Proof   []byte      `json:"proof"`  // prints as base64; see snapshot.StateProof
	Checks  bool        `json:"checks"` // it leads to the state root in the journal
}

func newSnapshotShowCommand(c *cli) *cobra.Command {
	var cell string
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a snapshot, and prove what a cell was in it",
		Long: `Show a snapshot: its record, the one before it (at), the tick, both roots and what
it is for. NAME is its name, or 6 digits of its hash or more.

--prove CELL adds the proof that the cell was what it was, or that it was not
there: canonical CBOR in base64, checked against the state root in the journal.
Exit code 3 if it does not lead there.`,
		Example: `  worldctl snapshot show before-lunch
  worldctl snapshot show before-lunch --prove agent/ada -o json`,
		Args: args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.with(func(lw *local.World) error {
				s, err := findSnapshot(lw, args[0])
				if err != nil {
					return err
				}
				a := snapshotAnswer{Snapshot: s}
				if cell != "" {
					if a.Proof, err = prove(lw, &s, cell); err != nil {
						return err
					}
				}
				err = c.object("snapshot", a, func() { c.showSnapshot(&a) })
				if a.Proof != nil && !a.Proof.Checks {
					err = errors.Join(err, errInvalid)
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&cell, "prove", "", "prove what this `CELL` was, or that it was not there")
	return cmd
}

// prove makes the proof of a cell in a snapshot, and checks it.
func prove(lw *local.World, s *snapshot.Snapshot, name string) (*proofAnswer, error) {
	cell, err := parseCell(name)
	if err != nil {
		return nil, err
	}
	m, err := lw.At(world.Seq(s.Record))
	if err != nil {
		return nil, err
	}
	p := m.Prove(cell)
	a := &proofAnswer{Cell: name}
	if a.Proof, err = p.Encode(); err != nil {
		return nil, err
	}
	value, present, err := p.Check(s.State, canon.Sum([]byte(cell.String())))
	if a.Checks = err == nil; present {
		a.Present, a.Leaf = true, &value
	}
	return a, nil
}

func (c *cli) showSnapshot(a *snapshotAnswer) {
	facts := [][2]any{
		{"name", a.Name},
		{"record", fmt.Sprintf("#%d", a.Record)},
		{"at", fmt.Sprintf("#%d", a.At)},
		{"tick", a.Time},
		{"chain root", a.Root},
		{"state root", a.State},
		{"cells", a.Cells},
		{"label", a.Label},
		{"pinned", a.Pinned},
		{"hash", a.Hash},
	}
	if p := a.Proof; p != nil {
		facts = append(facts, [2]any{"cell", p.Cell})
		if p.Present {
			facts = append(facts, [2]any{"leaf", *p.Leaf})
		} else {
			facts = append(facts, [2]any{"leaf", "none: it is not there"})
		}
		facts = append(facts, [2]any{"proof checks", p.Checks})
	}
	c.facts(facts...)
	if p := a.Proof; p != nil { // it is too long for a table
		fmt.Fprintln(c.stdout, "proof", base64.StdEncoding.EncodeToString(p.Proof))
	}
}
