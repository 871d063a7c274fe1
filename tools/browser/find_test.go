package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// What somebody types is looked for, and the keys lead there.
func TestPersonFindsACell(t *testing.T) {
	dir := past(t)
	s := look(t, dir, "--manual")
	s.at("#/" + worldID(t, dir) + "/history")
	s.await("back to noon")
	require.NotContains(t, s.text(), "Fork here", "no place for forks was given")
	s.seek()
	s.do(chromedp.KeyEvent("ben"))
	s.until("document.querySelector('.hits a')?.innerText === 'person/ben'")
	s.picture("find")
	s.keys(kb.ArrowDown, kb.Enter)
	s.until("location.hash.includes('/cells?of=person%2Fben')")
	s.seek()
	s.do(chromedp.KeyEvent("nobody-of-that-name"))
	s.await("nothing has that name or key")
	s.keys(kb.Escape)
	s.until("document.querySelector('.hits') === null")
	s.seek()
	s.do(chromedp.KeyEvent("#16"), chromedp.KeyEvent(kb.Enter))
	s.until("location.hash.includes('/records?of=16')")
}

// seek presses the key that leads to the field.
func (s *sight) seek() {
	s.t.Helper()
	s.keys("/")
	s.until("document.activeElement.id === 'find'")
}
