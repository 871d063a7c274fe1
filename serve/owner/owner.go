// Package owner is how the process that owns a world carries out what is typed in others. A world has
// one owner, and a process that drives one is its owner for long. So that other processes can be used
// on the world meanwhile, it listens on the Unix socket .world/owner.sock, which only its own user may
// use. What was typed elsewhere gets the streams, the working directory and the surroundings of
// whoever typed it. The package carries command lines, and knows none. It is a part of worldctl, and
// not an API.
//
// The socket speaks HTTP/1.1. POST to /v1/command carries out a command, for as long as the request goes
// on; both bodies are lines of JSON, at most 8 MiB each, and are written while the other is read:
//
//	caller  {"args": [...], "origin": {...}}   then what the owner asks it for
//	owner   {"kind": "out", "data": BASE64}    and so on, at most 64 KiB of data each
//
// The kinds of messages are with their names. Of stdin the caller sends only what it is asked for, so
// that nothing is read that the command does not want. The caller interrupts the command with a
// message or by closing the connection. The version is in the path: an owner of another one does not
// know it, 404. Status 503 says that it has too much to do.
package owner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// commandPath is where commands are carried out, with the version of what the package comment says.
const commandPath = "/v1/command"

// The limits of an owner.
const (
	maxCommands   = 64               // carried out at once
	patienceLimit = 30 * time.Second // with a caller that says nothing, or does not read
)

// Why the owner of a world does not carry out a command, or not all of it.
var (
	ErrEnding   = errors.New("the process that owns the world has ended") // the cause that ends commands
	ErrSlow     = errors.New("nobody reads what is printed")
	ErrNobody   = errors.New("nobody is at the terminal")
	ErrVersion  = errors.New("the process that owns the world is of another version")
	ErrRefuses  = errors.New("the process that owns the world does not do it")
	ErrStranger = errors.New("another user has the world's socket, and is told nothing")
	ErrGone     = errors.New("the process that owns the world ended in the midst of it")
)

// Streams are those of a command line. Prompt asks the person at the terminal; its
// error says that nobody is there.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Prompt         func(text string) ([]byte, error)
}

// Command carries out a command line that was typed elsewhere, and returns its exit
// code. It ends soon once ctx does.
type Command func(ctx context.Context, args []string, from Origin, s Streams) (code int)

// Owner carries out the commands of other processes on a world that this one owns.
type Owner struct {
	carryOut Command
	patience time.Duration // with a caller that does not read what is printed
	socket   *socket
	server   *http.Server
	end      context.CancelCauseFunc // of all commands
	unbind   func() bool             // from what ends them besides
	commands chan struct{}           // holds one for each
}

// Attend listens for what other processes ask to be done with the world in a
// directory, which this process owns, until Close. What is still being done then is
// interrupted, with the cause ErrEnding, and so it is when ctx ends. Several commands
// may be carried out at once.
func Attend(ctx context.Context, dir string, carryOut Command) (*Owner, error) {
	return attend(ctx, dir, carryOut, patienceLimit)
}

func attend(ctx context.Context, dir string, carryOut Command, patience time.Duration) (*Owner, error) {
	s, err := listen(dir)
	if err != nil {
		return nil, err
	}
	o := &Owner{carryOut: carryOut, patience: patience, socket: s, commands: make(chan struct{}, maxCommands)}
	commands, end := context.WithCancelCause(context.WithoutCancel(ctx))
	o.end = end
	o.unbind = context.AfterFunc(ctx, func() { end(ErrEnding) })
	o.server = &http.Server{
		Handler: http.HandlerFunc(o.answer), ReadHeaderTimeout: patienceLimit, BaseContext: func(net.Listener) context.Context { return commands },
	}
	go func() { _ = o.server.Serve(s) }() // until the socket is closed
	return o, nil
}

// Close returns once no command uses the world any more. The world is still locked
// when the socket goes: whoever finds none finds the lock.
func (o *Owner) Close() {
	o.unbind()
	o.end(ErrEnding)
	o.socket.remove()
	_ = o.server.Shutdown(context.Background()) // the socket is gone already
}

// answer carries out a command, unless there are too many. Who does not say what within the time is
// not answered. A command is no goroutine of the server: its panic ends the process.
func (o *Owner) answer(w http.ResponseWriter, r *http.Request) {
	caller, body := http.NewResponseController(w), linesOf(r.Body)
	_ = caller.EnableFullDuplex()                             // HTTP/1.1 always can
	defer func() { _ = caller.SetReadDeadline(time.Now()) }() // nothing of the body is waited for
	if r.URL.Path != commandPath {
		http.NotFound(w, r)
		return
	}
	select {
	case o.commands <- struct{}{}:
		defer func() { <-o.commands }()
	default:
		http.Error(w, fmt.Sprintf("%d commands are being carried out already", maxCommands), http.StatusServiceUnavailable)
		return
	}
	var asked request
	if err := errors.Join(caller.SetReadDeadline(time.Now().Add(patienceLimit)), body.next(&asked), caller.SetReadDeadline(time.Time{})); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, stop := context.WithCancelCause(r.Context())
	defer stop(nil)
	l := &link{ctx: ctx, stop: stop, caller: caller, body: w, patience: o.patience, replies: make(chan message, 1)}
	var running sync.WaitGroup
	running.Go(func() {
		if l.begin() == nil {
			code := o.carryOut(ctx, asked.Args, asked.Origin, Streams{stdinOf{l}, stdoutOf{l}, stderrOf{l}, l.prompt})
			_ = l.send(message{kindExit, []byte{byte(code)}}) // the caller may have gone
		}
		_ = caller.SetReadDeadline(time.Now()) // which ends hear
	})
	l.hear(body)
	running.Wait()
}
