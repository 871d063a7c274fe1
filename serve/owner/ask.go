package owner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// interruptPatience is how long an interrupted command gets to say what became of
// it.
const interruptPatience = 5 * time.Second

// remote is the end of a connection to an owner where the command was typed.
type remote struct {
	Streams

	writing sync.Mutex
	body    io.Writer // of the request
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
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	body, said := io.Pipe()
	defer said.Close() //nolint:errcheck // it never fails
	r := &remote{Streams: s, body: said}
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(interruptPatience, end)
		_ = r.send(message{Kind: kindCancel}) // or the owner finds the connection closed
	})()
	silent := time.AfterFunc(patienceLimit, end)
	answer, err := post(life, dir, request{Args: args, Origin: from}, body)
	if err != nil {
		return 0, errors.Is(err, ErrStranger), err
	}
	silent.Stop()
	defer answer.Body.Close() //nolint:errcheck // all that matters has been read
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return 0, true, fmt.Errorf("%w: it does not know %s", ErrVersion, commandPath)
	default:
		why, err := io.ReadAll(io.LimitReader(answer.Body, maxDataBytes))
		return 0, true, errors.Join(fmt.Errorf("%w: %s", ErrRefuses, bytes.TrimSpace(why)), err)
	}
	code, err = r.follow(ctx, linesOf(answer.Body))
	return code, true, err
}

// post sends the head of a request, and its body as that comes.
func post(ctx context.Context, dir string, asked request, body io.Reader) (*http.Response, error) {
	first, err := json.Marshal(asked)
	if err == nil && len(first) >= maxLineBytes {
		err = fmt.Errorf("the command line is longer than %d bytes", maxLineBytes)
	}
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://owner"+commandPath, io.MultiReader(bytes.NewReader(append(first, '\n')), body))
	if err != nil {
		return nil, err
	}
	r.Close = true // a connection is for one command
	return transport(dir).RoundTrip(r)
}

// transport leads to the owner of the world in a directory.
func transport(dir string) *http.Transport {
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial(dir) }}
}

// follow lends the command the streams of this process, until it has ended.
func (r *remote) follow(ctx context.Context, from lines) (code int, err error) {
	for {
		var m message
		err := from.next(&m)
		switch {
		case err != nil && ctx.Err() != nil:
			return 0, ctx.Err()
		case err != nil:
			return 0, fmt.Errorf("%w: %w", ErrGone, err)
		}
		switch m.Kind {
		case kindOut:
			_, err = r.Stdout.Write(m.Data)
		case kindErr:
			_, err = r.Stderr.Write(m.Data)
		case kindWant:
			go r.feed() // stdin may never come to its end
		case kindPrompt:
			go r.askPerson(string(m.Data))
		case kindExit:
			if len(m.Data) == 1 {
				return int(m.Data[0]), nil
			}
			fallthrough
		default:
			err = fmt.Errorf("%w: the owner sent %q", errMessage, m.Kind)
		}
		if err != nil {
			return 0, err
		}
	}
}

// feed sends what comes next on stdin. Where that cannot be read, the command is
// interrupted.
func (r *remote) feed() {
	data := make([]byte, maxDataBytes)
	n, err := r.Stdin.Read(data)
	for n == 0 && err == nil {
		n, err = r.Stdin.Read(data)
	}
	if n == 0 && !errors.Is(err, io.EOF) {
		_ = r.send(message{Kind: kindCancel})
		return
	}
	_ = r.send(message{kindIn, data[:n]}) // where the owner has gone, follow finds out
}

// askPerson asks the person at the terminal.
func (r *remote) askPerson(text string) {
	reply := message{Kind: kindNobody}
	typed, err := r.Prompt(text)
	if err == nil {
		reply = message{kindAnswer, typed}
	}
	_ = r.send(reply) // likewise
}

func (r *remote) send(m message) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	return json.NewEncoder(r.body).Encode(m)
}
