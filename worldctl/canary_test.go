package worldctl

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// canaries is how many secrets are let out of their cage.
const canaries = 50

// canary is a secret. Its song is in every form of it but base64.
type canary struct{ name, song, value string }

func newCanary(i int) canary {
	raw := make([]byte, 8)
	_, _ = rand.Read(raw) // it never errs
	song := "canary" + hex.EncodeToString(raw)
	return canary{fmt.Sprintf("c%02d", i), song, song + "/+= end"}
}

// traces returns what must be found nowhere.
func (c canary) traces() []string {
	return []string{c.song, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(c.value)), "="), base64.RawURLEncoding.EncodeToString([]byte(c.value))}
}

// inFile reports whether the secret is in .world/secrets and not in the
// environment.
func inFile(i int) bool { return i/5%2 == 0 }

// canaryEffect declares an effect that is given a secret and blabs it.
func canaryEffect(i int, c canary, server string) string {
	secret := "secret://" + c.name
	program := func(how string) string {
		return fmt.Sprintf(`{adapter: exec, config: {program: ./blab, args: [%s], env: {CANARY: "%s"}}`, how, secret)
	}
	switch i % 5 {
	case 0:
		return fmt.Sprintf(`{adapter: http, config: {url: "%s/body", method: POST, secret_headers: {x-canary: "%s"}}}`, server, secret)
	case 1:
		return fmt.Sprintf(`{adapter: http, config: {url: "%s/fault", method: POST, secret_headers: {authorization: "Bearer %s"}}}`, server, secret)
	case 2:
		return program("stdout") + "}"
	case 3:
		return program("stderr") + "}"
	default: // it dies, and its verifier blabs as well
		return program("die") + fmt.Sprintf(`, on_in_doubt: verify, verify: {adapter: exec, config: {program: ./blab, args: [verify], env: {CANARY: "%s"}}}}`, secret)
	}
}

const canaryProgram = `#!/bin/sh
case $1 in
stdout) printf '{"env": "%s", "encoded": "%s"}' "$CANARY" "$(printf %s "$CANARY" | base64 -w0)" ;;
stderr) echo "fault: $CANARY" >&2; exit 3 ;;
die) echo "dying with $CANARY" >&2; kill -9 $$ ;;
verify) printf '{"happened": true, "payload": ["%s"], "reason": "seen %s"}' "$CANARY" "$CANARY" ;;
esac
`

// blabbing returns a server that says what secret headers it got, in every way
// it can.
func blabbing(t *testing.T) (address string, heard func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value := r.Header.Get("X-Canary") + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		mu.Lock()
		all = append(all, value)
		mu.Unlock()
		w.Header().Set("Location", "/made/"+strings.ReplaceAll(value, " ", "%20"))
		w.Header().Set("Etag", `"`+value+`"`)
		w.Header().Set("X-Request-Id", value)
		if r.URL.Path == "/fault" {
			http.Error(w, "no access with "+value+" or "+url.QueryEscape(value), http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"you sent": %q, %q: "%s"}`, value, value, base64.StdEncoding.EncodeToString([]byte(value)))
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

const canaryReducer = `def reduce(ctx, state, event):
    if event.name == "receipt":
        return event.data
    ctx.effect(event.data["kind"], {})
    return {}
`

// TestSecretsAreNowhere gives 50 secrets to effects that do all they can to
// leave them somewhere.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"/bin/sh", "/usr/bin/base64"} {
		if _, err := os.Stat(tool); err != nil {
			t.Skipf("the effects need %s", tool)
		}
	}
	server, heard := blabbing(t)
	dir := filepath.Join(t.TempDir(), "w")
	events := ""
	var env, effects []string
	birds := make([]canary, canaries)
	for i := range birds {
		c := newCanary(i)
		birds[i] = c
		effects = append(effects, fmt.Sprintf("blab.%s: %s", c.name, canaryEffect(i, c, server)))
		events += fmt.Sprintf(`{"event": "go", "data": {"to": "%s", "kind": "blab.%s"}}`+"\n", c.name, c.name)
		if !inFile(i) {
			env = append(env, "WORLDCTL_SECRET_"+c.name+"="+c.value)
		}
	}
	makeWorld(t, dir, map[string]string{
		"world.yaml": worldtest.Caller("canaries", strings.Join(effects, "\n  ")), "caller.star": canaryReducer, "blab": canaryProgram,
	})
	secrets := filepath.Join(dir, ".world", "secrets")
	require.NoError(t, os.MkdirAll(secrets, 0o700))
	for i, c := range birds {
		if inFile(i) {
			require.NoError(t, os.WriteFile(filepath.Join(secrets, c.name), []byte(c.value+"\n"), 0o600))
		}
	}

	said := &spoken{t: t, dir: dir, env: env}
	said.hear(events, "send", "-")
	said.hear("", "run", "-v")
	require.Len(t, heard(), canaries*2/5, "the secrets did leave")
	said.everything()
	exported := filepath.Join(t.TempDir(), "export")
	for _, format := range []string{"bundle", "jsonl", "html"} {
		said.hear("", "export", exported+"."+format, "--format", format)
		data, err := os.ReadFile(exported + "." + format)
		require.NoError(t, err)
		said.all.Write(data)
	}
	said.all.Write(shown(t, dir))
	for _, c := range birds {
		require.Contains(t, said.all.String(), "secret://"+c.name, "its reference stands where it was")
		for _, trace := range c.traces() {
			require.NotContains(t, said.all.String(), trace, "secret %s was said", c.name)
		}
	}
	silent(t, dir, secrets, birds)
}

// spoken is all that worldctl has said of a world.
type spoken struct {
	t   *testing.T
	dir string
	env []string
	all bytes.Buffer
}

// hear runs a verb and keeps what it says.
func (s *spoken) hear(stdin string, args ...string) {
	s.t.Helper()
	cmd := exec.Command("worldctl", append([]string{"-w", s.dir}, args...)...)
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Stdin = strings.NewReader(stdin)
	out, _ := cmd.CombinedOutput()
	require.Equal(s.t, exitOK, cmd.ProcessState.ExitCode(), "%v: %s", args, out)
	s.all.Write(out)
}

// everything has every verb that shows something show all of it.
func (s *spoken) everything() {
	s.t.Helper()
	for _, verb := range [][]string{
		{"status"},
		{"tail"},
		{"cell", "list"},
		{"intent", "list"},
		{"receipt", "list"},
		{"keys", "list"},
		{"verify"},
		{"replay"},
		{"validate"},
		{"export", "-", "--format", "jsonl"},
		{"run"},
		{"step"},
	} {
		s.hear("", append(verb, "-v")...)
		s.hear("", append(verb, "-o", "jsonl")...)
	}
	all := jsonLines[struct{ Key, Cell string }](s.t, worldctl(s.t, nil, "-w", s.dir, "intent", "list", "-o", "jsonl"))
	require.Len(s.t, all, canaries)
	for _, in := range all[:10] { // of every way, from both places
		s.hear("", "intent", "show", in.Key, "-v")
		s.hear("", "receipt", "show", in.Key, "-v")
		s.hear("", "cell", "show", in.Cell, "-v")
		s.hear("", "timeline", in.Cell, "-v")
	}
}

// silent looks for secrets in all files of a world but those that people keep
// them in, and in every record and content, as they are and unpacked.
func silent(t *testing.T, dir, secrets string, birds []canary) {
	t.Helper()
	search := func(where string, data []byte) {
		for _, c := range birds {
			for _, trace := range c.traces() {
				require.False(t, bytes.Contains(data, []byte(trace)), "secret %s is in %s", c.name, where)
			}
		}
	}
	files := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == secrets {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		files++
		data, err := os.ReadFile(path)
		search(path, data)
		return err
	}))
	require.Greater(t, files, 5)
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	for s, err := range lw.Scan(0) {
		require.NoError(t, err)
		search(fmt.Sprintf("record #%d", s.ID), s.Bytes)
		require.NoError(t, s.Record.Load(lw))
		search(fmt.Sprintf("payload of #%d", s.ID), s.Record.Payload)
	}
	require.NoError(t, lw.Close())
}
