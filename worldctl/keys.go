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
	return group(&cobra.Command{Use: "keys"},
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
		Use: "list",
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
		Use: "rotate",
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
func (c *cli) sealing(verb string, sealed bool, says string, change func(dir string, opts local.Options) error) *cobra.Command {
	return &cobra.Command{Use: verb, RunE: func(*cobra.Command, []string) error {
		return c.inDir(func(dir string, opts local.Options) error {
			if err := change(dir, opts); err != nil {
				return err
			}
			return c.object("keys-"+verb, sealAnswer{dir, sealed}, func() { fmt.Fprintln(c.stdout, strings.ReplaceAll(says, "DIR", dir)) })
		})
	}}
}

func newKeysSealCommand(c *cli) *cobra.Command {
	return c.sealing("seal", true, "the keyring of DIR is sealed: keep its passphrase, nothing else opens it", func(dir string, opts local.Options) error {
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
	cmd := c.sealing("reseal", true, "the keyring opens with the new passphrase only: keep it, nothing else does", func(dir string, opts local.Options) error {
		return local.Reseal(dir, opts, func() ([]byte, error) { return c.askAnother(file) })
	})
	cmd.Flags().StringVar(&file, "new-passphrase-file", "", "`FILE` with the new passphrase")
	return cmd
}

func newKeysUnsealCommand(c *cli) *cobra.Command {
	return c.sealing("unseal", false, "the keyring of DIR is not sealed: whoever reads the file has the keys", local.Unseal)
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
		Use: "new --approver FILE",
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
