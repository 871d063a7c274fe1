package worldctl

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/attack"
)

// actors are ranges of characters that act on a terminal or hide in it.
var actors = []struct{ from, to rune }{
	{0, 0x1f},
	{0x7f, 0x9f},
	{0xad, 0xad},
	{0x61c, 0x61c},
	{0x180e, 0x180e},
	{0x200b, 0x200f},
	{0x2028, 0x202e},
	{0x2060, 0x206f},
	{0xfeff, 0xfeff},
	{0xfff9, 0xfffb},
	{0x1bca0, 0x1bca3},
	{0x1d173, 0x1d17a},
	{0xe0001, 0xe0001},
	{0xe0020, 0xe007f},
	{0xe000, 0xe010},
	{0xf0000, 0xf0010},
	{0xfdd0, 0xfdef},
	{0x10fffe, 0x10ffff},
}

// said draws what somebody says to a terminal.
func said(a *attack.Attempt) string {
	var s strings.Builder
	for range 1 + a.IntN(12) {
		switch a.IntN(6) {
		case 0:
			s.WriteString(attack.Pick(a, "\x1b[2J", "\x1b]0;x\a", "\x1b]8;;http://x\x1b\\y", "\x1bP", "\u009b31m", "\r", "\b\b\b", "\x1b[1A\x1b[K", "\x0e", "\x05", "\x1b[6n", "\x1bc", "\u202e", "\u2066\u2069", "\u200b", "\ufeff", "\U000e0001", "\u0085"))
		case 1:
			x := attack.Pick(a, append(actors, ignorable...)...)
			s.WriteRune(x.from + a.Int32N(x.to-x.from+1))
		case 2:
			s.WriteString(attack.Pick(a, "\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x80", "\xf0\x9f", "\x80", "\xc2", "\xc1\x9b", "\xe0\x82\x9b"))
		case 3:
			s.WriteString(attack.Pick(a, "<U+001B>", "\\u001b[2J", "%1b", "\\x1b", "{{.}}", "%s%n", "│", "verdict         trusted", "\n", "\t", "\"", "'", "\\"))
		default:
			s.WriteString(attack.Pick(a, "ok", "é", "日本", "a", "#9", "cell/a", "0", "-", "--", "="))
		}
	}
	return s.String()
}

// TestAttackTerminal says what acts on a terminal at the door, in pieces, and to verbs
// whose answer holds it.
func TestAttackTerminal(t *testing.T) {
	dir := hostileWorld(t)
	scratch := t.TempDir()
	t.Chdir(scratch)
	reads := []string{ // and only read
		"audit", "cell list", "cell show", "graph", "status", "tail", "timeline", "why", "diff", "snapshot list", "snapshot show", "intent list", "intent show", "receipt list", "receipt show",
		"receipt verify", "manifest show", "manifest hash", "policy eval", "proposal list", "proposal show", "validate", "token list", "keys list", "verify", "cell resume", "send", "intent approve", "apply", "import chat",
	}
	attack.Run(t, "terminal", func(a *attack.Attempt) {
		text := said(a)
		if !a.Chance(4) {
			atTheDoor(t, a, []byte(text), a.Chance(2))
			return
		}
		args := append([]string{"-w", dir, "-o", attack.Pick(a, formTable, formJSON, formLines)}, strings.Fields(attack.Pick(a, reads...))...)
		for range 1 + a.IntN(3) {
			args = append(args, attack.Pick(a, text, said(a), "--as="+said(a), "--reason="+said(a), "--"+said(a), "--kind="+text, "--from="+text, "cell/a", "#9", "-v", "start", filepath.Join(dir, text)))
		}
		if slices.ContainsFunc(args, func(arg string) bool { return strings.ContainsRune(arg, 0) }) {
			return // no command line has it
		}
		out, _ := typedTo(t, args...)
		if at, found := acting(out); found {
			a.Through("%q prints %q", args, at)
		}
	})
}

// atTheDoor writes a text in pieces. In JSON it is the same value to who reads it.
func atTheDoor(t *testing.T, a *attack.Attempt, text []byte, inJSON bool) {
	var value string
	if inJSON {
		value = strings.ToValidUTF8(string(text), "?")
		var err error
		text, err = json.Marshal(value)
		require.NoError(t, err)
		if a.Chance(2) { // some encoders leave more as it is
			text = bytes.ReplaceAll(text, []byte(`\u2028`), []byte("\u2028"))
		}
	}
	var out bytes.Buffer
	d := &door{to: &out, json: func() bool { return inJSON }}
	for rest := text; len(rest) > 0; {
		n := min(1+a.IntN(5), len(rest))
		_, err := d.Write(rest[:n])
		require.NoError(t, err)
		rest = rest[n:]
	}
	require.NoError(t, d.close())
	if at, found := acting(out.Bytes()); found {
		a.Through("%q is written for %q", at, text)
	}
	if !utf8.Valid(out.Bytes()) {
		a.Through("%q is no text, written for %q", out.Bytes(), text)
	}
	var back string
	if inJSON && (json.Unmarshal(out.Bytes(), &back) != nil || back != value) {
		a.Through("%q is read as %q, and was %q", out.Bytes(), back, value)
	}
}
