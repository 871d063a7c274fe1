package browser

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// given exports a world as a page, and opens that from the disk.
func given(t *testing.T, world string) *sight {
	t.Helper()
	file := filepath.Join(t.TempDir(), "given.html")
	worldctl(t, world, "export", file, "--format", "html")
	s := open(t, "file://"+file)
	s.do(chromedp.Navigate(s.url), chromedp.WaitVisible(chromedp.CSS("main table tbody tr")))
	return s
}

// A page that was given away shows what the page shows, from a disk and with no server.
func TestPageIsGivenAway(t *testing.T) {
	town := made(t, t.TempDir(), "town", "town")
	s := given(t, town)
	s.await("A copy, made 20")
	s.await("✓ verified by worldctl")
	require.NotContains(t, s.text(), "leave")
	served := look(t, town, "--manual")
	s.do(chromedp.Click(chromedp.CSS("main table a")))
	s.await("Inbox")
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
	require.NotContains(t, strings.ToLower(s.text()), "compare", "which a server computes")
	s.at(world + "/proof")
	s.await("✓ the store is what was last said of it")
}

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
		a, b = s.main(), other.main()
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
