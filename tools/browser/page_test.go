package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// From first look to the last decision by keyboard alone, and the journal says the same.
func TestPersonDecidesByKeyboard(t *testing.T) {
	desk := support(t)
	s := look(t, desk, "--manual")
	s.await("support")
	s.await("1 awaiting approval, 1 in doubt")
	s.picture("worlds")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("desk/B-2 wants refund.pay")
	s.await("following")
	s.await("event.submitted")
	s.picture("inbox")
	s.keys("a")
	s.do(chromedp.WaitVisible(chromedp.CSS("textarea:focus")), chromedp.KeyEvent("the piano is on its way"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	s.await("1 waits for a person")
	s.keys("j")
	s.await("desk/D-4 wants refund.pay")
	s.keys("y")
	s.do(chromedp.WaitVisible(chromedp.CSS("textarea:focus")), chromedp.KeyEvent("it is in the book"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	s.await("nothing waits")
	for _, view := range []struct{ key, want, name string }{
		{"t", "Records in view", "timeline"},
		{"s", "the lamp came broken", "conversations"},
		{"j", "intent.resolved", "journal"},
		{"c", "desk/A-1", "cells"},
		{"r", "No change was ever proposed", "rules"},
		{"h", "the world is made", "history-of-a-desk"},
		{"d", "Say which moments", "compare-nothing"},
		{"m", "capability till", "meters"},
		{"p", "Verify", "proof"},
	} {
		s.keys("g", view.key)
		s.await(view.want)
		s.picture(view.name)
	}
	said := worldctl(t, desk, "tail", "--kind", "intent.resolved")
	require.Contains(t, said, "the piano is on its way")
	require.Contains(t, said, "it is in the book")
}

// The timeline of a town: a record that is chosen is told, with its causes.
func TestTimelineOfATown(t *testing.T) {
	dir := t.TempDir()
	town := made(t, dir, "town", "town")
	s := look(t, town, "--manual")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("nothing waits for a person")
	s.view("t", "Timeline")
	s.await("of 413 records")
	s.await("world.created")
	s.keys("j", "j", "j")
	s.await("What it says")
	s.picture("town")
	s.do(chromedp.Evaluate[chromedp.Void]("location.hash = location.hash.replace(/of=\\d+/, 'of=93')"))
	s.await("#93")
	s.await("It answered")
	s.await("The life of the intent")
	s.await("its answer: ok")
	s.keys("+", "+")
	s.picture("town-93")
	s.do(chromedp.EmulateViewport(400, 800)) // where all buttons are in reach, too
	s.until("innerWidth === 400 && document.getElementById('main').scrollWidth <= 400")
	s.do(chromedp.EmulateViewport(1280, 800))
}
