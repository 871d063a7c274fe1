package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// link is the owner's end of a connection: the streams of a command that was typed
// elsewhere. All of it is safe for concurrent use.
type link struct {
	ctx      context.Context // of the command
	stop     context.CancelCauseFunc
	caller   *http.ResponseController
	body     io.Writer // of the answer
	patience time.Duration

	writing sync.Mutex
	asking  sync.Mutex   // one question at a time
	replies chan message // holds the one to it
	unread  []byte       // guarded by asking; of stdin
}

// hear takes what comes over the connection, until that ends: answers to questions,
// and the interrupt.
func (l *link) hear(body lines) {
	for {
		var m message
		if err := body.next(&m); err != nil {
			l.stop(context.Canceled)
			return
		}
		switch m.Kind {
		case kindIn, kindAnswer, kindNobody:
			select {
			case l.replies <- m:
				continue
			default:
			}
		default: // an interrupt, or what only the owner says
		}
		l.stop(context.Canceled)
	}
}

// begin tells the caller that the command is carried out.
func (l *link) begin() error { return l.write(func() error { return nil }) }

// send writes a message.
func (l *link) send(m message) error {
	return l.write(func() error { return json.NewEncoder(l.body).Encode(m) })
}

// write writes at once. A caller that does not take it in time gets no more.
func (l *link) write(some func() error) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	err := l.caller.SetWriteDeadline(time.Now().Add(l.patience))
	if err == nil {
		err = some()
	}
	if err == nil {
		err = l.caller.Flush()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w for %s", ErrSlow, l.patience)
	}
	if err != nil {
		l.stop(err)
	}
	return err
}

// askOwner sends a question and returns the reply.
func (l *link) askOwner(question message) (message, error) {
	if err := l.send(question); err != nil {
		return message{}, err
	}
	select {
	case reply := <-l.replies:
		return reply, nil
	case <-l.ctx.Done():
		return message{}, l.ctx.Err()
	}
}

// prompt asks the person who typed the command.
func (l *link) prompt(text string) ([]byte, error) {
	l.asking.Lock()
	defer l.asking.Unlock()
	reply, err := l.askOwner(message{kindPrompt, []byte(text)})
	switch {
	case err != nil:
		return nil, err
	case reply.Kind != kindAnswer:
		return nil, ErrNobody
	}
	return reply.Data, nil
}

// The streams of a command that was typed elsewhere.
type (
	stdinOf  struct{ *link }
	stdoutOf struct{ *link }
	stderrOf struct{ *link }
)

func (l stdinOf) Read(p []byte) (int, error) {
	l.asking.Lock()
	defer l.asking.Unlock()
	if len(l.unread) == 0 {
		reply, err := l.askOwner(message{Kind: kindWant})
		switch {
		case err != nil:
			return 0, err
		case reply.Kind != kindIn:
			return 0, fmt.Errorf("%w: stdin was asked for, and %q came", errMessage, reply.Kind)
		case len(reply.Data) == 0:
			return 0, io.EOF
		}
		l.unread = reply.Data
	}
	n := copy(p, l.unread)
	l.unread = l.unread[n:]
	return n, nil
}

// Write fails once the command was interrupted, which is how long lists end. Where
// it is the owner that ends, whoever typed the command still gets to know what
// became of it.
func (l stdoutOf) Write(p []byte) (int, error) {
	if l.ctx.Err() != nil && !errors.Is(context.Cause(l.ctx), ErrEnding) {
		return 0, l.ctx.Err()
	}
	return l.print(kindOut, p)
}

func (l stderrOf) Write(p []byte) (int, error) { return l.print(kindErr, p) }

func (l *link) print(of kind, p []byte) (int, error) {
	for _, m := range messages(of, p) {
		if err := l.send(m); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
