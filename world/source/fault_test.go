package source

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
)

// mark stands before every place of a faulty world where a fault is expected.
const mark = "¤"

// fault is an edit of goodWorld that makes it faulty at its marks.
type fault struct {
	name     string
	old, new string // of goodWorld; an empty old: all of it
}

// marked returns the faulty world with its marks.
func (c fault) marked() string {
	if c.old == "" {
		return c.new
	}
	if strings.Count(goodWorld, c.old) != 1 {
		panic(c.name + ": the text to replace is not there once")
	}
	return strings.Replace(goodWorld, c.old, c.new, 1)
}

func (c fault) world() string { return strings.ReplaceAll(c.marked(), mark, "") }

// places returns what the marks say: "line:column" each.
func (c fault) places() []string {
	var out []string
	for i, line := range strings.Split(c.marked(), "\n") {
		column := 1
		for _, r := range line {
			if string(r) == mark {
				out = append(out, fmt.Sprintf("%d:%d", i+1, column))
				continue
			}
			column++
		}
	}
	return out
}

// faulty has one case for every kind of fault.
func faulty() []fault {
	return slices.Concat(yamlFaults(), valueFaults(), referenceFaults(), governanceFaults())
}

func yamlFaults() []fault {
	return []fault{
		{"empty", "", mark},
		{"comment only", "", mark + "# nothing\n"},
		{"a list", "", mark + "- a\n"},
		{"null", "", "---\n" + mark + mark + "...\n"},
		{"second document", "world: support-desk", "world: a\nreducers: {a: {engine: go, name: a, version: '1'}}\n" + mark + "---\nworld: b"},
		{"unclosed", "seed: 42", "seed: [42"},
		{"tab", "", "a:\n" + mark + "\tb: 1\n"},
		{"control character", "seed: 42", "seed: " + mark + "\x01"},
		{"not UTF-8", "seed: 42", "se" + mark + "\xffed: 42"},
		{"byte order mark", "", mark + "\xef\xbb\xbfworld: a\n"},
		{"UTF-16", "", mark + "\xff\xfew\x00o\x00"},
		{"half of a surrogate pair", "world: support-desk", `world: "\u` + mark + `d800"`},
		{"anchor", "limits: {events", "limits: " + mark + "&l {events"},
		{"anchored key", "seed: 42", mark + "&k seed: 42"},
		{"alias", "name: clerk,", "name: " + mark + "&n clerk, grants: " + mark + "*n, " + mark + "*n : x,"},
		{"merge key", "  ticket.lost:", "  " + mark + "<<: {}\n  ticket.lost:"},
		{"tag", "seed: 42", "seed: " + mark + "!!int 42"},
		{"own tag", "seed: 42", "seed: " + mark + "!x 42"},
		{"tagged key", "seed: 42", mark + "!!str seed: 42"},
		{"float", "seed: 42", "seed: " + mark + "4.2"},
		{"float for text", `version: "2"`, `version: ` + mark + `2.0`},
		{"NaN", "seed: 42", "seed: " + mark + ".nan"},
		{"float in a list", "grants: [tools]", "grants: [tools, " + mark + "1.5]"},
		{"NaN in a config", "{cassette: tape.json}", "{cassette: tape.json, " + mark + "x: [" + mark + ".nan, 1.5, " + mark + "-.inf]}"},
		{"date", "world: support-desk", "world: " + mark + "2026-01-01"},
		{"hexadecimal", "seed: 42", "seed: " + mark + "0x10"},
		{"octal", "seed: 42", "seed: " + mark + "017"},
		{"underscore", "seed: 42", "seed: " + mark + "1_000"},
		{"duplicate key", "seed: 42", "seed: 42\n" + mark + "seed: 43"},
		{"duplicate name", "  ticket.lost:", "  " + mark + "ticket.closed:\n  ticket.lost:"},
		{"duplicate key in a config", "{cassette: tape.json}", "{cassette: tape.json, " + mark + "cassette: tape.json}"},
		{"number as key", "  ticket.lost:", "  " + mark + "17: {}\n  ticket.lost:"},
		{"list as key", "seed: 42", "? " + mark + "[seed]\n: 42"},
		{"unknown key", "seed: 42", mark + "colour: red"},
		{"slip", "limits: {events", mark + "limit: {events"},
		{"slip in a reducer", "engine: go", "engine: go, " + mark + "garnts: [tools]"},
		{"defaults of a later issue", "seed: 42", "defaults: {approval_ttl: 1, " + mark + "leases: 10, retention: {" + mark + "max_bytes: 1}}"},
		{"key of another effect", "{adapter: stub, config: {answers", "{" + mark + "lease: 5s, adapter: stub, config: {answers"},
		{"key of another param", "params: {kinds", "params: {" + mark + "dirs: [a], kinds"},
		{"unknown unit of a budget", "type: any", "budget: {" + mark + "euros: 1}, type: any"},
		{"float in a verifier's mode", "{adapter: stub, config: {answers", "{verify: {adapter: exec, config: {rate: 0.5}, mode: " + mark + "1.5}, adapter: stub, config: {answers"},
		{"wide characters before", "{name: all tools,", "{name: äöü 語, " + mark + "wen: x,"},
	}
}

func governanceFaults() []fault {
	return []fault{
		{"approver without a file", "seed: 42", "governance: {approvers: [" + mark + "approvers/carol.pub]}"},
		{"approver outside", "seed: 42", "governance: {approvers: [" + mark + "../alice.pub]}"},
		{"approver that is no text", "seed: 42", "governance: {approvers: [" + mark + "{name: alice}]}"},
		{"approver that is no key", "seed: 42", "governance: {approvers: [" + mark + "ticket.json]}"},
		{"approver with an RSA key", "seed: 42", "governance: {approvers: [approvers/alice.pub, " + mark + "approvers/old.pub]}"},
		{"approver with a private key", "seed: 42", "governance: {approvers: [" + mark + "approvers/alice]}"},
		{"approver with a long file", "seed: 42", "governance: {approvers: [" + mark + "approvers/long.pub]}"},
		{"approver twice", "seed: 42", "governance: {approvers: [approvers/alice.pub, " + mark + "approvers/../approvers/alice.pub]}"},
		{"approvers with one key", "seed: 42", "governance: {approvers: [approvers/bob.pub, " + mark + "approvers/twin.pub]}"},
		{"no list of approvers", "seed: 42", "governance: {approvers: " + mark + "approvers/bob.pub}"},
		{"no approvals", "seed: 42", "governance: {approvals: " + mark + "0}"},
		{"more approvals than approvers", "seed: 42", "governance: {approvals: " + mark + "2, approvers: [approvers/bob.pub]}"},
		{"approvals of nobody", "seed: 42", "governance: {approvals: " + mark + "2}"},
		{"four eyes of one", "seed: 42", "governance: {four_eyes: " + mark + "true, approvers: [approvers/bob.pub]}"},
		{"key of another approver", "seed: 42", "governance: {" + mark + "deciders: 1}"},
	}
}

const allTools = `  - {name: all tools, when: 'intent.kind.startsWith("tool.")', decide: allow}` // a rule of goodWorld

func valueFaults() []fault {
	return []fault{
		{"number for text", "world: support-desk", "world: " + mark + "42"},
		{"nothing for text", "world: support-desk", "world:" + mark},
		{"text for a number", "seed: 42", "seed: " + mark + "many"},
		{"negative number", "seed: 42", "seed: " + mark + "-1"},
		{"number beyond 64 bits", "seed: 42", "seed: " + mark + "18446744073709551616"},
		{"mapping for a number", "seed: 42", "seed: " + mark + "{}"},
		{"list for a mapping", "  ticket.closed: {}", "  ticket.closed: " + mark + "[]"},
		{"mapping for a list", "grants: [tools]", "grants: " + mark + "{}"},
		{"text for a list", "grants: [tools]", "grants: " + mark + "tools"},
		{"zero limit", "gas: 200000", "gas: " + mark + "0"},
		{"zero size", "payload: 1MiB", "payload: " + mark + "0KiB"},
		{"huge limit", "in_flight: 8", "in_flight: " + mark + "80000000000"},
		{"unknown unit", "payload: 1MiB", "payload: " + mark + "1MB"},
		{"huge size", "payload: 1MiB", "payload: " + mark + "99999999999999GiB"},
		{"duration without unit", "tick: 1m", "tick: " + mark + "60"},
		{"bad duration", "tick: 1m", "tick: " + mark + "1 minute"},
		{"no duration", "tick: 1m", "tick: " + mark + "0s"},
		{"negative duration", "tick: 1m", "tick: " + mark + "-1s"},
		{"epoch without time", "2026-01-01T00:00:00Z", mark + "2026-01-01"},
		{"epoch beyond 64 bits", "2026-01-01T00:00:00Z", mark + "2500-01-01T00:00:00Z"},
		{"epoch as list", "2026-01-01T00:00:00Z", mark + "[1]"},
		{"unknown engine", "engine: go", "engine: " + mark + "lua"},
		{"no engine", "engine: go, name: clerk, version: \"2\", ", ""},
		{"upper-case name", "  ticket.lost:", "  " + mark + "Ticket.Lost:"},
		{"reserved reducer", "  clerk: {engine", "  " + mark + "operator: {engine: go, name: x, version: '1'}\n  clerk: {engine"},
		{"reserved event", "  ticket.lost:", "  " + mark + "receipt:"},
		{"unknown on_error", "on_error: skip", "on_error: " + mark + "retry"},
		{"go without version", `name: clerk, version: "2"`, `name: clerk`},
		{"unknown cap type", "type: any", "type: " + mark + "ftp"},
		{"param of another type", "params: {kinds", "params: {root: " + mark + "data, kinds"},
		{"list of another type", "params: {kinds", "params: {" + mark + "hosts: [a], kinds"},
		{"bad port", "type: any, params: {kinds: [\"tool.*\"]}", "type: http, params: {ports: [80, " + mark + "x, " + mark + "-1]}"},
		{"port out of range", "type: any, params: {kinds: [\"tool.*\"]}", "type: http, params: {ports: [80, " + mark + "65536]}"},
		{"bad access", "type: any, params: {kinds: [\"tool.*\"]}", "type: file, params: {root: a, access: [" + mark + "append]}"},
		{"empty root", "type: any, params: {kinds: [\"tool.*\"]}", "type: file, params: {root: " + mark + "7}"},
		{"zero budget", "type: any", "budget: {calls: " + mark + "0}, type: any"},
		{"bad size in a budget", "type: any", "budget: {bytes: " + mark + "1MB}, type: any"},
		{"huge budget of a cell", "on_error: skip", "on_error: skip, budget: {tokens: " + mark + "9223372036854775808}"},
		{"huge budget of the world", "seed: 42", "budget: {micros: " + mark + "9223372036854775808}"},
		{"ticks that are no duration", "seed: 42", "defaults: {approval_ttl: " + mark + "a day}"},
		{"ticks of no time", "seed: 42", "defaults: {approval_ttl: " + mark + "0s}"},
		{"a list of ticks", "seed: 42", "defaults: {approval_ttl: " + mark + "[24h]}"},
		{"a duration for a tick", "expires: 100000", "expires: " + mark + "24h"},
		{"a day for a tick", "expires: 100000", "expires: " + mark + "2026-12-24"},
		{"a tick before the first", "expires: 100000", "expires: " + mark + "2025-12-31T23:59:59Z"},
		{"the first tick", "expires: 100000", "expires: " + mark + "2026-01-01T00:00Z"},
		{"a tick beyond 64 bits", "expires: 100000", "expires: " + mark + "2500-01-01T00:00:00Z"},
		{"no approval_ttl", "seed: 42", "defaults: {approval_ttl: " + mark + "0}"},
		{"snapshots all the time", "seed: 42", "defaults: {snapshot_every: " + mark + "99}"},
		{"text for snapshot_every", "seed: 42", "defaults: {snapshot_every: " + mark + "often}"},
		{"no checkpoints", "seed: 42", "defaults: {checkpoint_every: " + mark + "0}"},
		{"checkpoints all the time", "seed: 42", "defaults: {checkpoint_every: " + mark + "99}"},
		{"list for retention", "seed: 42", "defaults: {retention: " + mark + "[20]}"},
		{"no max_snapshots", "seed: 42", "defaults: {retention: {max_snapshots: " + mark + "0}}"},
		{"endless max_snapshots", "seed: 42", "defaults: {retention: {max_snapshots: " + mark + "10001}}"},
		{"bad timeout", "{adapter: stub, config: {answers", "{timeout: " + mark + "5, adapter: stub, config: {answers"},
		{"endless timeout", "{adapter: stub, config: {answers", "{timeout: " + mark + "25h, adapter: stub, config: {answers"},
		{"text for a boolean", "{adapter: stub, config: {answers", "{idempotent: " + mark + "yes please, adapter: stub, config: {answers"},
		{"unknown class", "{adapter: stub, config: {answers", "{class: " + mark + "safe, adapter: stub, config: {answers"},
		{"unknown external_key", "{adapter: stub, config: {answers", "{external_key: " + mark + "none, adapter: stub, config: {answers"},
		{"attempts", "{adapter: stub, config: {answers", "{retry: {attempts: " + mark + "1001, backoff: " + mark + "0s}, adapter: stub, config: {answers"},
		{"unknown on_in_doubt", "{adapter: stub, config: {answers", "{on_in_doubt: " + mark + "guess, adapter: stub, config: {answers"},
		{"retry what is not idempotent", "{adapter: stub, config: {answers", "{on_in_doubt: " + mark + "retry, adapter: stub, config: {answers"},
		{"unknown on_repeat", "{adapter: stub, config: {answers", "{on_repeat: " + mark + "guess, adapter: stub, config: {answers"},
		{"verify by nobody", "{adapter: stub, config: {answers", "{on_in_doubt: " + mark + "verify, adapter: stub, config: {answers"},
		{"unknown mode", "{adapter: stub, config: {answers", "{verify: {adapter: http, mode: " + mark + "lax}, adapter: stub, config: {answers"},
		{"max_cost in calls", "{adapter: stub, config: {answers", "{max_cost: {calls: " + mark + "1}, adapter: stub, config: {answers"},
		{"compensate without params", "{adapter: stub, config: {answers", "{" + mark + "compensate: {kind: tool.lookup}, adapter: stub, config: {answers"},
		{"compensate does not compile", "{adapter: stub, config: {answers", "{compensate: {kind: tool.lookup, params: '" + mark + "receipt.cost'}, adapter: stub, config: {answers"},
		{"bad pattern", `["tool.*"]`, `["tool.*", ` + mark + `to*l]`},
		{"unknown decision", "decide: allow", "decide: " + mark + "ask"},
		{"bad key", "key: event.data.customer", "key: " + mark + "event.customer"},
		{"policy name twice", "policies:\n", "policies:\n  - {name: all tools, when: true, decide: deny}\n"},
		{"policy does not compile", `'intent.kind.startsWith("tool.")'`, `'intent.kind.startsWith("tool.") && ` + mark + `nobody'`},
		{"plain policy does not compile", `'intent.kind.startsWith("tool.")'`, `true && ` + mark + `nobody`},
		{"policy in a block", allTools, "  - name: x\n    when: |\n      true &&\n      " + mark + "nobody\n    decide: allow"},
		{"policy with escapes", `'intent.kind.startsWith("tool.")'`, `"true && \"a\" == ` + mark + `nobody"`},
		{"policy with other escapes", `'intent.kind.startsWith("tool.")'`, mark + `"true && \x6eobody"`},
		{"policy with a quote", `'intent.kind.startsWith("tool.")'`, `'true && ''a'' == ` + mark + `nobody'`},
		{"policy in a folded block", allTools, "  - name: x\n    when: >-  # why\n      true &&\n\n        true &&\n      " + mark + "nobody\n    decide: allow"},
		{"policy in a block with a blank line and an indent", allTools, "  - name: x\n    when: |2-\n\n        true &&\n          " + mark + "nobody\n    decide: allow"},
		{"policy over two lines in quotes", allTools, "  - name: x\n    when: \"\\\"a\\\" == 'a' &&\n       " + mark + "nobody\"\n    decide: allow"},
		{"policy over two lines without", allTools, "  - name: x\n    when: true &&\n       true && " + mark + "nobody\n    decide: allow"},
		{"policy with a line that goes on", allTools, "  - name: x\n    when: \"true && \\\n       " + mark + "nobody\"\n    decide: allow"},
	}
}

func referenceFaults() []fault {
	return []fault{
		{"unknown grant", "grants: [tools]", "grants: [" + mark + "tool]"},
		{"unknown reducer", "reducer: agent", "reducer: " + mark + "agents"},
		{"no such event", `event: "ticket.*"`, `event: ` + mark + `"order.*"`},
		{"no such source", "./code/agent.star", mark + "agent.star"},
		{"source outside", "./code/agent.star", mark + "../agent.star"},
		{"source of the world's own", "./code/agent.star", mark + "./.world/keyring"},
		{"absolute source", "./code/agent.star", mark + "/etc/passwd"},
		{"source is a directory", "./code/agent.star", mark + "code"},
		{"empty path", "./code/agent.star", mark + "''"},
		{"no such schema", "schema: ticket.json", "schema: " + mark + "tickets.json"},
		{"unknown adapter", "adapter: recorded", "adapter: " + mark + "ftp"},
		{"unknown verifier", "{adapter: stub, config: {answers", "{verify: {adapter: " + mark + "ftp}, adapter: stub, config: {answers"},
		{"verifier that cannot verify", "{adapter: stub, config: {answers", "{verify: {adapter: " + mark + "recorded}, adapter: stub, config: {answers"},
		{"verifier without adapter", "{adapter: stub, config: {answers", "{" + mark + "verify: {mode: warn}, adapter: stub, config: {answers"},
		{"compensate by nothing", "{adapter: stub, config: {answers", "{compensate: {kind: " + mark + "tool.undo, params: 'intent.params'}, adapter: stub, config: {answers"},
		{"compensate by itself", "{adapter: stub, config: {answers", "{compensate: {kind: " + mark + "tool.answer, params: 'intent.params'}, adapter: stub, config: {answers"},
		{"no config", "{adapter: recorded, config: {cassette: tape.json}}", "{adapter: recorded}"},
		{"empty config", "config: {cassette: tape.json}", "config: " + mark + "{}"},
		{"text for a config", "config: {cassette: tape.json}", "config: " + mark + "tape.json"},
		{"two stubs", "{answers: tape.json}", mark + "{answers: tape.json, script: stub.star}"},
		{"no such cassette", "cassette: tape.json", "cassette: " + mark + "x.json"},
		{"number for a file", "cassette: tape.json", "cassette: " + mark + "1.5"},
		{"unknown config key", "cassette: tape.json", "cassette: tape.json, " + mark + "speed: 2"},
		{"several", "seed: 42", "seed: " + mark + "x\n" + mark + "version: 2\n" + mark + "colour: " + mark + "1.5"},
	}
}

func TestEveryFaultIsReportedAtItsPlace(t *testing.T) {
	// A missing field is a fault of the name it is missing under.
	elsewhere := map[string][]string{
		"no engine": {"8:3"}, "go without version": {"8:3"}, "no config": {"14:3"}, "policy name twice": {"21:12"},
		"unclosed": {"4:6"},
	}
	for _, c := range faulty() {
		t.Run(c.name, func(t *testing.T) {
			want := c.places()
			if places, ok := elsewhere[c.name]; ok {
				want = places
			}
			_, err := loadText(c.world(), nil)
			var faults *Error
			require.ErrorAs(t, err, &faults)
			var got []string
			for _, f := range faults.Faults {
				require.Equal(t, "desk/world.yaml", f.File)
				require.NotEmpty(t, f.Msg)
				require.NotContains(t, f.Msg, "\n")
				got = append(got, fmt.Sprintf("%d:%d", f.Line, f.Column))
			}
			require.Equal(t, want, got, err.Error())
		})
	}
}

func TestFaultsOfNamedFilesCarryTheirPlace(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"reducer":          {"code/agent.star", "def reduce(ctx, state, event):\n    return 1 +\n", "desk/code/agent.star:2:15"},
		"script":           {"stub.star", "def answer(:\n", "desk/stub.star:1:13"},
		"schema syntax":    {"ticket.json", "{\n \"type\": object}", "desk/ticket.json:2:10"},
		"schema cut":       {"ticket.json", "{", "desk/ticket.json:1:1"},
		"schema duplicate": {"ticket.json", `{"type": "object", "type": "array"}`, "desk/ticket.json:1:1"},
		"schema type":      {"ticket.json", `{"type": "objekt"}`, "desk/ticket.json:1:1"},
		"schema remote":    {"ticket.json", `{"$ref": "https://example.com/x.json"}`, "desk/ticket.json:1:1"},
		"schema other":     {"ticket.json", `{"$ref": "tape.json"}`, "desk/ticket.json:1:1"},
		"schema file":      {"ticket.json", `{"$ref": "file:///etc/passwd"}`, "desk/ticket.json:1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadText(goodWorld, fstest.MapFS{c.file: {Data: []byte(c.text)}})
			var faults *Error
			require.ErrorAs(t, err, &faults)
			require.Len(t, faults.Faults, 1)
			f := faults.Faults[0]
			require.Equal(t, c.want, fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column), f.Msg)
		})
	}
}

// Files that editors have saved in another encoding are called by its name, each kind of them.
func TestEncodingsOfNamedFilesAreNamed(t *testing.T) {
	for text, says := range map[string]string{
		"\xef\xbb\xbf{}":     "text begins with a byte order mark; save it as UTF-8 without one",
		"\xff\xfe{\x00}\x00": "text is UTF-16; save it as UTF-8", "\x00{\x00}": "text is UTF-16; save it as UTF-8", "{\x00}\x00": "text is UTF-16; save it as UTF-8",
		"{\n \"\xff\": 1}": "text is not UTF-8",
	} {
		for _, file := range []string{"ticket.json", "code/agent.star"} {
			_, err := loadText(goodWorld, fstest.MapFS{file: {Data: []byte(text)}})
			require.ErrorContains(t, err, says, file)
			require.ErrorContains(t, err, "desk/"+file+":", file)
		}
	}
}

func TestSchemasAreNotLoadedFromOutside(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other.json")
	require.NoError(t, os.WriteFile(other, []byte(`{}`), 0o600))
	_, err := loadText(goodWorld, fstest.MapFS{"ticket.json": {Data: []byte(`{"$ref": "file://` + other + `"}`)}})
	require.ErrorAs(t, err, new(*Error))
}

func TestSlipsAreNamed(t *testing.T) {
	for slip, meant := range map[string]string{
		"reducer": "reducers", "polices": "policies", "evnets": "events", "Limits": "limits",
		"defaults": "", "governance": "", "x": "",
	} {
		require.Equal(t, meant, manifest.Nearest(slip, []string{
			"caps", "clock", "effects", "events", "limits", "policies", "reducers", "routing", "seed", "version", "world",
		}), slip)
	}
	_, err := loadText("world: w\nreducer: {}\n", nil)
	require.Contains(t, err.Error(), `desk/world.yaml:2:1: unknown key "reducer": did you mean "reducers"?`)
}

func TestWorldFileFaultsComeFirst(t *testing.T) {
	world := strings.Replace(goodWorld, "seed: 42", "seed: x\ncolour: red", 1)
	_, err := loadText(world, fstest.MapFS{"code/agent.star": {Data: []byte("x =")}})
	var faults *Error
	require.ErrorAs(t, err, &faults)
	var lines []string
	for _, f := range faults.Faults {
		lines = append(lines, f.String())
	}
	require.Equal(t, strings.Join(lines, "\n"), err.Error())
	require.Len(t, lines, 3)
	require.True(t, strings.HasPrefix(lines[0], "desk/world.yaml:3:7: "))
	require.True(t, strings.HasPrefix(lines[1], "desk/world.yaml:4:1: "))
	require.True(t, strings.HasPrefix(lines[2], "desk/code/agent.star:1:4: "))
}

func TestFilesHaveALimit(t *testing.T) {
	_, err := loadText(strings.Repeat("#", MaxWorldBytes+1), nil)
	var faults *Error
	require.ErrorAs(t, err, &faults)
	require.Len(t, faults.Faults, 1)

	_, err = loadText(goodWorld, fstest.MapFS{
		"code/agent.star": {Data: bytes.Repeat([]byte("#"), MaxCodeBytes+1)},
		"stub.star":       {Data: bytes.Repeat([]byte("#"), MaxCodeBytes+1)},
		"ticket.json":     {Data: bytes.Repeat([]byte(" "), MaxCodeBytes+1)},
		"tape.json":       {Data: bytes.Repeat([]byte(" "), MaxContentBytes+1)},
	})
	require.ErrorAs(t, err, &faults)
	require.Len(t, faults.Faults, 5)
}

// TestPoliciesAreHeldAgainstSchemasOfParams: what no params can have is a fault of the
// world file, at its place in the expression.
func TestPoliciesAreHeldAgainstSchemasOfParams(t *testing.T) {
	world := strings.NewReplacer(
		"tool.answer: {adapter", "tool.answer: {params: {additionalProperties: false, properties: {amount: {type: integer}}}, adapter",
		"routing:", "  - {name: slip, when: 'intent.kind == \"tool.answer\" && intent.params.amonut > 1', decide: deny}\nrouting:",
	).Replace(goodWorld)
	_, err := loadText(world, nil)
	require.EqualError(t, err, "desk/world.yaml:21:70: the params of tool.answer have no amonut there: did you mean amount?")
	_, err = loadText(world, nil, WithoutCode())
	require.NoError(t, err)
	_, err = loadText(strings.ReplaceAll(world, "amonut", "amount"), nil)
	require.NoError(t, err)
}

// TestFaultsOnOneLineCostTheirNumber: a world file can be one line, and all of its rules wrong.
// Twice as many cost twice as much memory, and not four times.
func TestFaultsOnOneLineCostTheirNumber(t *testing.T) {
	cost := func(n int) float64 {
		rules := strings.Repeat(`{name: slip, when: 'intent.kid == "tool.answer"', decide: deny}, `, n)
		world := goodWorld[:strings.Index(goodWorld, "policies:")] + "policies: [" + rules + "]\n" + goodWorld[strings.Index(goodWorld, "routing:"):]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := loadText(world, nil)
		runtime.ReadMemStats(&after)
		var faults *Error
		require.ErrorAs(t, err, &faults)
		require.GreaterOrEqual(t, len(faults.Faults), n)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	cost(10) // what is made once
	require.Less(t, cost(1600)/cost(800), 2.6)
}
