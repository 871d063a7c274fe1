package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// moments is at how many moments of each world the page is compared with the command line.
const moments = 50

// recorded has conversations that were made up.
const recorded = "../../internal/recording/testdata/airline/runs.json"

// tangled makes a town that was rolled back twice, and a fork of it that goes on otherwise.
func tangled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	town := filepath.Join(dir, "town")
	worldctl(t, dir, "init", "town", "--template", "town")
	feed(t, town)
	for _, line := range []string{
		"step -n 5 -q", "snapshot create a", "step -n 5 -q", "rollback a --ack --reason again", "step -n 3 -q", "snapshot create b",
		"step -n 2 -q", "rollback b --ack --reason again", "step -n 4 -q", "fork ../fork --at -30",
	} {
		worldctl(t, town, strings.Fields(line)...)
	}
	fork := filepath.Join(dir, "fork")
	worldctl(t, fork, "run", "-q")
	return fork
}

// airline makes a world of recorded agents.
func airline(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(recorded)
	require.NoError(t, err)
	dir := t.TempDir()
	worldctl(t, dir, "import", "chat", path, "-w", "airline")
	world := filepath.Join(dir, "airline")
	worldctl(t, world, "run", "-q")
	return world
}

// The page shows of a cell what worldctl cell show --at prints, at whatever moment: also
// before a rollback, in the part that it left behind and after it.
func TestScrubbingShowsWhatTheCommandLinePrints(t *testing.T) {
	for name, made := range map[string]func(*testing.T) string{ // order cannot show: each is a test
		"town":    func(t *testing.T) string { return made(t, t.TempDir(), "town", "town") },
		"airline": airline, "tangled": tangled,
	} {
		t.Run(name, func(t *testing.T) {
			dir := made(t)
			steps := stepped(t, dir)
			draw := rand.New(rand.NewPCG(1, 2))
			s := look(t, dir, "--manual")
			s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
			s.until("location.hash.endsWith('/inbox')")
			world := s.world()
			for range moments {
				step := steps[draw.IntN(len(steps))]
				at := min(step.ID+draw.IntN(12), steps[len(steps)-1].ID)
				s.scrubbed(dir, world, step.Payload.Cell, at)
			}
		})
	}
}

// step is a record that a cell took a step.
type step struct {
	ID      int
	Payload struct{ Cell string }
}

// stepped returns all steps of a world.
func stepped(t *testing.T, dir string) (out []step) {
	t.Helper()
	for dec := json.NewDecoder(strings.NewReader(worldctl(t, dir, "tail", "--kind", "cell.stepped", "-o", "jsonl"))); dec.More(); {
		var rec step
		require.NoError(t, dec.Decode(&rec))
		out = append(out, rec)
	}
	require.NotEmpty(t, out)
	return out
}

// flat is a script that returns what a value on the page shows, by the paths of its leaves.
const flat = `(() => {
	const out = {};
	const walk = (el, path) => {
		const is = el.firstElementChild;
		if (is?.localName !== 'dl') return void (out[path] = is ? is.textContent : el.textContent);
		for (const row of is.children) walk(row.children[1], path + '/' + row.children[0].textContent.replace(/:$/, ''));
	};
	walk(document.getElementById('state'), '');
	return out;
})()`

// scrubbed holds what the page shows of a cell at a moment to what the command line prints.
func (s *sight) scrubbed(dir, world, cell string, at int) {
	s.t.Helper()
	s.at(fmt.Sprintf("#/%s/cells?of=%s&at=%d", world, url.QueryEscape(cell), at))
	var want struct {
		N     int
		State any
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(worldctl(s.t, dir, "cell", "show", cell, "--at", strconv.Itoa(at), "-o", "json"))))
	dec.UseNumber()
	require.NoError(s.t, dec.Decode(&want))
	s.until(fmt.Sprintf("[...document.querySelectorAll('main h1')].some((h) => h.innerText === %q && h.nextElementSibling?.innerText === 'as of #%d')", cell, at))
	ctx, end := s.within()
	defer end()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[map[string]string](flat))
	require.NoError(s.t, err)
	leaves := make(map[string]string)
	flatten(leaves, "", want.State, 0)
	for path, text := range leaves { // order cannot show: each is compared
		is, ok := got[path]
		require.True(s.t, ok, "%s at #%d: %s is not on the page", cell, at, path)
		if len(text) > 1500 {
			require.Equal(s.t, text[:1500], is[:1500], "%s at #%d: %s", cell, at, path)
			continue
		}
		require.Equal(s.t, text, is, "%s at #%d: %s", cell, at, path)
	}
	steps, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.querySelector('main .facts dd').innerText"))
	require.NoError(s.t, err)
	require.Equal(s.t, strconv.Itoa(want.N), steps)
}

// flatten puts the leaves of a value into a map, as far as the page unfolds them.
func flatten(out map[string]string, path string, v any, depth int) {
	switch x := v.(type) {
	case map[string]any:
		if len(x) == 0 {
			out[path] = "{}"
		}
		for name, part := range x { // order cannot show in a map
			if depth < 6 {
				flatten(out, path+"/"+name, part, depth+1)
			}
		}
	case []any:
		if len(x) == 0 {
			out[path] = "none"
		}
		for i, part := range x[:min(len(x), 200)] {
			if depth < 6 {
				flatten(out, path+"/"+strconv.Itoa(i), part, depth+1)
			}
		}
	case string:
		out[path] = spelled(x)
	case nil:
		out[path] = "null"
	default:
		out[path] = fmt.Sprint(x)
	}
}

// spelled has what hides spelled out, as the page has it.
func spelled(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r != '\n' && r != '\t' && r != ' ' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Zs) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
