package kill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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
// The provider is at fault, too: it refuses, resets, cuts its answers off, and is slow.
// A call that is paid twice was under way when worldctl died, or had no whole answer: the ledger says so of each. With CONTROL=1 the
// program is one that finds nothing on record, and something has to be paid twice. make agents runs it.
func TestKilledAgentsPayNothingTwice(t *testing.T) {
	all := strikeAgents(t, &agentKind{
		variable: "CLAUDE", args: []string{"-p", "append to the ledger", "--dangerously-skip-permissions"}, tools: "--mcp-config", last: fmt.Sprint(agentTurns, true), answer: (*agentSession).answerMessages,
	})
	if os.Getenv("CONTROL") == "" {
		require.Zero(t, all.ranTwice, "tools")
	}
}

// TestKilledCodexPaysNothingTwice is the same with the real Codex of CODEX. Its tools are judged in the answers, and its hook denies
// one that is in doubt.
func TestKilledCodexPaysNothingTwice(t *testing.T) {
	strikeAgents(t, &agentKind{
		variable: "CODEX", args: []string{"exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "-m", "gpt-5", "append to the ledger"}, last: strconv.Itoa(agentTurns), answer: (*agentSession).answerResponses,
	})
}

// agentKind is a program that is struck.
type agentKind struct {
	variable string // of the environment: where it is
	args     []string
	tools    string // its flag for a file of MCP servers, if it has one
	last     string // its last turn
	answer   func(s *agentSession, w http.ResponseWriter, body []byte)
}

func strikeAgents(t *testing.T, kind *agentKind) (all tally) {
	if os.Getenv(kind.variable) == "" {
		t.Skip(kind.variable + " names no program: make agents fetches it")
	}
	program := program(t)
	all = struck(t, func(t *testing.T, dir string, rng *rand.Rand, strikes int) tally {
		s := newAgentSession(t, program, kind, dir, rng)
		defer s.off()
		s.live(strikes)
		return s.judge()
	})
	if os.Getenv("CONTROL") != "" {
		require.Greater(t, all.twice, all.doubts, "what nothing is found in pays twice")
		return all
	}
	require.LessOrEqual(t, all.twice, all.doubts)
	require.Positive(t, all.served, "something was answered from the record")
	return all
}

// struck has sessions, AT_ONCE of them side by side, until there were STRIKES, and returns what all came to.
func struck(t *testing.T, session func(t *testing.T, dir string, rng *rand.Rand, strikes int) tally) (all tally) {
	seed, lanes := uint64(environ(t, "SEED", 1)), environ(t, "AT_ONCE", 1)
	each := (environ(t, "STRIKES", fewStrikes) + lanes - 1) / lanes
	var mu sync.Mutex
	t.Run("sessions", func(t *testing.T) {
		for lane := range lanes {
			t.Run(strconv.Itoa(lane), func(t *testing.T) {
				t.Parallel()
				rng, dir := rand.New(rand.NewPCG(seed, uint64(lane))), t.TempDir()
				for n, strikes := 0, 0; strikes < each && !t.Failed(); n++ {
					if keep := os.Getenv("KEEP"); keep != "" {
						defer func() {
							if t.Failed() {
								_ = exec.Command("cp", "-a", dir, keep).Run()
							}
						}()
					}
					one := session(t, filepath.Join(dir, strconv.Itoa(n)), rng, each-strikes)
					strikes += one.strikes
					mu.Lock()
					all.add(one)
					t.Logf("%s of seed %d: %+v", time.Now().Format(time.TimeOnly), seed, all)
					mu.Unlock()
				}
			})
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// tally is what sessions came to.
type tally struct {
	sessions, strikes, faults, paid, twice, doubts, served int

	ran, ranTwice, lost, toolDoubts int // of the tools

	by map[string]int // of the strikes
}

func (a *tally) add(b tally) {
	a.sessions, a.strikes, a.paid, a.twice, a.doubts, a.served = a.sessions+1, a.strikes+b.strikes, a.paid+b.paid, a.twice+b.twice, a.doubts+b.doubts, a.served+b.served
	a.faults += b.faults
	if a.by == nil {
		a.by = make(map[string]int)
	}
	for name, n := range b.by {
		a.by[name] += n
	}
	a.ran, a.ranTwice, a.lost, a.toolDoubts = a.ran+b.ran, a.ranTwice+b.ranTwice, a.lost+b.lost, a.toolDoubts+b.toolDoubts
}

// agentSession is one session of an agent, and its provider.
type agentSession struct {
	*machine

	program  string
	kind     *agentKind
	rng      *rand.Rand
	provider *httptest.Server
	strikes  int

	mu      sync.Mutex
	paid    map[string]int // by turn: how often it was asked for
	faults  int            // of the provider
	refused int            // of them those that cost nothing
	storm   int            // how many more it refuses
	told    []byte         // the last request
	absent  int            // calls of the server that never came in, since it had not begun or had ended: the agent told the model so
	came    chan struct{}  // a call has come
}

func newAgentSession(t *testing.T, program string, kind *agentKind, dir string, rng *rand.Rand) *agentSession {
	s := &agentSession{
		machine: newMachine(t, dir), program: program, kind: kind, rng: rng, paid: make(map[string]int), came: make(chan struct{}, 1),
	}
	for _, of := range []string{"home", "ws"} {
		require.NoError(t, os.MkdirAll(filepath.Join(s.dir, of), 0o700))
	}
	s.provider = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && r.Method == http.MethodPost {
			kind.answer(s, w, body)
		}
	}))
	t.Cleanup(s.provider.Close)
	return s
}

// model is what the provider does about a call, which it has made: it says one frame after another.
type model struct {
	id  string // never the same
	say func(kind, format string, args ...any)
}

// begin makes a call of a turn, unless the provider refuses it. What is said may be cut off.
func (s *agentSession) begin(w http.ResponseWriter, turn string) *model {
	s.mu.Lock()
	fault := s.rng.IntN(20)
	if fault == 0 && s.storm == 0 {
		s.storm = 1 + s.rng.IntN(3)
	}
	refuses := s.storm > 0
	if refuses {
		s.storm--
		s.refused++
	} else {
		s.paid[turn]++
	}
	if refuses || fault < 4 {
		s.faults++
	}
	m := &model{id: fmt.Sprintf("toolu_%d", s.rng.Uint64())}
	pause, frames := time.Duration(s.rng.IntN(200))*time.Millisecond, s.rng.IntN(8)
	status := []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable, 529}[s.rng.IntN(4)]
	s.mu.Unlock()
	select {
	case s.came <- struct{}{}:
	default:
	}
	switch {
	case refuses:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"overloaded_error","message":"later"}}`)
		return nil
	case fault == 1:
		panic(http.ErrAbortHandler) // the connection is reset
	case fault == 2:
		pause *= 10
	}
	said := 0
	m.say = func(kind, format string, args ...any) {
		if said == 0 {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		if said++; fault == 3 && said > frames {
			panic(http.ErrAbortHandler)
		}
		_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fmt.Sprintf(format, args...))
		w.(http.Flusher).Flush()
		<-time.After(pause / 4) // may be late: a model takes its time
	}
	return m
}

// answerMessages is the model of Claude Code: it asks for one command after another.
func (s *agentSession) answerMessages(w http.ResponseWriter, body []byte) {
	var asked struct {
		Tools  []struct{ Name string }
		Stream bool
	}
	if json.Unmarshal(body, &asked) != nil {
		return
	}
	turn := bytes.Count(body, []byte(`"tool_use_id":`)) // it goes on from an answer without a tool that was cut off
	s.mu.Lock()
	s.absent = max(s.absent, bytes.Count(body, []byte("No such tool available"))+bytes.Count(body, []byte("Connection closed")))
	s.told = body
	s.mu.Unlock()
	m := s.begin(w, fmt.Sprintf("%d %t", turn, len(asked.Tools) > 0))
	if m == nil {
		return
	}
	const usage = `"usage":{"input_tokens":10,"output_tokens":2}`
	if !asked.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn",%s}`, usage)
		return
	}
	m.say("message_start", `,"message":{"id":"msg_%s","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,%s}`, m.id, usage)
	m.say("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	m.say("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"turn %d"}`, turn)
	m.say("content_block_stop", `,"index":0`)
	reason := "end_turn"
	if len(asked.Tools) > 0 && turn < agentTurns {
		reason = "tool_use"
		tool, input := "Bash", fmt.Sprintf(`{"command":"echo %d >> %s"}`, turn, s.ledger())
		if turn%2 == 1 {
			tool, input = "mcp__ledger__append", fmt.Sprintf(`{"n":%d}`, turn)
		}
		m.say("content_block_start", `,"index":1,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}`, m.id, tool)
		m.say("content_block_delta", `,"index":1,"delta":{"type":"input_json_delta","partial_json":%q}`, input)
		m.say("content_block_stop", `,"index":1`)
	}
	m.say("message_delta", `,"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":7}`, reason)
	m.say("message_stop", "")
}

// answerResponses is the model of Codex.
func (s *agentSession) answerResponses(w http.ResponseWriter, body []byte) {
	var asked struct{ Input []struct{ Type string } }
	if json.Unmarshal(body, &asked) != nil {
		return
	}
	turn := 0
	for _, item := range asked.Input {
		if item.Type == "function_call" {
			turn++
		}
	}
	m := s.begin(w, strconv.Itoa(turn))
	if m == nil {
		return
	}
	m.say("response.created", `,"response":{"id":"resp_%s"}`, m.id)
	item := fmt.Sprintf(`{"type":"message","id":"msg_%s","role":"assistant","content":[{"type":"output_text","text":"turn %d"}]}`, m.id, turn)
	if turn < agentTurns {
		item = fmt.Sprintf(`{"type":"function_call","id":"fc_%s","call_id":%q,"name":"exec_command","arguments":"{\"cmd\":\"echo %d >> %s\"}"}`, m.id, m.id, turn, s.ledger())
	}
	m.say("response.output_item.added", `,"output_index":0,"item":%s`, item)
	m.say("response.output_item.done", `,"output_index":0,"item":%s`, item)
	m.say("response.completed", `,"response":{"id":"resp_%s","usage":{"input_tokens":10,"output_tokens":7,"total_tokens":17}}`, m.id)
}

// live starts the agent, strikes, and resumes it, until it ends well.
func (s *agentSession) live(strikes int) {
	first := append([]string{"agent", "run", "--name", "a", "--", os.Getenv(s.kind.variable)}, s.kind.args...)
	if s.kind.tools != "" {
		first = append(first, s.kind.tools, s.servers())
	}
	args := first
	for range maxStarts {
		cmd := s.command(args...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		require.NoError(s.t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for goesOn := true; goesOn && s.strikes < strikes; {
			goesOn = s.strike(cmd, ended)
		}
		err := <-ended
		if err == nil {
			require.Positive(s.t, s.paid[s.kind.last], "the agent has come to its last turn: %v: %s", s.paid, &out)
			return
		}
		s.t.Logf("%v: %s", err, bytes.TrimSpace(out.Bytes()))
		args = []string{"agent", "resume", "a"}
		if !s.begun() { // it died before it was known
			args = first
		}
	}
	s.t.Errorf("the session has not ended after %d starts", maxStarts)
}

func (s *agentSession) command(args ...string) *exec.Cmd {
	cmd := s.machine.command(s.program, args...)
	cmd.Dir = filepath.Join(s.dir, "ws")
	cmd.Env = append(cmd.Env, "HOME="+filepath.Join(s.dir, "home"), "ANTHROPIC_BASE_URL="+s.provider.URL, "ANTHROPIC_API_KEY=k", "IS_SANDBOX=1",
		"OPENAI_BASE_URL="+s.provider.URL+"/v1", "OPENAI_API_KEY=k")
	return cmd
}

// begun reports whether the world knows the session.
func (s *agentSession) begun() bool {
	out, err := s.command("agent", "list", "-o", "jsonl").Output()
	return err == nil && bytes.Contains(out, []byte(`"name":"a"`))
}

func (s *agentSession) ledger() string { return filepath.Join(s.base, "ledger") }

// servers returns a file that names the MCP server.
func (s *agentSession) servers() string {
	self, err := os.Executable()
	require.NoError(s.t, err)
	file := filepath.Join(s.base, "servers.json")
	text := fmt.Sprintf(`{"mcpServers":{"ledger":{"command":%q,"env":{%q:%q,%q:%q}}}}`, self, ledgerEnv, s.ledger(), machineEnv, s.dir)
	require.NoError(s.t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// strike kills the agent, worldctl or both, or its MCP server, or strikes the machine, a while after a call has come, if that is
// before the end. It reports whether they may go on.
func (s *agentSession) strike(cmd *exec.Cmd, ended chan error) (goesOn bool) {
	for range 1 + s.rng.IntN(3) {
		select {
		case <-s.came:
		case err := <-ended:
			ended <- err
			return false
		}
	}
	<-time.After(time.Duration(s.rng.Int64N(int64(maxToStrike)))) // may be late: a strike comes at any moment
	below := children(cmd.Process.Pid)
	if len(below) == 0 {
		return false // it has ended
	}
	s.strikes++
	if struck, goesOn := s.machine.strike(s.rng); struck {
		return goesOn
	}
	whom := s.rng.IntN(4)
	if whom == 3 && s.kill(func(args []string) bool { return args[0] == os.Args[0] }) > 0 {
		s.by["server killed"]++
		return true
	}
	if whom != 0 {
		s.by["worldctl killed"]++
		_ = cmd.Process.Kill()
	}
	for _, pid := range below {
		if whom != 1 {
			s.by["agent killed"]++
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return false
}

// judge holds what the provider was asked against what the ledger says.
func (s *agentSession) judge() (sum tally) {
	sum.strikes, sum.by, sum.faults, sum.doubts = s.strikes, s.by, s.faults, -s.refused // of which the ledger has one each
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
	text, err := os.ReadFile(s.ledger())
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
	said := ""
	for _, kind := range []string{"tool.call", "mcp.call"} {
		out, err := s.command("intent", "list", "--kind", kind, "-o", "jsonl", "-w", "worldkernel").Output()
		require.NoError(s.t, err)
		said += string(out)
		for line := range strings.Lines(string(out)) {
			var tool struct{ State, Reason string }
			require.NoError(s.t, json.Unmarshal([]byte(line), &tool))
			if tool.State == "in_doubt" || tool.State == "failed" && !strings.Contains(tool.Reason, "agent that asked is gone") {
				sum.toolDoubts++
			}
		}
	}
	require.LessOrEqual(s.t, sum.lost, sum.toolDoubts+s.absent, "a tool that has not run is in doubt: %v ran; the world says: %s; the model was told: %s", ran, said, s.told)
}
