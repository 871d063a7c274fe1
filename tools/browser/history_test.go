package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// past makes a town that went on for a while after a snapshot, went back to it, and went on.
func past(t *testing.T) string {
	t.Helper()
	dir := t.TempDir() + "/town"
	worldctl(t, t.TempDir(), "init", dir, "--template", "town")
	feed(t, dir)
	worldctl(t, dir, "run", "-q", "--ticks", "5")
	worldctl(t, dir, "snapshot", "create", "noon", "-m", "before lunch")
	worldctl(t, dir, "run", "-q", "--ticks", "5")
	worldctl(t, dir, "rollback", "noon", "--ack", "--reason", "they ate too much")
	worldctl(t, dir, "run", "-q", "--ticks", "2")
	return dir
}

// A history tells what can be returned to, what was left behind, and what was forked of what.
func TestHistoryTellsWhatWasLeftBehind(t *testing.T) {
	dir := past(t)
	fork := t.TempDir() + "/dice"
	worldctl(t, dir, "fork", fork, "--at", "noon")
	s := look(t, dir, "--manual", dir, fork)
	s.at("#/" + worldID(t, fork) + "/history")
	s.await("forked from " + worldID(t, dir))
	s.await("Where it comes from")
	s.at("#/" + worldID(t, dir) + "/history")
	s.await("back to noon")
	s.await("they ate too much")
	s.await("kept: before lunch")
	s.await("effects: hold")
	s.await("What was done in the part that it left behind")
	ctx, end := s.within()
	defer end()
	parts, err := chromedp.Run(ctx, chromedp.Evaluate[[]string]("[...document.querySelectorAll('.past a')].map((e) => e.className + e.title)"))
	require.NoError(t, err)
	require.Len(t, parts, 3)
	require.Regexp(t, `^#1 to #\d+$`, parts[0])
	require.Regexp(t, `^hatched#\d+ to #\d+, left behind by the rollback #\d+$`, parts[1])
	s.picture("history")
}

// Snapshots are made, pinned and returned to by keyboard; what would stay behind is shown
// first, and a form stays what it was when it was opened.
func TestPersonRollsBackByKeyboard(t *testing.T) {
	dir := past(t)
	s := look(t, dir, "--manual")
	id := worldID(t, dir)
	s.at("#/" + id + "/history")
	s.await("back to noon")
	s.keys("n")
	s.do(chromedp.WaitVisible(chromedp.CSS("input:focus")), chromedp.KeyEvent("evening"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	s.await("2 snapshots are kept")
	s.step(id, 4)
	s.do(chromedp.Click(chromedp.CSS(".side .list a")))
	s.await("Roll back to it")
	s.await("Pin")
	s.keys("b")
	s.await("Done outside, or under way")
	s.picture("rollback")
	s.do(chromedp.WaitVisible(chromedp.CSS("input:focus")), chromedp.KeyEvent("once more"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	s.await("Done outside, or under way")
	require.NotContains(t, worldctl(t, dir, "tail", "--kind", "rollback.applied"), "once more", "nobody has said that these are known")
	s.step(id, 5)
	s.do(chromedp.Click(chromedp.CSS(".form .check:last-of-type input")), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	s.await("look at the list again")
	s.do(chromedp.Click(chromedp.CSS(".form .check:last-of-type input")), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	s.await("back to evening")
	s.await("2 rollbacks")
	require.Contains(t, worldctl(t, dir, "tail", "--kind", "rollback.applied"), "once more")
}

// A token that can read only sees the past, and no buttons that would fail.
func TestHistoryOfAReader(t *testing.T) {
	dir := past(t)
	s := look(t, dir, "--manual", "--scope", "read")
	s.at("#/" + worldID(t, dir) + "/history")
	s.await("back to noon")
	s.keys("n", "j", "b")
	s.await("state root") // of the snapshot, which is chosen
	require.NotContains(t, s.text(), "make a snapshot")
	require.NotContains(t, s.text(), "Roll back to it")
	require.NotContains(t, s.text(), "Fork here")
}
