package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/worldkernel/worldkernel/host"
)

const (
	// grace is how long a program has to end after its input has ended, and again
	// after SIGTERM.
	grace = time.Second
	// maxStderrBytes is how much of the end of what a program complained of is kept.
	maxStderrBytes = 2 << 10
)

// process is a server's program, and the link to it.
type process struct {
	setup  host.Setup
	cmd    *exec.Cmd
	input  *os.File // writes to the program
	output *os.File // reads from it
	eof    chan struct{}
	stderr *host.Tail
	stop   func() // ends the program and all that it started

	turn chan struct{} // who holds it writes
}

// start runs the program.
func (sv *server) start() (*process, error) {
	dir, path, err := sv.setup.FindProgram(sv.target.Command[0], sv.target.Command[1:])
	if err != nil {
		return nil, err
	}
	p := &process{setup: sv.setup, cmd: exec.Command(path, sv.target.Command[1:]...), eof: make(chan struct{}), turn: make(chan struct{}, 1), stderr: sv.setup.Tail(maxStderrBytes)}
	p.stop = sync.OnceFunc(p.endProcess)
	p.cmd.Args[0], p.cmd.Dir, p.cmd.Stderr, p.cmd.WaitDelay = sv.target.Command[0], dir, p.stderr, grace
	if err := host.Enclose(); err != nil {
		return nil, err
	}
	env, err := sv.setup.Variables(sv.target.Env)
	if err != nil {
		return nil, err
	}
	p.cmd.Env = append([]string{"PATH=" + host.ProgramPath, "LANG=C.UTF-8"}, env...) // of two PATHs the last counts
	if err := host.OwnGroup(p.cmd); err != nil {
		return nil, err
	}
	return p, p.run()
}

func (p *process) run() error {
	childInput, input, err := os.Pipe()
	if err != nil {
		return err
	}
	defer childInput.Close() //nolint:errcheck // the child has its own
	output, childOutput, err := os.Pipe()
	if err != nil {
		_ = input.Close()
		return err
	}
	defer childOutput.Close() //nolint:errcheck // likewise
	p.input, p.output, p.cmd.Stdin, p.cmd.Stdout = input, output, childInput, childOutput
	if err := p.cmd.Start(); err != nil {
		return errors.Join(err, input.Close(), output.Close())
	}
	return nil
}

// endProcess is stop, once. The program is waited for last: until then nobody else can
// have its group's number.
func (p *process) endProcess() {
	_ = p.input.Close()
	if !p.drained() {
		_ = host.SignalGroup(p.cmd.Process.Pid, syscall.SIGTERM)
		p.drained()
	}
	_ = host.SignalGroup(p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.cmd.Wait()
	_ = p.output.Close()
}

// drained waits, as long as a program is given to end, for the end of its
// output.
func (p *process) drained() bool {
	select {
	case <-p.eof:
		return true
	case <-time.After(grace):
		return false
	}
}

// explain adds to an error what the program complained of last.
func (p *process) explain(err error) error {
	if text := p.stderr.String(); text != "" {
		return fmt.Errorf("%w; the server says: %s", err, text)
	}
	return err
}

// hear has a client hear the messages of the program. What else there is, such as banners and logs, which many
// programs print beside and before them, is kept with what it complains of.
func (p *process) hear(c *client) {
	r := &reader{process: p, lines: bufio.NewReader(p.output)}
	for {
		messages, err := r.next()
		for _, message := range messages {
			c.hear(message, nil)
		}
		if err != nil {
			c.fail(fmt.Errorf("%w: %w", errEnded, err))
			return
		}
	}
}

// reader reads what a program prints.
type reader struct {
	*process
	lines *bufio.Reader
	begun []byte // a message of which there are lines to come
	depth int    // of begun
}

// next reads a line, and returns the messages that end with it.
func (r *reader) next() ([]*message, error) {
	line, whole, err := ReadLine(r.lines, maxMessageBytes)
	if err != nil { // what is not ended is no message
		close(r.eof)
		return nil, err
	}
	if !whole && begins(line) {
		return nil, errTooLarge
	}
	messages, stray := r.messages(line, whole)
	if stray = bytes.TrimSpace(stray); len(stray) > 0 {
		fmt.Fprintf(r.stderr, "not a message, on stdout: %q\n", r.setup.Head(stray, 500))
	}
	return messages, nil
}

// messages returns the messages that end with a line, and what is none. Some programs write one in several lines.
func (r *reader) messages(line []byte, fits bool) (messages []*message, stray []byte) {
	if !fits {
		r.begun = nil
		return nil, line
	}
	line = append(line, '\n')
	messages, stray = plain(line)
	deeper, whole := nesting(line)
	var cut []byte
	if !whole || !r.goesOn(line, len(messages) > 0) {
		cut, r.begun = r.begun, nil
	}
	switch {
	case len(r.begun) > 0:
		r.begun, r.depth = append(r.begun, line...), r.depth+deeper
		if r.depth > 0 {
			return nil, nil
		}
		messages, stray = plain(r.begun)
		r.begun = nil
	case whole && deeper > 0 && len(messages) == 0 && begins(line) && mayBeJSON(line):
		r.begun, r.depth = line, deeper
		return nil, cut
	}
	return messages, append(cut, stray...)
}

// goesOn reports whether a line, which may be a message for itself, belongs to the message that was begun. A line with
// the version of messages does not, nor an object after a colon, which nobody writes so, nor what JSON cannot have there,
// as far as the first 8 KiB show it.
func (r *reader) goesOn(line []byte, message bool) bool {
	const cheap = 8 << 10
	if message && bytes.Contains(line, []byte(`"jsonrpc"`)) || begins(line) && bytes.HasSuffix(bytes.TrimSpace(r.begun), []byte(":")) {
		return false
	}
	if len(r.begun) >= cheap {
		return len(r.begun)+len(line) <= maxMessageBytes
	}
	return len(r.begun)+len(line) <= maxMessageBytes && mayBeJSON(append(bytes.Clone(r.begun), line[:min(len(line), cheap)]...))
}

// begins reports whether a line may begin a message.
func begins(line []byte) bool {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte(utf8BOM)))
	return len(line) > 0 && (line[0] == '{' || line[0] == '[')
}

// mayBeJSON reports whether a text begins with a JSON value, or is the beginning of one.
func mayBeJSON(text []byte) bool {
	var value json.RawMessage
	err := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte(utf8BOM)))).Decode(&value)
	return err == nil || errors.Is(err, io.ErrUnexpectedEOF)
}

// nesting returns how much deeper a line of JSON ends than it begins, and whether it ends outside of a text.
func nesting(line []byte) (deeper int, whole bool) {
	text := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			deeper++
		case c == '}' || c == ']':
			deeper--
		}
	}
	return deeper, !text
}

// close is for link.
func (p *process) close() { p.stop() }

// send is for link. It takes no longer than the call.
func (p *process) send(ctx context.Context, m *outgoing, x *exchange) error {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.turn }()
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = p.input.SetWriteDeadline(time.Unix(1, 0))
	})
	written, err := p.input.Write(append(m.line, '\n'))
	if !stop() {
		<-done
		_ = p.input.SetWriteDeadline(time.Time{})
	}
	if x != nil && written > 0 {
		x.sent.Store(true)
	}
	if err != nil && written > 0 {
		go p.stop() // half a message: nobody can go on after it
	}
	return err
}
