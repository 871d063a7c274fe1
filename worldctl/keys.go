package worldctl

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

func newKeysCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "keys", Short: "The keys that sign receipts, and those of approvers"},
		newKeysListCommand(c), newKeysNewCommand(c), newKeysRotateCommand(c), newKeysSealCommand(c), newKeysResealCommand(c), newKeysUnsealCommand(c))
}

// keyAnswer is an epoch of the keyring: the key of its receipts, and that of its
// checkpoints.
type keyAnswer struct {
	receipt.KeyStatus
	Signer string `json:"signer"` // as verify --trust takes it
}

func newKeysListCommand(c *cli) *cobra.Command {
	var signers bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the receipt keys by id, and who signs checkpoints; secrets are never printed",
		Long: `List the receipt keys by id, and the public keys that checkpoints are signed with:
one for each epoch, derived from its secret. The last one signs. --signers prints these
alone, a line each: whoever verifies what you show keeps them in a file, for --trust.`,
		Example: "  worldctl keys list\n  worldctl keys list --signers > town.pub",
		RunE: c.onWorld(func(_ context.Context, lw *local.World, _ []string) error {
			if signers {
				return c.listSigners(lw.Keys())
			}
			return c.listKeys(lw.Keys())
		}),
	}
	cmd.Flags().BoolVar(&signers, "signers", false, "only the keys that sign checkpoints")
	return cmd
}

func keyAnswers(keys *receipt.Keyring) ([]keyAnswer, error) {
	signers, err := keys.CheckpointKeys()
	if err != nil {
		return nil, err
	}
	answers := make([]keyAnswer, len(signers))
	for i, k := range keys.Keys() {
		text, err := checkpoint.FormatKey(keys.World(), signers[i].Public().(ed25519.PublicKey))
		if err != nil {
			return nil, err
		}
		answers[i] = keyAnswer{k, text}
	}
	return answers, nil
}

const noKeys = "no keys: this world can be read, not run"

func (c *cli) listKeys(keys *receipt.Keyring) error {
	answers, err := keyAnswers(keys)
	if err != nil {
		return err
	}
	err = list(c, "keys", "keys", allItems(answers), columns[keyAnswer]{
		header: table.Row{"id", "epoch", "current", "revoked"},
		row:    func(k keyAnswer) table.Row { return table.Row{k.ID, k.Epoch, k.Current, k.Revoked} },
		none:   noKeys,
	})
	if err == nil && c.output == formTable {
		for _, k := range answers { // too long for a table, and to be copied
			fmt.Fprintf(c.stdout, "epoch %d signs checkpoints as %s\n", k.Epoch, k.Signer)
		}
	}
	return err
}

func (c *cli) listSigners(keys *receipt.Keyring) error {
	answers, err := keyAnswers(keys)
	if err != nil {
		return err
	}
	return list(c, "signers", "signers", allItems(answers), columns[keyAnswer]{line: func(k keyAnswer) string { return k.Signer }, none: noKeys})
}

func newKeysRotateCommand(c *cli) *cobra.Command {
	var revoke []uint
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Sign with a new key from now on, and list the keys",
		Long: `Sign receipts with a new key from now on. The earlier keys still verify what
they have signed. No new receipt of a revoked one is accepted; what the journal
holds of it stays. Copies of .world/keyring from before do not verify what is
signed from now on: make a new one.

Checkpoints are signed with another key from then on, too: tell it to whoever
verifies what you show.`,
		Example: `  worldctl keys rotate
  worldctl keys rotate --revoke 1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.onKeyring(func(dir string) error {
				var epochs []uint64
				for _, n := range revoke {
					epochs = append(epochs, uint64(n))
				}
				keys, err := local.Rotate(cmd.Context(), dir, c.in(dir, c.options()), c.actorOf(""), epochs...)
				if err != nil {
					return err
				}
				if err := c.listKeys(keys); err != nil {
					return err
				}
				all := keys.Keys()
				c.note("checkpoints are signed with another key, too: whoever verifies with --trust needs that of epoch %d", all[len(all)-1].Epoch)
				return nil
			})
		},
	}
	cmd.Flags().UintSliceVar(&revoke, "revoke", nil, "accept no new receipts of this `EPOCH`")
	return cmd
}

// onKeyring changes the keyring of the world that is meant.
func (c *cli) onKeyring(change func(dir string) error) error {
	dir, err := c.dir()
	if err != nil {
		return err
	}
	return notOpened(dir, change(dir))
}

// sealAnswer says how a keyring is now.
type sealAnswer struct {
	Dir    string `json:"dir"`
	Sealed bool   `json:"sealed"`
}

func newKeysSealCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "seal",
		Long: `Make the keys open with a passphrase only: it is typed twice on the terminal, or
comes from --passphrase-file or ` + passphraseEnv + `. Every verb asks for it from
then on, and without it the world is neither run nor verified. What the file was
before may be found on the disk until that is overwritten; keys rotate --revoke
makes what it signs worthless.`,
		Example: `  worldctl keys seal
  worldctl keys seal --passphrase-file FILE`,
		RunE: func(*cobra.Command, []string) error {
			return c.onKeyring(func(dir string) error {
				opts := c.in(dir, c.options())
				opts.Passphrase = c.askNew
				err := local.Seal(dir, opts)
				if errors.Is(err, local.ErrSealed) {
					return &fault{err: err, code: exitConflict, hint: "worldctl keys reseal changes the passphrase"}
				}
				if err != nil {
					return err
				}
				return c.object("keys-seal", sealAnswer{Dir: dir, Sealed: true}, func() {
					fmt.Fprintf(c.stdout, "the keyring of %s is sealed: keep its passphrase, nothing else opens it\n", dir)
				})
			})
		},
	}
}

func newKeysResealCommand(c *cli) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "reseal",
		Long: `Change the passphrase that the keys open with: the one of before comes as for every
verb, and the new one is typed twice on the terminal, or comes from
--new-passphrase-file. Copies of the keyring from before, in backups of the world or
of its database, open with the one of before: if somebody has that who should not,
keys rotate --revoke makes what they sign worthless.`,
		Example: `  worldctl keys reseal
  worldctl keys reseal --passphrase-file OLD --new-passphrase-file NEW`,
		RunE: func(*cobra.Command, []string) error {
			return c.onKeyring(func(dir string) error {
				if err := local.Reseal(dir, c.in(dir, c.options()), func() ([]byte, error) { return c.askAnother(file) }); err != nil {
					return err
				}
				return c.object("keys-reseal", sealAnswer{Dir: dir, Sealed: true}, func() {
					fmt.Fprintln(c.stdout, "the keyring opens with the new passphrase only: keep it, nothing else does")
				})
			})
		},
	}
	cmd.Flags().StringVar(&file, "new-passphrase-file", "", "`FILE` with the new passphrase")
	return cmd
}

func newKeysUnsealCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "unseal",
		Short:   "Make the keys open without a passphrase again",
		Example: "  worldctl keys unseal --passphrase-file FILE",
		RunE: func(*cobra.Command, []string) error {
			return c.onKeyring(func(dir string) error {
				if err := local.Unseal(dir, c.in(dir, c.options())); err != nil {
					return err
				}
				return c.object("keys-unseal", sealAnswer{Dir: dir}, func() {
					fmt.Fprintf(c.stdout, "the keyring of %s is not sealed: whoever reads the file has the keys\n", dir)
				})
			})
		},
	}
}
