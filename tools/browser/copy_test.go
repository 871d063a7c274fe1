package browser

import (
	"path/filepath"
	"testing"

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
	s.do(chromedp.Click(chromedp.CSS("main table a")))
	s.await("Inbox")
	s.keys("g", "t")
	s.await("of 413 records")
	s.await("world.created")
	s.keys("j", "j", "j")
	s.await("What it says")
	s.picture("copy-timeline")
	s.keys("g", "j")
	s.await("cell.stepped")
	s.keys("g", "c")
	s.await("person/ada")
	s.at("#/" + s.world() + "/cells?of=person%2Fada&at=93")
	s.await("at #93")
	for _, line := range []string{"Its way", "State"} {
		s.await(line)
	}
	s.picture("copy-cell")
	for _, view := range []string{"i", "r", "m", "p"} {
		s.keys("g", view)
		s.await("worldctl")
		require.NotContains(t, s.text(), "not-in-copy", view)
	}
	s.await("✓ the store is what was last said of it")
}
