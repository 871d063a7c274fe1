package worldctl

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
)

// shown returns all that is made of a world to be shown to strangers, as it is and
// unpacked: a checkpoint, bundles, and proofs of receipts and of the checkpoint.
func shown(t *testing.T, dir string) []byte {
	t.Helper()
	var all bytes.Buffer
	base := t.TempDir()
	note := filepath.Join(base, "checkpoint")
	worldctl(t, nil, "-w", dir, "checkpoint", note)
	all.Write(worldctl(t, nil, "-w", dir, "checkpoint", "-o", "json"))
	all.Write(worldctl(t, nil, "-w", dir, "keys", "list", "--signers"))
	for _, args := range [][]string{nil, {"--from", "2"}} {
		bundle := worldctl(t, nil, append([]string{"-w", dir, "export", "-", "--format", "bundle"}, args...)...)
		all.Write(bundle)
		r, err := gzip.NewReader(bytes.NewReader(bundle))
		require.NoError(t, err)
		_, err = io.Copy(&all, r)
		require.NoError(t, err)
		all.Write(worldctl(t, bytes.NewReader(bundle), "verify", "-", "-v"))
	}
	proofs := [][]byte{worldctl(t, nil, "-w", dir, "prove", "checkpoint", note)}
	type line struct {
		ID json.Number `json:"id"`
	}
	receipts := jsonLines[line](t, worldctl(t, nil, "-w", dir, "tail", "--kind", "invocation.finished", "-o", "jsonl"))
	for _, r := range receipts[:10] {
		proofs = append(proofs, worldctl(t, nil, "-w", dir, "prove", "record", r.ID.String()))
	}
	for _, p := range proofs {
		all.Write(p)
		var parts map[string]any
		require.NoError(t, json.Unmarshal(p, &parts))
		for _, part := range parts {
			text, _ := part.(string)
			if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
				all.Write(raw)
			}
		}
		all.Write(worldctl(t, bytes.NewReader(p), "verify", "-", "-v"))
	}
	return all.Bytes()
}

// What is shown to strangers verifies without a secret, and holds none: neither those
// in the keyring, nor the private keys that are derived from them.
func TestWhatIsShownHoldsNoKey(t *testing.T) {
	dir := townSent(t)
	worldctl(t, nil, "-w", dir, "run", "--ticks", "5")
	worldctl(t, nil, "-w", dir, "keys", "rotate")
	worldctl(t, nil, "-w", dir, "run")
	all := shown(t, dir)

	file, err := os.ReadFile(filepath.Join(dir, ".world", "keyring"))
	require.NoError(t, err)
	keys, err := receipt.DecodeKeyring(file)
	require.NoError(t, err)
	signers, err := keys.CheckpointKeys()
	require.NoError(t, err)
	require.Len(t, signers, 2)
	secrets := secretsOf(t, file)
	require.Len(t, secrets, 2)
	anchor, err := keys.AnchorKey()
	require.NoError(t, err)
	secrets = append(secrets, anchor)
	for _, key := range signers {
		secrets = append(secrets, key.Seed(), key)
	}
	lower := bytes.ToLower(all)
	for i, secret := range secrets {
		require.False(t, bytes.Contains(all, secret), "secret %d", i)
		require.False(t, bytes.Contains(lower, []byte(hex.EncodeToString(secret))), "secret %d in hex", i)
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString(secret)
			require.False(t, bytes.Contains(all, []byte(text[:len(text)-1])), "secret %d in base64", i)
		}
	}
}

// secretsOf returns the secrets in a keyring file that is not sealed.
func secretsOf(t *testing.T, file []byte) (all [][]byte) {
	t.Helper()
	for _, rest := range bytes.Split(file, []byte("secret"))[1:] {
		all = append(all, rest[2:][:receipt.SecretBytes]) // behind its head
	}
	return all
}
