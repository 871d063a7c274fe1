package local

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// Rotate gives the world in a directory a new receipt key, which signs from now
// on. The earlier ones still verify, but for those that are revoked: no new
// receipt of theirs is accepted, and those in the journal stay. A sealed
// keyring stays sealed with the same passphrase. The journal says who did it. It
// returns the new keyring.
func Rotate(ctx context.Context, dir string, opts Options, actor string, revoke ...uint64) (*receipt.Keyring, error) {
	lw, err := own(dir, opts)
	if err != nil {
		return nil, err
	}
	keys, err := lw.rotate(revoke)
	if err == nil {
		// After the file, so that the journal never names a key that a crash has lost.
		err = lw.noteRotation(ctx, keys, actor)
	}
	return keys, errors.Join(err, lw.abandon())
}

func (lw *World) noteRotation(ctx context.Context, keys *receipt.Keyring, actor string) error {
	lw.keys = keys
	b := journal.KeysRotated{Actor: actor, Revoked: []string{}}
	for _, k := range keys.Keys() {
		if k.Current {
			b.KeyID = k.ID
		}
		if k.Revoked {
			b.Revoked = append(b.Revoked, k.ID)
		}
	}
	if err := lw.load(lw.config(), world.Open); err != nil {
		return err
	}
	_, err := lw.w.NoteRotation(ctx, b)
	return err
}

// Seal makes the keyring of the world in a directory open with the passphrase
// of opts only: ErrSealed where it has one already. What the file was before
// may be found on the disk until that is overwritten.
func Seal(dir string, opts Options) error {
	unsealed := opts
	unsealed.Passphrase = nil
	lw, err := own(dir, unsealed)
	if err != nil {
		return err
	}
	return errors.Join(lw.seal(opts.Passphrase), lw.abandon())
}

// Unseal makes the keyring of the world in a directory open without a
// passphrase again: ErrNotSealed where it does already.
func Unseal(dir string, opts Options) error {
	lw, err := own(dir, opts)
	if err != nil {
		return err
	}
	if lw.passphrase == nil {
		err = &KeyringError{Path: lw.keyringPath(), Err: ErrNotSealed}
	} else {
		err = lw.replaceKeyring(ring{keys: lw.keys})
	}
	return errors.Join(err, lw.abandon())
}

// Reseal makes the sealed keyring of the world in a directory open with another passphrase only, that
// ask returns: ErrNotSealed where it has none. A crash leaves it with the old one or the new one. What
// opens with the old one may be found on the disk, and in backups.
func Reseal(dir string, opts Options, ask func() ([]byte, error)) error {
	lw, err := own(dir, opts)
	if err != nil {
		return err
	}
	if lw.passphrase == nil {
		err = &KeyringError{Path: lw.keyringPath(), Err: ErrNotSealed}
	} else {
		err = lw.seal(ask)
	}
	return errors.Join(err, lw.abandon())
}

func (lw *World) rotate(revoke []uint64) (*receipt.Keyring, error) {
	if err := lw.load(lw.config(), world.Open); err != nil {
		return nil, err
	}
	if err := lw.canRun(); err != nil {
		return nil, err // the anchor's key would be another, or nobody could note it
	}
	keys, err := lw.keys.Rotate(randomBytes(receipt.SecretBytes))
	for i := 0; err == nil && i < len(revoke); i++ {
		keys, err = keys.Revoke(revoke[i])
	}
	if err != nil {
		return nil, err
	}
	return keys, lw.replaceKeyring(ring{keys: keys, passphrase: lw.passphrase, sealing: lw.opts.Sealing})
}

func (lw *World) seal(ask func() ([]byte, error)) error {
	if err := lw.canRun(); err != nil {
		return err
	}
	if ask == nil {
		return errors.New("sealing takes a passphrase")
	}
	passphrase, err := ask()
	if err != nil {
		return err
	}
	if passphrase == nil {
		passphrase = []byte{} // not unsealed, but refused
	}
	return lw.replaceKeyring(ring{keys: lw.keys, passphrase: passphrase, sealing: lw.opts.Sealing})
}

func (lw *World) keyringPath() string { return filepath.Join(lw.dir, hiddenDir, keyringFile) }

// replacing ends the name of a keyring file that is being written.
const replacing = ".new"

// replaceKeyring replaces the keyring of a world that this process owns: a crash leaves the old
// one or the new one. Where a log has it the file is a copy, and comes after.
func (lw *World) replaceKeyring(r ring) error {
	data, err := r.encode()
	if err != nil {
		return err
	}
	if err := keepKeyring(lw.store.Log(), data); err != nil {
		return err
	}
	path := lw.keyringPath()
	making := path + replacing
	err = putKeyring(making, data)
	if err == nil {
		err = os.Rename(making, path)
	}
	if err != nil {
		return errors.Join(err, remove(making))
	}
	return file.SyncDir(filepath.Dir(path))
}

// latestKeyring returns the keyring of a world that this process owns now: it may have
// been replaced between its reading and the lock. What a replacement has left
// that was killed is removed: it can hold secrets that are sealed otherwise.
func latestKeyring(path string, r ring, opts Options) (ring, error) {
	if err := remove(path + replacing); err != nil {
		return r, err
	}
	if err := fetchKeyring(path, opts); err != nil {
		return r, err
	}
	data, err := file.ReadSecret(path, maxKeyringBytes)
	if err == nil && bytes.Equal(data, r.file) {
		return r, nil
	}
	return readKeyring(path, opts)
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
