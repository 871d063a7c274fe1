// Package recording finds the recordings that tests run on. Those of real agents lie beside the
// clone and are no part of the repository. Where a test needs their form alone, it runs on small
// ones that were made up, in testdata, if there are no others.
//
// A test that runs on recordings has Airline, Ville or Recording in its name: make
// test-recordings runs the tests that do.
package recording

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Names of recordings.
const (
	Airline = "airline/runs.json"    // conversations of agents with tools, in the form of OpenAI
	Ville   = "ville/moves.jsonl.gz" // moves of villagers, a message of worldctl send a line
)

// Both are seen from the top of a clone.
const (
	beside = "../shared/data"
	own    = "internal/recording/testdata"
)

var named = regexp.MustCompile("^Test[^/]*(Airline|Ville|Recording)")

// Shared returns the path of a recording of real agents, or skips the test where there are none.
func Shared(t testing.TB, name string) string {
	t.Helper()
	path, there := find(t, name)
	if !there {
		t.Skipf("needs the recordings in %s beside the clone", beside)
	}
	return path
}

// Any returns the path of a recording of real agents, or of one that was made up where there are
// none.
func Any(t testing.TB, name string) string {
	t.Helper()
	path, there := find(t, name)
	if !there {
		path = filepath.Join(top(t), own, name)
	}
	return path
}

// find returns the path of a recording of real agents, and reports whether there are any. If there
// are, each has to be there.
func find(t testing.TB, name string) (path string, there bool) {
	t.Helper()
	if !named.MatchString(t.Name()) {
		t.Fatalf("it runs on a recording: make test-recordings finds it by Airline, Ville or Recording in its name")
	}
	dir := filepath.Join(top(t), beside)
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return "", false
	}
	path = filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("there are recordings, and this is none of them: %v", err)
	}
	return path, true
}

// top returns the top of the clone that the working directory is in.
func top(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, own)); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatalf("the working directory is in no clone: %s is above none of it", own)
		}
		dir = up
	}
}
