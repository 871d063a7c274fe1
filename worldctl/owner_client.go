package worldctl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// interruptPatience is how long an interrupted command gets to say what became of
// it.
const interruptPatience = 5 * time.Second

// ownedError says that a world cannot be opened because another process owns it,
// which can carry out the command.
type ownedError struct {
	dir string
	err error
}

func (e *ownedError) Error() string { return e.err.Error() }
func (e *ownedError) Unwrap() error { return e.err }

// remote is the end of a connection to an owner where the command was typed.
type remote struct {
	*cli

	conn    net.Conn
	writing sync.Mutex
}

// askOwner has the owner of a world carry out this command line, and returns its
// exit code. answered is false where nobody does, so that the world is locked and
// no more.
func (c *cli) askOwner(ctx context.Context, dir string) (code int, answered bool, err error) {
	conn, err := dial(dir)
	if err != nil {
		return 0, false, err
	}
	defer conn.Close() //nolint:errcheck // all that matters has been read
	asked := request{Version: socketVersion, Args: c.args, Origin: c.origin}
	if asked.Origin.Dir, err = os.Getwd(); err != nil {
		return 0, false, err
	}
	asked.Origin.Login = c.actorOf("")
	if text, set := os.LookupEnv(passphraseEnv); set {
		asked.Origin.Passphrase = &text
	}
	if err := conn.SetDeadline(time.Now().Add(ownerPatience)); err != nil {
		return 0, false, err
	}
	r := bufio.NewReader(conn)
	var answer response
	if err := writeHeader(conn, asked); err != nil {
		return 0, false, err
	}
	if err := readHeader(r, &answer); err != nil {
		return 0, false, err
	}
	switch {
	case answer.Version != socketVersion:
		return 0, true, fmt.Errorf("%w: its socket has version %d, this program knows %d", errOwnerVersion, answer.Version, socketVersion)
	case answer.Refused != "":
		return 0, true, fmt.Errorf("%w: %s", errOwnerRefuses, answer.Refused)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return 0, false, err
	}
	code, err = (&remote{cli: c, conn: conn}).follow(ctx, r)
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
			return 0, fmt.Errorf("%w: %w", errOwnerGone, err)
		}
		switch f.kind {
		case frameOut:
			_, err = r.stdout.Write(f.data)
			err = errors.Join(err, r.stdout.Flush())
		case frameErr:
			_, err = r.stderr.Write(f.data)
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
	n, err := r.stdin.Read(data)
	for n == 0 && err == nil {
		n, err = r.stdin.Read(data)
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
	typed, err := r.onTerminal(func(prompt prompter) ([]byte, error) { return prompt(text) })
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
