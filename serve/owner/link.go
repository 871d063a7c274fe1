package owner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// link is the owner's end of a connection: the streams of a command that was typed
// elsewhere. All of it is safe for concurrent use.
type link struct {
	ctx      context.Context // of the command
	stop     context.CancelCauseFunc
	conn     net.Conn
	patience time.Duration

	writing sync.Mutex
	asking  sync.Mutex // one question at a time
	replies chan frame // holds the one to it
	unread  []byte     // guarded by asking; of stdin
}

// hear takes what comes over the connection, until that ends: answers to questions,
// and the interrupt.
func (l *link) hear(r io.Reader) {
	for {
		f, err := readFrame(r)
		if err != nil {
			l.stop(context.Canceled)
			return
		}
		switch f.kind {
		case frameIn, frameAnswer, frameNobody:
			select {
			case l.replies <- f:
				continue
			default:
			}
		default: // an interrupt, or what only the owner says
		}
		l.stop(context.Canceled)
	}
}

// send writes a frame. A caller that does not take it in time gets no more.
func (l *link) send(f frame) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	err := l.conn.SetWriteDeadline(time.Now().Add(l.patience))
	if err == nil {
		err = writeFrame(l.conn, f)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w for %s", ErrSlow, l.patience)
	}
	if err != nil {
		l.stop(err)
		_ = l.conn.Close() // a part of a frame may have been written
	}
	return err
}

// askOwner sends a question and returns the reply.
func (l *link) askOwner(question frame) (frame, error) {
	if err := l.send(question); err != nil {
		return frame{}, err
	}
	select {
	case reply := <-l.replies:
		return reply, nil
	case <-l.ctx.Done():
		return frame{}, l.ctx.Err()
	}
}

// prompt asks the person who typed the command.
func (l *link) prompt(text string) ([]byte, error) {
	l.asking.Lock()
	defer l.asking.Unlock()
	reply, err := l.askOwner(frame{framePrompt, []byte(text)})
	switch {
	case err != nil:
		return nil, err
	case reply.kind != frameAnswer:
		return nil, ErrNobody
	}
	return reply.data, nil
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
		reply, err := l.askOwner(frame{frameWant, nil})
		switch {
		case err != nil:
			return 0, err
		case reply.kind != frameIn:
			return 0, fmt.Errorf("%w: stdin was asked for, and %q came", errFrame, rune(reply.kind))
		case len(reply.data) == 0:
			return 0, io.EOF
		}
		l.unread = reply.data
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
	return l.print(frameOut, p)
}

func (l stderrOf) Write(p []byte) (int, error) { return l.print(frameErr, p) }

func (l *link) print(kind frameKind, p []byte) (int, error) {
	for _, f := range frames(kind, p) {
		if err := l.send(f); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
