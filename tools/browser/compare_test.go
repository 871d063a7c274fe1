package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// Two moments of a world, and a world and its fork: where they part, which cells and intents
// differ and where, and what that cost.
func TestCompareTellsWhereTwoPart(t *testing.T) {
	dir := past(t)
	fork := t.TempDir() + "/dice"
	worldctl(t, dir, "fork", fork, "--at", "noon")
	s := look(t, dir, "--manual", dir, fork)
	id, other := worldID(t, dir), worldID(t, fork)
	s.at("#/" + id + "/compare?a=noon")
	s.await("they differ")
	s.await("A ends there, B goes on with #140 clock.advanced")
	s.inOrder("which both have", "Cells", "market/main", "step 7 →", "/deals", "Intents", "model.reply", "Cost since they parted", "calls")
	s.picture("compare")
	s.at("#/" + id + "/compare?a=head&with=" + other)
	s.await("B goes on with #140 world.forked")
	s.await("A goes on with #140 clock.advanced,")
	s.inOrder("they part", "after #139", "A goes on", "B goes on")
	s.inOrder("diff head " + fork)
	s.at("#/" + id + "/compare?a=9&b=11")
	s.await("A ends there, B goes on with #10 event.submitted person/")
	s.at("#/" + id + "/compare?a=%23139&b=139")
	s.await("they are the same")
	s.at("#/" + id + "/compare?a=nowhere")
	s.await("is no moment of this world")
	require.NotContains(t, s.text(), "It is computed")
}

// Whoever looks forks at a snapshot, and asks what would have been.
func TestPersonForksAndAsksWhatIf(t *testing.T) {
	dir := past(t)
	forks := t.TempDir()
	s := look(t, dir, "--manual", "--forks", forks)
	s.at("#/" + worldID(t, dir) + "/history?of=139")
	s.await("Fork here")
	s.keys("f")
	s.do(chromedp.WaitVisible(chromedp.CSS("input:focus")), chromedp.KeyEvent("dice"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	s.await("dice is forked after #139")
	require.Contains(t, worldctl(t, forks, "-w", "dice", "tail", "--kind", "world.forked"), "dice")
	s.do(chromedp.Click(chromedp.CSS(".form .buttons button")))
	s.await("Roll back to it")
	s.keys("w")
	s.do(chromedp.WaitVisible(chromedp.CSS("textarea:focus")), chromedp.KeyEvent(`{"event": "person.gives", "data": {"name": "ada", "to": "ben", "coins": 3}`), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	s.await("line 1 is no JSON")
	s.do(chromedp.KeyEvent("}"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	s.await("Nothing that can be known would be different") // nothing recorded answers that gift
	s.await("1 new")
	s.picture("what-if")
	s.do(chromedp.Click(chromedp.CSS(".form .buttons button")))
	s.await("Roll back to it")
	s.keys("w")
	s.do(chromedp.WaitVisible(chromedp.CSS("textarea:focus")), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab),
		chromedp.KeyEvent("7"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	s.await("what persons decided and is not repeated: 1 rollback.applied")
}
