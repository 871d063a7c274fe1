package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// want is a fault that a comment asks for.
var (
	wantComment = regexp.MustCompile(`// want.*`)
	wantMessage = regexp.MustCompile(`want(\+1)? ("(?:[^"\\]|\\.)*")`)
)

// TestEveryRuleFires checks a house in which each is broken, and that nothing
// else in it is reported.
func TestEveryRuleFires(t *testing.T) {
	bad, err := txtar.ParseFile("testdata/bad.txtar")
	require.NoError(t, err)
	bad.Files = append(bad.Files, txtar.File{Name: "manifest/long.go", Data: long()})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	wants := map[string][]string{} // by file:line
	for _, f := range bad.Files {
		path := filepath.Join(dir, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o644))
		for i, line := range strings.Split(string(f.Data), "\n") {
			for _, m := range wantMessage.FindAllStringSubmatch(wantComment.FindString(line), -1) {
				message, err := strconv.Unquote(m[2])
				require.NoError(t, err)
				at := path + ":" + strconv.Itoa(i+1+len(m[1])/2)
				wants[at] = append(wants[at], message)
			}
		}
	}
	for _, f := range ours.check(load(t, dir)) {
		at := f.pos.Filename + ":" + strconv.Itoa(f.pos.Line)
		i := slices.IndexFunc(wants[at], func(w string) bool { return strings.Contains(f.message, w) })
		if i < 0 {
			t.Errorf("unwanted: %v", f)
			continue
		}
		wants[at] = slices.Delete(wants[at], i, i+1)
	}
	for at, left := range wants {
		require.Empty(t, left, "%s: no such fault", at)
	}
}

// long returns a file that is a line too long, with a function of the greatest
// length and one that is a line longer.
func long() []byte {
	file := "package manifest // want \"a file of 451 lines\"\n" +
		"func most() {" + strings.Repeat("\n\t_ = 0", 60) + "\n}\n" +
		"func more() { // want \"more has 61 lines, more than 60\"" + strings.Repeat("\n\t_ = 0", 61) + "\n}\n"
	return []byte(file + strings.Repeat("\n", 451-strings.Count(file, "\n")))
}
