package browser

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// given exports a world as a page, and opens that from the disk.
func given(t *testing.T, world string) *sight {
	t.Helper()
	file := filepath.Join(t.TempDir(), "given.html")
	worldctl(t, world, "export", file, "--format", "html")
	s := open(t, "file://"+file)
	s.do(chromedp.Navigate(s.url), chromedp.WaitVisible(chromedp.CSS(".list a")))
	return s
}

// A page that was given away shows what the page shows, from a disk and with no server.
func TestPageIsGivenAway(t *testing.T) {
	town := made(t, t.TempDir(), "town", "town")
	s := given(t, town)
	s.until("location.hash.endsWith('/timeline')") // of the one world that it has
	s.await("A copy, made 20")
	s.await("it was verified when it was made, by worldctl")
	require.NotContains(t, s.text(), "leave")
	served := look(t, town, "--manual")
	world := "#/" + s.world()
	for i, place := range []string{
		"/timeline?of=93", "/timeline?axis=order&filter=ada", "/conversations?of=person%2Fada", "/records?of=16&from=10", "/records", "/inbox", "/rules", "/meters",
		"/cells", "/cells?at=t7", "/cells?of=person%2Fada", "/cells?of=person%2Fada&at=93", "/cells?of=person%2Fada&at=30", "/cells?of=person%2Fada&at=200",
	} {
		s.at(world + place)
		served.at(world + place)
		s.alike(served, place)
		s.picture("copy-" + strconv.Itoa(i))
	}
	s.at(world + "/history")
	s.await("the world is made")
	require.NotContains(t, s.text(), "make a snapshot", "nobody changes a copy")
	s.keys("?")
	s.await("approve, deny")
	require.NotContains(t, strings.ToLower(s.text()), "compare", "which a server computes")
	s.keys(kb.Escape)
	s.at("#/")
	s.await("Worlds\n1\n")
}

// A copy proves nothing, whatever somebody has made of it: it tells what was said when it
// was made, and what does prove something.
func TestCopyDoesNotProve(t *testing.T) {
	s := given(t, made(t, t.TempDir(), "town", "town"))
	s.at("#/" + s.world() + "/proof")
	s.await("said when it made this file, at 20")
	s.await("What was said")
	text := s.text()
	require.Contains(t, text, "The file proves nothing by itself")
	require.Contains(t, text, "worldctl export FILE --format bundle")
	require.Contains(t, text, "worldctl verify FILE")
	require.NotContains(t, text, "compute everything anew")
	require.NotContains(t, text, "✓")
	s.until("document.querySelector('.good') === null")
}

// A copy that somebody has changed runs nothing that they put there, and says what it lacks.
func TestCopyThatSomebodyChanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "given.html")
	worldctl(t, made(t, t.TempDir(), "town", "town"), "export", file, "--format", "html")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), `data-path="/api/worlds"`)
	for name, change := range map[string][2]string{ // order cannot show: each is a page
		"with a script":  {"</body>", `<script>document.body.dataset.owned = 1</script></body>`},
		"without worlds": {`data-path="/api/worlds"`, `data-path="/api/others"`},
	} {
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), change[0], change[1], 1)), 0o600))
		s := open(t, "file://"+file)
		s.do(chromedp.Navigate(s.url))
		s.await("A copy, made 20")
		if name == "without worlds" {
			s.await("this copy of a world does not hold that")
			continue
		}
		s.until("location.hash.endsWith('/timeline') && document.body.dataset.owned === undefined")
		s.mu.Lock()
		require.Len(t, s.faults, 1)
		require.Contains(t, s.faults[0], "policy: Executing inline script violates")
		s.faults = nil
		s.mu.Unlock()
	}
}

// Every view of a copy is there, of a world in which much has happened.
func TestCopyHasEveryView(t *testing.T) {
	desk := proposed(t)
	worldctl(t, desk, "snapshot", "create", "noon", "-m", "before lunch")
	worldctl(t, desk, "send", "refund.asked", `{"order": "A-1", "why": "again"}`)
	worldctl(t, desk, "run", "-q")
	worldctl(t, desk, "rollback", "noon", "--ack", "--reason", "it was too much")
	s := given(t, desk)
	served := look(t, desk, "--manual", "--scope", "read")
	world := "#/" + s.world()
	for _, place := range []string{"/rules", "/rules?of=p1", "/inbox", "/conversations", "/meters", "/cells", "/records", "/timeline", "/timeline?of=20&proposal=p1"} {
		s.at(world + place)
		served.at(world + place)
		s.alike(served, place)
		require.NotContains(t, s.main(), "this copy", place)
	}
	s.at(world + "/rules")
	s.await("small refunds are read, too")
	s.await("Unknown beyond here")
	s.at(world + "/history")
	s.await("back to noon")
	s.await("it was too much")
	require.NotContains(t, s.main(), "this copy")
	s.at(world + "/proof")
	s.await("before lunch")
	require.NotContains(t, s.main(), "this copy")
	s.at(world + "/meters?at=t1")
	s.await("this copy of a world has its meters as of its end only")
}

// Where a payload was redacted a copy says why it has no cells.
func TestCopySaysWhyThereAreNoCells(t *testing.T) {
	dir := t.TempDir()
	worldctl(t, dir, "init", "desk", "--template", "support")
	desk := filepath.Join(dir, "desk")
	worldctl(t, desk, "send", "refund.asked", `{"order": "A-1", "why": "`+strings.Repeat("it is too loud, ", 500)+`"}`)
	worldctl(t, desk, "run", "-q")
	worldctl(t, desk, "redact", "#2", "--reason", "ada asked")
	s := given(t, desk)
	for _, place := range []string{"/cells", "/cells?at=4"} {
		s.at("#/" + s.world() + place)
		s.until("document.querySelector('main .trouble')?.innerText.includes('a payload was redacted that cells are computed of: this copy of a world has them up to #1')")
	}
}

// where is how a line says in which directory a world is, which a copy knows nothing of.
var where = regexp.MustCompile(`worldctl -w \S+`)

// alike waits until a person reads the same in the content of both.
func (s *sight) alike(other *sight, at string) {
	s.t.Helper()
	a, b := "", ""
	defer func() {
		if a != b {
			of, not := strings.Split(a, "\n"), strings.Split(b, "\n")
			at, n := at, 0
			for n < min(len(of), len(not)) && of[n] == not[n] {
				n++
			}
			s.t.Logf("at %s it is\n%s\nand not\n%s", at, strings.Join(of[n:min(len(of), n+10)], "\n"), strings.Join(not[n:min(len(not), n+10)], "\n"))
		}
	}()
	require.Eventually(s.t, func() bool {
		a, b = s.main(), where.ReplaceAllString(other.main(), "worldctl")
		return a == b && strings.Contains(a, "worldctl")
	}, patience, 50*time.Millisecond)
}

// main is what a person reads of the content.
func (s *sight) main() string {
	s.t.Helper()
	ctx, end := s.within()
	defer end()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.getElementById('main').innerText"))
	require.NoError(s.t, err)
	return text
}
