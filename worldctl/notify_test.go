package worldctl

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/notify"
)

// TestServeTellsWhatWaits of the worlds, to whom whoever starts it says, with a link to the
// page.
func TestServeTellsWhatWaits(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("k", 32)+"\n"), 0o600))
	got := make(chan notify.Message, 1)
	chat := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var m notify.Message
		if err == nil {
			err = json.Unmarshal(body, &m)
		}
		if err != nil || r.Header.Get(notify.SignatureHeader) == "" {
			t.Errorf("%v: %s", err, body)
		}
		got <- m
	}))
	defer chat.Close()
	to := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(to, []byte(chat.URL+"/hooks/s3cret\n"), 0o600))
	s := startServe(t, newCounter(t, "w"), "--notify-file", to, "--notify-key", key)
	_, body := s.ask("GET", "/api/worlds/w", "")
	var at struct{ Manifest struct{ Hash string } }
	require.NoError(t, json.Unmarshal([]byte(body), &at))
	status, body := s.ask("POST", "/api/worlds/w/proposals", `{"patch": {"base_manifest_hash": "`+at.Manifest.Hash+`", "ops": [], "new_version": 2}, "reason": "a new number"}`)
	require.Equal(t, http.StatusCreated, status, body)
	require.Contains(t, s.await("proposal waits: p1"), "world=w")
	m := <-got
	require.Equal(t, "w: 1 proposal waits\n"+s.url+"/ui/#/w/inbox", m.Text)
	require.Equal(t, "p1", m.New[0].Proposal)
	require.Equal(t, exitInterrupted, s.end())
}

func TestWhoIsToldTakesAKeyOfOnesOwn(t *testing.T) {
	dir, key := newCounter(t, "w"), filepath.Join(t.TempDir(), "key")
	const url = "https://chat.example/hooks/s3cret"
	for text, args := range map[string][]string{
		"go together":       {"--notify", url},
		"no such file":      {"--notify", url, "--notify-key", key},
		"go together: what": {"--notify-key", key},
	} {
		code, _, said := inProcess(t.Context(), append([]string{"serve", dir}, args...)...)
		require.Equal(t, exitUsage, code, said)
		require.Contains(t, said, text)
		require.NotContains(t, said, "s3cret")
	}
	file := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	exposed := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(exposed, []byte(url), 0o644)) //nolint:gosec // that is what is refused
	for text, args := range map[string][]string{
		"a password, which others":     {"--notify", "https://ann:s3cret@chat.example/", "--notify-key", key},
		"do not go together":           {"--notify", url, "--notify-file", file, "--notify-key", key},
		"is empty":                     {"--notify-file", file, "--notify-key", key},
		"0644":                         {"--notify-file", exposed, "--notify-key", key},
		"no such file":                 {"--notify-file", file + ".not", "--notify-key", key},
		"and --notify-key go together": {"--notify-file", exposed},
	} {
		code, _, said := inProcess(t.Context(), append([]string{"serve", dir}, args...)...)
		require.Equal(t, exitUsage, code, said)
		require.Contains(t, said, text)
		require.NotContains(t, said, "s3cret")
	}
	require.NoError(t, os.WriteFile(key, []byte("short"), 0o600))
	code, _, said := inProcess(t.Context(), "serve", dir, "--notify", url, "--notify-key", key)
	require.Equal(t, exitUsage, code)
	require.Contains(t, said, "5 bytes")
	require.NoError(t, os.Chmod(key, 0o644)) //nolint:gosec // that is what is refused
	code, _, said = inProcess(t.Context(), "serve", dir, "--notify", url, "--notify-key", key)
	require.Equal(t, exitUsage, code)
	require.Contains(t, said, "0644")
}
