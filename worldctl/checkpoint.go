package worldctl

import (
	"crypto/ed25519"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newCheckpointCommand(c *cli) *cobra.Command {
	var keyFile string
	var listed bool
	var to *target
	cmd := &cobra.Command{
		Use: "checkpoint [FILE]",
		RunE: func(_ *cobra.Command, args []string) error {
			if listed && (len(args) > 0 || keyFile != "") {
				return usagef("leave --list out, or everything else", "--list signs nothing, and writes no file")
			}
			if listed {
				return c.with(c.listCheckpoints)
			}
			keys, err := c.signingKeys(keyFile)
			if err != nil {
				return err
			}
			return c.with(func(lw *local.World) error {
				signed, err := lw.Checkpoint(keys...)
				if err != nil {
					return advised(err, advice{local.ErrNoKeys, 0, hintKeyOfYours})
				}
				a := view.CheckpointOf(signed)
				if len(args) == 0 || args[0] == "-" {
					return c.object("checkpoint", a, func() { fmt.Fprint(c.stdout, a.Note) })
				}
				if err := to.put(args[0], signed.Note); err != nil {
					return err
				}
				return c.object("checkpoint", a, func() {
					c.note("the checkpoint of #%d is in %s: keep it where nobody who runs the world can change it", a.Size, args[0])
				})
			})
		},
	}
	to = c.savesTo(cmd, firstOf)
	cmd.Flags().StringVar(&keyFile, "key", "", "`FILE` of an Ed25519 SSH key that signs besides the world's own")
	cmd.Flags().BoolVar(&listed, "list", false, "list what was signed so far, and sign nothing")
	return cmd
}

func (c *cli) listCheckpoints(lw *local.World) error {
	answers := func(yield func(view.Checkpoint, error) bool) {
		for signed, err := range lw.Checkpoints(1, journal.Last) {
			if !yield(view.CheckpointOf(&signed), err) {
				return
			}
		}
	}
	return list(c, "checkpoints", "checkpoints", answers, columns[view.Checkpoint]{
		header: table.Row{"size", "root"},
		row:    func(a view.Checkpoint) table.Row { return table.Row{a.Size, a.Root} },
		none:   "nothing was signed yet: worldctl checkpoint",
	})
}

// hintKeyOfYours says what signs where a world has no keys.
const hintKeyOfYours = "--key FILE signs it with a key of yours"

// signingKeys returns the keys that sign besides the world's own: that of a file,
// if there is one.
func (c *cli) signingKeys(file string) ([]ed25519.PrivateKey, error) {
	if file == "" {
		return nil, nil
	}
	key, err := c.approverKey(file)
	return []ed25519.PrivateKey{key}, err
}
