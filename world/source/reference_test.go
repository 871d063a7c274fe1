package source

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

const reference = "../../docs/world-yaml.md"

var update = flag.Bool("update", false, "write the columns of "+reference)

// TestReferenceHasEveryKeyOfTheWorldFile holds docs/world-yaml.md to the code: which
// keys there are, their types, defaults and limits is found out by asking the reader
// and Validate with values that are wrong. The last column is for people; -update
// writes the others, and puts a new key at the end.
func TestReferenceHasEveryKeyOfTheWorldFile(t *testing.T) {
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	want := make(map[string]string)
	var order []string
	for _, k := range keysUnder(t, "") {
		// The keys of a budget stand once, in the rows of the world's.
		if _, unit, ok := strings.Cut(k.path, ".NAME.budget."); ok {
			k.path = "budget." + unit
			require.Contains(t, []string{"", k.row()}, want[k.path])
		} else {
			order = append(order, k.path)
		}
		want[k.path] = k.row()
	}
	lines, seen := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), make(map[string]bool)
	row := regexp.MustCompile("^(\\| `([^`]+)` \\|[^|]*\\|[^|]*\\|[^|]*\\|) (.*) \\|$")
	for i, line := range lines {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		require.Contains(t, want, m[2], "line %d of %s is about a key that is not there", i+1, reference)
		require.NotContains(t, seen, m[2], "line %d of %s is the second about its key", i+1, reference)
		seen[m[2]] = true
		if *update {
			lines[i] = want[m[2]] + " " + m[3] + " |"
			continue
		}
		require.Equal(t, want[m[2]], m[1], "line %d of %s: go test ./world/source -run Reference -update", i+1, reference)
		require.NotEqual(t, "TODO", m[3], "line %d of %s says nothing", i+1, reference)
	}
	for _, path := range order {
		if *update && !seen[path] {
			lines = append(lines, want[path]+" TODO |")
			continue
		}
		require.Contains(t, seen, path, "%s has no line about it: go test ./world/source -run Reference -update", reference)
	}
	if *update {
		require.NoError(t, os.WriteFile(reference, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
}

// TestReferenceBeginsWithAWorld loads the first example of the page.
func TestReferenceBeginsWithAWorld(t *testing.T) {
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), "```yaml\n")
	world, _, _ := strings.Cut(after, "```\n")
	_, err = load(fstest.MapFS{"world.yaml": {Data: []byte(world)}, "counter.star": {Data: []byte(program)}}, "world.yaml")
	require.NoError(t, err)
}

// TestReferenceNamesTheLimitsThatNoKeySets holds the page to the numbers in the code.
func TestReferenceNamesTheLimitsThatNoKeySets(t *testing.T) {
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	require.Contains(t, string(text), "a rule has "+quantity("", governance.StepLimit)+" steps for one effect")
	require.Contains(t, string(text), "An integer has at most "+quantity("", canon.MaxDigits)+" digits")
}

const program = "def reduce(ctx, state, event):\n    return state\n"

// documentedKey is one key of world.yaml, as the code takes it.
type documentedKey struct{ path, kind, def, limit string }

func (k documentedKey) row() string {
	return fmt.Sprintf("| `%s` | %s | %s | %s |", k.path, k.kind, k.def, k.limit)
}

// minimal is a world that sets as little as can be, and reaches every key.
func minimal(capability string) map[string]any {
	return map[string]any{
		"world":    "w",
		"clock":    map[string]any{},
		"reducers": map[string]any{"NAME": map[string]any{"engine": "starlark", "source": "r.star"}},
		"events":   map[string]any{"NAME": map[string]any{}},
		"effects": map[string]any{
			"NAME": map[string]any{
				"adapter": "http", "retry": map[string]any{}, "max_cost": map[string]any{}, "verify": map[string]any{"adapter": "http"},
				"compensate": map[string]any{"kind": "undo", "params": "{}"},
			},
			"undo": map[string]any{"adapter": "http"},
		},
		"caps":     map[string]any{"NAME": map[string]any{"type": capability}},
		"policies": []any{map[string]any{"name": "n", "when": "true", "decide": "allow"}},
		"routing":  []any{map[string]any{"event": "NAME", "reducer": "NAME", "key": `"k"`}},
	}
}

// put sets a place of a world; nil removes it.
func put(world map[string]any, place string, value any) map[string]any {
	at := any(world)
	names := strings.Split(place, ".")
	for i, name := range names {
		if list, ok := at.([]any); ok {
			at = list[0]
		}
		m := at.(map[string]any)
		name = strings.TrimSuffix(name, "[]")
		switch {
		case i < len(names)-1:
			if m[name] == nil {
				m[name] = map[string]any{}
			}
			at = m[name]
		case value == nil:
			delete(m, name)
		default:
			m[name] = value
		}
	}
	return world
}

// faultsOf returns what is wrong with a world, in words.
func faultsOf(t *testing.T, world map[string]any) (*Loaded, string) {
	t.Helper()
	data, err := json.Marshal(world)
	require.NoError(t, err)
	text := strings.ReplaceAll(string(data), `"NAME"`, `"name"`)
	loaded, err := load(fstest.MapFS{
		"world.yaml": {Data: []byte(text)},
		"r.star":     {Data: []byte(program)},
	}, "world.yaml")
	if err != nil {
		return nil, err.Error() + "\n"
	}
	return loaded, ""
}

// keysUnder returns the keys below a place of the world file, which is empty, a
// mapping, or, with [] at its end, a list of mappings.
func keysUnder(t *testing.T, place string) (out []documentedKey) {
	for _, name := range fieldsAt(t, place) {
		at := strings.TrimPrefix(place+"."+name, ".")
		value := func(v any) string { _, said := faultsOf(t, put(minimal("any"), at, v)); return said }
		k, below := documentedKey{path: at, def: defaultOf(t, at), limit: limitOf(t, at)}, ""
		switch said := value(map[string]any{unknownName: 1}); {
		case strings.Contains(said, "unknown key"):
			k.kind, below = "mapping", at
		case strings.Contains(said, "want a mapping"):
			k.kind, below = "mapping of names", at+".NAME"
		case strings.Contains(said, "want a list"):
			k.kind, below = listAt(value, at)
		default:
			k.kind = scalarAt(value, said)
		}
		if out = append(out, k); below != "" {
			out = append(out, keysUnder(t, below)...)
		}
	}
	return out
}

const unknownName = "zzzzzzzz"

// fieldsAt returns the names of the keys of a mapping.
func fieldsAt(t *testing.T, place string) []string {
	wrong := any(map[string]any{unknownName: 1})
	if strings.HasSuffix(place, "[]") {
		wrong = []any{wrong}
	}
	world := minimal("any")
	if place == "" {
		world[unknownName] = 1
	} else {
		put(world, place, wrong)
	}
	_, said := faultsOf(t, world)
	m := regexp.MustCompile(`unknown key "` + unknownName + `": want one of (.*)`).FindStringSubmatch(said)
	require.NotNil(t, m, "%s: %s", place, said)
	return strings.Split(m[1], ", ")
}

// listAt returns the type of a list, and where the keys of its items are, if any.
func listAt(value func(any) string, at string) (kind, below string) {
	switch said := value([]any{map[string]any{unknownName: 1}}); {
	case strings.Contains(said, "unknown key"):
		return "list of mappings", at + "[]"
	case strings.Contains(said, "want an integer"):
		return "list of integers", ""
	case strings.Contains(value([]any{unknownName}), "there is no file"):
		return "list of files", ""
	}
	return "list of texts", ""
}

// scalarAt returns the type of a scalar; said is what is wrong with a mapping there.
func scalarAt(value func(any) string, said string) string {
	if text := value(unknownName); strings.Contains(text, "there is no file") {
		return "file"
	} else if strings.Contains(text, "want a size") {
		return "size"
	}
	for _, scalar := range []struct{ said, is string }{
		{"want text", "text"},
		{"want an integer", "integer"},
		{"want ticks", "ticks"},
		{"want a rate", "rate"},
		{"want a tick", "tick"},
		{"want a duration", "duration"},
		{"want a time", "time"},
		{"want true or false", "boolean"},
	} {
		if strings.Contains(said, scalar.said) {
			return scalar.is
		}
	}
	return "mapping of any data"
}

// limits are the words in which Validate and the reader bound a value.
var limits = regexp.MustCompile(`(must be at most \d+|must be (?:0 or )?\d+ to \d+|must be 1ns to [0-9a-z]+|` +
	`an attempt always costs one call|must be at least \d+)|(want (?:[a-z_]+ or )*[a-z_]+), not "` + unknownName + `"`)

// limitOf returns what a key's value has to be.
func limitOf(t *testing.T, at string) string {
	if strings.HasSuffix(at, ".config") {
		return "—"
	}
	values := []any{uint64(1<<64 - 1), "87600h", unknownName, []any{unknownName}, []any{0}, 1, 0}
	said := func(kind string) (all string) {
		for _, v := range values {
			_, s := faultsOf(t, put(minimal(kind), at, v))
			all += s
		}
		return all
	}
	kind, own := "any", ""
	if m := regexp.MustCompile(`only one of type ([a-z ]+)\n`).FindStringSubmatch(said("any") + said("http")); m != nil {
		kind, own = strings.Fields(m[1])[0], "for type "+m[1]
	}
	if m := limits.FindStringSubmatch(said(kind)); m != nil && (own == "" || m[0] != "must be at least 1") {
		own = strings.TrimPrefix(own+"; "+inWords(at, m[1]+m[2]), "; ")
	}
	return cmp.Or(own, "—")
}

// inWords makes a limit short.
func inWords(at, limit string) string {
	limit = strings.NewReplacer("must be ", "", "want ", "", " or ", ", ", "0 or ", "", "an attempt always costs one call", "not allowed: it is 1").Replace(limit)
	limit = regexp.MustCompile(`(\d+h)0m0s`).ReplaceAllString(limit, "$1")
	return regexp.MustCompile(`\d{4,}`).ReplaceAllStringFunc(limit, func(digits string) string {
		n, _ := strconv.ParseUint(digits, 10, 64)
		return quantity(path.Ext("."+at), n)
	})
}

// quantity writes a number of bytes, or any other.
func quantity(key string, n uint64) string {
	sizes := []string{".payload", ".receipt", ".state", ".value"}
	for unit, shift := range map[string]uint{"MiB": 20, "KiB": 10} {
		if bytes := n >> shift; slices.Contains(sizes, key) && bytes<<shift == n && bytes < 1024 {
			return fmt.Sprintf("%d %s", bytes, unit)
		}
	}
	for p := uint(20); p < 64; p++ {
		switch n {
		case 1 << p:
			return fmt.Sprintf("2^%d", p)
		case 1<<p - 1:
			return fmt.Sprintf("2^%d-1", p)
		}
	}
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// defaultOf returns what holds where a key is left out.
func defaultOf(t *testing.T, at string) string {
	loaded, said := faultsOf(t, put(minimal("any"), at, nil))
	switch at { // what is not filled in
	case "clock.epoch":
		return time.Unix(0, loaded.Manifest.Clock.Epoch).UTC().Format(time.RFC3339)
	case "clock.mode":
		return manifest.ClockSimulated
	case "governance.approvals":
		return strconv.FormatUint(loaded.Manifest.Governance.Needed(), 10)
	case "defaults.checkpoint_every":
		return quantity("", manifest.DefaultCheckpointEvery)
	case "effects.NAME.settles_after":
		return "the timeout"
	case "events", "routing", "effects", "caps", "policies":
		return "empty"
	}
	if loaded == nil {
		require.NotEmpty(t, said)
		return "required"
	}
	data, err := json.Marshal(loaded.Manifest)
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal(data, &value))
	for name := range strings.SplitSeq(at, ".") {
		m, _ := value.(map[string]any)
		value = m[strings.TrimSuffix(strings.ReplaceAll(name, "NAME", "name"), "[]")]
	}
	if _, said := faultsOf(t, put(minimal("any"), at, unknownName)); strings.Contains(said, "want true or false") {
		return strconv.FormatBool(value == true)
	}
	switch v := value.(type) {
	case string:
		return v
	case float64:
		if slices.Contains([]string{".timeout", ".tick", ".backoff"}, path.Ext("."+at)) {
			return time.Duration(int64(v)).String()
		}
		return quantity(path.Ext("."+at), uint64(v))
	}
	return "—"
}
