package worldctl

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/owner"
)

// librarys are words that nobody typed and no document explains.
var librarys = regexp.MustCompile(`strconv\.|parsing "|[a-z]+: parse |cbor:|[^.]yaml: |[^.]json: |statat|openat|gzip: |pem: |asn1: |\bproto:|invalid syntax|out of range|pflag|cobra|goroutine|0x[0-9a-f]{8,}` +
	`|invalid argument "|shorthand|bad flag|time: |url: |[Uu]nmarshal|looking for beginning|unexpected end of|invalid character|EOF` +
	`|escape sequence in|first path segment|missing protocol|unsupported protocol|%!|no such host|missing port|too many colons|<nil>|map\[|&\{|\[\]byte|uint64|int64|go struct|Go value|base64 data`)

// nonsense is what a person may type where something else is wanted.
func nonsense(files string) []string {
	out := []string{"", "-1", "99999999999999999999999", "a b", "%zz", "http://[", "t99999999999999999999999", "@nowhere", "@" + filepath.Join(files, "broken"), "x/", "zzzzzzzz", "\x00", "deadbeef", "{"}
	for name, text := range map[string]string{
		"broken": `{"a": `, "other": `[1, "x", null]`, "tree": "a: [b\n  c: {", "keys": "a: 1\nworld: {x: 1}\n",
		"binary": "\x00\x01\x82\xff\xfe", "line": `{"raw": 7}` + "\n", "list": `[{"op": 7}]`, "raw": `{"raw": "?"}`,
	} {
		at := filepath.Join(files, name)
		_ = os.WriteFile(at, []byte(text), 0o600)
		out = append(out, at)
	}
	return append(out, files)
}

// wrongFor returns wrong values of a flag.
func wrongFor(f *pflag.Flag, all []string) []string {
	switch f.Value.Type() {
	case "bool":
		return []string{"maybe"}
	case "string", "stringArray", "stringSlice":
		return all
	}
	return []string{"", "-1", "x", "1.5", "1e3", "0x1g", "99999999999999999999999", "5 parsecs"}
}

// TestWrongArgumentsAreSaidInPlainWords gives every flag of every verb, and every verb,
// what it cannot take.
func TestWrongArgumentsAreSaidInPlainWords(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "w")
	saidTo(t, time.Minute, "init", whole, "--template", "counter")
	saidTo(t, time.Minute, "-w", whole, "send", "counter.added", `{"name": "tea", "by": 2}`)
	saidTo(t, time.Minute, "-w", whole, "run")
	saidTo(t, time.Minute, "-w", whole, "snapshot", "create", "noon")
	wrong := nonsense(t.TempDir())
	t.Chdir(t.TempDir()) // some verbs make what they are told to
	for _, verb := range allVerbs(newRootCommand(&cli{})) {
		if verb.HasSubCommands() {
			continue
		}
		dir := filepath.Join(t.TempDir(), "w")
		require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
		require.NoError(t, os.Chmod(filepath.Join(dir, ".world", "keyring"), 0o600))
		words := append([]string{"-w", dir}, strings.Fields(verb.CommandPath())[1:]...)
		wait := time.Minute
		if name := verb.Name(); name == "serve" || name == "worker" || name == "dev" { // some of it is nothing wrong
			wait = 100 * time.Millisecond
		}
		for _, more := range mistakes(verb, wrong) {
			args := slices.Concat(words, more)
			said := saidTo(t, wait, args...)
			found := librarys.FindString(said)
			require.Empty(t, found, "%q: %s", args, said)
		}
	}
}

// What a journal would hold otherwise than it was typed is refused, wherever it is typed.
func TestTextsThatAreNotUTF8AreRefused(t *testing.T) {
	dir := newCounter(t, "a")
	for _, args := range [][]string{
		{"intent", "approve", "0123456789", "--reason", "\xff"},
		{"intent", "approve", "0123456789", "--reason", "so", "--as", "\xff"},
		{"rollback", "noon", "--reason", "a\xc3"},
		{"snapshot", "create", "-m", "\xed\xa0\x80"},
		{"propose", "-m", "\xff"},
	} {
		code, _, said := inProcess(t.Context(), append([]string{"-w", dir}, args...)...)
		require.Equal(t, exitUsage, code, said)
		require.Contains(t, said, "text is not UTF-8")
		require.Contains(t, said, "hint: type it in UTF-8")
	}
}

// TestArgumentsThatDoNotReadExitAlike whichever verb they are typed to: with 2.
func TestArgumentsThatDoNotReadExitAlike(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := filepath.Join(t.TempDir(), "desk")
	saidTo(t, time.Minute, "init", dir, "--template", "counter")
	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.WriteFile(broken, []byte(`{"a": `), 0o600))
	patch := filepath.Join(t.TempDir(), "patch")
	require.NoError(t, os.WriteFile(patch, []byte(`{"base_manifest_hash": "00", "ops": 7}`), 0o600))
	for _, args := range [][]string{
		{"send", "counter.added", "{"},
		{"send", "counter.added", "@" + broken},
		{"effect", "mail.send", "{", "--cap", "x", "--reason", "so"},
		{"fork", "other", "--patch", broken},
		{"fork", "other", "--patch", patch},
		{"what-if", "--at", "1", "--patch", broken},
		{"what-if", "--at", "1", "--patch", patch},
		{"shadow", "--patch", broken},
		{"shadow", "--patch", patch},
		{"propose", broken},
		{"propose", patch},
		{"checkpoint", "--key", broken},
		{"intent", "approve", "x"},
		{"intent", "show", "deadbeef"},
		{"intent", "retry", "--state", "open"},
		{"intent", "list", "--since", "never"},
		{"cell", "show", "counter"},
		{"cell", "resume", "counter/nobody"},
		{"tail", "--kind", "nothing"},
		{"budget", "show", "nothing"},
		{"run", "--effects", "somebody"},
	} {
		var said bytes.Buffer
		c := &cli{
			opts: released(), args: append([]string{"-w", dir}, args...), stdin: strings.NewReader(""),
			stdout: bufio.NewWriter(&said), stderr: &said, origin: owner.Origin{Plain: true},
		}
		require.Equal(t, exitUsage, c.execute(t.Context()), "%q: %s", args, &said)
	}
}

// saidTo returns what a command line prints, which may take so long.
func saidTo(t *testing.T, wait time.Duration, args ...string) string {
	t.Helper()
	var all bytes.Buffer
	ctx, stop := context.WithTimeout(t.Context(), wait)
	defer stop()
	c := &cli{
		opts: released(), args: args, stdin: strings.NewReader("{\n"), stdout: bufio.NewWriter(&all), stderr: &all,
		origin: owner.Origin{Plain: true},
	}
	c.execute(ctx)
	return all.String()
}

// mistakes returns what is wrong to type after a verb.
func mistakes(verb *cobra.Command, wrong []string) (all [][]string) {
	verb.Flags().VisitAll(func(f *pflag.Flag) {
		for _, value := range wrongFor(f, wrong) {
			all = append(all, []string{"noon", "--" + f.Name + "=" + value})
		}
		if f.NoOptDefVal == "" {
			all = append(all, []string{"--" + f.Name})
		}
	})
	for _, arg := range wrong {
		all = append(all, []string{arg}, []string{"noon", arg})
	}
	return append(all, []string{"-Z"}, []string{"--=x"}, []string{"---"}, []string{"--nothing-like-it=1"})
}
