package local

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
)

// ErrOtherHistory says that the journal is not the one of which a checkpoint was
// signed. No other is signed then: it would be proof of two histories.
var ErrOtherHistory = errors.New("the journal is not the one that was signed before")

// Checkpoint signs the journal as it is, with the world's current checkpoint key and
// with any keys besides, and keeps what it signed, but for who only looks; where that is there,
// signed by all these, it is returned. All that has happened is durable then. The error is
// ErrOtherHistory where the last signed checkpoint is of another journal, and
// ErrNoKeys where nobody is there to sign.
func (lw *World) Checkpoint(keys ...ed25519.PrivateKey) (*store.Signed, error) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	keys, err := lw.signers(keys)
	if err != nil {
		return nil, err
	}
	signed, err := lw.sign(keys)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return signed, nil
}

// signers returns the world's current checkpoint key, where it has one, and others.
func (lw *World) signers(others []ed25519.PrivateKey) ([]ed25519.PrivateKey, error) {
	own, err := lw.keys.CheckpointKeys()
	if err != nil {
		return nil, err
	}
	keys := append(own[max(0, len(own)-1):], others...)
	if len(keys) == 0 {
		return nil, ErrNoKeys
	}
	return keys, nil
}

// Signers returns the public keys that the world's checkpoints are signed with, in
// the order of its key epochs: the last one signs from now on. There are none where
// the world has no keys.
func (lw *World) Signers() ([]ed25519.PublicKey, error) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	keys, err := lw.keys.CheckpointKeys()
	return public(keys), err
}

func public(keys []ed25519.PrivateKey) []ed25519.PublicKey {
	out := make([]ed25519.PublicKey, len(keys))
	for i, key := range keys {
		out[i] = key.Public().(ed25519.PublicKey)
	}
	return out
}

// Consistency returns the proof that the tree over the records up to one begins
// like the tree over those up to an earlier one. The error is journal.ErrNotFound
// where the journal has fewer.
func (lw *World) Consistency(from, to journal.Seq) (tlog.TreeProof, error) {
	if err := lw.has(to); err != nil {
		return nil, err
	}
	return tlog.ProveTree(int64(to), int64(from), lw.store.Hashes())
}

// Inclusion returns the proof that a record is in the tree over the records up to
// another one. The error is journal.ErrNotFound where the journal has fewer.
func (lw *World) Inclusion(record, size journal.Seq) (tlog.RecordProof, error) {
	if err := lw.has(size); err != nil {
		return nil, err
	}
	return tlog.ProveRecord(int64(size), int64(record)-1, lw.store.Hashes())
}

// sign makes durable what has happened and returns the checkpoint of it, signed with
// the keys.
func (lw *World) sign(keys []ed25519.PrivateKey) (*store.Signed, error) {
	if err := lw.w.Sync(); err != nil {
		return nil, err
	}
	return lw.signAt(lw.store.Head().ID, keys)
}

// signAt returns the checkpoint of the records up to one, signed with the keys. The
// record is durable.
func (lw *World) signAt(at journal.Seq, keys []ed25519.PrivateKey) (*store.Signed, error) {
	last, err := lw.lastSigned(lw.store.Head().ID)
	if err != nil {
		return nil, err
	}
	for known, err := range lw.store.Checkpoints(at, at) {
		if err != nil {
			return nil, err
		}
		if s, err := checkpoint.Open(known.Note, public(keys)...); err == nil && len(s.By) == len(keys) {
			return &known, nil
		}
	}
	tree, err := lw.store.TreeAt(at)
	if err != nil {
		return nil, err
	}
	signed := &store.Signed{Checkpoint: checkpoint.Checkpoint{World: lw.keys.World(), Size: tree.Size(), Root: tree.Root()}}
	if signed.Note, err = signed.Sign(keys...); err != nil {
		return nil, err
	}
	if lw.looks {
		return signed, nil
	}
	if err := lw.store.PutCheckpoint(signed.Note); err != nil {
		return nil, err
	}
	if last == nil || uint64(at) > last.Size {
		lw.signed = at
	}
	return signed, nil
}

// lastSigned returns the last signed checkpoint, nil where there is none, of a
// journal that ends at a head and must begin with what was signed.
func (lw *World) lastSigned(head journal.Seq) (*store.Signed, error) {
	last, err := lw.store.LastCheckpoint()
	if last == nil || err != nil {
		return nil, err
	}
	at := journal.Seq(last.Size)
	if at > head {
		return nil, fmt.Errorf("%w: that had #%d, this one ends at #%d", ErrOtherHistory, at, head)
	}
	tree, err := lw.store.TreeAt(at)
	if err != nil {
		return nil, err
	}
	if tree.Root() != last.Root {
		return nil, fmt.Errorf("%w: its records up to #%d are others", ErrOtherHistory, at)
	}
	return last, nil
}

// signDue signs a checkpoint if that is due by the manifest's checkpoint_every. It
// is asked for after every change.
func (lw *World) signDue() error {
	every := journal.Seq(cmp.Or(lw.w.Manifest().Defaults.CheckpointEvery, manifest.DefaultCheckpointEvery))
	if lw.store.Head().ID < lw.signed+every {
		return nil
	}
	// What is signed is remembered from here on only.
	last, err := lw.store.LastCheckpoint()
	if err == nil && last != nil {
		lw.signed = journal.Seq(last.Size)
	}
	if err == nil && lw.store.Head().ID >= lw.signed+every {
		var keys []ed25519.PrivateKey
		if keys, err = lw.keys.CheckpointKeys(); err == nil {
			_, err = lw.sign(keys[len(keys)-1:])
		}
	}
	if err != nil {
		return fmt.Errorf("the checkpoint that is due: %w", err)
	}
	return nil
}
