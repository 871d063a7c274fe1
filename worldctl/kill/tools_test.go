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
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"wrote %d"}]}}`+"\n", *m.ID, p.Arguments.N)
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
	program, strikes := program(t), environ(t, "STRIKES", fewStrikes)
	seed := uint64(environ(t, "SEED", 1))
	rng := rand.New(rand.NewPCG(seed, 0))
	var all tally
	for n := 0; all.strikes < strikes; n++ {
		s := newToolSession(t, program, filepath.Join(t.TempDir(), strconv.Itoa(n)), rng)
		s.live(strikes - all.strikes)
		all.add(s.judge())
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%+v", all)
	require.Zero(t, all.ranTwice)
	if strikes > 5*fewStrikes {
		require.Positive(t, all.served, "something was answered from the record")
	}
}

// toolSession is one session of an agent that calls tools.
type toolSession struct {
	t       *testing.T
	program string
	rng     *rand.Rand
	dir     string
	strikes int
}

func newToolSession(t *testing.T, program, dir string, rng *rand.Rand) *toolSession {
	require.NoError(t, os.MkdirAll(dir, 0o700))
	return &toolSession{t: t, program: program, rng: rng, dir: dir}
}

func (s *toolSession) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(s.t, err)
	cmd := exec.Command(s.program, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), callerEnv+"="+strings.Join([]string{s.program, self, s.ledger()}, "\n"))
	return cmd
}

func (s *toolSession) ledger() string { return filepath.Join(s.dir, "ledger") }

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
		if s.strikes < strikes {
			s.strike(cmd.Process.Pid)
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

// strike kills one of the processes, or all.
func (s *toolSession) strike(pid int) {
	<-time.After(time.Duration(s.rng.Int64N(int64(2 * maxToStrike)))) // may be late: a strike comes at any moment
	family := []int{pid}
	for range 3 { // the agent, the program in the server's place, the server
		out, err := exec.Command("pgrep", "-P", strconv.Itoa(family[len(family)-1])).Output()
		child, _, _ := strings.Cut(string(out), "\n")
		if err != nil || child == "" {
			break
		}
		family = append(family, number(child))
	}
	if whom := s.rng.IntN(5); whom < len(family) {
		family = family[whom : whom+1]
	} else if whom < 4 {
		return // there is no such process now
	}
	for _, one := range family {
		_ = syscall.Kill(one, syscall.SIGKILL)
	}
	s.strikes++
}

// judge holds what the tools have left against what the agent was told.
func (s *toolSession) judge() (sum tally) {
	sum.strikes = s.strikes
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
