package sshkey_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/worldkernel/worldkernel/internal/sshkey"
)

// blob is a fixed public key in base64.
const blob = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"

var errAsked = errors.New("asked")

func notAsked() ([]byte, error) { return nil, errAsked }

func answer(passphrase string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(passphrase), nil }
}

func TestNewKeysReadBack(t *testing.T) {
	private, public, err := sshkey.New("alice at home", nil)
	require.NoError(t, err)
	key, comment, err := sshkey.ParsePublic(public)
	require.NoError(t, err)
	require.Equal(t, "alice at home", comment)
	secret, err := sshkey.ParsePrivate(private, notAsked)
	require.NoError(t, err)
	require.Equal(t, key, secret.Public())
	_, other, err := sshkey.New("", nil)
	require.NoError(t, err)
	require.NotEqual(t, public[:len(other)-1], other[:len(other)-1])
}

func TestEncryptedKeysOpenWithTheirPassphraseOnly(t *testing.T) {
	private, public, err := sshkey.New("", []byte("open sesame"))
	require.NoError(t, err)
	key, _, err := sshkey.ParsePublic(public)
	require.NoError(t, err)
	secret, err := sshkey.ParsePrivate(private, answer("open sesame"))
	require.NoError(t, err)
	require.Equal(t, key, secret.Public())
	_, err = sshkey.ParsePrivate(private, answer("close sesame"))
	require.ErrorIs(t, err, sshkey.ErrPassphrase)
	_, err = sshkey.ParsePrivate(private, answer(""))
	require.ErrorIs(t, err, sshkey.ErrPassphrase)
	_, err = sshkey.ParsePrivate(private, notAsked)
	require.ErrorIs(t, err, errAsked)
}

func TestFingerprintIsThatOfSSH(t *testing.T) {
	key, comment, err := sshkey.ParsePublic([]byte("ssh-ed25519 " + blob + "\talice \r\n"))
	require.NoError(t, err)
	require.Equal(t, "alice", comment)
	require.Equal(t, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", hex.EncodeToString(key))
	require.Equal(t, "SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA", sshkey.Fingerprint(key))
}

func TestOtherThanOnePublicKeyIsRefused(t *testing.T) {
	good := "ssh-ed25519 " + blob
	private, _, err := sshkey.New("", nil)
	require.NoError(t, err)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	other, err := ssh.NewPublicKey(&ec.PublicKey)
	require.NoError(t, err)
	onToken := lineOf("sk-ssh-ed25519@openssh.com", ssh.Marshal(struct {
		Name   string
		Key    []byte
		Origin string
	}{"sk-ssh-ed25519@openssh.com", make([]byte, 32), "ssh:"}))
	for name, c := range map[string]struct{ file, says string }{
		"nothing":                {"\n", "not a public key"},
		"text":                   {"hello world", "not a public key"},
		"a type alone":           {"ssh-ed25519", "not a public key"},
		"a key alone":            {blob, "not a public key"},
		"a key cut short":        {good[:len(good)-4], "not a public key"},
		"rubbish in the key":     {good + "AAAA", "not a public key"},
		"a return in the key":    {good[:40] + "\r" + good[40:], "control character"},
		"a hidden comment":       {good + " a\x1b[2K", "control character"},
		"Latin 1":                {good + " \xe9", "UTF-8"},
		"two keys":               {good + "\n" + good + "\n", "one line"},
		"a comment above":        {"# alice\n" + good, "one line"},
		"a comment instead":      {"# " + good, "not a public key"},
		"options":                {`from="10.0.0.1",no-pty ` + good, "options"},
		"another name":           {"ssh-rsa " + blob, "not ssh-rsa"},
		"a damaged RSA key":      {"ssh-rsa AAAA", "not ssh-rsa"},
		"an ECDSA key":           {string(ssh.MarshalAuthorizedKey(other)), "not ecdsa-sha2-nistp256"},
		"a key on a token":       {"sk-ssh-ed25519@openssh.com AAAA alice", "not sk-ssh-ed25519@openssh.com"},
		"another key on a token": {onToken, "not sk-ssh-ed25519@openssh.com"},
		"a private key":          {string(private), "a private key"},
		"a long file":            {good + strings.Repeat(" ", sshkey.MaxFileBytes), "at most 16384 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			key, _, err := sshkey.ParsePublic([]byte(c.file))
			require.ErrorContains(t, err, c.says)
			require.Nil(t, key)
		})
	}
}

func TestOtherThanAPrivateKeyIsRefused(t *testing.T) {
	private, public, err := sshkey.New("", nil)
	require.NoError(t, err)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	open, err := ssh.MarshalPrivateKey(ec, "")
	require.NoError(t, err)
	closed, err := ssh.MarshalPrivateKeyWithPassphrase(ec, "", []byte("x"))
	require.NoError(t, err)
	damaged, _ := pem.Decode(private)
	at := bytes.LastIndex(damaged.Bytes, publicBytes(t, public)) // the second half of the private key
	damaged.Bytes[at] ^= 1
	for name, c := range map[string]struct{ file, says string }{
		"nothing":                  {"", "not a private key"},
		"text":                     {"hello", "not a private key"},
		"a block of nothing":       {pemOf("OPENSSH PRIVATE KEY", nil), "not a private key"},
		"another block":            {pemOf("RSA PRIVATE KEY", []byte{1}), "not RSA PRIVATE KEY"},
		"an ECDSA key":             {string(pem.EncodeToMemory(open)), "not ecdsa-sha2-nistp256"},
		"an ECDSA key, encrypted":  {string(pem.EncodeToMemory(closed)), "not ecdsa-sha2-nistp256"},
		"two keys":                 {string(private) + string(private), "more follows"},
		"a key cut short":          {string(private[:len(private)/2]), "not a private key"},
		"halves of different keys": {string(pem.EncodeToMemory(damaged)), "damaged"},
		"a long file":              {string(private) + strings.Repeat("\n", sshkey.MaxFileBytes), "at most 16384 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := sshkey.ParsePrivate([]byte(c.file), notAsked)
			require.ErrorContains(t, err, c.says)
			require.Nil(t, key)
		})
	}
	_, err = sshkey.ParsePrivate(public, notAsked)
	require.ErrorIs(t, err, sshkey.ErrPublic)
}

func TestCommentsStayOnTheirLine(t *testing.T) {
	for _, comment := range []string{"a\nssh-ed25519 " + blob, "a\x00", "\xff", strings.Repeat("x", 257)} {
		_, _, err := sshkey.New(comment, nil)
		require.Error(t, err)
	}
}

// TestSSHReadsOurKeysAndWeItsKeys checks the formats against another program.
func TestSSHReadsOurKeysAndWeItsKeys(t *testing.T) {
	program, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	run := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	for name, passphrase := range map[string]string{"open": "", "encrypted": "open sesame"} {
		t.Run(name, func(t *testing.T) {
			ours := filepath.Join(t.TempDir(), "ours")
			private, public, err := sshkey.New("alice", []byte(passphrase))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(ours, private, 0o600))
			require.NoError(t, os.WriteFile(ours+".pub", public, 0o600))
			require.Equal(t, string(public), run("-y", "-P", passphrase, "-f", ours))
			key, _, err := sshkey.ParsePublic(public)
			require.NoError(t, err)
			require.Contains(t, run("-l", "-f", ours+".pub"), " "+sshkey.Fingerprint(key)+" ")

			theirs := filepath.Join(t.TempDir(), "theirs")
			run("-q", "-t", "ed25519", "-N", passphrase, "-C", "bob", "-f", theirs)
			file, err := os.ReadFile(theirs)
			require.NoError(t, err)
			secret, err := sshkey.ParsePrivate(file, answer(passphrase))
			require.NoError(t, err)
			file, err = os.ReadFile(theirs + ".pub")
			require.NoError(t, err)
			key, comment, err := sshkey.ParsePublic(file)
			require.NoError(t, err)
			require.Equal(t, "bob", comment)
			require.Equal(t, key, secret.Public())
		})
	}
}

func FuzzParsePublic(f *testing.F) {
	f.Add([]byte("ssh-ed25519 " + blob + " alice\n"))
	f.Add([]byte(`no-pty,command="x" ssh-ed25519 ` + blob))
	f.Add([]byte("ssh-rsa AAAA"))
	f.Fuzz(func(t *testing.T, data []byte) {
		key, comment, err := sshkey.ParsePublic(data)
		if err != nil {
			return
		}
		wrapped, err := ssh.NewPublicKey(key)
		require.NoError(t, err)
		words := strings.Fields(string(data))
		require.Equal(t, strings.Fields(string(ssh.MarshalAuthorizedKey(wrapped))), words[:2])
		require.Equal(t, strings.Join(words[2:], " "), strings.Join(strings.Fields(comment), " "))
	})
}

func FuzzParsePrivate(f *testing.F) {
	for _, passphrase := range []string{"", "x"} {
		private, _, err := sshkey.New("alice", []byte(passphrase))
		require.NoError(f, err)
		f.Add(private)
		block, _ := pem.Decode(private)
		f.Add(block.Bytes)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, file := range [][]byte{data, pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: data})} {
			key, err := sshkey.ParsePrivate(file, notAsked)
			if err == nil {
				require.Equal(t, ed25519.NewKeyFromSeed(key.Seed()), key)
			}
		}
	})
}

func lineOf(kind string, data []byte) string {
	return kind + " " + base64.StdEncoding.EncodeToString(data)
}

func pemOf(kind string, data []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
}

func publicBytes(t *testing.T, line []byte) []byte {
	t.Helper()
	key, _, err := sshkey.ParsePublic(line)
	require.NoError(t, err)
	return key
}
