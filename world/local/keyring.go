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

// KeyringError says why a world's keyring cannot be used: ErrExposedKeys,
// fs.ErrNotExist, or what is wrong with its content.
type KeyringError struct {
	Path string
	Err  error
}

func (e *KeyringError) Error() string { return fmt.Sprintf("keyring %s: %v", e.Path, e.Err) }

// Unwrap returns the reason.
func (e *KeyringError) Unwrap() error { return e.Err }

// readKeyring reads a keyring file, which nobody but its owner may read.
func readKeyring(path string) (*receipt.Keyring, error) {
	keys, err := decodeKeyring(path)
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err // the path is said already
		}
		return nil, &KeyringError{Path: path, Err: err}
	}
	return keys, nil
}

func decodeKeyring(path string) (*receipt.Keyring, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if open := info.Mode().Perm() & 0o077; open != 0 {
		return nil, fmt.Errorf("mode is %#o: %w", info.Mode().Perm(), ErrExposedKeys)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return receipt.DecodeKeyring(data)
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
