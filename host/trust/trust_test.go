package trust

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

func effectOf(t *testing.T, adapter, config string) *manifest.Effect {
	t.Helper()
	data, err := canon.FromJSON([]byte(config))
	require.NoError(t, err)
	return &manifest.Effect{Adapter: adapter, Config: data}
}

// strangers are effects of somebody else's manifest. need: what a worker without a
// file leaves them for; lacks: what the example leaves them for. Empty: it takes them.
var strangers = []struct{ name, kind, adapter, config, need, lacks string }{
	{"a public page", "mail.send", "http", `{"url":"https://api.mail.example/v1/send"}`, "", ""},
	{"one of another kind", "news.read", "http", `{"url":"https://api.mail.example/v1/send"}`, "", "kind"},
	{"another server", "mail.send", "http", `{"url":"https://evil.example/"}`, "", "host covers evil.example"},
	{"a name that ends alike", "mail.send", "http", `{"url":"https://api.mail.example.evil.example/"}`, "", "host"},
	{"any server", "mail.send", "http", `{"max_redirects":3}`, "", "each call"},
	{"a secret", "mail.send", "http", `{"url":"https://API.mail.example:443/v1","secret_headers":{"Authorization":"Bearer secret://MAIL_TOKEN"}}`, "secret MAIL_TOKEN", ""},
	{"a secret elsewhere", "mail.send", "http", `{"url":"https://hooks.mail.example/","secret_headers":{"A":"secret://MAIL_TOKEN"}}`, "secret", "secret"},
	{"a secret in the clear", "mail.send", "http", `{"url":"http://api.mail.example/","secret_headers":{"A":"secret://MAIL_TOKEN"}}`, "secret", "secret"},
	{"a secret on another port", "mail.send", "http", `{"url":"https://api.mail.example:8443/","secret_headers":{"A":"secret://MAIL_TOKEN"}}`, "secret", "secret"},
	{"another secret", "mail.send", "http", `{"url":"https://api.mail.example/","secret_headers":{"A":"secret://BANK"}}`, "secret BANK", "secret"},
	{"a model", "model.reply", "llm", `{"base_url":"https://models.example/v1","api_key":"secret://MODEL_KEY"}`, "secret", ""},
	{"another model", "model.reply", "llm", `{"base_url":"https://evil.example/v1","api_key":"secret://MODEL_KEY"}`, "secret", "host"},
	{"tools elsewhere", "mail.x", "mcp", `{"url":"https://evil.example/mcp"}`, "", "adapter"},
	{"a program for tools", "mail.x", "mcp", `{"command":["./tools/label"]}`, "program", "adapter"},
	{"a program", "mail.print", "exec", `{"program":"./tools/label","args":["--size","a5"],"env":{"PRINTER":"p1","KEY":"secret://PRINT_KEY"}}`, "secret", ""},
	{"a program without a secret", "mail.print", "exec", `{"program":"./tools/label","args":["--size","a4","x"]}`, "program ./tools/label", ""},
	{"other arguments", "mail.print", "exec", `{"program":"./tools/label","args":["--exec","sh"]}`, "program", "program"},
	{"arguments of params", "mail.print", "exec", `{"program":"./tools/label","args":["--size",{"param":"size"}]}`, "program ./tools/label", ""},
	{"arguments of params where others are meant", "mail.print", "exec", `{"program":"./tools/label","args":[{"param":"size"},"--size"]}`, "program ./tools/label", "program"},
	{"another program", "mail.print", "exec", `{"program":"sh","args":["-c","id"]}`, "program sh", "program"},
	{"a variable", "mail.print", "exec", `{"program":"./tools/label","args":["--size"],"env":{"LD_PRELOAD":"/tmp/x.so"}}`, "program", "env names LD_PRELOAD"},
	{"a secret for a program that it is not for", "mail.print", "exec", `{"program":"./tools/label","args":["--size"],"env":{"KEY":"secret://MAIL_TOKEN"}}`, "secret", "secret"},
	{"files", "mail.file", "file", `{"root":"outbox/today"}`, "files in outbox/today", ""},
	{"other files", "mail.file", "file", `{"root":"outbox/../.ssh"}`, "files", "root"},
	{"all files", "mail.file", "file", `{}`, "files", "root"},
	{"an adapter of one's own", "mail.queue", "queue", `{"login":["secret://QUEUE_LOGIN"]}`, "secret", ""},
	{"what is never performed here", "mail.send", "stub", `{"answers":"secret://BANK"}`, "", ""},
}

func TestWorkerTakesWhatItsFileTrusts(t *testing.T) {
	example, err := os.ReadFile("testdata/trust.example")
	require.NoError(t, err)
	trust, err := Parse(example)
	require.NoError(t, err)
	documented, err := os.ReadFile("../../docs/workers.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(example)) {
		require.Contains(t, string(documented), line, "the example is in docs/workers.md")
	}
	for _, s := range strangers {
		e := effectOf(t, s.adapter, s.config)
		require.NoError(t, All().Refuses(s.kind, e), s.name)
		for want, trust := range map[string]*Trust{s.need: {}, "no line " + s.lacks: trust} {
			err := trust.Refuses(s.kind, e)
			switch want {
			case "", "no line ":
				require.NoError(t, err, s.name)
			case "no line each call":
				require.ErrorContains(t, err, "each call says where it goes", s.name)
			default:
				require.ErrorContains(t, err, want, s.name)
			}
		}
	}
	empty, err := Parse(nil)
	require.NoError(t, err)
	require.Error(t, empty.Refuses("mail.send", effectOf(t, "http", `{"url":"https://api.mail.example/"}`)), "a file says all that is trusted")
}

func TestSecretGoesWhereItsLineSays(t *testing.T) {
	trust, err := Parse([]byte("kind *\nadapter http\nhost *\nsecret KEY https://api.example:8443 http://127.0.0.1:99\n"))
	require.NoError(t, err)
	require.NoError(t, trust.Refuses("a", effectOf(t, "http", `{"secret_headers":{"A":"secret://KEY"}}`)), "each call says where it goes")
	for address, ok := range map[string]bool{
		"https://api.example:8443/x": true, "http://127.0.0.1:99/": true, "https://api.example/x": false, "http://api.example:8443/x": false,
		"https://evil.example:8443/": false, "http://127.0.0.1/": false,
	} {
		u, err := url.Parse(address)
		require.NoError(t, err)
		require.NoError(t, trust.egress(u, nil))
		err = trust.egress(u, []string{"KEY"})
		require.Equal(t, ok, err == nil, address)
		var denied *governance.CapError
		require.True(t, ok || errors.As(err, &denied), address)
		require.Error(t, trust.egress(u, []string{"OTHER"}))
		require.NoError(t, (&Trust{}).egress(u, nil))
		require.Error(t, (&Trust{}).egress(u, []string{"KEY"}))
	}
	lookup := func(name string) (string, error) { return "value of " + name, nil }
	_, err = trust.Lookup(lookup)("KEY")
	require.NoError(t, err)
	_, err = trust.Lookup(lookup)("OTHER")
	require.ErrorContains(t, err, "OTHER")
	_, err = new(Trust).Lookup(lookup)("KEY")
	require.Error(t, err)
}

func TestTrustFileErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"kind *\n\n# hosts\nhosts a.example":    `line 4: "hosts" is not`,
		"adapter":                               "line 1: adapter names nothing",
		"kind *\nhost https://a.example":        "line 2: ",
		"host a.example/x":                      "line 1: ",
		"host a.example:99":                     "line 1: ",
		"host a.*.example":                      "line 1: ",
		"root a\nroot b/../..":                  "line 2: ",
		"secret A":                              "line 1: secret A has no destination",
		"secret secret://A https://a.example":   "line 1: a secret is named without",
		"kind *\nsecret A https://a.example/v1": "line 2: ",
		"secret A https://user@a.example":       "line 1: ",
		"program ./out/x\nroot in\nroot out":    "line 3: the program ./out/x is in the root out",
		"root .\nadapter exec\nprogram tools/x": "line 3: ",
		"kind *\nprogram /srv/a\x00b":           `line 2: "/srv/a\x00b" is no text`,
		"kind *\nroot /srv/\xff":                `line 2: "/srv/\xff" is no text`,
		strings.Repeat("program x\n", 1001):     "line 1001: more than 1000 programs",
		"root" + strings.Repeat(" /r", 101):     "line 1: more than 100 roots",
		"kind *\n\ufeffkind *":                  `line 2: "\ufeffkind" is not`,
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
	for _, text := range []string{"host ::1 127.0.0.1 *.a.example", "root .\nprogram sh", "program /usr/bin/x\nroot /srv", "# nothing", "", "\ufeffkind *\r\nadapter http\r\n", "kind " + strings.Repeat("x ", 100_000)} {
		_, err := Parse([]byte(text))
		require.NoError(t, err, text)
	}
}

// TestNoProgramIsWhereEffectsWrite: however a root and what is run are spelled, and
// also where a link is made later.
func TestNoProgramIsWhereEffectsWrite(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"tools", "out", "safe"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	for _, name := range []string{"tools/x", "out/run.py", "safe/y"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o700))
	}
	require.NoError(t, os.Symlink("out", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("../out/run.py", filepath.Join(dir, "safe", "linked")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	for text, ok := range map[string]bool{
		"root tools\nprogram " + dir + "/tools/x":      false,
		"root " + dir + "/tools\nprogram tools/x":      false,
		"root " + dir + "/tools\nprogram ./safe/y":     true,
		"root tools\nprogram " + dir + "//safe/../out": true,
		"root link\nprogram out/run.py":                false,
		"root out\nprogram link/run.py":                false,
		"root out\nprogram link/later":                 false,
		"root out\nprogram safe/linked":                false,
		"root out\nprogram ./dangling":                 false,
		"root link\nprogram python3 out/run.py":        false,
		"root out\nprogram python3 -I " + dir + "/out": false,
		"root " + dir + "\nprogram sh -e tools/x":      false,
		"root .\nprogram sh -e --size a4 *":            true,
		"root out\nprogram sh --rc=" + dir + "/out/x":  false,
		"root out\nprogram sh -I" + dir + "/out":       false,
		"root out\nprogram sh safe/y":                  true,
		"root " + filepath.Dir(dir) + "\nprogram sh":   true,
		"root " + dir + "\nprogram " + dir + "/safe/y": false,
	} {
		trust, err := Parse([]byte(text))
		if err == nil {
			err = trust.CheckPrograms(dir)
		}
		require.Equal(t, ok, err == nil, "%s: %v", text, err)
	}
	trust, err := Parse([]byte("kind *\nadapter exec\nroot out\nprogram safe/y *"))
	require.NoError(t, err)
	require.NoError(t, trust.CheckPrograms(dir))
	runs := trust.runs(dir)
	require.NoError(t, runs(filepath.Join(dir, "safe/y"), nil))
	var denied *governance.CapError
	require.ErrorAs(t, runs(filepath.Join(dir, "safe/y"), []string{"out/run.py"}), &denied)
	require.NoError(t, os.Remove(filepath.Join(dir, "safe", "y")))
	require.NoError(t, os.Symlink("../out/run.py", filepath.Join(dir, "safe", "y")))
	require.ErrorAs(t, runs(filepath.Join(dir, "safe/y"), nil), &denied)
}
