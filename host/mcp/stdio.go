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
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/worldkernel/worldkernel/host"
)

const (
	// grace is how long a program has to end after its input has ended, and again
	// after SIGTERM.
	grace = time.Second
	// maxStderrBytes is how much of the end of what a program complained of is kept.
	maxStderrBytes = 2 << 10
)

// process is a server's program, and the transport to it.
type process struct {
	cmd    *exec.Cmd
	input  *os.File // writes to the program
	output *os.File // reads from it
	eof    chan struct{}
	stderr *host.Tail
	stop   func() // ends the program and all that it started

	turn    chan struct{} // who holds it writes
	written int           // bytes, guarded by turn
	calls   sync.Map      // jsonrpc.ID to *exchange
}

// start runs the program.
func (sv *server) start() (*process, error) {
	dir, path, err := sv.setup.FindProgram(sv.target.Command[0], sv.target.Command[1:])
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(path, sv.target.Command[1:]...), eof: make(chan struct{}), turn: make(chan struct{}, 1), stderr: sv.setup.Tail(maxStderrBytes)}
	p.stop = sync.OnceFunc(p.endProcess)
	p.cmd.Args[0], p.cmd.Dir, p.cmd.Stderr, p.cmd.WaitDelay = sv.target.Command[0], dir, p.stderr, grace
	if err := host.Enclose(); err != nil {
		return nil, err
	}
	p.cmd.Env = []string{"PATH=" + host.ProgramPath, "LANG=C.UTF-8"}
	for name, value := range sv.target.Env { // order does not matter: a map has no name twice
		if strings.HasPrefix(value, "secret://") {
			if value, err = sv.setup.Secret(value); err != nil {
				return nil, fmt.Errorf("env.%s: %w", name, err)
			}
		}
		p.cmd.Env = append(p.cmd.Env, name+"="+value) // of two PATHs the last counts
	}
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

// Connect is for mcp.Client.
func (p *process) Connect(ctx context.Context) (mcp.Connection, error) {
	from := &reader{process: p, lines: bufio.NewReader(p.output)}
	c, err := (&mcp.IOTransport{Reader: from, Writer: (*writer)(p), MaxLineLength: maxMessageBytes}).Connect(ctx)
	return &connection{Connection: c, process: p}, err
}

// reader and writer are the two ends of a process.
type (
	reader struct {
		*process
		lines *bufio.Reader
		rest  []byte // of a line that is a message
		begun []byte // a message of which there are lines to come
		depth int    // of begun
	}
	writer process
)

// Read returns the messages of a program. What else there is, such as banners and logs, which many
// programs print beside and before them, is kept with what it complains of.
func (r *reader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.line()
		if err != nil {
			close(r.eof) // the SDK reads no further
			return 0, err
		}
		if len(line) > maxMessageBytes && begins(line) {
			r.rest = line // which the SDK refuses
			continue
		}
		messages, stray := r.messages(line)
		for _, message := range messages {
			r.rest = append(append(r.rest, message...), '\n')
		}
		if stray = bytes.TrimSpace(stray); len(stray) > 0 {
			fmt.Fprintf(r.stderr, "not a message, on stdout: %.500q\n", stray)
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// messages returns the messages that end with a line, and what is none. Some programs write one in several lines.
func (r *reader) messages(line []byte) (messages [][]byte, stray []byte) {
	if len(line) > maxMessageBytes {
		r.begun = nil
		return nil, line
	}
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

// line returns the next line, with its end, or so much of it that it is too long; if it begins no message, then
// up to its end. What a program has not ended with a line feed before it ended is no message.
func (r *reader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		if len(line) <= maxMessageBytes {
			line = append(line, part...)
		}
		if err == nil || len(line) > maxMessageBytes && begins(line) {
			return line, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

func (r *reader) Close() error {
	r.stop()
	return nil
}

func (w *writer) Write(b []byte) (int, error) {
	n, err := w.input.Write(b)
	w.written += n
	return n, err
}

func (w *writer) Close() error {
	w.stop()
	return nil
}

// connection watches over calls, and lets no write take longer than its call.
type connection struct {
	mcp.Connection
	*process
}

// Read is for the SDK.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if r, ok := msg.(*jsonrpc.Response); ok {
		if x, ok := c.calls.LoadAndDelete(r.ID); ok {
			x.(*exchange).response.Store(r)
		}
	}
	return msg, err
}

// Write is for the SDK.
func (c *connection) Write(ctx context.Context, msg jsonrpc.Message) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turn }()
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	if r, err := x.out(msg); err != nil {
		return err
	} else if r == nil {
		x = nil
	} else {
		msg = r
		c.calls.Store(r.ID, x)
		context.AfterFunc(ctx, func() { c.calls.Delete(r.ID) })
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = c.input.SetWriteDeadline(time.Unix(1, 0))
	})
	before := c.written
	err := c.Connection.Write(ctx, msg)
	if !stop() {
		<-done
		_ = c.input.SetWriteDeadline(time.Time{})
	}
	if x != nil && c.written > before {
		x.sent.Store(true)
	}
	if err != nil && c.written > before {
		go c.stop() // half a message: nobody can go on after it
	}
	return err
}
