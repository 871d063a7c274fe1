package star

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

const reference = "../../docs/starlark.md"

var (
	rowOfName    = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| (fails: )?`([^`]+)` \\|.*\\|$")
	rowOfExample = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (fails: )?`([^`]+)` \\|[^|`]*(?:`[^`]*`[^|`]*)*\\|$")
	rowAsPython  = regexp.MustCompile("(?m)^\\| `?(functions|\\w+)`? \\| (`\\w+`(?:, `\\w+`)*) \\|$")
	fenced       = regexp.MustCompile("(?s)```python\n(.*?)```")
	outcome      = regexp.MustCompile(`(?m)^# (\w+): +(.*)$`)
)

// TestReferenceHasEveryName holds docs/starlark.md to what a program can use.
func TestReferenceHasEveryName(t *testing.T) {
	listed := make(map[string]bool)
	for _, m := range rowOfName.FindAllStringSubmatch(referenceText(t), -1) {
		require.False(t, listed[m[1]], "%s is there twice", m[1])
		listed[m[1]] = true
	}
	for _, name := range asPython(t) {
		require.False(t, listed[name], "%s is there twice", name)
		listed[name] = true
	}
	var there []string
	add := func(of string, v starlark.Value) {
		for _, name := range v.(starlark.HasAttrs).AttrNames() {
			there = append(there, of+"."+name)
		}
	}
	for _, v := range []starlark.Value{new(starlark.List), new(starlark.Dict), starlark.String(""), starlark.Bytes(""), new(starlark.Set)} {
		add(v.Type(), v)
	}
	add("ctx", &stepContext{e: &engine{}})
	add("event", new(stepEvent))
	for _, names := range []starlark.StringDict{starlark.Universe, new(meter).predeclared()} {
		for name, v := range names {
			switch v.(type) {
			case starlark.HasAttrs:
				add(name, v)
			default:
				if name != syntax.IN.String() && regexp.MustCompile(`^[A-Za-z]+$`).MatchString(name) {
					there = append(there, name)
				}
			}
		}
	}
	for _, name := range there {
		require.True(t, listed[name], "%s has no line about %s", reference, name)
	}
	for name := range listed {
		require.Contains(t, there, name, "%s is about %s, which is not there", reference, name)
	}
}

// asPython returns the names that the page says are as in Python.
func asPython(t *testing.T) []string {
	var names []string
	for _, m := range rowAsPython.FindAllStringSubmatch(referenceText(t), -1) {
		of := m[1] + "."
		if m[1] == "functions" {
			of = ""
		}
		for name := range strings.SplitSeq(m[2], ", ") {
			names = append(names, of+strings.Trim(name, "`"))
		}
	}
	return names
}

// TestReferenceExamplesAreTrue runs the lines of the tables, and an example of each
// name that is as in Python.
func TestReferenceExamplesAreTrue(t *testing.T) {
	text := referenceText(t)
	examples := rowOfExample.FindAllStringSubmatch(text, -1)
	require.Len(t, examples, 8)
	for _, m := range rowOfName.FindAllStringSubmatch(text, -1) {
		examples = append(examples, m[1:])
	}
	more, err := os.ReadFile("testdata/as_python.txt")
	require.NoError(t, err)
	var shown []string
	for line := range strings.Lines(string(more)) {
		m := strings.Split(strings.Trim(line, "`\n"), "` | `")
		shown = append(shown, m[0])
		examples = append(examples, []string{m[0], m[1], "", m[2]})
	}
	require.ElementsMatch(t, asPython(t), shown)
	for _, m := range examples {
		t.Run(m[1], func(t *testing.T) {
			lines := strings.Split(m[1], "; ")
			last := len(lines) - 1
			source := "def reduce(ctx, state, event):\n"
			for _, line := range lines[:last] {
				source += "    " + line + "\n"
			}
			source += "    return " + lines[last] + "\n"
			if m[2] != "" {
				_, _, err := ran(t, source, nil)
				require.ErrorContains(t, err, m[3])
				return
			}
			source = strings.Replace(source, "return "+lines[last], fmt.Sprintf("got = (%s)\n    return [got == %s, type(got) == type(%s)]", lines[last], m[3], m[3]), 1)
			_, state, err := ran(t, source, nil)
			require.NoError(t, err)
			require.Equal(t, "[true,true]", state)
		})
	}
}

// TestReferenceProgramsDoWhatTheySay runs the programs, and compares what they come to
// with the comments below them.
func TestReferenceProgramsDoWhatTheySay(t *testing.T) {
	programs := fenced.FindAllStringSubmatch(referenceText(t), -1)
	require.NotEmpty(t, programs)
	for i, m := range programs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			said := make(map[string]string)
			for _, line := range outcome.FindAllStringSubmatch(m[1], -1) {
				said[line[1]] = line[2]
			}
			out, state, err := ran(t, m[1], said)
			if want, ok := said["fails"]; ok {
				require.ErrorContains(t, err, want)
				return
			}
			require.NoError(t, err)
			require.JSONEq(t, said["state"]+said["migrates"], state)
			var emits, asks, sets []string
			for _, e := range out.Events {
				emits = append(emits, e.Name+" "+asJSON(t, e.Data))
			}
			for _, e := range out.Effects {
				asks = append(asks, e.Kind+" "+asJSON(t, e.Params))
			}
			for _, e := range out.Timers {
				sets = append(sets, fmt.Sprint(e.After, " ", e.Name, " ", asJSON(t, e.Data)))
			}
			for word, got := range map[string][]string{"emits": emits, "asks": asks, "sets": sets} {
				require.Equal(t, strings.ReplaceAll(said[word], ": ", ":"), strings.Join(got, ", "))
			}
		})
	}
}

func referenceText(t *testing.T) string {
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	return string(text)
}

// ran runs a program on what is said to go in, and returns the state as JSON.
func ran(t *testing.T, source string, said map[string]string) (*reducer.Output, string, error) {
	t.Helper()
	p, err := Compile(Version, "test.star", []byte(source))
	require.NoError(t, err)
	r, err := p.Reducer()
	require.NoError(t, err)
	run := r.Reduce
	if said["migrates"] != "" {
		run = r.(reducer.Migrator).Migrate
	}
	name, data, _ := strings.Cut(cmp.Or(said["event"], "poke {}"), " ")
	cell := reducer.Cell{Reducer: "agent", Key: "ann"}
	in := &reducer.Input{
		Cell: cell, Step: 1, Time: 17, Limits: manifest.ReducerLimits{}.WithDefaults(),
		Event: reducer.Event{Name: name, Data: fromJSON(t, data)}, Seed: reducer.Seed{World: 1, Cell: cell, Step: 1},
	}
	if was := said["was"]; was != "" {
		in.State = fromJSON(t, was)
	}
	out := new(reducer.Output)
	if err := run(in, out); err != nil {
		return nil, "", err
	}
	return out, asJSON(t, out.State), nil
}

func fromJSON(t *testing.T, text string) reducer.Data {
	t.Helper()
	d, err := canon.FromJSON([]byte(text))
	require.NoError(t, err)
	return d
}

func asJSON(t *testing.T, d reducer.Data) string {
	t.Helper()
	if len(d) == 0 {
		return "null"
	}
	text, err := canon.ToJSON(d)
	require.NoError(t, err)
	return string(text)
}
