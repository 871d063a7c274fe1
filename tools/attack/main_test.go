package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSumAddsUpClassesAndKeepsTheRest(t *testing.T) {
	var out strings.Builder
	got, err := sum(&out, strings.NewReader(`=== RUN   TestAttackA
    a_test.go:1: a, seed 7: it is open
        again: SEED=7 go test
    a_test.go:2: attack: a: 10 tried, 1 through
--- FAIL: TestAttackA (0.00s)
=== RUN   TestAttackB
    b_test.go:1: attack: b of two words: 2500 tried, 0 through
--- PASS: TestAttackB (0.00s)
`))
	if want := (totals{2, 2510, 1}); err != nil || got != want {
		t.Fatal(got, err)
	}
	for _, want := range []string{"it is open", "again: SEED=7 go test", "b of two words           2500 tried        0 through", "--- FAIL: TestAttackA"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "PASS") {
		t.Error(out.String())
	}
}

// What comes through is seen by whoever runs the command, and so is a test that
// fails otherwise, and that there is none.
func TestWhatFailsIsSeen(t *testing.T) {
	for body, want := range map[string]bool{
		`t.Log("attack: x: 3 tried, 0 through")`:              true,
		`t.Error("attack: x: 3 tried, 1 through")`:            false,
		`t.Log("attack: x: 3 tried, 0 through"); t.FailNow()`: false,
		`t.Log("nothing")`:                                    false,
	} {
		root := t.TempDir()
		for name, text := range map[string]string{
			"go.mod":              "module x\n\ngo 1.26\n",
			"door/attack_test.go": "package door\n\nimport \"testing\"\n\nfunc TestAttackX(t *testing.T) {\n\t" + body + "\n}\n",
			"wall/wall_test.go":   "package wall\n\nimport \"testing\"\n\nfunc TestAttackY(t *testing.T) {\n\tt.Fatal()\n}\n",
		} {
			name = filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var out strings.Builder
		if got, err := run(&out, root, "", 1, 3); got != want {
			t.Errorf("%s: %t, %v\n%s", body, got, err, out.String())
		}
	}
}
