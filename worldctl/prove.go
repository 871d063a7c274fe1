package worldctl

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/verify"
)

func newProveCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "prove"}, newProveReceiptCommand(c), newProveRecordCommand(c), newProveCellCommand(c), newProveCheckpointCommand(c))
}

// newProof makes a command of one that makes a proof.
func (c *cli) newProof(use string, prove func(lw *local.World, arg string) (*verify.Proof, error)) *cobra.Command {
	var to string
	cmd := &cobra.Command{Use: use, Args: args(1, 1)}
	save := c.savesTo(cmd, func([]string) string { return to })
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return c.with(func(lw *local.World) error {
			p, err := prove(lw, args[0])
			if err != nil {
				return err
			}
			data, err := p.Encode()
			if err != nil {
				return err
			}
			data = append(data, '\n')
			err = save.put(cmp.Or(to, "-"), data)
			if err == nil && to != "" && to != "-" && !c.quiet { // whoever checks it has no world
				fmt.Fprintf(c.stderr, "the proof is in %s; to check it: worldctl verify %s --trust %s\n", to, to, strings.Join(p.Signers, " --trust "))
			}
			return err
		})
	}
	cmd.Flags().StringVar(&to, "to", "", "write the proof to this `FILE`, and not to stdout")
	return cmd
}

func newProveReceiptCommand(c *cli) *cobra.Command {
	return c.newProof("receipt KEY", func(lw *local.World, key string) (*verify.Proof, error) {
		e, err := recordsOf(lw).FindIntent(key)
		if err != nil {
			return nil, err
		}
		p, err := lw.ProveReceipt(e.Intent.Key)
		if errors.Is(err, local.ErrNoReceipt) {
			err = hinted(err, "worldctl intent show %s tells where it stands", key)
		}
		return p, err
	})
}

func newProveRecordCommand(c *cli) *cobra.Command {
	return c.newProof("record RECORD", func(lw *local.World, name string) (*verify.Proof, error) {
		id, err := recordsOf(lw).At(name)
		if err != nil {
			return nil, err
		}
		return lw.ProveRecord(id)
	})
}

func newProveCellCommand(c *cli) *cobra.Command {
	var snapshot string
	cmd := c.newProof("cell CELL --snapshot SNAPSHOT", func(lw *local.World, name string) (*verify.Proof, error) {
		if snapshot == "" {
			return nil, usagef("worldctl snapshot list shows the snapshots", "say in which one: --snapshot SNAPSHOT")
		}
		cell, err := parseCell(name)
		if err != nil {
			return nil, err
		}
		return lw.ProveCell(cell, snapshot)
	})
	cmd.Flags().StringVar(&snapshot, "snapshot", "", "name or hash prefix of the `SNAPSHOT`")
	return cmd
}

func newProveCheckpointCommand(c *cli) *cobra.Command {
	return c.newProof("checkpoint FILE", func(lw *local.World, name string) (*verify.Proof, error) {
		note, err := file.Read(c.path(name), checkpoint.MaxBytes)
		if err != nil {
			return nil, err
		}
		p, err := lw.ProveConsistency(note)
		switch {
		case errors.Is(err, checkpoint.ErrMalformed):
			err = usagef(hintCheckpoint, "%s: %w", name, err)
		case errors.Is(err, journal.ErrNotFound):
			err = hinted(fmt.Errorf("%w: the journal has lost records that were signed: %w", errInvalid, err), "worldctl verify --checkpoint %s says more", name)
		case errors.Is(err, local.ErrOtherHistory):
			err = hinted(fmt.Errorf("%w: %w", errInvalid, err), "worldctl verify --checkpoint %s says more", name)
		}
		return p, err
	})
}
