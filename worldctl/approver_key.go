package worldctl

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/internal/sshkey"
)

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
