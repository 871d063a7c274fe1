// Package sshkey reads and writes the keys of approvers in the files of OpenSSH,
// so that whoever has an SSH key can approve with it. Only keys of type
// ssh-ed25519 are accepted.
//
// A public key is one line of an authorized_keys file (sshd(8)) without options:
// "ssh-ed25519", the key in base64, and a comment, which may be missing. A
// private key is a PEM block "OPENSSH PRIVATE KEY" (PROTOCOL.key of OpenSSH) with
// or without a passphrase, and nothing after it.
package sshkey

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

	"github.com/worldkernel/worldkernel/internal/file"
)

// MaxFileBytes is the greatest size of a key's file. Keys of other types fit, so
// that the error can name them.
const MaxFileBytes = 16 << 10

// maxCommentBytes bounds the comment of a new key.
const maxCommentBytes = 256

// Errors of ParsePrivate that a person can do something about.
var (
	// ErrPassphrase says that a passphrase does not open a private key.
	ErrPassphrase = errors.New("sshkey: wrong passphrase")
	// ErrPublic says that a public key was given for a private one.
	ErrPublic = errors.New("sshkey: a public key, not a private one")
)

// errSize is for what nobody has to read to the end.
var errSize = fmt.Errorf("sshkey: a key has at most %d bytes", MaxFileBytes)

// blockType is the type of OpenSSH's PEM blocks.
const blockType = "OPENSSH PRIVATE KEY"

// ParsePublic parses the file of a public key. The error says what stands there
// instead, without a part of it.
func ParsePublic(data []byte) (key ed25519.PublicKey, comment string, err error) {
	if len(data) > MaxFileBytes {
		return nil, "", errSize
	}
	line := strings.Trim(string(data), " \t\r\n")
	switch {
	case strings.HasPrefix(line, "-----BEGIN ") && strings.Contains(line, "PRIVATE KEY-----"):
		return nil, "", errors.New("sshkey: a private key, not a public one: the public one is in the file that ends in .pub")
	case strings.Contains(line, "\n"):
		return nil, "", errors.New("sshkey: want one public key on one line, not more lines")
	case !isPlain(line):
		return nil, "", errors.New("sshkey: not a public key: it holds a control character or is not UTF-8")
	}
	parsed, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
	switch {
	case err != nil:
		if name, _, _ := strings.Cut(line, " "); isAlgorithm(name) {
			return nil, "", otherType(name)
		}
		return nil, "", errors.New(`sshkey: not a public key of OpenSSH, which reads "ssh-ed25519 AAAA… alice"`)
	case len(options) > 0:
		return nil, "", errors.New("sshkey: options stand before the key: want it without")
	}
	key, err = public(parsed)
	return key, comment, err
}

// public returns the key in p, if that is one of ours.
func public(p ssh.PublicKey) (ed25519.PublicKey, error) {
	if outer, ok := p.(ssh.CryptoPublicKey); ok && p.Type() == ssh.KeyAlgoED25519 {
		if key, ok := outer.CryptoPublicKey().(ed25519.PublicKey); ok {
			return key, nil
		}
	}
	return nil, otherType(p.Type())
}

func otherType(name string) error {
	return fmt.Errorf("sshkey: want a key of type %s, not %s", ssh.KeyAlgoED25519, name)
}

// isAlgorithm reports whether a word names a type of key other than ours, also
// one that the library does not parse.
func isAlgorithm(word string) bool {
	known := strings.HasPrefix(word, "ssh-") || strings.HasPrefix(word, "ecdsa-") || strings.HasPrefix(word, "sk-")
	return known && word != ssh.KeyAlgoED25519
}

func isPlain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r != '\t' && unicode.IsControl(r) })
}

// ParsePrivate parses the file of a private key. It asks for the passphrase only
// where one is needed, and returns the error of asking as it is; others wrap
// ErrPassphrase or ErrPublic, or say what stands there instead.
func ParsePrivate(data []byte, passphrase func() ([]byte, error)) (ed25519.PrivateKey, error) {
	if len(data) > MaxFileBytes {
		return nil, errSize
	}
	block, rest := pem.Decode(data)
	switch {
	case block == nil && isPublic(data):
		return nil, ErrPublic
	case block == nil:
		return nil, errors.New("sshkey: not a private key of OpenSSH")
	case block.Type != blockType:
		return nil, fmt.Errorf("sshkey: want %s in the file of a private key, not %s", blockType, block.Type)
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("sshkey: more follows after the private key")
	}
	raw, err := ssh.ParseRawPrivateKey(data)
	if missing, ok := errors.AsType[*ssh.PassphraseMissingError](err); ok {
		if missing.PublicKey != nil {
			if _, err := public(missing.PublicKey); err != nil {
				return nil, err // before anybody is asked
			}
		}
		secret, asked := passphrase()
		switch {
		case asked != nil:
			return nil, asked
		case len(secret) == 0: // which the library takes for a mistake of its caller
			return nil, ErrPassphrase
		}
		raw, err = ssh.ParseRawPrivateKeyWithPassphrase(data, secret)
	}
	switch {
	case errors.Is(err, x509.IncorrectPasswordError):
		return nil, ErrPassphrase
	case err != nil:
		return nil, fmt.Errorf("sshkey: not a private key of OpenSSH: %w", err)
	}
	return private(raw)
}

func isPublic(data []byte) bool {
	_, _, _, _, err := ssh.ParseAuthorizedKey(data)
	return err == nil
}

// private returns the key in what the library makes of a file.
func private(raw any) (ed25519.PrivateKey, error) {
	key, ok := raw.(*ed25519.PrivateKey)
	if !ok {
		signer, err := ssh.NewSignerFromKey(raw)
		if err != nil {
			return nil, fmt.Errorf("sshkey: %w", err)
		}
		return nil, otherType(signer.PublicKey().Type())
	}
	// Signing under another public key than that of the seed gives the seed away.
	if !key.Equal(ed25519.NewKeyFromSeed(key.Seed())) {
		return nil, errors.New("sshkey: the private key is damaged: its two halves do not belong together")
	}
	return *key, nil
}

// New makes a key and returns its two files. An empty passphrase leaves the
// private one open to whoever reads it. The comment, which may be empty, is one
// line.
func New(comment string, passphrase []byte) (privateFile, publicFile []byte, err error) {
	if len(comment) > maxCommentBytes || !isPlain(comment) {
		return nil, nil, fmt.Errorf("sshkey: a comment has at most %d bytes of UTF-8, without control characters", maxCommentBytes)
	}
	key, secret, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("sshkey: %w", err)
	}
	var block *pem.Block
	if len(passphrase) == 0 {
		block, err = ssh.MarshalPrivateKey(secret, comment)
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(secret, comment, passphrase)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("sshkey: %w", err)
	}
	line := strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(wrap(key))), "\n")
	return pem.EncodeToMemory(block), []byte(strings.TrimSpace(line+" "+comment) + "\n"), nil
}

// PublicSuffix is how the file of a public key ends.
const PublicSuffix = ".pub"

// WriteNew makes a key: the private file as New has it, and the public file beside it, with
// PublicSuffix. There are both or none, durable with their names; where one was there already the
// error wraps fs.ErrExist, and nothing is overwritten.
func WriteNew(path, comment string, passphrase []byte) (ed25519.PublicKey, error) {
	private, public, err := New(comment, passphrase)
	if err != nil {
		return nil, err
	}
	if err := file.WriteNew(path, private, 0o600); err != nil {
		return nil, err
	}
	if err := file.WriteNew(path+PublicSuffix, public, 0o644); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	if err := file.SyncDir(filepath.Dir(path)); err != nil {
		return nil, errors.Join(err, os.Remove(path), os.Remove(path+PublicSuffix))
	}
	key, _, err := ParsePublic(public)
	return key, err
}

// Fingerprint returns a key's SHA-256 as ssh-keygen -l prints it.
func Fingerprint(key ed25519.PublicKey) string { return ssh.FingerprintSHA256(wrap(key)) }

// wrap panics where key has not the length of one.
func wrap(key ed25519.PublicKey) ssh.PublicKey {
	wrapped, err := ssh.NewPublicKey(key)
	if err != nil {
		panic("sshkey: " + err.Error())
	}
	return wrapped
}
