package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// What the meters count of a world is what its journal has, now and at a moment.
func TestMetersCountTheJournal(t *testing.T) {
	town := made(t, t.TempDir(), "town", "town")
	s := look(t, town, "--manual")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("nothing waits for a person")
	world := s.world()
	s.view("m", "Meters")
	s.await("Cost by kind of effect")
	s.await("This world has no budgets.")
	s.until("[...document.querySelectorAll('.chart text')].every((e) => !e.textContent.includes('.'))")
	s.picture("meters-town")
	all := numbers(t, worldctl(t, town, "tail", "--kind", "cell.stepped", "-o", "jsonl"))
	require.Equal(t, len(all), s.metered("steps"))
	s.at(fmt.Sprintf("#/%s/meters?at=t9", world))
	s.await("as of")
	s.until("document.querySelector('main .about')?.innerText === 'ticks 0 to 9'")
	until := 0
	for dec := json.NewDecoder(strings.NewReader(worldctl(t, town, "tail", "--kind", "cell.stepped", "-o", "jsonl"))); dec.More(); {
		var rec struct{ Time int }
		require.NoError(t, dec.Decode(&rec))
		if rec.Time <= 9 {
			until++
		}
	}
	require.Equal(t, until, s.metered("steps"))
}

// metered sums a column of the ticks as numbers.
func (s *sight) metered(column string) int {
	s.t.Helper()
	ctx, end := s.within()
	defer end()
	sum, err := chromedp.Run(ctx, chromedp.Evaluate[int](`(() => {
	const table = document.querySelector('details table');
	const at = [...table.querySelectorAll('th')].findIndex((h) => h.textContent === '`+column+`');
	return [...table.querySelectorAll('tbody tr')].reduce((sum, row) => sum + Number(row.children[at].textContent.replace(/,/g, '')), 0);
})()`))
	require.NoError(s.t, err)
	return sum
}
