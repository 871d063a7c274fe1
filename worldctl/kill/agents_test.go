package kill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fewStrikes are those where nobody asks for more; a session is given up after maxStarts.
const (
	fewStrikes  = 4
	agentTurns  = 4
	maxStarts   = 30
	maxToStrike = 600 * time.Millisecond
)

// TestKilledAgentsPayNothingTwice runs the real Claude Code of CLAUDE, which asks a model for one command after another, and
// kills it, worldctl or both at random moments, STRIKES times. Each time the session is resumed, until it has come to its end.
// A call that is paid twice was under way when worldctl died: the ledger says so of each. With CONTROL=1 the
// program is one that finds nothing on record, and something has to be paid twice. make agents runs it.
func TestKilledAgentsPayNothingTwice(t *testing.T) {
	claude := os.Getenv("CLAUDE")
	if claude == "" {
		t.Skip("CLAUDE names no program: make agents fetches it")
	}
	program, strikes := program(t), environ(t, "STRIKES", fewStrikes)
	seed := uint64(environ(t, "SEED", 1))
	rng := rand.New(rand.NewPCG(seed, 0))
	var all tally
	for n := 0; all.strikes < strikes; n++ {
		s := newAgentSession(t, program, claude, n, rng)
		s.live(strikes - all.strikes)
		all.add(s.judge())
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%+v", all)
	if os.Getenv("CONTROL") != "" {
		require.Greater(t, all.twice, all.doubts, "what nothing is found in pays twice")
		return
	}
	require.LessOrEqual(t, all.twice, all.doubts)
	require.Zero(t, all.ranTwice, "tools")
	require.LessOrEqual(t, all.lost, all.toolDoubts, "a tool that has not run is in doubt")
	require.Positive(t, all.served, "something was answered from the record")
}

// tally is what sessions came to.
type tally struct {
	sessions, strikes, paid, twice, doubts, served int

	ran, ranTwice, lost, toolDoubts int // of the tools
}

func (a *tally) add(b tally) {
	a.sessions, a.strikes, a.paid, a.twice, a.doubts, a.served = a.sessions+1, a.strikes+b.strikes, a.paid+b.paid, a.twice+b.twice, a.doubts+b.doubts, a.served+b.served
	a.ran, a.ranTwice, a.lost, a.toolDoubts = a.ran+b.ran, a.ranTwice+b.ranTwice, a.lost+b.lost, a.toolDoubts+b.toolDoubts
}

// agentSession is one session of an agent, and its provider.
type agentSession struct {
	t               *testing.T
	program, claude string
	rng             *rand.Rand
	dir             string
	provider        *httptest.Server
	strikes         int

	mu   sync.Mutex
	paid map[string]int // by turn: how often it was asked for
	came chan struct{}  // a call has come
}

func newAgentSession(t *testing.T, program, claude string, n int, rng *rand.Rand) *agentSession {
	s := &agentSession{
		t: t, program: program, claude: claude, rng: rng, dir: filepath.Join(t.TempDir(), strconv.Itoa(n)), paid: make(map[string]int), came: make(chan struct{}, 1),
	}
	for _, of := range []string{"home", "ws"} {
		require.NoError(t, os.MkdirAll(filepath.Join(s.dir, of), 0o700))
	}
	s.provider = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.provider.Close)
	return s
}

// answer is the model: it asks for one command after another, under an id that is never the same.
func (s *agentSession) answer(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Messages []struct{ Role string }
		Tools    []json.RawMessage
		Stream   bool
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&asked) != nil {
		return
	}
	turn := 0
	for _, m := range asked.Messages {
		if m.Role == "assistant" {
			turn++
		}
	}
	s.mu.Lock()
	s.paid[fmt.Sprintf("%d %t", turn, len(asked.Tools) > 0)]++
	id := fmt.Sprintf("toolu_%d", s.rng.Uint64())
	pause := time.Duration(s.rng.IntN(200)) * time.Millisecond
	s.mu.Unlock()
	select {
	case s.came <- struct{}{}:
	default:
	}
	const usage = `"usage":{"input_tokens":10,"output_tokens":2}`
	if !asked.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn",%s}`, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(kind, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fmt.Sprintf(format, args...))
		w.(http.Flusher).Flush()
		<-time.After(pause / 4) // may be late: a model takes its time
	}
	say("message_start", `,"message":{"id":"msg_%s","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,%s}`, id, usage)
	say("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	say("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"turn %d"}`, turn)
	say("content_block_stop", `,"index":0`)
	reason := "end_turn"
	if len(asked.Tools) > 0 && turn < agentTurns {
		reason = "tool_use"
		say("content_block_start", `,"index":1,"content_block":{"type":"tool_use","id":%q,"name":"Bash","input":{}}`, id)
		say("content_block_delta", `,"index":1,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"echo %d >> ledger\"}"}`, turn)
		say("content_block_stop", `,"index":1`)
	}
	say("message_delta", `,"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":7}`, reason)
	say("message_stop", "")
}

// live starts the agent, strikes, and resumes it, until it ends well.
func (s *agentSession) live(strikes int) {
	args := []string{"agent", "run", "--name", "a", "--", s.claude, "-p", "append to the ledger", "--dangerously-skip-permissions"}
	for range maxStarts {
		cmd := s.command(args...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		require.NoError(s.t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		if s.strikes < strikes {
			s.strike(cmd, ended)
		}
		err := <-ended
		if err == nil {
			return
		}
		s.t.Logf("%v: %s", err, bytes.TrimSpace(out.Bytes()))
		args = []string{"agent", "resume", "a"}
		if !s.begun() { // it died before it was known
			args = []string{"agent", "run", "--name", "a", "--", s.claude, "-p", "append to the ledger", "--dangerously-skip-permissions"}
		}
	}
	s.t.Errorf("the session has not ended after %d starts", maxStarts)
}

func (s *agentSession) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.program, args...)
	cmd.Dir = filepath.Join(s.dir, "ws")
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(s.dir, "home"), "ANTHROPIC_BASE_URL="+s.provider.URL, "ANTHROPIC_API_KEY=k", "IS_SANDBOX=1")
	return cmd
}

// begun reports whether the world knows the session.
func (s *agentSession) begun() bool {
	out, err := s.command("agent", "list", "-o", "jsonl").Output()
	return err == nil && bytes.Contains(out, []byte(`"name":"a"`))
}

// strike kills the agent, worldctl or both a while after a call has come, if that is before the end.
func (s *agentSession) strike(cmd *exec.Cmd, ended chan error) {
	for range 1 + s.rng.IntN(3) {
		select {
		case <-s.came:
		case err := <-ended:
			ended <- err
			return
		}
	}
	<-time.After(time.Duration(s.rng.Int64N(int64(maxToStrike)))) // may be late: a strike comes at any moment
	children, err := exec.Command("pgrep", "-P", strconv.Itoa(cmd.Process.Pid)).Output()
	if err != nil {
		return // it has ended
	}
	whom := s.rng.IntN(3)
	if whom != 0 {
		_ = cmd.Process.Kill()
	}
	for pid := range strings.FieldsSeq(string(children)) {
		if whom != 1 {
			_ = syscall.Kill(number(pid), syscall.SIGKILL)
		}
	}
	s.strikes++
}

// judge holds what the provider was asked against what the ledger says.
func (s *agentSession) judge() (sum tally) {
	sum.strikes = s.strikes
	for _, n := range s.paid {
		sum.paid += n
		sum.twice += n - 1
	}
	out, err := s.command("agent", "calls", "-o", "jsonl").Output()
	require.NoError(s.t, err)
	for line := range strings.Lines(string(out)) {
		var call struct{ State string }
		require.NoError(s.t, json.Unmarshal([]byte(line), &call))
		if call.State != "committed" {
			sum.doubts++
		}
	}
	var listed struct{ Served int }
	out, err = s.command("agent", "list", "-o", "jsonl").Output()
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(bytes.TrimSpace(out), &listed))
	sum.served = listed.Served
	s.judgeTools(&sum)
	verify := s.command("-w", "worldkernel", "verify")
	said, err := verify.CombinedOutput()
	require.NoError(s.t, err, "%s", said)
	return sum
}

// judgeTools holds what the tools have left in the ledger of the workspace against what the world says of them.
func (s *agentSession) judgeTools(sum *tally) {
	text, err := os.ReadFile(filepath.Join(s.dir, "ws", "ledger"))
	if err != nil {
		require.ErrorIs(s.t, err, os.ErrNotExist)
	}
	ran := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		ran[strings.TrimSpace(line)]++
		sum.ran++
	}
	for turn := range agentTurns {
		switch n := ran[strconv.Itoa(turn)]; n {
		case 0:
			sum.lost++
		default:
			sum.ranTwice += n - 1
		}
	}
	out, err := s.command("intent", "list", "--kind", "tool.call", "-o", "jsonl", "-w", "worldkernel").Output()
	require.NoError(s.t, err)
	for line := range strings.Lines(string(out)) {
		var tool struct{ State, Reason string }
		require.NoError(s.t, json.Unmarshal([]byte(line), &tool))
		if tool.State == "failed" && !strings.Contains(tool.Reason, "agent that asked is gone") {
			sum.toolDoubts++
		}
	}
}
