package worldctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/sshkey"
)

// writeTemp writes a file of its own.
func writeTemp(t *testing.T, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "alice")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	return file
}

func TestKeyOfAnApproverIsReadFromItsFile(t *testing.T) {
	c := &cli{stdin: strings.NewReader("")}
	private, public, err := sshkey.New("alice", nil)
	require.NoError(t, err)
	key, err := c.approverKey(writeTemp(t, private))
	require.NoError(t, err)
	want, _, err := sshkey.ParsePublic(public)
	require.NoError(t, err)
	require.Equal(t, want, key.Public())

	_, err = c.approverKey(writeTemp(t, public))
	require.ErrorIs(t, err, sshkey.ErrPublic)
	code, hint := judge(err)
	require.Equal(t, exitUsage, code)
	require.Contains(t, hint, "private key")

	_, err = c.approverKey(filepath.Join(t.TempDir(), "alice"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = c.approverKey(writeTemp(t, append(private, make([]byte, sshkey.MaxFileBytes)...)))
	require.Error(t, err)
}

func TestSealedKeyOfAnApproverHasItsOwnPassphrase(t *testing.T) {
	private, _, err := sshkey.New("alice", []byte("open sesame"))
	require.NoError(t, err)
	file := writeTemp(t, private)

	c := &cli{stdin: strings.NewReader("open sesame\n")}
	c.passphrase.known = []byte("open sesame") // of the keyring
	_, err = c.approverKey(file)
	require.ErrorIs(t, err, errNoPassphrase)
	_, hint := judge(err)
	require.Equal(t, hintPassphrase, hint)

	c.passphrase.file = writeTemp(t, []byte("open sesame\n"))
	_, err = c.approverKey(file)
	require.NoError(t, err)

	c.passphrase.file = ""
	t.Setenv(passphraseEnv, "close sesame")
	_, err = c.approverKey(file)
	require.ErrorIs(t, err, sshkey.ErrPassphrase)
	_, hint = judge(err)
	require.Equal(t, hintPassphrase, hint)
	require.Equal(t, "open sesame", string(c.passphrase.known))
}
