package browser

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// countingManifest is a world whose cells count what they are sent.
const countingManifest = `world: counts
version: 1
reducers:
  agent: {engine: starlark, source: agent.star}
events:
  said: {}
routing:
  - {event: said, reducer: agent, key: event.data.to}
`

const countingReducer = `def reduce(ctx, state, event):
    return {"n": (state or {"n": 0})["n"] + 1}
`

// TestBench measures the page on a world of about as many records as BENCH says: see
// docs/performance.md. It is no test of speed: it fails only where nothing could be measured.
func TestBench(t *testing.T) {
	records, _ := strconv.Atoi(os.Getenv("BENCH"))
	if records == 0 {
		t.Skip("skipped: BENCH names no number of records")
	}
	dir := counting(t, records)
	s := look(t, dir, "--manual", "--scope", "read,submit")
	_, err := chromedp.Call(s.ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}) // CPU, whatever else runs
	require.NoError(t, err)
	s.do(chromedp.Click(chromedp.CSS("main table a")))
	s.await("nothing waits")
	before := s.metrics()
	s.keys("g", "t")
	s.await("Records in view")
	s.until("document.querySelector('.lamp').innerText === 'following'")
	s.value("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0))).then(() => 0)")
	first := s.metrics()
	t.Logf("script to first lanes: %.0f ms since the page was opened, %.0f ms of them since the timeline", 1e3*first["ScriptDuration"], 1e3*(first["ScriptDuration"]-before["ScriptDuration"]))
	for _, way := range []struct {
		name string
		keys []string
	}{{"zoom", []string{"+", "+", "+", "+", "-", "-", "-", "-"}}, {"scroll", []string{"+", "+", "+", "l", "l", "l", "h", "h", "h"}}} {
		was, frames := s.metrics(), 0
		for range 5 {
			for _, key := range append(way.keys, "0") {
				s.keys(key)
				s.value("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0))).then(() => 0)")
				frames++
			}
		}
		t.Logf("script a frame on %s: %.2f ms, of %d", way.name, 1e3*(s.metrics()["ScriptDuration"]-was["ScriptDuration"])/float64(frames), frames)
	}
	t.Logf("heap of scripts: %.0f MiB; renderer: %d MiB of its own", s.metrics()["JSHeapUsedSize"]/(1<<20), renderer(t))
	var waits []float64
	for range 11 {
		waits = append(waits, s.value(arrives))
	}
	slices.Sort(waits)
	t.Logf("an accepted event to its lane: %.0f ms (median), %.0f at most", waits[len(waits)/2], waits[len(waits)-1])
}

// arrives submits an event, and returns how many ms after it was accepted the timeline has
// counted it.
const arrives = `(async () => {
	const token = JSON.parse(sessionStorage.getItem('worldkernel.session')).token;
	const world = location.hash.split('/')[1];
	const count = () => document.querySelector('.head .about').textContent;
	const was = count();
	const res = await fetch('/api/worlds/' + world + '/events', {method: 'POST', headers: {'Content-Type': 'application/json', Authorization: 'Bearer ' + token}, body: JSON.stringify({event: 'said', data: {to: 'c1'}})});
	if (!res.ok) throw new Error(await res.text());
	const began = performance.now();
	while (count() === was) await new Promise((done) => setTimeout(done, 1));
	return performance.now() - began;
})()`

// counting makes a world of so many records over 10,000 cells.
func counting(t *testing.T, records int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "counts")
	require.NoError(t, os.Mkdir(dir, 0o700))
	var events bytes.Buffer
	for i := range records/2 + 1 {
		fmt.Fprintf(&events, `{"event": "said", "data": {"to": "c%d"}}`+"\n", i%10_000)
	}
	for name, text := range map[string]string{ // order cannot show: each is a file
		"world.yaml": countingManifest, "agent.star": countingReducer, "events.jsonl": events.String(),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	worldctl(t, dir, "init")
	feed(t, dir)
	worldctl(t, dir, "run", "-q")
	return dir
}

// metrics are what the browser has counted of the page.
func (s *sight) metrics() map[string]float64 {
	s.t.Helper()
	got, err := chromedp.Call(s.ctx, performance.GetMetrics, cdp.Empty{})
	require.NoError(s.t, err)
	all := make(map[string]float64)
	for _, m := range got.Metrics {
		all[m.Name] = m.Value
	}
	return all
}

// value evaluates an expression that comes to a number.
func (s *sight) value(expression string) float64 {
	s.t.Helper()
	ctx, end := s.within()
	defer end()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[float64](expression, chromedp.EvalAwaitPromise))
	require.NoError(s.t, err)
	return v
}

// renderer returns how much memory the largest renderer has for itself, in MiB; 0 where the
// system does not tell.
func renderer(t *testing.T) (most int) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "pgrep", "-f", "type=renderer").Output()
	if err != nil {
		return 0
	}
	for pid := range strings.FieldsSeq(string(out)) {
		if !ours(pid) {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", pid, "smaps_rollup"))
		if err != nil {
			continue
		}
		sum := 0
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[0], "Private_") {
				n, _ := strconv.Atoi(f[1])
				sum += n
			}
		}
		most = max(most, sum>>10)
	}
	return most
}

// ours reports whether a process was started by this one, or by what it started.
func ours(pid string) bool {
	for range 10 {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil {
			return false
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		f := strings.Fields(rest)
		if pid = f[1]; pid == strconv.Itoa(os.Getpid()) {
			return true
		}
	}
	return false
}
