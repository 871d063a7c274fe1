package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const list = `# A comment.
mutant one
file a.go
test X=1 TestOne/part ./a -x
--- old
	x = 1
--- new
--- end

mutant two
file b.go
test TestTwo ./b
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
	one := mutant{name: "one", file: "a.go", test: test{"TestOne/part", "./a", "-x", "X=1"}, old: "\tx = 1\n"}
	two := mutant{name: "two", file: "b.go", test: test{name: "TestTwo", where: "./b"}, old: "\ty = 1\n", new: "\ty = 2\n"}
	if *all[0] != one || *all[1] != two {
		t.Fatalf("%+v, %+v", *all[0], *all[1])
	}
}

func TestListsThatSayNothingAreRefused(t *testing.T) {
	for _, text := range []string{
		"mutant", "file a.go", "mutant a\nmutant a", "mutant a\nfile x", "mutant a\n--- old", "mutant a\nwhat b",
		strings.Replace(list, "--- end\n", "", 1), strings.Replace(list, " ./a", " a", 1), strings.Replace(list, "test TestTwo ./b\n", "", 1),
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
			var c *composed
			if err == nil {
				c, err = newComposed(string(source))
			}
			if err == nil {
				err = c.add(m)
			}
			if err != nil {
				t.Errorf("%s: mutant %q: %v", list, m.name, err)
			}
			if !m.test.declared(t, root) {
				t.Errorf("%s: mutant %q: %s has no test %s", list, m.name, m.test.where, m.test.name)
			}
		}
	}
}

// declared reports whether a package has a test of its own; of its parts nobody knows
// before they run.
func (x test) declared(t *testing.T, root string) bool {
	files, err := filepath.Glob(filepath.Join(root, x.where, "*_test.go"))
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

const source = `package x

type counter struct{ n int }

func one() int {
	return 1
}

// add adds.
func (c *counter) add(_ string, more ...int) (sum int, err error) {
	for _, n := range more {
		c.n += n
	}
	return c.n, nil
}

func (counter) nothing() {
	_ = two
}

func two() int { return 2 }

func three() int {
	n := 3
	return n
}
`

const sourceTest = `package x

import "testing"

func TestOne(t *testing.T) {
	if one() != 1 {
		t.Fatal("after 3 lives")
	}
}

func TestAdd(t *testing.T) {
	var c counter
	t.Run("part", func(t *testing.T) {
		if sum, err := c.add("", 1, 2); sum != 3 || err != nil {
			t.Fatal(sum, err)
		}
	})
	c.nothing()
}

func TestSkipped(t *testing.T) { t.Skip() }

func TestFails(t *testing.T) { t.Fatal() }
`

// A mutant that no test notices is told from one that is killed and from one that is
// none, whatever else its package has, and the source stays what it is.
func TestVerdicts(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.26\n", "x.go": source, "x_test.go": sourceTest} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type want struct {
		verdict verdict
		by      string
	}
	var all []*mutant
	wants := make(map[string]want)
	m := func(test_, old, new string, verdict verdict, by string) {
		name := strconv.Itoa(len(all))
		all = append(all, &mutant{name: name, file: "x.go", test: test{name: test_, where: "./."}, old: old, new: new})
		wants[name] = want{verdict, by}
	}
	m("TestOne", "\treturn 1\n", "\treturn 3\n", killed, "TestOne, after 3 lives")
	m("TestOne", "\treturn 1\n", "\tpanic(1)\n", killed, "TestOne")
	m("TestAdd/part", "\t\tc.n += n\n", "\t\tc.n -= n\n", killed, "TestAdd/part")
	m("TestAdd", "\t_ = two\n", "\tpanic(2)\n", killed, "TestAdd")
	m("TestOne", "func two() int { return 2 }\n", "func two() int { return 3 }\n", survived, "")
	m("TestOne", "\treturn n\n", "\treturn 3\n", broken, "it does not compile: ")
	m("TestOne", "\treturn 1\n", "\treturn (\n", broken, "it does not compile: ")
	m("TestOne", "\treturn 4\n", "", broken, "its old text is in x.go 0 times")
	m("TestOne", "type counter struct{ n int }\n", "type counter struct{ n uint }\n", broken, "it is in no function")
	m("TestSkipped", "\treturn 1\n", "\treturn 3\n", broken, "without it TestSkipped fails too")
	m("TestFails", "\treturn 1\n", "\treturn 3\n", broken, "without it TestFails fails too")
	m("TestNone", "\treturn 1\n", "\treturn 3\n", broken, "without it TestNone fails too")
	try(root, all, func(m *mutant, x trial) {
		if w := wants[m.name]; x.verdict != w.verdict || !strings.HasPrefix(x.by, w.by) {
			t.Errorf("%+v: %+v, want %+v", *m, x, w)
		}
		delete(wants, m.name)
	})
	if len(wants) > 0 {
		t.Errorf("%v were not tried", wants)
	}
	if data, _ := os.ReadFile(filepath.Join(root, "x.go")); string(data) != source {
		t.Error("the source has changed")
	}
}
