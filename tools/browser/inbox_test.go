package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// written makes a world of files, sends it its events and runs it.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "world")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for name, text := range files { // order cannot show: each is a file
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	worldctl(t, dir, "init")
	feed(t, dir)
	worldctl(t, dir, "run", "-q")
	return dir
}

// asking is a reducer that asks for what it is told, and cannot do everything.
const asking = `def reduce(ctx, state, event):
    if event.name == "said":
        if event.data["says"] == {"fail": True}:
            fail("it cannot be done")
        ctx.effect("tool.run", event.data["says"])
    return event.data
`

// decide gives a reason in the form that is open and sends it.
func (s *sight) decide(reason string) {
	s.t.Helper()
	s.do(chromedp.WaitVisible(chromedp.CSS("textarea:focus")), chromedp.KeyEvent(reason), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
}

// All of a kind are decided at once, after all of them were shown; a halted cell goes on
// without the event that it failed on.
func TestManyAreDecidedAtOnce(t *testing.T) {
	var events strings.Builder
	for i, says := range []string{`{"n": 1}`, `{"n": 2}`, `{"n": 3}`, `{"fail": true}`} {
		fmt.Fprintf(&events, `{"event": "said", "data": {"to": "%d", "says": %s}}`+"\n", i, says)
	}
	dir := written(t, map[string]string{
		"world.yaml": hostileManifest, "answers.jsonl": "", "events.jsonl": events.String(),
		"left.json": hostileSchema, "agent.star": asking,
	})
	s := look(t, dir, "--manual")
	s.await("3 awaiting approval, 1 cell halted")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("4 wait for a person")
	s.await("Decide about all 3 that want tool.run")
	s.await(" cell list")
	s.until("document.querySelector('aside .count').innerText === '4'") // as many as the list has
	s.keys("A")
	s.await("Approve all")
	s.keys("a")
	s.await("3 are meant")
	s.picture("batch")
	s.decide("all of them are fine")
	s.await("Decided about 3.")
	s.await("1 waits for a person")
	s.keys("j")
	s.await("A step of agent/3 failed")
	s.await("it cannot be done")
	s.picture("halted-cell")
	s.keys("s")
	s.decide("nobody needs it")
	s.await("nothing waits for a person")
	require.Equal(t, 3, strings.Count(worldctl(t, dir, "tail", "--kind", "intent.resolved"), "all of them are fine"))
	require.Contains(t, worldctl(t, dir, "tail", "--kind", "cell.resumed"), "nobody needs it")
}

// What was cancelled is told among the effects of a world.
func TestCancelledIsTold(t *testing.T) {
	dir := written(t, map[string]string{
		"world.yaml": hostileManifest, "answers.jsonl": "", "left.json": hostileSchema,
		"agent.star": `def reduce(ctx, state, event):
    if event.name == "said":
        ctx.effect("tool.run", {"n": 1}, tag = "it")
    if event.name == "left":
        ctx.cancel("it")
    return 1
`,
		"events.jsonl": `{"event": "said", "data": {"to": "a"}}` + "\n" + `{"event": "left", "data": {"to": "a"}, "at": 3}` + "\n",
	})
	s := look(t, dir, "--manual")
	s.until("document.querySelector('.bar')?.title === '1 cancelled'")
}

// The inbox of all worlds has what waits in each of them, and a decision goes to its own.
func TestInboxOfAllWorlds(t *testing.T) {
	dir := t.TempDir()
	dev, prod := made(t, dir, "dev", "support"), made(t, dir, "prod", "support")
	s := look(t, dir, "--manual", dev, prod)
	s.await("4 in the inbox of all")
	s.keys("g", "i")
	s.await("4 wait for a person")
	s.await("desk/B-2 wants refund.pay")
	s.picture("inbox-of-all")
	of := s.hash("of")
	for _, dir := range []string{dev, prod} {
		s.await("support · " + worldID(t, dir)[:6] + " · desk/B-2")
	}
	s.await("in support · " + of[:6])
	s.keys("a")
	s.decide("fine")
	s.await("3 wait for a person")
	other, its := dev, prod
	if strings.Contains(worldctl(t, dev, "status", "-o", "json"), strings.Split(of, "/")[0]) {
		other, its = prod, dev
	}
	require.Contains(t, worldctl(t, its, "tail", "--kind", "intent.resolved"), "fine")
	require.NotContains(t, worldctl(t, other, "tail", "--kind", "intent.resolved"), "fine")
	s.keys("g", "w")
	worldctl(t, other, "send", "refund.asked", `{"order": "Z-9", "why": "late"}`)
	tail := strings.TrimSpace(worldctl(t, other, "status", "-o", "json"))
	s.await(tail[strings.Index(tail, `"root": "`)+9:][:12]) // it is followed
}

// hash returns a part of what the address asks for.
func (s *sight) hash(name string) string {
	s.t.Helper()
	ctx, end := s.within()
	defer end()
	is, err := chromedp.Run(ctx, chromedp.Evaluate[string]("new URLSearchParams(location.hash.split('?')[1]).get('"+name+"') ?? ''"))
	require.NoError(s.t, err)
	return is
}

// An event that a cell failed on is shown to its end, in all views, before somebody can skip it.
func TestWhatIsSkippedIsShownWhole(t *testing.T) {
	dir := written(t, map[string]string{
		"world.yaml": hostileManifest, "answers.jsonl": "", "left.json": hostileSchema,
		"agent.star":   "def reduce(ctx, state, event):\n    fail(\"no\")\n",
		"events.jsonl": `{"event": "said", "data": {"to": "a", "says": "` + strings.Repeat("a ", 2000) + "THE_END\"}}\n",
	})
	s := look(t, dir, "--manual")
	for _, place := range []string{"/inbox", "/cells"} {
		s.at("#/" + worldID(t, dir) + place)
		s.await("some of it is cut")
		require.NotContains(t, s.text(), "THE_END", place)
		require.NotContains(t, s.text(), "Skip the event", place)
		s.do(chromedp.Click(chromedp.CSS(".main .whole p button")))
		s.await("THE_END")
		s.await("Skip the event")
	}
	s.keys("s")
	s.decide("nobody needs it")
	s.until("document.querySelector('.form') === null")
	require.Contains(t, worldctl(t, dir, "tail", "--kind", "cell.resumed"), "nobody needs it")
}

// A key is for what is seen: for the view that was just led to, for the list that just came
// and for the form that was just opened.
func TestKeyIsForWhatIsSeen(t *testing.T) {
	s := look(t, support(t), "--manual")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("desk/B-2 wants refund.pay")
	s.script(`window.press = async (...keys) => {
		for (const key of keys) {
			document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
			for (let i = 0; i < 20; i++) await null; // which is sooner than anybody presses the next
		}
	}`)
	s.script("void press('g', 't', 'j')")
	s.until("location.hash.includes('/timeline?of=1')")
	s.script(`new MutationObserver((_, is) => {
		if (document.querySelectorAll('nav[aria-label=Inbox] a').length < 2) return;
		is.disconnect();
		void press('j');
	}).observe(document.getElementById('app'), { childList: true, subtree: true })`)
	s.script("void press('g', 'i')")
	s.await("desk/D-4 wants refund.pay")
	s.until("document.querySelectorAll('nav[aria-label=Inbox] a')[1].ariaCurrent === 'true'")
	s.script("void press('y').then(() => { window.on = document.activeElement.localName; })")
	s.until("window.on === 'textarea'")
	s.at("#/" + s.world() + "/history")
	s.await("make a snapshot")
	s.script("void press('n').then(() => { window.on = document.activeElement.localName; })")
	s.until("window.on === 'input'")
}

// What is in doubt can be tried again, as what is owed says.
func TestDoubtIsTriedAgain(t *testing.T) {
	desk := support(t)
	s := look(t, desk, "--manual")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("desk/B-2 wants refund.pay") // the first is chosen, so the next key finds the second
	s.keys("j")
	s.await("desk/D-4 wants refund.pay")
	s.keys("r")
	s.decide("the bank was asleep")
	s.until("document.querySelector('.form') === null")
	require.Contains(t, worldctl(t, desk, "tail", "--kind", "intent.resolved"), "the bank was asleep")
}
