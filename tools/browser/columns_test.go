package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// compared is a script that holds the columns which the page has of a world to what
// /records tells of each record, and returns where they differ.
const compared = `(async () => {
	const { columns, get, pathOf } = await import('./app.js');
	const { of } = columns.value;
	const world = location.hash.slice(2).split('/')[0];
	const wrong = [];
	let n = 0;
	for (let path = pathOf(world, 'records') + '?raw=false&limit=1000'; path; ) {
		const page = await get(path);
		for (const r of page.records) {
			const i = r.id - 1;
			const cells = of.cell[i] >= 0 ? [of.cells[of.cell[i]]] : (of.several.get(i) ?? []).map((c) => of.cells[c]);
			const is = [of.time[i], of.whats[of.what[i]], of.name[i] < 0 ? '' : of.names[of.name[i]], cells.join(), of.cause[i]].join(' | ');
			const want = [r.time, r.kind + (r.how ? ' ' + r.how : ''), r.name, r.cells.join(), r.cause].join(' | ');
			if (is !== want || r.id !== ++n) wrong.push('#' + r.id + ': ' + is + ', not ' + want);
		}
		path = page.next;
	}
	if (n !== of.n) wrong.push(of.n + ' records, not ' + n);
	return wrong.slice(0, 5).concat(n < 20 ? ['only ' + n + ' records'] : []);
})()`

// equal holds the columns on the page to the records of the world.
func (s *sight) equal() {
	s.t.Helper()
	ctx, end := s.within()
	defer end()
	wrong, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](compared, chromedp.EvalAwaitPromise))
	require.NoError(s.t, err)
	require.Empty(s.t, wrong)
}

// What the page decodes of the columns is what /records tells, on every template that runs
// offline, and after rollbacks and a fork.
func TestColumnsOnThePageAreTheRecords(t *testing.T) {
	for name, made := range map[string]func(*testing.T) string{ // order cannot show: each is a test
		"support": support, "tangled": tangled,
		"town": func(t *testing.T) string { return made(t, t.TempDir(), "town", "town") },
	} {
		t.Run(name, func(t *testing.T) {
			s := look(t, made(t), "--manual")
			s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
			s.until("location.hash.endsWith('/inbox')")
			s.view("t", "Timeline")
			s.until("document.querySelector('.lamp').innerText === 'following'") // which has all columns
			s.equal()
		})
	}
}

// A stream that is cut and taken up again leaves no gap, whatever happened meanwhile.
func TestCutStreamLeavesNoGap(t *testing.T) {
	desk := support(t)
	s := look(t, desk, "--manual")
	s.script(cuttable)
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.until("location.hash.endsWith('/inbox')")
	s.view("t", "Timeline")
	s.await("39 of 39 records")
	for i, order := range []string{"Q-1", "Q-2", "Q-3"} {
		s.script(cut)
		s.await("not following")
		for range 3 {
			worldctl(t, desk, "send", "refund.asked", `{"order": "`+order+`", "why": "late"}`)
		}
		s.script(mend)
		s.until(`document.querySelector('.lamp').innerText === 'following'`)
		s.await(map[int]string{0: "42 of 42", 1: "45 of 45", 2: "48 of 48"}[i])
		s.equal()
	}
}

// cut ends all that the page hears from the server, and has it hear nothing until mended.
const (
	cuttable = `(() => {
	const real = fetch;
	let line = new AbortController();
	window.fetch = (path, init = {}) => real(path, {...init, signal: AbortSignal.any([line.signal, ...(init.signal ? [init.signal] : [])])});
	window.cut = () => line.abort();
	window.mend = () => { line = new AbortController(); };
})()`
	cut  = "window.cut()"
	mend = "window.mend()"
)

// script has the page do something.
func (s *sight) script(text string) {
	s.t.Helper()
	s.do(chromedp.Evaluate[chromedp.Void](text))
}
