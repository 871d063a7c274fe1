package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// maxKeyringBytes is far above the most epochs that a keyring can have.
const maxKeyringBytes = 1 << 20

// Why a keyring file is not used as it is.
var (
	ErrExposedKeys = file.ErrExposed
	ErrSealed      = errors.New("it is sealed with a passphrase")
	ErrNotSealed   = errors.New("it is not sealed")
)

// KeyringError says why a world's keyring cannot be used: ErrExposedKeys,
// ErrSealed, fs.ErrNotExist, receipt.ErrPassphrase, or what is wrong with its
// content.
type KeyringError struct {
	Path string
	Err  error
}

func (e *KeyringError) Error() string { return fmt.Sprintf("keyring %s: %v", e.Path, e.Err) }

// Unwrap returns the reason.
func (e *KeyringError) Unwrap() error { return e.Err }

// ring is a keyring as its file holds it.
type ring struct {
	keys       *receipt.Keyring
	passphrase []byte // it is sealed with; nil: it is not sealed
	sealing    *Sealing
	file       []byte // what was read; nil: nothing yet
}

// readKeyring reads a keyring file, which nobody but its owner may read.
func readKeyring(path string, opts Options) (ring, error) {
	data, err := file.ReadSecret(path, maxKeyringBytes)
	var r ring
	if err == nil {
		r, err = decodeKeyring(data, opts)
	}
	if err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok && at.Path == path {
			err = at.Err // the path is said already
		}
		return ring{}, &KeyringError{Path: path, Err: err}
	}
	return r, nil
}

// decodeKeyring parses the content of a keyring file. Where it is sealed the
// passphrase is asked for.
func decodeKeyring(file []byte, opts Options) (ring, error) {
	if !receipt.Sealed(file) {
		keys, err := receipt.DecodeKeyring(file)
		return ring{keys: keys, file: file}, err
	}
	if opts.Passphrase == nil {
		return ring{}, ErrSealed
	}
	passphrase, err := opts.Passphrase()
	if err != nil {
		return ring{}, err
	}
	keys, err := opts.Sealing.unseal(file, passphrase)
	return ring{keys: keys, passphrase: passphrase, sealing: opts.Sealing, file: file}, err
}

// encode returns the content of a keyring file, sealed where r is.
func (r ring) encode() ([]byte, error) {
	if r.passphrase == nil {
		return r.keys.Encode()
	}
	return r.sealing.seal(r.keys, r.passphrase)
}

// writeKeyring writes a new keyring file, synced.
func writeKeyring(path string, r ring) error {
	data, err := r.encode()
	if err != nil {
		return err
	}
	return putKeyring(path, data)
}

func putKeyring(path string, data []byte) error {
	if err := file.WriteNew(path, data, 0o600); err != nil {
		return fmt.Errorf("keyring: %w", err)
	}
	return nil
}

// KeyringLog is a log that keeps the world's keyring, too.
type KeyringLog interface {
	journal.Log

	// Keyring returns the keyring as it was put: journal.ErrNotFound where none was. Whoever reads owns
	// nothing.
	Keyring(ctx context.Context) (sealed []byte, err error)
	// PutKeyring keeps a keyring, durable on return. One that is not sealed is refused.
	PutKeyring(ctx context.Context, sealed []byte) error
}

// fetchKeyring makes the keyring file one of what a log has, where that has a keyring.
func fetchKeyring(path string, opts Options) error {
	if opts.Log == nil {
		return nil
	}
	log, err := opts.Log(nil)
	if err != nil {
		return err
	}
	keeps, ok := log.(KeyringLog)
	if !ok {
		return nil
	}
	sealed, err := keeps.Keyring(context.Background())
	if errors.Is(err, journal.ErrNotFound) { // it is sealed with nothing, and the directory's, or it is lost
		_, missing := os.Stat(path)
		if errors.Is(missing, fs.ErrNotExist) {
			return err
		}
		return missing
	}
	if err != nil {
		return err
	}
	if has, err := file.ReadSecret(path, maxKeyringBytes); err == nil && bytes.Equal(has, sealed) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return file.Put(path, sealed, 0o600)
}

// keepKeyring puts a keyring into a log, if that keeps it: what is sealed goes there, and where one
// has gone no other may stay behind.
func keepKeyring(log journal.Log, data []byte) error {
	keeps, ok := log.(KeyringLog)
	if !ok {
		return nil
	}
	ctx := context.Background()
	if !receipt.Sealed(data) {
		if _, err := keeps.Keyring(ctx); errors.Is(err, journal.ErrNotFound) {
			return nil
		}
	}
	return keeps.PutKeyring(ctx, data)
}

// publish gives a log that a world was made in its keyring, and the world to everybody.
func publish(log journal.Log, keyring []byte) error {
	if err := keepKeyring(log, keyring); err != nil {
		return err
	}
	if made, ok := log.(journal.Movable); ok {
		return made.Publish(context.Background())
	}
	return nil
}
