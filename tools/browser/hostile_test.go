package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// hostile is what agents might write to act in a browser, to hide, or to look like the page.
func hostile() []string {
	all := []string{
		`<img src=x onerror=alert(1)>`, `<script>alert(1)</script>`, `<svg onload=alert(1)>`, `<iframe src="javascript:alert(1)">`, `"><b id=owned>`,
		`'><style>*{display:none}</style>`, `<a href="https://evil.example/">x</a>`, `<base href="https://evil.example/">`, `<meta http-equiv=refresh content="0;url=//evil.example">`,
		`<form action=//evil.example><input name=q>`, `<object data=//evil.example>`, `<embed src=//evil.example>`, `<link rel=stylesheet href=//evil.example>`, `<video src=//evil.example autoplay>`,
		`javascript:alert(1)`, `data:text/html,<script>alert(1)</script>`, `vbscript:msgbox`, `//evil.example`, `https://evil.example/?q=`, `\\evil.example\share`,
		`${alert(1)}`, `{{constructor.constructor('alert(1)')()}}`, `<%= 7*7 %>`, `#{7*7}`, `[x](javascript:alert(1))`, `![x](https://evil.example/x.png)`,
		`__proto__`, `constructor`, `toString`, `hasOwnProperty`, `</textarea><script>alert(1)</script>`, `--><script>alert(1)</script>`, `]]><script>alert(1)</script>`,
		"state: refunded\ncents: 1\norder: A-1", "approved\n\nApprove a\nDeny d", "✓ verified", "#1 in the journal",
		"\u202egnp.exe", "a\u200bb", "a\u2066b\u2069", "\u200f\u200e", "\ufeffx", "x\u00ady", "\u2028line", "\u2029para", "\u0085next", "\u009b31m", "\u001b[31mred", "\u001b]0;title\u0007",
		"\u0000nul", "\u0008back", "\u007fdel", "\rover", "a\tb", "\u115f\u3164filler", "\U000e0041\U000e0042tags", "x\ufe0f", "\u061c", "\u180e", "\U0001d173",
		strings.Repeat("A", 1<<20), strings.Repeat("(", 5000), strings.Repeat("<b>", 3000), strings.Repeat("Z͑ͫ", 500), "e\u0301" + strings.Repeat("\u0301", 300),
	}
	return all
}

// hides is what a page must not have: it acts, or is not seen.
var hides = regexp.MustCompile("[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\U000e0000-\U000e0fff\U0001d173-\U0001d17a]|\\p{M}{5}")

// hostileManifest is a world whose cells keep, ask for and fail with what they are told.
const hostileManifest = `world: hostile
version: 1
reducers:
  agent: {engine: starlark, source: agent.star, grants: [tools]}
events:
  said: {}
  left: {schema: left.json}
routing:
  - {event: "*", reducer: agent, key: event.data.to}
caps:
  tools: {type: any, params: {kinds: ["tool.*"]}}
effects:
  tool.run: {adapter: stub, class: destructive, config: {answers: answers.jsonl}}
policies:
  - {name: ask, when: 'true', decide: require_approval}
`

// hostileSchema has a page look for words where there are none.
const hostileSchema = `{"type": "object", "x-view": {"who": "constructor", "text": "__proto__"}}`

const hostileReducer = `def reduce(ctx, state, event):
    if event.name == "said":
        ctx.effect("tool.run", {"says": event.data["says"], event.data["says"][:60]: 1})
        ctx.effect("tool.run", {"messages": [{"role": event.data["says"][:60], "content": event.data["says"]}]})
        return {"says": event.data["says"], "list": [event.data["says"]] * 2}
    return state
`

// hostileWorld makes a world in which everything that agents can write is hostile.
func hostileWorld(t *testing.T) string {
	t.Helper()
	payloads := hostile()
	require.GreaterOrEqual(t, len(payloads), 60)
	dir := filepath.Join(t.TempDir(), "hostile")
	require.NoError(t, os.Mkdir(dir, 0o700))
	var lines strings.Builder
	for _, p := range payloads {
		key := strings.Map(func(r rune) rune { // which keys cannot have
			if unicode.IsControl(r) {
				return -1
			}
			return r
		}, p)
		key = strings.ToValidUTF8(key[:min(len(key), 100)], "")
		line, err := json.Marshal(map[string]any{"event": "said", "data": map[string]any{"to": key, "says": p, "from": p[:min(len(p), 200)], "words": p}})
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
		line, err = json.Marshal(map[string]any{"event": "left", "data": map[string]any{"to": key, "text": p}})
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
	}
	for name, text := range map[string]string{"world.yaml": hostileManifest, "agent.star": hostileReducer, "answers.jsonl": "", "left.json": hostileSchema, "events.jsonl": lines.String()} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	worldctl(t, dir, "init")
	feed(t, dir)
	worldctl(t, dir, "snapshot", "create", "first", "-m", payloads[33])
	worldctl(t, dir, "run", "-q")
	for _, i := range []int{0, 36, 42, 45, 48} { // what a line of a shell takes
		worldctl(t, dir, "snapshot", "create", "-m", payloads[i])
	}
	worldctl(t, dir, "rollback", "first", "--ack", "--reason", payloads[34])
	worldctl(t, dir, "run", "-q")
	return dir
}

// In a hostile world nothing acts, nothing hides and nothing that agents wrote becomes an
// element: not where it is served, and not in a page of it that was given away.
func TestHostileWorld(t *testing.T) {
	dir := hostileWorld(t)
	s := look(t, dir, "--manual")
	s.shows("hostile")
	s.at("#/" + s.world() + "/compare?a=first")
	s.await("they differ")
	s.clean()
	copied := given(t, dir)
	copied.at("#/")
	copied.shows("hostile-copy")
}

// shows leads through all views of the first world, which have to be clean.
func (s *sight) shows(name string) {
	s.t.Helper()
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("wants tool.run")
	for _, view := range []string{"i", "t", "s", "j", "c", "r", "h", "d", "m", "p"} {
		s.keys("g", view)
		s.await(map[string]string{"h": "back to first", "s": "turns"}[view])
		s.await("worldctl")
		for range 12 {
			s.keys("j")
		}
		s.clean()
		s.picture(name + "-" + view)
	}
}

// clean holds what is on the page to what may be there.
func (s *sight) clean() {
	s.t.Helper()
	text := s.text()
	require.Empty(s.t, hides.FindAllString(text, 3), "something on the page hides or acts")
	ctx, end := s.within()
	defer end()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`[...document.querySelectorAll('*')].filter((e) =>
		(e.localName === 'script' && !e.dataset.path || /^(iframe|object|embed|base|form|video|audio|style|link|b\[id\])$/i.test(e.localName)) && !e.closest('head') && !e.closest('dialog') ||
		e.id === 'owned' || e.localName === 'img' && !e.src.endsWith('/ui/mark.svg') && !e.src.startsWith('data:image/svg+xml;base64,') ||
		e.localName === 'a' && !e.getAttribute('href').startsWith('#') || [...e.attributes].some((a) => a.name.startsWith('on'))).map((e) => e.outerHTML.slice(0, 200))`))
	require.NoError(s.t, err)
	require.Empty(s.t, found)
}

// at leads the page to an address, as a link does.
func (s *sight) at(hash string) {
	s.t.Helper()
	s.do(chromedp.Evaluate[chromedp.Void]("location.hash = " + strconv.Quote(hash)))
}

// world returns the id of the world that is shown.
func (s *sight) world() string {
	s.t.Helper()
	ctx, end := s.within()
	defer end()
	hash, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.hash"))
	require.NoError(s.t, err)
	return strings.Split(strings.TrimPrefix(hash, "#/"), "/")[0]
}

// Somebody else decides while a form is open: it stays, says so and sends nothing. What is
// typed goes into no other form.
func TestFormStaysWhereItWas(t *testing.T) {
	desk := support(t)
	s := look(t, desk, "--manual")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("desk/B-2 wants refund.pay")
	s.keys("d")
	s.do(chromedp.WaitVisible(chromedp.CSS("textarea:focus")), chromedp.KeyEvent("this is too much"))
	key := regexp.MustCompile(`[0-9a-f]{64}`).FindString(worldctl(t, desk, "intent", "list", "--state", "awaiting_approval", "-o", "json"))
	worldctl(t, desk, "intent", "approve", key, "--reason", "it is fine")
	s.await("Somebody else was faster: it was awaiting approval, and is")
	s.await("it is fine") // what they said, and what was typed, are both there
	s.until("document.querySelector('.form textarea').value === 'this is too much'")
	s.picture("faster")
	s.do(chromedp.KeyEvent(" and we said no"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	s.await("desk/B-2 wants refund.pay")
	said := worldctl(t, desk, "tail", "--kind", "intent.resolved")
	require.Contains(t, said, "it is fine")
	require.NotContains(t, said, "we said no")
}

// A link names one world and one thing in it, whatever stands in it.
func TestLinkLeadsNowhereElse(t *testing.T) {
	dir := t.TempDir()
	dev, prod := made(t, dir, "dev", "support"), made(t, dir, "prod", "support")
	s := look(t, dir, "--manual", dev, prod)
	key := regexp.MustCompile(`[0-9a-f]{64}`).FindString(worldctl(t, prod, "intent", "list", "--state", "awaiting_approval", "-o", "json"))
	ids := regexp.MustCompile(`"world_id":\s*"([0-9a-f]+)"`)
	devID, prodID := ids.FindStringSubmatch(worldctl(t, dev, "status", "-o", "json"))[1], ids.FindStringSubmatch(worldctl(t, prod, "status", "-o", "json"))[1]
	s.at("#/" + devID + "/inbox?of=..%2F..%2F" + prodID + "%2Fintents%2F" + key)
	s.await("that is no key of an intent")
	s.at("#/" + devID + "/inbox?of=" + key)
	s.await("not-found")
	s.at("#/..%2F" + prodID + "/records?of=1")
	s.await("there is no such world")
	s.at("#/%zz")
	s.at("#/")
	s.await("Worlds\n2\n")
	require.NotContains(t, s.text(), "wants refund.pay")
}

// A link with a code lets nobody in who is there already.
func TestCodeReplacesNobody(t *testing.T) {
	s := look(t, support(t), "--manual", "--scope", "read")
	s.do(chromedp.Evaluate[chromedp.Void]("location.hash = '#code=wk_of-somebody-else'; location.reload()"))
	s.await("you are here already")
	s.await("Worlds\n1\n")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("desk/B-2 wants refund.pay")
	require.NotContains(t, s.text(), "Approve", "a token that cannot decide sees no buttons")
	require.NotEmpty(t, s.world())
}

// Who types a token sees what it lets one do, and no button that would fail.
func TestTokenHasTheRightsOfItsLine(t *testing.T) {
	s := bearing(t, support(t), "--scope", "read")
	s.await("as lena")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("desk/B-2 wants refund.pay")
	require.NotContains(t, s.text(), "Approve")
}

// A world that is not there, or not for a token, does not look like one at rest.
func TestWhatIsNotThereSaysSo(t *testing.T) {
	s := look(t, support(t), "--manual")
	for _, view := range []string{"timeline", "conversations", "inbox", "records", "cells", "rules", "history", "meters", "proof"} {
		s.at("#/deadbeef/" + view)
		s.await("there is no such world here, or not for this token")
		require.NotContains(t, s.text(), "anchor", view)
		s.at("#/")
		s.await("Worlds\n1\n")
	}
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("desk/B-2 wants refund.pay")
	s.at("#/" + s.world() + "/nonsense")
	s.await("there is no view named nonsense")
}

// Who may only submit is told that there is nothing to show.
func TestTokenThatCannotRead(t *testing.T) {
	s := bearing(t, support(t), "--scope", "submit")
	s.await("it cannot read")
	require.NotContains(t, s.text(), "following")
}

// bearing opens the page of a served world as lena, who types a token.
func bearing(t *testing.T, desk string, line ...string) *sight {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens")
	token := regexp.MustCompile(`wk_[\w-]+`).FindString(worldctl(t, desk, append([]string{"token", "new", "lena", "--file", tokens}, line...)...))
	program, err := built()
	require.NoError(t, err)
	serving := exec.Command(program, "serve", desk, "--manual", "-q", "--token-file", tokens)
	said, err := serving.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, serving.Start())
	t.Cleanup(func() {
		_ = serving.Process.Signal(os.Interrupt)
		_ = serving.Wait()
	})
	lines := bufio.NewScanner(said)
	require.True(t, lines.Scan())
	s := open(t, lines.Text()+"/ui/")
	s.do(chromedp.Navigate(s.url), chromedp.WaitVisible(chromedp.CSS("input[type=password]")), chromedp.SendKeys(chromedp.CSS("input[type=password]"), token+kb.Enter))
	return s
}

// Params are shown to the last digit and the last letter before anybody can approve them.
func TestParamsAreShownWholeBeforeTheyAreApproved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "hostile")
	require.NoError(t, os.Mkdir(dir, 0o700))
	says := `{"cents": 9007199254740993, "account": 12345678901234567123, "note": "` + strings.Repeat("A", 3000) + `PAY MALLORY"}`
	for name, text := range map[string]string{ // order cannot show: each is a file
		"world.yaml": hostileManifest, "left.json": hostileSchema, "agent.star": asking,
		"answers.jsonl": "", "events.jsonl": `{"event": "said", "data": {"to": "a", "says": ` + says + "}}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	worldctl(t, dir, "init")
	feed(t, dir)
	worldctl(t, dir, "run", "-q")
	s := look(t, dir, "--manual")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("some of it is cut")
	require.Contains(t, s.text(), "9007199254740993")
	require.Contains(t, s.text(), "12345678901234567123")
	require.NotContains(t, s.text(), "Approve a")
	s.do(chromedp.Click(chromedp.CSS(".main .pad p button")))
	s.await("PAY MALLORY")
	s.await("Approve a")
}

// Whatever the form of the params, nobody sees a button who was not led by all of them: no
// end of a text is cut, in whatever way it is spelled out, and none is below an inner edge.
func TestParamsHideBehindNoEdge(t *testing.T) {
	many := make([]string, 61)
	for i := range many {
		many[i] = fmt.Sprintf(`"p%d": %d`, i, i)
	}
	forms := []struct {
		name, says string
		cut        bool
	}{
		{"spelled", `{"note": "` + strings.Repeat(`\u200b`, 400) + `PAY_MALLORY"}`, true},
		{"name", `{"note` + strings.Repeat(`\u200b`, 20) + `PAY_MALLORY": 1}`, true},
		{"many", `{` + strings.Join(many, ", ") + `, "to": "PAY_MALLORY"}`, false},
		{"lines", `{"note": "a` + strings.Repeat(`\n`, 80) + `PAY_MALLORY"}`, false},
		{"deep", `{"note": ` + strings.Repeat(`{"a_name_of_its_own": `, 20) + `"PAY_MALLORY"` + strings.Repeat(`}`, 21), true},
	}
	var events strings.Builder
	for _, f := range forms {
		fmt.Fprintf(&events, `{"event": "said", "data": {"to": %q, "says": %s}}`+"\n", f.name, f.says)
	}
	dir := written(t, map[string]string{
		"world.yaml": hostileManifest, "left.json": hostileSchema, "agent.star": asking, "answers.jsonl": "", "events.jsonl": events.String(),
	})
	s := look(t, dir, "--manual")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	for _, f := range forms {
		s.await("agent/" + f.name + " wants tool.run")
		if f.cut {
			s.await("some of it is cut")
			s.until("!document.querySelector('.main .box').innerText.includes('PAY_MALLORY')")
			require.NotContains(t, s.text(), "Approve", f.name)
			s.do(chromedp.Click(chromedp.CSS(".main .pad p button")))
		}
		s.until("document.querySelector('.main .box').innerText.includes('PAY_MALLORY')")
		s.await("Approve")
		s.noEdge()
		s.keys("j")
	}
	s.keys("A")
	s.await("Approve all")
	s.keys("a")
	s.await("5 are meant")
	s.until("document.querySelector('.main').innerText.split('PAY_MALLORY').length === 6")
	s.noEdge()
}

// noEdge holds that nothing of what is decided about is beyond an edge within the pane.
func (s *sight) noEdge() {
	s.t.Helper()
	ctx, end := s.within()
	defer end()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`[...document.querySelectorAll('.main .pad, .main .pad *')].filter((e) => !e.matches('.gone, textarea, .scroll') &&
		getComputedStyle(e).display !== 'inline' && (e.scrollHeight > e.clientHeight + 8 || e.scrollWidth > e.clientWidth + 8)).map((e) => e.outerHTML.slice(0, 200))`))
	require.NoError(s.t, err)
	require.Empty(s.t, found)
}

// A change of the rules is shown to its last letter, as is what it would have done.
func TestChangeOfRulesIsShownWhole(t *testing.T) {
	desk := support(t)
	rules, err := os.ReadFile(filepath.Join(desk, "world.yaml"))
	require.NoError(t, err)
	long := `cents > 50000 && "` + strings.Repeat("A", 3000) + strings.Repeat(`\n`, 80) + `PAY_MALLORY" != ""`
	require.Contains(t, string(rules), "cents > 50000")
	text := strings.NewReplacer("cents > 50000", long, "version: 1", "version: 2").Replace(string(rules))
	require.NoError(t, os.WriteFile(filepath.Join(desk, "world.yaml"), []byte(text), 0o600))
	worldctl(t, desk, "propose", "-m", "a small thing")
	s := look(t, desk, "--manual")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("wants refund.pay")
	s.view("r", "Rules")
	s.await("a small thing")
	s.await("PAY_MALLORY")
	require.Contains(t, s.text(), "Reject")
	s.noEdge()
}
