package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/worldkernel/worldkernel/receipt"
)

// ErrExposedKeys says that others than its owner can read a keyring file.
var ErrExposedKeys = errors.New("others can read its secrets; want 0600")

// readKeyring reads a keyring file, which nobody but its owner may read.
func readKeyring(path string) (*receipt.Keyring, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	if open := info.Mode().Perm() & 0o077; open != 0 {
		return nil, fmt.Errorf("keyring %s: mode is %#o: %w", path, info.Mode().Perm(), ErrExposedKeys)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	keys, err := receipt.DecodeKeyring(data)
	if err != nil {
		return nil, fmt.Errorf("keyring %s: %w", path, err)
	}
	return keys, nil
}

// writeKeyring writes a new keyring file, synced.
func writeKeyring(path string, keys *receipt.Keyring) error {
	data, err := keys.Encode()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(0o600))
	if err != nil {
		return fmt.Errorf("keyring: %w", err)
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
