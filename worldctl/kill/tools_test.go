package kill

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The variables that have this program be an agent that calls tools, or a server of tools.
const (
	callerEnv = "WORLDKERNEL_TEST_CALLER"
	ledgerEnv = "WORLDKERNEL_TEST_LEDGER"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(ledgerEnv) != "":
		keepLedger(os.Stdin, os.Stdout, os.Getenv(ledgerEnv))
	case os.Getenv(callerEnv) != "":
		os.Exit(callTools(os.Getenv(callerEnv)))
	default:
		os.Exit(m.Run())
	}
}

// toolCalls is how many an agent makes.
const toolCalls = 12

// rpc is a message of either side.
type rpc struct {
	ID     *int            `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
}

// keepLedger is a server whose one tool appends its number to a file, and takes a while before and after.
func keepLedger(in io.Reader, out io.Writer, file string) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var m rpc
		var p struct {
			Arguments struct{ N int } `json:"arguments"`
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		if m.Method == "tools/call" && json.Unmarshal(m.Params, &p) == nil {
			<-time.After(time.Duration(rand.IntN(40)) * time.Millisecond) // may be late: a tool takes its time
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, _ = fmt.Fprintln(f, p.Arguments.N)
				_ = f.Close()
			}
			<-time.After(time.Duration(rand.IntN(40)) * time.Millisecond) // may be late: likewise
		}
		result := fmt.Sprintf(`{"content":[{"type":"text","text":"wrote %d"}]}`, p.Arguments.N)
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"ledger","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"append","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}]}`
		}
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"result":%s}`+"\n", *m.ID, result)
	}
}

// callTools is an agent: it calls the tool with one number after another, and says in a file what came of each. Every other call
// has an id of the model's.
func callTools(command string) int {
	parts := strings.Split(command, "\n")
	cmd := exec.Command(parts[0], "mcp", "--name", "ledger", "--", parts[1])
	cmd.Env = append(os.Environ(), ledgerEnv+"="+parts[2])
	in, err := cmd.StdinPipe()
	if err != nil {
		return 4
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return 5
	}
	answers := bufio.NewScanner(stdout)
	for n := range toolCalls {
		meta := "{}"
		if n%2 == 0 {
			meta = fmt.Sprintf(`{"claudecode/toolUseId":"toolu_%d"}`, n)
		}
		if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"append","arguments":{"n":%d},"_meta":%s}}`+"\n", n, n, meta); err != nil || !answers.Scan() {
			return 6
		}
		came := "doubt"
		if strings.Contains(answers.Text(), fmt.Sprintf("wrote %d\"", n)) {
			came = "done"
		} else if !strings.Contains(answers.Text(), "nobody can tell whether this call was made") {
			fmt.Fprintln(os.Stderr, answers.Text())
			return 7
		}
		f, err := os.OpenFile(parts[2]+".told", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return 8
		}
		_, _ = fmt.Fprintln(f, n, came)
		_ = f.Close()
	}
	_ = in.Close()
	_ = cmd.Wait()
	return 0
}

// TestKilledAgentsRunNoToolTwice runs an agent that calls tools of an MCP server, and kills it, worldctl, the program in the
// server's place, the server or all at random moments, STRIKES times. Each time the session is resumed, until it has come to its end. A
// tool that ran not at all, or of which nobody could tell, is one of which the agent was told so.
func TestKilledAgentsRunNoToolTwice(t *testing.T) {
	program := program(t)
	all := struck(t, func(t *testing.T, dir string, rng *rand.Rand, strikes int) tally {
		s := newToolSession(t, program, dir, rng)
		defer s.off()
		s.live(strikes)
		return s.judge()
	})
	require.Zero(t, all.ranTwice)
	if all.strikes > 5*fewStrikes {
		require.Positive(t, all.served, "something was answered from the record")
	}
}

// toolSession is one session of an agent that calls tools.
type toolSession struct {
	*machine

	program string
	rng     *rand.Rand
	strikes int
}

func newToolSession(t *testing.T, program, dir string, rng *rand.Rand) *toolSession {
	return &toolSession{machine: newMachine(t, dir), program: program, rng: rng}
}

func (s *toolSession) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(s.t, err)
	cmd := s.machine.command(s.program, args...)
	cmd.Dir = s.dir
	cmd.Env = append(cmd.Env, callerEnv+"="+strings.Join([]string{s.program, self, s.ledger()}, "\n"))
	return cmd
}

func (s *toolSession) ledger() string { return filepath.Join(s.base, "ledger") }

// live starts the agent, strikes, and resumes it, until it ends well.
func (s *toolSession) live(strikes int) {
	self, err := os.Executable()
	require.NoError(s.t, err)
	args := []string{"agent", "run", "--name", "a", "--", self}
	for range maxStarts {
		cmd := s.command(args...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.WaitDelay = time.Second // the server may outlive who has started it
		require.NoError(s.t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for goesOn := true; goesOn && s.strikes < strikes; {
			goesOn = s.strike(cmd.Process.Pid, ended)
		}
		if err := <-ended; err == nil {
			return
		} else if testing.Verbose() {
			s.t.Logf("%v: %s", err, bytes.TrimSpace(out.Bytes()))
		}
		listed, err := s.command("agent", "list", "-o", "jsonl").Output()
		if err == nil && bytes.Contains(listed, []byte(`"name":"a"`)) {
			args = []string{"agent", "resume", "a"}
		}
	}
	s.t.Errorf("the session has not ended after %d starts", maxStarts)
}

// strike kills one of the processes, or all, or strikes the machine. It reports whether they may go on.
func (s *toolSession) strike(pid int, ended chan error) (goesOn bool) {
	wait := 2 * maxToStrike
	for atWork := s.rng.IntN(3) > 0; atWork && len(s.family(pid)) < 4; wait = maxToStrike {
		select {
		case err := <-ended:
			ended <- err
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	<-time.After(time.Duration(s.rng.Int64N(int64(wait)))) // may be late: a strike comes at any moment
	family := s.family(pid)
	if len(family) < 2 {
		return false // it has ended, or not begun
	}
	s.strikes++
	if struck, goesOn := s.machine.strike(s.rng); struck {
		return goesOn
	}
	whom, who := s.rng.IntN(5), "all"
	if whom < len(family) {
		family, who = family[whom:whom+1], []string{"worldctl", "agent", "program in the server's place", "server"}[whom]
	} else if whom < 4 {
		family, who = family[:1], "worldctl"
	}
	for _, one := range family {
		_ = syscall.Kill(one, syscall.SIGKILL)
	}
	s.by[who+" killed"]++
	return false
}

// family returns worldctl, the agent, the program in the server's place, and the server, as many as there are.
func (s *toolSession) family(pid int) []int {
	family := []int{pid}
	for range 3 {
		below := children(family[len(family)-1])
		if len(below) == 0 {
			break
		}
		family = append(family, below[0])
	}
	return family
}

// judge holds what the tools have left against what the agent was told.
func (s *toolSession) judge() (sum tally) {
	sum.strikes, sum.by = s.strikes, s.by
	lines := func(file string) (out []string) {
		text, err := os.ReadFile(file)
		require.NoError(s.t, err)
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	ran, told := make(map[string]int), make(map[string]string)
	for _, n := range lines(s.ledger()) {
		ran[n]++
		sum.ran++
	}
	for _, line := range lines(s.ledger() + ".told") {
		n, came, _ := strings.Cut(line, " ")
		if was := told[n]; was != "" {
			require.Equal(s.t, was, came, "the agent was told two things of call %s", n)
		}
		told[n] = came
	}
	for i := range toolCalls {
		n := strconv.Itoa(i)
		sum.ranTwice += max(ran[n]-1, 0)
		if ran[n] == 0 {
			sum.lost++
			require.Equal(s.t, "doubt", told[n], "call %s never ran", n)
		}
		if told[n] == "doubt" {
			sum.toolDoubts++
		}
	}
	out, err := s.command("agent", "list", "-o", "jsonl").Output()
	require.NoError(s.t, err)
	var listed struct{ Served int }
	require.NoError(s.t, json.Unmarshal(bytes.TrimSpace(out), &listed))
	sum.served = listed.Served
	said, err := s.command("-w", "worldkernel", "verify").CombinedOutput()
	require.NoError(s.t, err, "%s", said)
	return sum
}
