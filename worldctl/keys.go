package worldctl

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/sshkey"
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
			return c.inDir(func(dir string, opts local.Options) error {
				var epochs []uint64
				for _, n := range revoke {
					epochs = append(epochs, uint64(n))
				}
				keys, err := local.Rotate(cmd.Context(), dir, opts, c.actorOf(""), epochs...)
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

// sealAnswer says how a keyring is now.
type sealAnswer struct {
	Dir    string `json:"dir"`
	Sealed bool   `json:"sealed"`
}

// sealing makes cmd a verb that says how a keyring opens from then on. The answer names its directory in the place of DIR.
func (c *cli) sealing(cmd *cobra.Command, sealed bool, says string, change func(dir string, opts local.Options) error) *cobra.Command {
	cmd.RunE = func(*cobra.Command, []string) error {
		return c.inDir(func(dir string, opts local.Options) error {
			if err := change(dir, opts); err != nil {
				return err
			}
			return c.object("keys-"+cmd.Name(), sealAnswer{dir, sealed}, func() { fmt.Fprintln(c.stdout, strings.ReplaceAll(says, "DIR", dir)) })
		})
	}
	return cmd
}

func newKeysSealCommand(c *cli) *cobra.Command {
	return c.sealing(&cobra.Command{
		Use: "seal",
		Long: `Make the keys open with a passphrase only: it is typed twice on the terminal, or
comes from --passphrase-file or ` + passphraseEnv + `. Every verb asks for it from
then on, and without it the world is neither run nor verified. What the file was
before may be found on the disk until that is overwritten; keys rotate --revoke
makes what it signs worthless.`,
		Example: `  worldctl keys seal
  worldctl keys seal --passphrase-file FILE`,
	}, true, "the keyring of DIR is sealed: keep its passphrase, nothing else opens it", func(dir string, opts local.Options) error {
		opts.Passphrase = c.askNew
		err := local.Seal(dir, opts)
		if errors.Is(err, local.ErrSealed) {
			return &fault{err: err, code: exitConflict, hint: "worldctl keys reseal changes the passphrase"}
		}
		return err
	})
}

func newKeysResealCommand(c *cli) *cobra.Command {
	var file string
	cmd := c.sealing(&cobra.Command{
		Use: "reseal",
		Long: `Change the passphrase that the keys open with: the one of before comes as for every
verb, and the new one is typed twice on the terminal, or comes from
--new-passphrase-file. Copies of the keyring from before, in backups of the world or
of its database, open with the one of before: if somebody has that who should not,
keys rotate --revoke makes what they sign worthless.`,
		Example: `  worldctl keys reseal
  worldctl keys reseal --passphrase-file OLD --new-passphrase-file NEW`,
	}, true, "the keyring opens with the new passphrase only: keep it, nothing else does", func(dir string, opts local.Options) error {
		return local.Reseal(dir, opts, func() ([]byte, error) { return c.askAnother(file) })
	})
	cmd.Flags().StringVar(&file, "new-passphrase-file", "", "`FILE` with the new passphrase")
	return cmd
}

func newKeysUnsealCommand(c *cli) *cobra.Command {
	return c.sealing(&cobra.Command{
		Use:     "unseal",
		Short:   "Make the keys open without a passphrase again",
		Example: "  worldctl keys unseal --passphrase-file FILE",
	}, false, "the keyring of DIR is not sealed: whoever reads the file has the keys", local.Unseal)
}

// newKeyAnswer says where the key of an approver is.
type newKeyAnswer struct {
	Private     string `json:"private"` // files
	Public      string `json:"public"`
	Encrypted   bool   `json:"encrypted"`
	Fingerprint string `json:"fingerprint"` // as ssh-keygen -l prints it
}

func newKeysNewCommand(c *cli) *cobra.Command {
	var file, comment string
	var encrypt bool
	cmd := &cobra.Command{
		Use:   "new --approver FILE",
		Short: "Make the key of an approver, who signs changes of the rules",
		Long: `Make the key of an approver, an SSH key of type ed25519: FILE is the private one,
which signs approvals and stays with its owner, FILE.pub the public one, which the
world.yaml of a world lists. Files that are there are never overwritten. A key of
ssh-keygen -t ed25519 is as good. No world is needed for it, and a world's directory is
no place for FILE: forks and backups copy what is there.`,
		Example: `  worldctl keys new --approver ~/.ssh/alice
  worldctl keys new --approver ~/.ssh/approver --encrypt --comment alice`,
		RunE: func(*cobra.Command, []string) error {
			return c.newApprover(file, cmp.Or(comment, c.actorOf("")), encrypt)
		},
	}
	cmd.Flags().StringVar(&file, "approver", "", "the private key's `FILE`; the public one is FILE"+sshkey.PublicSuffix)
	cmd.Flags().StringVar(&comment, "comment", "", "`TEXT` that says whose it is; your login if not given")
	cmd.Flags().BoolVar(&encrypt, "encrypt", false, "make the private key open with a passphrase only, asked for as keys seal does")
	return cmd
}

func (c *cli) newApprover(file, comment string, encrypt bool) error {
	switch {
	case file == "":
		return usagef("worldctl keys new --approver FILE", "keys new needs the file to write: --approver FILE")
	case strings.HasSuffix(file, sshkey.PublicSuffix):
		return usagef("type it without "+sshkey.PublicSuffix, "%s would be the private key", file)
	}
	var passphrase []byte
	if encrypt {
		var err error
		if passphrase, err = c.askNew(); err != nil {
			return err
		}
	}
	key, err := sshkey.WriteNew(file, comment, passphrase)
	if at := (*fs.PathError)(nil); errors.As(err, &at) && errors.Is(err, fs.ErrExist) {
		return usagef("choose another --approver FILE, or move that one away", "%s is there already, and keys are not overwritten", at.Path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return hinted(err, "mkdir -p %s", filepath.Dir(file))
	}
	if err != nil {
		return err
	}
	answer := newKeyAnswer{Private: file, Public: file + sshkey.PublicSuffix, Encrypted: encrypt, Fingerprint: sshkey.Fingerprint(key)}
	if dir, err := local.Find(filepath.Dir(file)); err == nil {
		c.note("note: %s is in the directory of a world, %s, and forks and backups copy what is there: keep the private key outside", file, dir)
	}
	return c.object("keys-new", answer, func() {
		opens := "whoever reads it can approve"
		if encrypt {
			opens = "it opens with its passphrase only"
		}
		fmt.Fprintf(c.stdout, "private key: %s; %s\npublic key: %s, %s\n", answer.Private, opens, answer.Public, answer.Fingerprint)
		c.hintNext("put the public key into approvers, beside %s, list it there, and propose that:\n  governance:\n    approvers: [approvers/%s]",
			local.ManifestFile, filepath.Base(answer.Public))
	})
}
