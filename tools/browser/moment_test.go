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

// One moment rules all views: it is in the address and goes along from view to view,
// nothing is decided in it, and a key leads back to now.
func TestOneMomentRulesAllViews(t *testing.T) {
	desk := support(t)
	waits := numbers(t, worldctl(t, desk, "tail", "--kind", "intent.awaiting_approval", "--kind", "intent.in_doubt", "-o", "jsonl"))
	require.Len(t, waits, 2)
	s := look(t, desk, "--manual")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("desk/B-2 wants refund.pay")
	world := s.world()
	s.at(fmt.Sprintf("#/%s/timeline?of=%d", world, waits[0]))
	s.await("Records in view")
	s.keys("m")
	s.await(fmt.Sprintf("as of #%d (tick 1): nothing can be decided", waits[0]))
	s.picture("moment-timeline")
	s.keys("g", "i")
	s.await("1 waited for a person then")
	require.NotContains(t, s.text(), "Approve")
	for range waits[1] - waits[0] {
		s.keys("]")
	}
	s.await("2 waited for a person then")
	s.await(fmt.Sprintf("as of #%d", waits[1]))
	s.await("as of now: worldctl -w " + desk + " intent list --state awaiting_approval")
	s.keys("g", "h")
	s.await("or changed in the past")
	s.await("What if…")
	require.NotContains(t, s.text(), "make a snapshot")
	s.keys("g", "p")
	s.await("not of the moment that is looked at")
	s.keys("g", "t")
	s.await(fmt.Sprintf("%d of them by then", waits[1]))
	s.await(fmt.Sprintf(" tail --to %d", waits[1]))
	s.keys("g", "c")
	s.at("#/" + world + "/cells?at=9&of=desk%2FB-2")
	s.await("as of #9")
	s.await("looking")
	require.NotContains(t, s.text(), "paying")
	s.picture("moment-cell")
	s.keys("g", "j")
	s.until("document.querySelectorAll('.list a').length === 9")
	require.NotContains(t, s.text(), "#10")
	s.keys(".", "g", "c")
	s.until("!document.getElementById('app').innerText.includes('as of')")
}

// numbers are those of the records that worldctl prints as lines.
func numbers(t *testing.T, lines string) (out []int) {
	t.Helper()
	for dec := json.NewDecoder(strings.NewReader(lines)); dec.More(); {
		var rec struct{ ID int }
		require.NoError(t, dec.Decode(&rec))
		out = append(out, rec.ID)
	}
	return out
}
