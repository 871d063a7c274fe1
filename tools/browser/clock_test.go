package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// Of a world whose clock is real every view tells the time of the calendar, and no number of a
// tick; its meters begin where it began, and not at the epoch.
func TestARealClockTellsTheTime(t *testing.T) {
	dir := t.TempDir()
	worldctl(t, dir, "init", "desk", "--template", "support")
	desk := filepath.Join(dir, "desk")
	file := filepath.Join(desk, "world.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	text = regexp.MustCompile(`(?m)^clock: .*$`).ReplaceAll(text, []byte("clock: {mode: real, tick: 1s}"))
	require.NoError(t, os.WriteFile(file, text, 0o600))
	require.NoError(t, os.RemoveAll(filepath.Join(desk, ".world")))
	worldctl(t, desk, "init")
	feed(t, desk)
	worldctl(t, desk, "run", "--until-idle", "-q")
	worldctl(t, desk, "snapshot", "create", "noon")
	s := look(t, desk, "--manual")
	s.until("/20\\d\\d-\\d\\d-\\d\\dT/.test(document.querySelector('main table').innerText)")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("until")
	told := "/20\\d\\d-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z/.test(document.querySelector('main').textContent)"
	bare := "!/\\bt\\d{6}|tick \\d{6,}(?!\\d*, 20)|\\b1970-/.test(document.querySelector('main').textContent)"
	for _, view := range []struct{ key, title string }{
		{"i", "Inbox"}, {"t", "Timeline"}, {"s", "Conversations"}, {"j", "Journal"}, {"c", "Cells"}, {"h", "History"}, {"m", "Meters"},
	} {
		s.view(view.key, view.title)
		if view.key == "j" {
			s.do(chromedp.KeyEvent("j"))
		}
		s.until(told)
		s.until(bare)
		s.picture("clock-" + view.title)
	}
	s.until("document.querySelectorAll('.chart text').length > 0")
	s.until("!document.querySelector('main .about').textContent.includes('not begun')")
}

// The life of an intent says who decided what about it, and what was asked; an answer that is an
// error is red wherever it is told.
func TestTheLifeOfAnIntentSaysWhoDecided(t *testing.T) {
	desk := support(t)
	var asked []struct{ Key string }
	for dec := json.NewDecoder(strings.NewReader(worldctl(t, desk, "intent", "list", "--state", "awaiting_approval", "-o", "jsonl"))); dec.More(); {
		var line struct{ Key string }
		require.NoError(t, dec.Decode(&line))
		asked = append(asked, line)
	}
	require.Len(t, asked, 1)
	worldctl(t, desk, "intent", "approve", asked[0].Key, "--as", "ann", "--reason", "the piano is out of tune")
	worldctl(t, desk, "run", "-q")
	shown := worldctl(t, desk, "intent", "show", asked[0].Key)
	require.Regexp(t, `approve .* ann .* the piano is out of tune`, shown)
	var is struct{ Started int }
	require.NoError(t, json.Unmarshal([]byte(worldctl(t, desk, "intent", "show", asked[0].Key, "-o", "json")), &is))
	s := look(t, desk, "--manual")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.view("i", "Inbox")
	s.at(fmt.Sprintf("#/%s/records?of=%d", s.world(), is.Started))
	s.await("approve, says ann: the piano is out of tune")
	s.until("document.querySelector('main details .box').textContent.includes('80000')")
	s.until("[...document.querySelectorAll('main .say.bad')].some((e) => e.textContent.includes('tools/lookup exited with status 1'))")
	bad := 0
	for dec := json.NewDecoder(strings.NewReader(worldctl(t, desk, "tail", "--kind", "invocation.finished", "-o", "jsonl"))); dec.More(); {
		var rec struct {
			ID      int
			Payload struct{ Receipt struct{ Status string } }
		}
		require.NoError(t, dec.Decode(&rec))
		if rec.Payload.Receipt.Status == "error" {
			bad = rec.ID
		}
	}
	require.NotZero(t, bad)
	for _, view := range []string{"records", "timeline"} {
		s.at(fmt.Sprintf("#/%s/%s?of=%d", s.world(), view, bad))
		s.until("getComputedStyle(document.querySelector('main .sentence, main .say.bad')).color === getComputedStyle(document.querySelector('main .mark.bad')).color")
		s.until("[...document.querySelectorAll('main .story .bad')].some((e) => e.textContent.includes('its answer: error'))")
		s.picture("error-" + view)
	}
}
