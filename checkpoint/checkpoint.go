// Package checkpoint signs the head of a journal, so that whoever has seen it can tell later that
// nothing before it was changed. It is a part of worldctl, and not an API.
//
// The records of a world are the leaves of a Merkle tree as RFC 6962 section 2.1
// defines it: leaf i is the stored bytes of record i+1. A checkpoint names the
// world, the number of records and the root of the tree over them, and is signed
// with Ed25519, in the format of https://c2sp.org/tlog-checkpoint:
//
//	worldkernel/WORLD
//	SIZE
//	ROOT
//
//	— worldkernel/WORLD SIGNATURE
//
// SIZE is in decimal, ROOT and SIGNATURE in standard base64; SIGNATURE is that of
// https://c2sp.org/signed-note: the first four bytes of
// H("worldkernel/WORLD\n" ‖ 01 ‖ public key), then the Ed25519 signature over the
// three lines with their line feeds. There may be several signatures. There are no
// further lines of text.
//
// Inclusion and consistency proofs against checkpoints are those of
// golang.org/x/mod/sumdb/tlog.
package checkpoint

import (
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// MaxBytes is the greatest size of a signed checkpoint.
const MaxBytes = 16 << 10

const originPrefix = "worldkernel/"

// Why bytes are not a checkpoint, or not one that somebody signed.
var (
	ErrMalformed    = errors.New("checkpoint: malformed")
	ErrBadSignature = errors.New("checkpoint: bad signature")
	ErrBadKey       = errors.New("checkpoint: not the public key of a signer")
)

// Checkpoint is the head of a journal, to be signed.
type Checkpoint struct {
	World string `json:"world"` // its id
	Size  uint64 `json:"size"`  // in records; that of the journal up to the record of this number
	Root  Hash   `json:"root"`  // of the tree over them
}

// Origin returns the first line of a world's checkpoints, which is also the name
// that they are signed with.
func Origin(world string) string { return originPrefix + world }

// Text returns the text under the signature.
func (c Checkpoint) Text() string {
	return Origin(c.World) + "\n" + strconv.FormatUint(c.Size, 10) + "\n" + base64.StdEncoding.EncodeToString(c.Root[:]) + "\n"
}

// Sign returns the checkpoint with a signature of each key.
func (c Checkpoint) Sign(keys ...ed25519.PrivateKey) ([]byte, error) {
	signers := make([]note.Signer, len(keys))
	for i, key := range keys {
		v, err := newVerifier(c.World, key.Public().(ed25519.PublicKey))
		if err != nil {
			return nil, err
		}
		signers[i] = signer{v, key}
	}
	data, err := note.Sign(&note.Note{Text: c.Text()}, signers...)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return data, nil
}

// Signed is a checkpoint with the signers, among the keys asked for, whose signature is valid.
type Signed struct {
	Checkpoint
	By []ed25519.PublicKey
}

// Parse reads a signed checkpoint, whoever has signed it. The errors are
// ErrMalformed.
func Parse(data []byte) (Checkpoint, error) {
	s, err := Open(data)
	return s.Checkpoint, err
}

// Open reads a signed checkpoint and finds out which of some keys have signed it.
// A signature that names one of them and is not its own is ErrBadSignature; those
// of other keys do not count.
func Open(data []byte, keys ...ed25519.PublicKey) (Signed, error) {
	c, err := parse(data)
	if err != nil {
		return Signed{}, err
	}
	verifiers := make([]note.Verifier, 0, len(keys))
	byHash := make(map[uint32]ed25519.PublicKey, len(keys))
	for _, key := range keys {
		v, err := newVerifier(c.World, key)
		if err != nil {
			return Signed{}, err
		}
		if _, twice := byHash[v.KeyHash()]; !twice {
			byHash[v.KeyHash()] = key
			verifiers = append(verifiers, v)
		}
	}
	s := Signed{Checkpoint: c}
	n, err := note.Open(data, note.VerifierList(verifiers...))
	switch {
	case errors.As(err, new(*note.UnverifiedNoteError)):
		return s, nil
	case errors.As(err, new(*note.InvalidSignatureError)):
		return Signed{}, ErrBadSignature
	case err != nil:
		return Signed{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	for _, sig := range n.Sigs {
		s.By = append(s.By, byHash[sig.Hash])
	}
	return s, nil
}

// parse reads the three lines, and leaves to note.Open of the signatures all but
// that they are written in one way only.
func parse(data []byte) (c Checkpoint, err error) {
	if len(data) > MaxBytes {
		return c, fmt.Errorf("%w: more than %d bytes", ErrMalformed, MaxBytes)
	}
	head, signatures, found := strings.Cut(string(data), "\n\n")
	lines := strings.Split(head, "\n")
	// A note's text ends at its last empty line; here there is one.
	if !found || len(lines) != 3 || strings.HasPrefix(signatures, "\n") || strings.Contains(signatures, "\n\n") {
		return c, fmt.Errorf("%w: not three lines and signatures", ErrMalformed)
	}
	for line := range strings.Lines(signatures) {
		encoded := strings.TrimSuffix(line[strings.LastIndexByte(line, ' ')+1:], "\n")
		if _, err := base64.StdEncoding.Strict().DecodeString(encoded); err != nil {
			return c, fmt.Errorf("%w: signature: %w", ErrMalformed, err)
		}
	}
	world, ours := strings.CutPrefix(lines[0], originPrefix)
	if !ours || world == "" {
		return c, fmt.Errorf("%w: %q is not the origin of a world", ErrMalformed, lines[0])
	}
	size, err := strconv.ParseUint(lines[1], 10, 64)
	if err != nil || size == 0 || size > MaxSize || lines[1] != strconv.FormatUint(size, 10) {
		return c, fmt.Errorf("%w: %q is not a size", ErrMalformed, lines[1])
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != len(c.Root) {
		return c, fmt.Errorf("%w: %q is not a root", ErrMalformed, lines[2])
	}
	return Checkpoint{World: world, Size: size, Root: Hash(root)}, nil
}

// FormatKey returns a signer's public key as https://c2sp.org/signed-note writes it
// and ParseKey reads it: name, key hash and key, with "+" between them.
func FormatKey(world string, key ed25519.PublicKey) (string, error) {
	text, err := note.NewEd25519VerifierKey(Origin(world), key)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	return text, nil
}

// ParseKey reads a key in the form of FormatKey. The errors are ErrBadKey.
func ParseKey(text string) (world string, key ed25519.PublicKey, err error) {
	v, err := note.NewVerifier(text)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	world, ours := strings.CutPrefix(v.Name(), originPrefix)
	if !ours || world == "" {
		return "", nil, fmt.Errorf("%w: %q is not the origin of a world", ErrBadKey, v.Name())
	}
	parts := strings.SplitN(text, "+", 3) // base64 has a "+" too
	data, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(data) != 1+ed25519.PublicKeySize {
		return "", nil, ErrBadKey
	}
	key = data[1:]
	if again, err := FormatKey(world, key); err != nil || again != text {
		return "", nil, ErrBadKey // another writing of it
	}
	return world, slices.Clone(key), nil
}

// newVerifier returns the verifier of a key's signatures under a world's origin.
func newVerifier(world string, key ed25519.PublicKey) (note.Verifier, error) {
	text, err := FormatKey(world, key)
	if err != nil {
		return nil, err
	}
	v, err := note.NewVerifier(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	return v, nil
}

// signer signs with a key what its verifier verifies.
type signer struct {
	note.Verifier
	key ed25519.PrivateKey
}

func (s signer) Sign(msg []byte) ([]byte, error) { return s.key.Sign(nil, msg, crypto.Hash(0)) }
