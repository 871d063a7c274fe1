package browser

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// The checker of accessibility that every view is held to, from the npm registry: it is as
// large as all of the page, and nobody but this test needs it.
const (
	axeVersion = "4.14.1"
	axeHash    = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
)

// axe returns the checker's script.
func axe(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("skipped: no npm here, which fetches axe-core")
	}
	dir := t.TempDir()
	for _, args := range [][]string{{"npm", "pack", "--silent", "axe-core@" + axeVersion}, {"tar", "xzf", "axe-core-" + axeVersion + ".tgz"}} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	script, err := os.ReadFile(filepath.Join(dir, "package", "axe.min.js"))
	require.NoError(t, err)
	sum := sha256.Sum256(script)
	require.Equal(t, axeHash, hex.EncodeToString(sum[:]))
	return string(script)
}

// Every view, light and dark, wide and narrow: nothing that somebody cannot see, reach or
// hear, and nothing that hangs over its edge.
func TestEveryViewIsAccessible(t *testing.T) {
	script := axe(t)
	s := look(t, proposed(t), "--manual")
	s.do(chromedp.Evaluate[chromedp.Void](script))
	for _, size := range [][2]int64{{1280, 800}, {1920, 1080}, {400, 800}} {
		s.do(chromedp.EmulateViewport(size[0], size[1]))
		for _, theme := range []string{"light", "dark"} {
			s.do(chromedp.Evaluate[chromedp.Void]("document.documentElement.dataset.theme = '" + theme + "'; location.hash = '#/'"))
			s.await("Worlds\n1\n")
			s.accessible(fmt.Sprint("worlds-", theme, "-", size[0]))
			s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
			s.await("wants refund.pay")
			s.keys("a")
			s.await("Reason")
			s.accessible(fmt.Sprint("form-", theme, "-", size[0]))
			s.do(chromedp.KeyEvent(kb.Escape))
			for _, view := range [][2]string{{"i", "Inbox"}, {"t", "Timeline"}, {"s", "Conversations"}, {"j", "Journal"}, {"c", "Cells"}, {"r", "Rules"}, {"h", "History"}, {"d", "Compare"}, {"m", "Meters"}, {"p", "Proof"}} {
				s.view(view[0], view[1])
				s.keys("j")
				s.accessible(fmt.Sprint(view[1], "-", theme, "-", size[0]))
			}
		}
	}
}

// What a history tells, its forms, calls that are opened and how two moments differ, likewise.
func TestWhatIsOpenedIsAccessible(t *testing.T) {
	script := axe(t)
	dir := past(t)
	s := look(t, dir, "--manual", "--forks", t.TempDir())
	s.do(chromedp.Evaluate[chromedp.Void](script))
	world := "#/" + worldID(t, dir)
	for _, size := range [][2]int64{{1280, 800}, {1920, 1080}, {400, 800}} {
		s.do(chromedp.EmulateViewport(size[0], size[1]))
		for _, theme := range []string{"light", "dark"} {
			s.do(chromedp.Evaluate[chromedp.Void]("document.documentElement.dataset.theme = '" + theme + "'"))
			s.at(world + "/history")
			s.await("What was done in the part that it left behind")
			s.accessible(fmt.Sprint("rollback-", theme, "-", size[0]))
			s.at(world + "/history?of=139")
			for key, want := range map[string]string{"b": "Done outside", "f": "New effects of the fork", "w": "Another seed", "n": "What it is for"} { // in any order
				s.await("Fork here")
				s.keys(key)
				s.await(want)
				s.accessible(fmt.Sprint("form-", key, "-", theme, "-", size[0]))
				s.do(chromedp.WaitVisible(chromedp.CSS(".form input:focus, .form textarea:focus")), chromedp.KeyEvent(kb.Escape))
			}
			s.at(world + "/conversations?of=person/ada")
			s.await("model.reply")
			s.do(chromedp.Evaluate[chromedp.Void]("document.querySelectorAll('.fold').forEach((b) => b.click())"))
			s.await("decided by")
			s.accessible(fmt.Sprint("opened-", theme, "-", size[0]))
			s.at(world + "/compare?a=noon")
			s.await("Cost since they parted")
			s.accessible(fmt.Sprint("compared-", theme, "-", size[0]))
		}
	}
}

// The report of a sweep: and each plot of runs is of one point of the params.
func TestReportOfASweepIsAccessible(t *testing.T) {
	script := axe(t)
	at := filepath.Join(t.TempDir(), "city")
	worldctl(t, ".", "init", at, "--template", "schelling")
	path := filepath.Join(at, "schelling.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	text = bytes.Replace(text, []byte("seeds: 30"), []byte("seeds: 3"), 1)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	worldctl(t, at, "sweep", "schelling.yaml")
	worldctl(t, at, "sweep", "report")
	s := open(t, "file://"+filepath.Join(at, "results", "report.html"))
	s.do(chromedp.Navigate(s.url), chromedp.Evaluate[chromedp.Void](script))
	s.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('main').id = 'main'"))
	for _, width := range []int64{1280, 400} {
		s.do(chromedp.EmulateViewport(width, 800))
		for _, point := range []string{"0.1", "0.5"} {
			s.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelectorAll('#plots select').forEach((e) => {
				e.value = [...e.options].find((o) => o.text === 'city.wanted = %s').value;
				e.onchange();
			})`, point)))
			s.accessible(fmt.Sprint("report-", point, "-", width))
		}
	}
	require.InDelta(t, 2, s.value("document.querySelectorAll('#plots select').length"), 0)
}

// accessible holds what is shown to the rules of axe, and to its window.
func (s *sight) accessible(name string) {
	s.t.Helper()
	ctx, end := s.within()
	defer end()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`axe.run(document, {resultTypes: ['violations']}).then((r) =>
		r.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + ' ' + n.any.map((a) => a.message).join('; ')).join(' | ')))`, chromedp.EvalAwaitPromise))
	require.NoError(s.t, err)
	for _, fault := range found { // all of them are told at the end
		s.fault(name + ": " + fault)
	}
	over, err := chromedp.Run(ctx, chromedp.Evaluate[int]("Math.max(...[document.documentElement, document.getElementById('main')].map((e) => e.scrollWidth - e.clientWidth))"))
	require.NoError(s.t, err)
	if over > 0 {
		s.fault(fmt.Sprintf("%s: it hangs %d pixels over its window", name, over))
	}
	s.picture(name)
}
