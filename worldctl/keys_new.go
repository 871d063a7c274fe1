package worldctl

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/sshkey"
	"github.com/worldkernel/worldkernel/world/local"
)

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
