package worldctl

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/worldkernel/worldkernel/internal/sshkey"
)

// approverKey reads the private key of an approver. A key that needs a passphrase
// gets it from where the keyring's comes from, but who is at the terminal is asked
// for each of the two.
func (c *cli) approverKey(file string) (ed25519.PrivateKey, error) {
	data, err := readKey(c.path(file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("worldctl keys new --approver "+file+" makes one; or type --key with the file of an SSH key of type ed25519", "%w", err)
	}
	if err != nil {
		return nil, err
	}
	own := passphrase{file: c.passphrase.file}
	key, err := sshkey.ParsePrivate(data, func() ([]byte, error) {
		return c.once(&own, func() ([]byte, error) {
			return c.onTerminal(func(prompt prompter) ([]byte, error) { return prompt("passphrase of " + file + ": ") })
		})
	})
	if err != nil {
		err = fmt.Errorf("key %s: %w", file, err)
	}
	switch {
	case errors.Is(err, sshkey.ErrPublic):
		return nil, usagef("give the file of the private key: it has the same name without "+publicSuffix, "%w", err)
	case errors.Is(err, sshkey.ErrPassphrase):
		return nil, hinted(err, hintPassphrase)
	}
	return key, err
}

// readKey returns what a file holds, but not much more than a key has.
func readKey(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	return io.ReadAll(io.LimitReader(f, sshkey.MaxFileBytes+1))
}
