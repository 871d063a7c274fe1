package worldctl

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/sshkey"
	"github.com/worldkernel/worldkernel/world/local"
)

// publicSuffix is how the file of a public key ends.
const publicSuffix = ".pub"

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
		Args: args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return c.newApprover(file, cmp.Or(comment, c.actorOf("")), encrypt)
		},
	}
	cmd.Flags().StringVar(&file, "approver", "", "the private key's `FILE`; the public one is FILE"+publicSuffix)
	cmd.Flags().StringVar(&comment, "comment", "", "`TEXT` that says whose it is; your login if not given")
	cmd.Flags().BoolVar(&encrypt, "encrypt", false, "make the private key open with a passphrase only, asked for as keys seal does")
	return cmd
}

func (c *cli) newApprover(file, comment string, encrypt bool) error {
	switch {
	case file == "":
		return usagef("worldctl keys new --approver FILE", "keys new needs the file to write: --approver FILE")
	case strings.HasSuffix(file, publicSuffix):
		return usagef("type it without "+publicSuffix, "%s would be the private key", file)
	}
	var passphrase []byte
	if encrypt {
		var err error
		if passphrase, err = c.askNew(); err != nil {
			return err
		}
	}
	private, public, err := sshkey.New(comment, passphrase)
	if err != nil {
		return err
	}
	key, _, err := sshkey.ParsePublic(public)
	if err != nil {
		return err
	}
	answer := newKeyAnswer{Private: file, Public: file + publicSuffix, Encrypted: encrypt, Fingerprint: sshkey.Fingerprint(key)}
	if err := writeKeyPair(answer, private, public); err != nil {
		return err
	}
	if dir, err := local.Find(filepath.Dir(file)); err == nil {
		c.note("note: %s is in the directory of a world, %s, and forks and backups copy what is there: keep the private key outside", file, dir)
	}
	return c.object("keys-new", answer, func() {
		opens := "whoever reads it can approve"
		if encrypt {
			opens = "it opens with its passphrase only"
		}
		fmt.Fprintf(c.stdout, "private key: %s; %s\npublic key: %s, %s\n", answer.Private, opens, answer.Public, answer.Fingerprint)
		c.note("next: put the public key into approvers, beside %s, list it there, and propose that:\n  governance:\n    approvers: [approvers/%s]",
			local.ManifestFile, filepath.Base(answer.Public))
	})
}

// writeKeyPair writes both files of a key, or none.
func writeKeyPair(to newKeyAnswer, private, public []byte) error {
	if err := writeNew(to.Private, private, 0o600); err != nil {
		return err
	}
	err := writeNew(to.Public, public, 0o644)
	if err != nil {
		err = errors.Join(err, os.Remove(to.Private))
	}
	return err
}

// writeNew writes a file that is not there yet, synced, and leaves none behind
// where it cannot.
func writeNew(name string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	switch {
	case errors.Is(err, fs.ErrExist):
		return usagef("choose another --approver FILE, or move that one away", "%s is there already, and keys are not overwritten", name)
	case errors.Is(err, fs.ErrNotExist):
		return hinted(err, "mkdir -p %s", filepath.Dir(name))
	case err != nil:
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
