package source_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/world/source"
)

const more = `effects:
  shop.buy: {adapter: mcp}
caps:
  shop: {type: mcp}
policies:
  - name: shop
    when: 'true'
`

// TestWhatIsAddedStandsAtItsPlace: «» are around what is added.
func TestWhatIsAddedStandsAtItsPlace(t *testing.T) {
	effect, capability, policy := "  shop.buy: {adapter: mcp}\n", "  shop: {type: mcp}\n", "  - name: shop\n    when: 'true'\n"
	all := "«effects:\n" + effect + "caps:\n" + capability + "policies:\n" + policy + "»"
	indented := func(by, text string) string {
		return "«" + by + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+by) + "\n»"
	}
	for name, want := range map[string]string{
		"none there":    "world: w # the name\n\n# reducers come later\n" + all,
		"no line feed":  "world: w«\n»" + all,
		"blank lines":   "world: w\n" + all + "\n\n",
		"document ends": "---\nworld: w\n" + all + "...\n",
		"all there": "caps:   # rights\n  a: {type: file}\n\n  # b comes later\n«" + capability + "»\n# what it does\neffects:\n      b:\n        adapter: x # y\n" + indented("    ", effect) +
			"policies:\n- {name: a}\n" + indented("", "- name: shop\n  when: 'true'\n") + "\n# the end\n",
		"left empty":    "effects:\n  # none yet\n«" + effect + "»caps: # none\n«" + capability + "»policies:\n«" + policy + "»world: w\n",
		"a scalar ends": "effects:\n  a:\n    params: |\n      x\n      # no comment\n\n    # a comment\n«" + effect + "»# of caps\ncaps:\n  c: \"x\n    y\"\n«" + capability + "policies:\n" + policy + "»",
		"further right": "  world: w\n  caps:\n    a: 1\n" + indented("  ", capability) + indented("  ", "effects:\n"+effect+"policies:\n"+policy),
		"CRLF":          "world: w\r\ncaps:\r\n  a: 1\r\n" + strings.ReplaceAll("«"+capability+"effects:\n"+effect+"policies:\n"+policy+"»", "\n", "\r\n"),
		"the same":      "effects:\n  shop.buy:\n    adapter: mcp # by hand\ncaps: {shop: {type: mcp}}\npolicies: [{name: shop, when: 'true'}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			want = strings.ReplaceAll(want, "»«", "")
			var before strings.Builder
			for i, part := range strings.Split(strings.ReplaceAll(want, "»", "«"), "«") {
				if i%2 == 0 {
					before.WriteString(part)
				}
			}
			got, added, err := source.Add("world.yaml", []byte(before.String()), []byte(more))
			require.NoError(t, err)
			require.Equal(t, strings.NewReplacer("«", "", "»", "").Replace(want), string(got))
			again, nothing, err := source.Add("world.yaml", got, []byte(more))
			require.NoError(t, err)
			require.Equal(t, string(got), string(again), "what is there already stays out")
			require.Empty(t, nothing)
			if want != before.String() {
				require.Equal(t, []string{"effects.shop.buy", "caps.shop", "policies.shop"}, added)
			}
		})
	}
	separated, err := yaml.Dump(map[string]any{"caps": map[string]any{"a": "x\u2028 y\u0085z\n"}}, yaml.WithIndent(2))
	require.NoError(t, err)
	got, _, err := source.Add("world.yaml", []byte("world: w\ncaps:\n      b: 1\n"), separated)
	require.NoError(t, err, "YAML has more ends of lines than other texts")
	again, _, err := source.Add("world.yaml", got, separated)
	require.NoError(t, err)
	require.Equal(t, string(got), string(again))
	for _, empty := range []string{"{}", "{ }", "~", "null"} {
		got, _, err := source.Add("world.yaml", []byte("effects: "+empty+" # so far\ncaps: "+empty+"\npolicies: []\n"), []byte(more))
		require.NoError(t, err)
		require.Equal(t, "effects: # so far\n"+effect+"caps:\n"+capability+"policies:\n"+policy, string(got))
	}
}

func TestNothingIsAddedWhereThatIsNotSure(t *testing.T) {
	for text, why := range map[string]string{
		"":                                    "is empty",
		"{world: w}":                          "block style",
		"- a\n":                               "block style",
		"effects: {a: {adapter: x}}\n":        "block style",
		"policies: [{name: a}]\n":             "block style",
		"effects: {\n}\n":                     "block style",
		"effects: 5\n":                        "want a mapping",
		"caps: []\n":                          "want a mapping, not a list",
		"policies: {}\n":                      "want a list, not a mapping",
		"caps:\n  a: 1\n\"caps\": x\n":        `duplicate key "caps", first on line 1`,
		"? effects\n: \n":                     "",
		"caps:\n  a: |+\n    keeps its end\n": "",
		"caps:\n  a: |+\n    its end\n\n\n":   "block style",
		"world: [\n":                          "is not YAML",
		"a: 1\n---\nb: 1\n":                   "a second document",
		"caps: {shop: {type: file}}\n":        "caps.shop: there already",
	} {
		got, _, err := source.Add("world.yaml", []byte(text), []byte(more))
		if why == "" { // it may succeed, and means what it should then
			if err == nil {
				require.Contains(t, means(t, got)["effects"], "shop.buy", "%s", got)
			}
			continue
		}
		require.ErrorContains(t, err, why, text)
		require.Nil(t, got)
	}
	_, _, err := source.Add("world.yaml", []byte("effects: {shop.buy: {adapter: x}}\npolicies:\n- {name: shop, when: x}\n"), []byte(more))
	var taken *source.TakenError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, []string{"effects.shop.buy", "policies.shop"}, taken.Names)
}

func means(t *testing.T, text []byte) (m map[string]any) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal(text, &m), "%s", text)
	return m
}

func FuzzAdd(f *testing.F) {
	for _, text := range []string{"world: w\ncaps:\n  a: |+\n    x\n\n", "effects:\n  a: \"b\n   # c\"\n", "policies:\n-\n  name: a\n", "effects: {}\r\ncaps: ~\n...\n", "caps:\n  a: 1\n\"caps\": x\n", "policies:\n-\r "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, added, err := source.Add("world.yaml", []byte(text), []byte(more))
		if err != nil || len(added) == 0 {
			return
		}
		for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("\n\r\u0085\u2028\u2029", r) }) {
			if !strings.ContainsAny(line, "{[~n") { // each is there still, but for what said that a section is empty
				require.Contains(t, string(got), line)
			}
		}
		again, added, err := source.Add("world.yaml", got, []byte(more))
		require.NoError(t, err, "%s", got)
		require.Empty(t, added)
		require.Equal(t, string(got), string(again))
	})
}
