package worldctl

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// askerEnv has this program be an agent: it asks a model for each of the texts, or its hook about a tool, and writes
// the last answer to the file.
const askerEnv = "WORLDKERNEL_TEST_ASKER"

func asker(texts, file string) int {
	var answer []byte
	for text := range strings.SplitSeq(texts, ",") {
		var beside sync.WaitGroup
		if text == "pair" { // asks two things at once
			beside.Go(func() { _, _ = askFor("another") })
		}
		var code int
		answer, code = askFor(text)
		beside.Wait()
		if code != 0 {
			return code
		}
	}
	if err := os.WriteFile(file, answer, 0o600); err != nil {
		return 9
	}
	return 0
}

func askFor(text string) (answer []byte, code int) {
	url, content := os.Getenv("OPENAI_BASE_URL")+"/chat/completions", text
	if text == "now" {
		content = time.Now().String()
	}
	body := fmt.Sprintf(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":%q}]}`, content)
	if text == "offers" {
		body = strings.Replace(body, "{", `{"tools":[{"type":"function","function":{"name":"Bash"}},{"type":"function","function":{"name":"Read"}}],`, 1)
	} else if tool, is := strings.CutPrefix(text, "hook:"); is {
		url, body = os.Getenv(hookVariable), fmt.Sprintf(`{"hook_event_name":"PreToolUse","tool_use_id":"u","tool_name":%q,"tool_input":{}}`, tool)
	}
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return nil, 7
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	if answer, _ = io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		return nil, 8
	}
	return answer, 0
}

// An agent runs as it is: a world is made for it, its calls are recorded, its exit code is that of worldctl. Started again it
// is answered from the record; run offline, what it has never asked is named, with the code of what does not verify.
func TestAnAgentRunsBesideAWorld(t *testing.T) {
	var paid atomic.Int64
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"content":"answer %d"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`, paid.Add(1))
	}))
	t.Cleanup(provider.Close)
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("OPENAI_BASE_URL", provider.URL+"/v1")
	file := filepath.Join(dir, "answer")
	typed := func(texts string, args ...string) (code int, out, errs string) {
		t.Helper()
		t.Setenv(askerEnv, texts+" "+file)
		var stdout, stderr bytes.Buffer
		code = run(t.Context(), released(), append([]string{"agent"}, args...), strings.NewReader(""), &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	self, err := os.Executable()
	require.NoError(t, err)

	code, _, errs := typed("", "list")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "agent run -- COMMAND makes one")
	code, _, errs = typed("", "run", "--", filepath.Join(dir, "none"))
	require.Equal(t, exitUsage, code, errs)
	require.NoDirExists(t, gatewayDir, "nothing is made for an agent that is not there")

	code, _, errs = typed("one,two", "run", "--name", "a", "--", self)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "made a world in")
	require.Contains(t, errs, "2 requests, 2 made, 0 from the record; 14 tokens, 150 micros, 0 tools asked for")
	require.EqualValues(t, 2, paid.Load())
	first, err := os.ReadFile(file)
	require.NoError(t, err)

	code, _, errs = typed("one,two", "resume")
	require.Zero(t, code, errs)
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(first), string(again))
	require.EqualValues(t, 2, paid.Load())

	code, _, errs = typed("one,other", "replay", "a")
	require.Equal(t, exitVerify, code)
	require.Contains(t, errs, `request 2 was never made before: /v1/chat/completions, model m: "other"`)
	require.Contains(t, errs, "they differ at /messages/0/content")
	require.EqualValues(t, 2, paid.Load())

	code, out, errs := typed("", "calls", "-o", "jsonl")
	require.Zero(t, code, errs)
	require.Equal(t, 2, strings.Count(out, `"state":"committed"`))
	code, out, errs = typed("", "show", "a")
	require.Zero(t, code, errs)
	require.Regexp(t, `(?m)^#\d+ user: one\n#\d+ m \[7 tokens, 75 micros; models may be asked\]: answer 1\n#\d+ user: two\n`, out)
	code, out, errs = typed("", "list")
	require.Zero(t, code, errs)
	require.Contains(t, out, "ended well")

	code, _, errs = typed("", "run", "--name", "none", "--", "true")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "nothing of the agent reached the gateway")
	code, _, _ = typed("", "run", "--name", "fails", "--", "sh", "-c", "exit 5")
	require.Equal(t, 5, code)
	code, _, errs = typed("", "run", "--name", "a", "--", self)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "agent resume a")
	code, _, errs = typed("", "resume", "b")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "there is no session")
}

// The tools of an agent without hooks are judged in the answers that ask for them. What is started elsewhere with the environment of a
// session is of that session, until somebody ends it.
func TestToolsOfAnAgentWithoutHooksAreJudged(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"ls","arguments":"{\"path\":\"/\"}"}}]}}]}`)
	}))
	t.Cleanup(provider.Close)
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("OPENAI_BASE_URL", provider.URL+"/v1")
	t.Setenv(askerEnv, "one "+filepath.Join(dir, "answer"))
	self, err := os.Executable()
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), released(), []string{"agent", "run", "--name", "a", "--", self}, strings.NewReader(""), &stdout, &stderr), stderr.String())
	require.Contains(t, stderr.String(), "1 call of tools")

	ctx, stop := context.WithCancel(t.Context())
	printed, to := io.Pipe()
	ended := make(chan int)
	go func() {
		ended <- run(ctx, released(), []string{"agent", "env", "--name", "ide"}, strings.NewReader(""), to, io.Discard)
	}()
	lines := bufio.NewScanner(printed)
	found := make(map[string]string)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		if found[name] = value; name == hookVariable { // the last
			break
		}
	}
	t.Setenv("OPENAI_BASE_URL", found["OPENAI_BASE_URL"])
	require.Zero(t, asker("one", filepath.Join(dir, "answer")))
	stop()
	<-ended
	stdout.Reset()
	require.Zero(t, run(t.Context(), released(), []string{"agent", "show", "ide"}, strings.NewReader(""), &stdout, io.Discard))
	require.Regexp(t, `#\d+ ls \[the agent may use its own tools\]: {"path":"/"}`, stdout.String())
}

// What other rules would have decided about a recorded session is told in the words of the session.
func TestOtherRulesForARecordedSession(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}`)
	}))
	t.Cleanup(provider.Close)
	t.Chdir(t.TempDir())
	t.Setenv("OPENAI_BASE_URL", provider.URL+"/v1")
	t.Setenv(askerEnv, "one,two "+filepath.Join(t.TempDir(), "answer"))
	self, err := os.Executable()
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), released(), []string{"agent", "run", "--name", "a", "--", self}, strings.NewReader(""), &stdout, &stderr), stderr.String())
	rules, err := os.ReadFile(gatewayDir + "/world.yaml")
	require.NoError(t, err)
	strict := strings.Replace(string(rules), "policies:\n", "policies:\n  - {name: no two, when: 'intent.kind == \"model.call\" && intent.params.prompt == \"two\"', decide: deny}\n", 1)
	write(t, "strict.yaml", strict)
	for _, typed := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"shadow", "strict.yaml"}, exitFailed, `(?m)^  1 +allow +deny +model\.call +no two +#\d+ +recorder/a +m: two$`},
		{[]string{"what-if", "--at", "1", "--patch", "strict.yaml"}, exitFailed, `model\.call │ m: two +│ changed │ committed -> denied \(policy_denied`},
		{[]string{"policy", "eval", "--file", "strict.yaml"}, exitOK, `model\.call │ m: two │ allow by models may be asked │ deny by no two`},
	} {
		stdout.Reset()
		require.Equal(t, typed.code, run(t.Context(), released(), append([]string{"-w", gatewayDir}, typed.args...), strings.NewReader(""), &stdout, &stderr), stderr.String())
		require.Regexp(t, typed.want, stdout.String())
	}
}

// A tool of Claude Code that waits for a person is decided about by the link that stderr has, or ends the agent and is decided about
// before it is started again.
func TestAToolOfAnAgentWaitsForAPerson(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	self, err := os.Executable()
	require.NoError(t, err)
	claude := filepath.Join(dir, "claude")
	require.NoError(t, os.Symlink(self, claude))
	var stdout, stderr bytes.Buffer
	typed := func(args ...string) (code int, said string) {
		stdout.Reset()
		stderr.Reset()
		code = run(t.Context(), released(), args, strings.NewReader(""), &stdout, &stderr)
		return code, stdout.String() + stderr.String()
	}
	code, said := typed("init", "--template", gatewayTemplate, "rules")
	require.Zero(t, code, said)
	rules, err := os.ReadFile("rules/world.yaml")
	require.NoError(t, err)
	const own = `'intent.kind == "tool.call"', decide: `
	require.Contains(t, string(rules), own+"allow")
	write(t, gatewayDir+"/world.yaml", strings.Replace(string(rules), own+"allow", own+"require_approval", 1))
	code, said = typed("init", gatewayDir)
	require.Zero(t, code, said)
	file := filepath.Join(dir, "answer")
	t.Setenv(askerEnv, "hook:Bash "+file)

	code, said = typed("agent", "run", "--defer", "1ms", "--", claude)
	require.Equal(t, exitUsage, code, said)
	require.Contains(t, said, "--defer is for claude -p")
	code, said = typed("agent", "run", "--name", "a", "--defer", "1ms", "--", claude, "-p", "x")
	require.Equal(t, exitDenied, code, said)
	require.Contains(t, said, "then worldctl -w worldkernel agent resume a")
	require.Contains(t, said, "a ended to wait for a person")
	require.Contains(t, said, `a: a person has to approve Bash {}: `)
	answer, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(answer), `"defer"`)
	key := regexp.MustCompile("intent approve ([0-9a-f]+), or deny").FindStringSubmatch(said)
	require.NotNil(t, key, said)
	_, said = typed("agent", "list")
	require.Contains(t, said, "waits for a person: "+key[1])
	require.NotContains(t, said, "ended well")
	code, said = typed("intent", "approve", key[1], "-w", gatewayDir)
	require.Zero(t, code, said)
	_, said = typed("agent", "list")
	require.Contains(t, said, "ended well")
	code, said = typed("agent", "resume", "a")
	require.Zero(t, code, said)
	answer, err = os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(answer), "permissionDecision")

	errs, to := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), released(), []string{"agent", "run", "--name", "b", "--", claude}, strings.NewReader(""), io.Discard, to)
		_ = to.Close()
	}()
	for lines := bufio.NewScanner(errs); lines.Scan(); {
		if link, is := strings.CutPrefix(lines.Text(), "or at "); is {
			resp, err := http.PostForm(link, url.Values{"do": {"approve"}})
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusOK, resp.StatusCode)
		}
	}
	require.Zero(t, <-ended)
	_, said = typed("intent", "list", "-w", gatewayDir, "-o", "jsonl")
	require.NotContains(t, said, "awaiting")
	_, said = typed("agent", "show", "b", "-o", "jsonl")
	require.Contains(t, said, "approve by link")
}

// A second agent runs beside a world that a first one has, which waits for it.
func TestTwoAgentsRunBesideOneWorld(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"choices":[]}`)
	}))
	t.Cleanup(provider.Close)
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("OPENAI_BASE_URL", provider.URL+"/v1")
	t.Setenv(askerEnv, "one "+filepath.Join(dir, "answer"))
	self, err := os.Executable()
	require.NoError(t, err)
	type ending struct {
		code int
		errs string
	}
	start := func(name string, command ...string) <-chan ending {
		ended := make(chan ending, 1)
		go func() {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), released(), append([]string{"agent", "run", name, "--"}, command...), strings.NewReader(""), &stdout, &stderr)
			ended <- ending{code, stderr.String()}
		}()
		return ended
	}
	first := start("--name=first", "sh", "-c", `touch begun; while [ ! -e go ]; do sleep 0.02; done; exec "$0"`, self)
	require.Eventually(t, func() bool { _, err := os.Stat("begun"); return err == nil }, time.Minute, 10*time.Millisecond)
	second := <-start("--name=second", self)
	require.Zero(t, second.code, second.errs)
	require.Contains(t, second.errs, "second ended well: 1 request, 1 made")
	third := <-start("--name=second", self)
	require.Equal(t, exitUsage, third.code)
	require.Contains(t, third.errs, "agent resume second")
	var others []<-chan ending
	for range 6 {
		others = append(others, start("--as=somebody", self))
	}
	for _, other := range others {
		end := <-other
		require.Zero(t, end.code, "each gets a name of its own: %s", end.errs)
	}
	require.NoError(t, os.WriteFile("go", nil, 0o600))
	end := <-first
	require.Zero(t, end.code, end.errs)
	require.Contains(t, end.errs, "first ended well: 1 request, 1 made")
}

// What the gate denied is no failure of the provider's: a list counts it apart. And a world for agents says how to run one.
func TestDeniedCallsOfAnAgentAreCountedApart(t *testing.T) {
	t.Chdir(t.TempDir())
	self, err := os.Executable()
	require.NoError(t, err)
	typed := func(want int, args ...string) (out, errs string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		require.Equal(t, want, run(t.Context(), released(), args, strings.NewReader(""), &stdout, &stderr), stderr.String())
		return stdout.String(), stderr.String()
	}
	typed(exitOK, "init", "--template", gatewayTemplate, "rules")
	rules, err := os.ReadFile("rules/world.yaml")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(gatewayDir, 0o700))
	strict := strings.Replace(string(rules), `startsWith("claude-opus")`, `startsWith("m")`, 1)
	write(t, gatewayDir+"/world.yaml", strings.Replace(strict, "# - {name: no opus", "- {name: no opus", 1))
	_, hint := typed(exitOK, "init", gatewayDir)
	require.Contains(t, hint, "worldctl -w "+gatewayDir+" agent run -- COMMAND")

	t.Setenv(askerEnv, "one answer")
	typed(8, "agent", "run", "--name", "a", "--", self)
	out, _ := typed(exitOK, "agent", "list", "-o", "jsonl")
	require.Contains(t, out, `"failed":0,`)
	require.Contains(t, out, `"denied":1`)
}

// TestALineOfTheOwnerIsReadToItsEnd, whatever fits into a buffer: the owner's process, and who waits for it, would never end.
func TestALineOfTheOwnerIsReadToItsEnd(t *testing.T) {
	for _, n := range []int{512, 513, 1536, 1537, 4096, 4097} {
		from, to := io.Pipe()
		written := make(chan error, 1)
		go func() {
			_, err := io.WriteString(to, `{"Name":"`+strings.Repeat("x", n-12)+"\"}\n")
			written <- err
		}()
		var a attached
		require.NoError(t, readLineJSON(bufio.NewReader(from), &a))
		require.Len(t, a.Name, n-12)
		select {
		case err := <-written:
			require.NoError(t, err)
		case <-time.After(time.Minute):
			require.Fail(t, "not read", "%d bytes", n)
		}
	}
}

// TestSettingsAreKeptBesideTheHooks: also odd ones.
func TestSettingsAreKeptBesideTheHooks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "null.json"), "null")
	for given, keeps := range map[string]string{"null.json": "", `{"model":"m","hooks":{"Stop":[1],"PreToolUse":[{"matcher":"mine"}]}}`: "m"} {
		out, err := hookedClaude([]string{"claude", "--settings", given, "-p", "x"}, "worldctl", dir)
		require.NoError(t, err)
		require.Equal(t, []string{"claude", "--settings"}, out[:2])
		require.Equal(t, []string{"-p", "x"}, out[3:])
		var got struct {
			Model string
			Hooks map[string][]any
		}
		require.NoError(t, json.Unmarshal([]byte(out[2]), &got))
		require.Equal(t, keeps, got.Model)
		require.Len(t, got.Hooks["PreToolUse"], 1+len(keeps))
		require.Len(t, got.Hooks["PostToolUse"], 1)
		require.Len(t, got.Hooks["Stop"], len(keeps))
	}
}
