package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// talkManifest is a world whose cells ask a model with all that was said, as recorded runs
// and people do, and in words of their own.
const talkManifest = `world: talk
version: 1
reducers:
  agent: {engine: starlark, source: agent.star, grants: [model]}
events:
  chat.message: {}
  talk.said: {}
  note.left: {schema: note.json}
routing:
  - {event: "*", reducer: agent, key: '"ada"'}
caps:
  model: {type: any, params: {kinds: ["model.*"]}}
effects:
  model.ask: {adapter: stub, config: {script: model.star}, idempotent: true}
policies:
  - {name: all, when: 'true', decide: allow}
`

const talkReducer = `def reduce(ctx, state, event):
    state = state or {"messages": [{"role": "system", "content": "You are brief."}]}
    if event.name == "receipt":
        state["messages"].append(event.data["payload"]["message"])
        return state
    d = event.data
    state["messages"].append({"role": "user", "content": d.get("content") or d.get("words") or d.get("note")})
    ctx.effect("model.ask", {"messages": state["messages"]})
    return state
`

const talkModel = `def answer(kind, params, n):
    return {"message": {"role": "assistant", "content": "I heard: " + params["messages"][-1]["content"]}}
`

// talk makes a world in which three things are sent that fall due in another order, and runs it.
func talk(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "talk")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for name, text := range map[string]string{
		"world.yaml": talkManifest, "agent.star": talkReducer, "model.star": talkModel,
		"note.json": `{"type": "object", "x-view": {"who": "by", "text": "note"}}`,
		"events.jsonl": `{"event": "chat.message", "at": 9, "data": {"role": "user", "content": "the last word"}}
{"event": "talk.said", "data": {"from": "ben", "words": "the first\nof two lines"}}
{"event": "note.left", "at": 4, "data": {"by": "cleo", "note": "in between", "urgent": true}}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	worldctl(t, dir, "init")
	feed(t, dir)
	return dir
}

// inOrder holds what is on the page to an order.
func (s *sight) inOrder(parts ...string) {
	s.t.Helper()
	text, at := s.text(), 0
	for _, part := range parts {
		i := strings.Index(text[at:], part)
		require.GreaterOrEqual(s.t, i, 0, "%q is not behind what comes before it:\n%s", part, text)
		at += i + len(part)
	}
}

// A conversation is told in the order in which the cell handled it, not in that of the
// records that brought it: what was sent first, for later, comes last.
func TestConversationsAreInTheOrderOfHandling(t *testing.T) {
	dir := talk(t)
	worldctl(t, dir, "run", "-q", "--ticks", "2")
	s := look(t, dir, "--manual")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("nothing waits for a person")
	s.keys("g", "s")
	s.await("agent/ada")
	s.await("I heard: in between")
	s.inOrder("ben", "talk.said", "the first\nof two lines", "model.ask", "I heard: the first", "cleo", "in between", "model.ask", "I heard: in between",
		"Not handled yet", "user", "due at tick 9", "the last word")
	s.step(worldID(t, dir), 9)
	s.await("I heard: the last word")
	require.NotContains(t, s.text(), "Not handled yet")
	s.inOrder("I heard: the first", "cleo", "in between", "user", "the last word", "I heard: the last word", " timeline agent/ada")
	s.picture("conversation")
	s.at("#/" + worldID(t, dir) + "/conversations?at=t4") // and as of a moment
	s.await("as of #")
	s.await("I heard: in between")
	require.NotContains(t, s.text(), "the last word")
}

// Of two calls of a model in a row the page tells what the second has more in its context.
func TestContextBetweenTwoCalls(t *testing.T) {
	dir := talk(t)
	worldctl(t, dir, "run", "-q")
	s := look(t, dir, "--manual")
	s.at("#/" + worldID(t, dir) + "/conversations")
	s.await("context: messages 2 more")
	s.do(chromedp.Evaluate[chromedp.Void]("document.querySelectorAll('.item.is-call .fold')[1].click()"))
	s.await("messages: 2 more since #")
	s.inOrder("messages: 2 more since #", "assistant", "I heard: the first", "user", "in between", "params")
	s.picture("context")
}

// A payload of several lines has a box of its own, and a long one is cut until somebody asks.
func TestLongWordsAreShownWhenAskedFor(t *testing.T) {
	dir := talk(t)
	line, err := json.Marshal(map[string]any{"event": "talk.said", "data": map[string]any{"from": "eve", "words": strings.Repeat("blah ", 1000) + "and THE END"}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "events.jsonl"), append(line, '\n'), 0o600))
	feed(t, dir)
	worldctl(t, dir, "run", "-q")
	s := look(t, dir, "--manual")
	s.at("#/" + worldID(t, dir) + "/conversations")
	s.await("eve")
	s.await("show all of it")
	require.NotContains(t, s.text(), "and THE END")
	s.do(chromedp.Evaluate[chromedp.Void]("[...document.querySelectorAll('.item.is-event button')].find((b) => b.innerText === 'show all of it').click()"))
	s.await("and THE END")
}

// What a rollback left behind is told, and that it was.
func TestConversationSaysWhatARollbackLeftBehind(t *testing.T) {
	dir := talk(t)
	worldctl(t, dir, "run", "-q", "--ticks", "1")
	worldctl(t, dir, "snapshot", "create", "early")
	worldctl(t, dir, "run", "-q", "--ticks", "1")
	worldctl(t, dir, "rollback", "early", "--ack", "--reason", "once more")
	s := look(t, dir, "--manual")
	s.at("#/" + worldID(t, dir) + "/conversations")
	s.await("left behind by the rollback #")
	ctx, end := s.within()
	defer end()
	left, err := chromedp.Run(ctx, chromedp.Evaluate[[]string]("[...document.querySelectorAll('.item.left')].map((e) => e.innerText)"))
	require.NoError(t, err)
	require.Len(t, left, 2, "what cleo left, and what was asked for then")
	require.Contains(t, left[0], "in between")
	require.Contains(t, left[1], "model.ask")
	s.inOrder("Not handled yet", "user", "the last word", "cleo", "in between") // for it comes again
	s.picture("conversation-left")
}

// step has a world that is served make ticks, with the token of the page.
func (s *sight) step(world string, ticks int) {
	s.t.Helper()
	s.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`fetch('/api/worlds/%s/step', {method: 'POST', body: '{"ticks": %d}',
		headers: {'Content-Type': 'application/json', Authorization: 'Bearer ' + JSON.parse(sessionStorage.getItem('worldkernel.session')).token}})`, world, ticks), chromedp.EvalAwaitPromise))
}

// worldID returns the id of the world in a directory.
func worldID(t *testing.T, dir string) string {
	t.Helper()
	found := regexp.MustCompile(`"world_id":\s*"([0-9a-f]+)"`).FindStringSubmatch(worldctl(t, dir, "status", "-o", "json"))
	require.Len(t, found, 2, strconv.Quote(dir))
	return found[1]
}
