package worldctl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/owner"
)

// hostile is what somebody outside writes who means to hide or forge what stands beside
// it: C0, DEL, C1, bidi, zero-width and tag characters, variation selectors and fillers.
const hostile = "go\x1b[2J\x1b]0;x\a\r\b\x7f\u009b1A\u202eod\u200b\u2066\ufeff\U000e0041\u061c\ufe0f\U000e0101\u3164\u034f"

// hostileName is a name that may be one: without control characters.
const hostileName = "ann\u202e\u200b\U000e0041"

// ignorable are characters that take no room and are none of Unicode's controls and
// formats: DerivedCoreProperties.txt, Default_Ignorable_Code_Point.
var ignorable = []struct{ from, to rune }{
	{0x034f, 0x034f}, {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x3164, 0x3164}, {0xfe00, 0xfe0f}, {0xffa0, 0xffa0}, {0xe0100, 0xe01ef},
}

// acting returns the first character of a text that a terminal does not print.
func acting(text []byte) (string, bool) {
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		hides := slices.ContainsFunc(ignorable, func(x struct{ from, to rune }) bool { return x.from <= r && r <= x.to })
		if r == utf8.RuneError && size == 1 || r != '\n' && r != '\t' && !unicode.IsPrint(r) || hides {
			at := len(text) - len(rest)
			return string(text[max(0, at-60):min(len(text), at+20)]), true
		}
		rest = rest[size:]
	}
	return "", false
}

func TestDoorSpellsWhatATerminalActsOn(t *testing.T) {
	said, err := json.Marshal(map[string]string{"said": hostile})
	require.NoError(t, err)
	for _, inJSON := range []bool{false, true} {
		whole := []byte(hostile + "\xff\n")
		if inJSON {
			whole = said
		}
		for cut := range len(whole) {
			var out bytes.Buffer
			d := &door{to: &out, json: func() bool { return inJSON }}
			for _, part := range [][]byte{whole[:cut], whole[cut:]} {
				n, err := d.Write(part)
				require.NoError(t, err)
				require.Equal(t, len(part), n)
			}
			require.NoError(t, d.close())
			at, found := acting(out.Bytes())
			require.False(t, found, "%q", at)
			if !inJSON {
				require.Contains(t, out.String(), "go<U+001B>[2J")
				require.Contains(t, out.String(), "<U+E0041>")
				require.Contains(t, out.String(), "<0xFF>\n")
				continue
			}
			var back struct{ Said string }
			require.NoError(t, json.Unmarshal(out.Bytes(), &back), "%s", &out)
			require.Equal(t, hostile, back.Said)
		}
	}
}

func TestDoorWritesACharacterThatComesInParts(t *testing.T) {
	var out bytes.Buffer
	d := &door{to: &out, json: func() bool { return false }}
	for _, b := range []byte("é\u202e") {
		_, err := d.Write([]byte{b})
		require.NoError(t, err)
	}
	require.NoError(t, d.close())
	require.Equal(t, "é<U+202E>", out.String())
}

func TestDoorWritesACharacterThatWasCutOff(t *testing.T) {
	var out bytes.Buffer
	d := &door{to: &out, json: func() bool { return false }}
	_, err := d.Write([]byte("ends with \xe2\x80"))
	require.NoError(t, err)
	require.NoError(t, d.close())
	require.Equal(t, "ends with <0xE2><0x80>", out.String())
}

// typed runs a command line as if stdout were a terminal without colors, and returns
// all that it printed.
func typedTo(t *testing.T, args ...string) (out []byte, code int) {
	t.Helper()
	var all bytes.Buffer
	c := &cli{
		opts: released(), args: args, stdin: strings.NewReader(""), stdout: bufio.NewWriter(&all), stderr: &all,
		origin: owner.Origin{Width: 80, Plain: true},
	}
	code = c.execute(t.Context())
	return all.Bytes(), code
}

// TestATerminalGetsTheAnswerBeforeWhatToTypeNext has what to type next stand below the answer, and colors come through.
func TestATerminalGetsTheAnswerBeforeWhatToTypeNext(t *testing.T) {
	t.Chdir(t.TempDir())
	typed := func(args ...string) string {
		var all bytes.Buffer
		c := &cli{opts: released(), args: args, stdin: strings.NewReader(""), stdout: bufio.NewWriter(&all), stderr: &all, origin: owner.Origin{Width: 80}}
		require.Zero(t, c.execute(t.Context()), all.String())
		return all.String()
	}
	require.Regexp(t, `(?s)^world .* next:`, strings.ReplaceAll(typed("init", "--template", "counter"), "\n", " "))
	require.Regexp(t, `^#2 [^\n]*\nnext: worldctl run\n$`, typed("send", "counter.added", `{"name": "tea", "by": 2}`))
	rules, err := os.ReadFile("world.yaml")
	require.NoError(t, err)
	write(t, "world.yaml", string(rules)+"limits: {in_flight: 1}\n")
	said := typed("propose", "-m", "fewer")
	require.Contains(t, said, "\x1b[32mloses rights:\x1b[0m\n- ")
	require.Regexp(t, `next: worldctl shadow p1 [^\n]*\n$`, said)
}

const (
	hostileManifest = `world: w
version: 1
reducers:
  cell: {engine: starlark, source: cell.star, grants: [any]}
events:
  said:
effects:
  say: {adapter: stub, config: {answers: answers.jsonl}}
  ask: {adapter: stub, config: {answers: answers.jsonl}}
caps:
  any: {type: any, params: {kinds: [say, ask]}}
policies:
  - {name: "all \u202e\U000E0041", when: "intent.kind == 'say'", decide: allow}
  - {name: "person \u2066\u200b", when: "intent.kind == 'ask'", decide: require_approval}
routing:
  - {event: said, reducer: cell, key: "'a'"}
`
	hostileReducer = `def reduce(ctx, state, event):
    if event.name == "said":
        ctx.effect("say", event.data)
        ctx.effect("ask", event.data)
    return event.data
`
)

// hostileWorld returns a world in which all that anybody can write is hostile.
func hostileWorld(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "w")
	require.NoError(t, os.Mkdir(dir, 0o700))
	said, err := json.Marshal(hostile)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"world.yaml": hostileManifest, "cell.star": hostileReducer,
		"answers.jsonl": `{"kind": "say", "status": "error", "payload": {"error": ` + string(said) + `, ` + string(said) + `: 1}}` + "\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	in := func(args ...string) {
		out, code := typedTo(t, args...)
		require.Contains(t, []int{exitOK, exitUndecided, exitDenied}, code, "%q: %s", args, out)
		at, found := acting(out)
		require.False(t, found, "%q: %q", args, at)
	}
	in("init", dir, "--id", "w-1")
	in("-w", dir, "snapshot", "create", "start", "-m", hostile, "--as", hostileName)
	in("-w", dir, "send", "said", string(said))
	in("-w", dir, "run")
	in("-w", dir, "snapshot", "create", "later")
	out, _ := typedTo(t, "-w", dir, "effect", "say", string(said), "--cap", "any", "--reason", hostile, "--as", hostileName)
	at, found := acting(out)
	require.False(t, found, "%q", at)
	next := strings.Replace(hostileManifest, "version: 1", "version: 2", 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte(next), 0o600))
	in("-w", dir, "propose", "-m", hostile, "--as", hostileName)
	in("-w", dir, "rollback", "start", "--reason", hostile, "--as", hostileName, "--ack")
	in("-w", dir, "send", "said", string(said))
	in("-w", dir, "run")
	return dir
}

// verbsShown are the arguments with which each verb has most to show of a hostile world.
// A verb that is not among them fails the test: say what it shows.
var verbsShown = map[string][][]string{
	"agent list": {{}}, "agent show": {{}, {hostile}}, "hook": {{}}, "agent calls": {{}, {hostile}}, "agent resume": {{hostile}}, "agent replay": {{hostile}}, "agent run": {{"--name", hostile, "--", hostile}, {"--upstream", hostile, "--", hostile}},
	"agent env": {{"--name", hostile}, {"--upstream", hostile}}, "agent fork": {{hostile, "--at", "1"}}, "agent doctor": {{"--", hostile}},
	"mcp": {{"--name", hostile, "--", hostile}, {"--config", hostile}}, "budget list": {{}, {"-v"}}, "budget show": {{hostile}}, "dev": {{hostile}}, "test": {{}, {hostile}},
	"init": {{hostile}}, "run": {{}}, "send": {{hostile, "{"}, {"said", "\x1b\u202e"}}, "step": {{}}, "validate": {{"WORLD/world.yaml"}, {hostile}},
	"audit": {{}, {"--as", hostile}}, "cell list": {{}, {"--state"}}, "measure": {{hostile}, {"--expr", hostile}, {"--expr", "n: {cells: cell}"}}, "cell resume": {{hostile}}, "cell show": {{"cell/a"}, {hostile}}, "cell skip": {{hostile}},
	"graph": {{}, {"--format", "dot"}}, "status": {{}}, "tail": {{}, {"-v"}, {"--kind", hostile}}, "timeline": {{}, {"-v"}}, "why": {{"#9"}, {"cell/a"}, {hostile}},
	"diff": {{"start", "later"}, {hostile, "now"}}, "fork": {{"WORLD"}, {hostile + "/x", "--at", hostile}}, "rollback": {{hostile}},
	"snapshot create": {{hostile}}, "snapshot list": {{}, {"-v"}}, "snapshot pin": {{hostile}}, "snapshot prune": {{hostile}},
	"snapshot restore": {{hostile}}, "snapshot retention": {{hostile}}, "snapshot save": {{hostile, hostile}}, "snapshot show": {{"start"}, {hostile}},
	"what-if": {{"--at", hostile}}, "effect": {{hostile, "1"}}, "import chat": {{hostile}}, "import journal": {{hostile}}, "import mcp": {{hostile}},
	"intent answer": {{hostile, "--data", "{}"}}, "intent approve": {{hostile}}, "intent confirm": {{hostile}}, "intent deny": {{hostile}}, "intent edit": {{hostile, "--params", hostile}}, "intent list": {{}, {"-v"}}, "intent resolve": {{hostile}},
	"intent retry": {{hostile}}, "intent stop": {{hostile, "--reason", hostile}, {"--all", "--reason", hostile}}, "intent show": {{"KEY"}, {hostile}}, "receipt list": {{}}, "receipt show": {{"KEY"}, {hostile}}, "receipt verify": {{}, {hostile}},
	"apply": {{hostile}}, "approve": {{hostile}}, "manifest hash": {{}, {hostile}}, "manifest merge": {{hostile}}, "manifest patch": {{hostile}},
	"manifest show": {{}, {hostile}}, "policy eval": {{}, {hostile}}, "proposal list": {{}}, "proposal show": {{"p1"}, {hostile}}, "propose": {{hostile}},
	"reject": {{hostile}}, "shadow": {{hostile}, {"p1"}}, "withdraw": {{hostile}}, "checkpoint": {{}}, "prove cell": {{hostile}}, "prove checkpoint": {{hostile}},
	"prove receipt": {{"KEY"}, {hostile}}, "prove record": {{"9"}, {hostile}}, "replay": {{}}, "verify": {{}, {"BUNDLE"}, {hostile}},
	"serve": {{"--listen", hostile}}, "token list": {{}, {hostile}}, "token new": {{hostile}}, "token revoke": {{hostile}}, "ui": {{"--listen", hostile}}, "worker": {{"--world", hostile, hostile}},
	"archive": {{hostile}}, "backup": {{hostile + "/x"}}, "export": {{"-", "--format", "jsonl"}, {"-", "--format", "bundle"}}, "gc": {{}}, "keys list": {{}, {hostile}},
	"keys new": {{hostile + "/x"}}, "keys reseal": {{hostile}}, "keys rotate": {{hostile}}, "keys seal": {{hostile}}, "keys unseal": {{hostile}}, "redact": {{hostile, "--reason", hostile}},
	"restore": {{hostile}}, "store init": {{"--store", hostile}}, "store status": {{"--store", hostile}}, "store check": {{"--store", hostile}}, "move to": {{"--store", hostile, "--to-store", hostile}}, "node give": {{hostile, "--store", hostile}},
	"sweep": {{hostile}}, "sweep report": {{"--out", hostile}}, "sweep run": {{"1", "--keep", hostile + "/x"}, {hostile}}, "move in": {{hostile, "--store", hostile}}, "move out": {{hostile, "--store", hostile}}, "node list": {{"--store", hostile}}, "version": {{}, {hostile}},
}

// leaves returns the verbs below a command that can be typed.
func leaves(cmd *cobra.Command, path string) (names []string) {
	for _, sub := range cmd.Commands() {
		name := strings.TrimSpace(path + " " + sub.Name())
		switch {
		case sub.Name() == "help" || sub.Name() == "completion" || sub.Hidden:
		case sub.HasSubCommands():
			if sub.Flags().HasAvailableFlags() { // it does something itself
				names = append(names, name)
			}
			names = append(names, leaves(sub, name)...)
		default:
			names = append(names, name)
		}
	}
	return names
}

// TestNoVerbLetsThroughWhatATerminalActsOn types every verb, in every form of output, in
// a world in which all that anybody can write is hostile.
func TestNoVerbLetsThroughWhatATerminalActsOn(t *testing.T) {
	verbs := leaves(newRootCommand(&cli{}), "")
	require.ElementsMatch(t, verbs, slices.Collect(maps.Keys(verbsShown)), "say in verbsShown what each shows")
	dir := hostileWorld(t)
	t.Chdir(t.TempDir()) // some verbs make what they are told to
	bundle := filepath.Join(t.TempDir(), "bundle")
	out, code := typedTo(t, "-w", dir, "export", bundle, "--format", "bundle")
	require.Equal(t, exitOK, code, "%s", out)
	listed, _ := typedTo(t, "-w", dir, "intent", "list", "-o", "jsonl")
	var intent struct{ Key string }
	first, _, _ := bytes.Cut(listed, []byte("\n"))
	require.NoError(t, json.Unmarshal(first, &intent), "%s", first)
	names := strings.NewReplacer("WORLD", dir, "BUNDLE", bundle, "KEY", intent.Key)
	seen := 0
	slices.Sort(verbs)
	for _, verb := range verbs {
		for _, more := range verbsShown[verb] {
			for _, form := range []string{formTable, formJSON, formLines} {
				args := append([]string{"-w", dir, "-o", form}, strings.Fields(verb)...)
				for _, arg := range more {
					args = append(args, names.Replace(arg))
				}
				out, _ := typedTo(t, args...)
				at, found := acting(out)
				require.False(t, found, "%q: %q", args, at)
				if bytes.Contains(out, []byte("U+001B")) || bytes.Contains(out, []byte(`\u001b`)) || bytes.Contains(out, []byte(`\\x1b`)) {
					seen++
				}
			}
		}
	}
	require.Greater(t, seen, len(verbs), "what is hostile is there to be shown")
}

// TestNothingIsWrittenPastTheDoor holds the files of this package to it.
func TestNothingIsWrittenPastTheDoor(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	may := map[string][]string{
		"rawOut": {"door.go", "root.go", "owner.go", "agent_attach.go"}, "rawErr": {"door.go", "root.go", "owner.go", "fault.go", "progress.go", "serve.go"},
		"os.Stdout": {"worldctl.go", "agent_run.go", "mcp.go"}, "os.Stderr": {"worldctl.go", "interrupt.go", "agent_run.go", "mcp.go"}, "fmt.Print(": nil, "fmt.Println(": nil, "fmt.Printf(": nil,
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for what, where := range may {
			require.False(t, strings.Contains(string(text), what) && !slices.Contains(where, file), "%s writes past the door: %s", file, what)
		}
	}
}
