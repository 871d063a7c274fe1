package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const list = `# A comment.
mutant one
file a.go
test TestOne/part ./a -x
--- old
	x = 1
--- new
--- end

mutant two
file b.go
run go test .
--- old
	y = 1
--- new
	y = 2
--- end
`

func TestAListIsWhatItSays(t *testing.T) {
	all, err := parse(list)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	one := mutant{name: "one", file: "a.go", test: test{"TestOne/part", "./a -x"}, old: "\tx = 1\n"}
	two := mutant{name: "two", file: "b.go", run: "go test .", old: "\ty = 1\n", new: "\ty = 2\n"}
	if all[0] != one || all[1] != two {
		t.Fatalf("%+v", all)
	}
}

func TestListsThatSayNothingAreRefused(t *testing.T) {
	for _, text := range []string{
		"mutant", "file a.go", "mutant a\nmutant a", "mutant a\nfile x", "mutant a\n--- old", "mutant a\nwhat b",
		strings.Replace(list, "--- end\n", "", 1), strings.Replace(list, " ./a", " a", 1),
		strings.Replace(list, "--- old", "run go test\n--- old", 1),
	} {
		if all, err := parse(text); err == nil {
			t.Errorf("%q is %+v", text, all)
		}
	}
}

func TestAMutantHasOnePlace(t *testing.T) {
	m := mutant{old: "\tx = 1\n", new: "\tx = 2\n"}
	for source, want := range map[string]string{"{\n\tx = 1\n}": "{\n\tx = 2\n}", "": "", "\tx = 1\n\tx = 1\n": ""} {
		if got, err := m.apply(source); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", source, got, err)
		}
	}
}

// Lists do not rot: what a mutant replaces is there, once, and so is its test.
func TestEveryMutantHasItsPlaceAndItsTest(t *testing.T) {
	root := filepath.Join("..", "..")
	lists, err := filepath.Glob("*.txt")
	if err != nil || len(lists) == 0 {
		t.Fatal(lists, err)
	}
	names := make(map[string]bool)
	for _, list := range lists {
		all, err := read(".", list)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			if names[m.name] {
				t.Errorf("%s: there is another mutant %q", list, m.name)
			}
			names[m.name] = true
			source, err := os.ReadFile(filepath.Join(root, m.file))
			if err != nil {
				t.Errorf("%s: mutant %q: %v", list, m.name, err)
				continue
			}
			if _, err := m.apply(string(source)); err != nil {
				t.Errorf("%s: mutant %q: %v", list, m.name, err)
			}
			if m.run == "" && !m.test.declared(t, root) {
				t.Errorf("%s: mutant %q: %s has no test %s", list, m.name, m.test.args, m.test.name)
			}
		}
	}
}

// declared reports whether a package has a test of its own; of its parts nobody knows
// before they run.
func (x test) declared(t *testing.T, root string) bool {
	files, err := filepath.Glob(filepath.Join(root, strings.Fields(x.args)[0], "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(x.name, "/")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "\nfunc "+name+"(t *testing.T) {") {
			return true
		}
	}
	return false
}

// A mutant that no test notices is told from one that is killed and from one that
// is none, and the source stays what it is.
func TestVerdicts(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const source = "package x\n\nfunc one() int {\n\treturn 1\n}\n\nfunc two() int {\n\treturn 2\n}\n\nvar _ = two\n"
	write("go.mod", "module x\n\ngo 1.26\n")
	write("x.go", source)
	write("x_test.go", "package x\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif one() != 1 {\n\t\tt.Fatal(\"after 3 lives\")\n\t}\n}\n")
	m := func(old, new string) trial {
		return (&mutant{file: "x.go", test: test{"TestOne", "./."}, old: old, new: new}).try(root)
	}
	for _, c := range []struct {
		trial trial
		want  verdict
		by    string
	}{
		{m("\treturn 1\n", "\treturn 3\n"), killed, "TestOne, after 3 lives"},
		{m("\treturn 2\n", "\treturn 3\n"), survived, ""},
		{m("\treturn 2\n", "\treturn\n"), broken, "it does not compile: "},
		{m("\treturn 4\n", ""), broken, "its old text is in x.go 0 times"},
	} {
		if c.trial.verdict != c.want || !strings.HasPrefix(c.trial.by, c.by) {
			t.Errorf("%+v, want %s %s", c.trial, c.want, c.by)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(root, "x.go")); string(data) != source {
		t.Error("the source has changed")
	}
}
