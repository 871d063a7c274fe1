package owner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// interruptPatience is how long an interrupted command gets to say what became of
// it.
const interruptPatience = 5 * time.Second

// remote is the end of a connection to an owner where the command was typed.
type remote struct {
	Streams

	conn    net.Conn
	writing sync.Mutex
}

// Listens reports whether the owner of the world in a directory carries out the commands of others.
func Listens(dir string) bool {
	conn, err := dial(dir)
	if err != nil {
		return errors.Is(err, ErrStranger) // who is to be told of
	}
	return conn.Close() == nil
}

// Ask has the owner of the world in a directory carry out a command line that was
// typed here, and returns its exit code. The end of ctx interrupts it. answered is
// false where nobody listens; its error then says why. Somebody else's process is
// told nothing: ErrStranger.
func Ask(ctx context.Context, dir string, args []string, from Origin, s Streams) (code int, answered bool, err error) {
	conn, err := dial(dir)
	if err != nil {
		return 0, errors.Is(err, ErrStranger), err
	}
	defer conn.Close() //nolint:errcheck // all that matters has been read
	if err := conn.SetDeadline(time.Now().Add(patienceLimit)); err != nil {
		return 0, false, err
	}
	r := bufio.NewReader(conn)
	var answer response
	if err := writeHeader(conn, request{Version: socketVersion, Args: args, Origin: from}); err != nil {
		return 0, false, err
	}
	if err := readHeader(r, &answer); err != nil {
		return 0, false, err
	}
	switch {
	case answer.Version != socketVersion:
		return 0, true, fmt.Errorf("%w: its socket has version %d, this program knows %d", ErrVersion, answer.Version, socketVersion)
	case answer.Refused != "":
		return 0, true, fmt.Errorf("%w: %s", ErrRefuses, answer.Refused)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return 0, false, err
	}
	code, err = (&remote{Streams: s, conn: conn}).follow(ctx, r)
	return code, true, err
}

// follow lends the command the streams of this process, until it has ended.
func (r *remote) follow(ctx context.Context, from *bufio.Reader) (code int, err error) {
	defer context.AfterFunc(ctx, func() {
		_ = r.conn.SetDeadline(time.Now().Add(interruptPatience))
		_ = r.send(frame{frameCancel, nil}) // or the owner finds the connection closed
	})()
	for {
		f, err := readFrame(from)
		switch {
		case err != nil && ctx.Err() != nil:
			return 0, ctx.Err()
		case err != nil:
			return 0, fmt.Errorf("%w: %w", ErrGone, err)
		}
		switch f.kind {
		case frameOut:
			_, err = r.Stdout.Write(f.data)
		case frameErr:
			_, err = r.Stderr.Write(f.data)
		case frameWant:
			go r.feed() // stdin may never come to its end
		case framePrompt:
			go r.askPerson(string(f.data))
		case frameExit:
			return int(f.data[0]), nil
		default:
			err = fmt.Errorf("%w: the owner sent %q", errFrame, rune(f.kind))
		}
		if err != nil {
			return 0, err
		}
	}
}

// feed sends what comes next on stdin. Where that cannot be read, the command is
// interrupted.
func (r *remote) feed() {
	data := make([]byte, maxFrameBytes)
	n, err := r.Stdin.Read(data)
	for n == 0 && err == nil {
		n, err = r.Stdin.Read(data)
	}
	if n == 0 && !errors.Is(err, io.EOF) {
		_ = r.send(frame{frameCancel, nil})
		return
	}
	_ = r.send(frame{frameIn, data[:n]}) // where the owner has gone, follow finds out
}

// askPerson asks the person at the terminal.
func (r *remote) askPerson(text string) {
	reply := frame{kind: frameNobody}
	typed, err := r.Prompt(text)
	if err == nil {
		reply = frame{frameAnswer, typed}
	}
	_ = r.send(reply) // likewise
}

func (r *remote) send(f frame) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	return writeFrame(r.conn, f)
}
