// Package owner is how the process that owns a world carries out what is typed in others. A world has
// one owner, and a process that drives one is its owner for long. So that other processes can be used
// on the world meanwhile, it listens on the Unix socket .world/owner.sock, which only its own user may
// use. What was typed elsewhere gets the streams, the working directory and the surroundings of
// whoever typed it. The package carries command lines, and knows none. It is a part of worldctl, and
// not an API.
//
// A connection is for one command:
//
//	caller  request   a JSON object and a newline, at most 8 MiB
//	owner   response  likewise; the connection ends where it says refused
//	both    frames    kind (1 byte) ‖ length (32 bits, big-endian) ‖ so many bytes, at most 64 KiB
//
// The kinds of frames are with their names. Of stdin the caller sends only what it
// is asked for, so that nothing is read that the command does not want. The caller
// interrupts the command with a frame or by closing the connection. Both begin with
// the version of this; whoever finds another one goes no further.
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

// The limits of an owner.
const (
	maxCommands    = 64               // carried out at once
	maxConnections = 2 * maxCommands  // those that are refused among them
	patienceLimit  = 30 * time.Second // with a caller that says nothing, or does not read
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
	end      context.CancelCauseFunc // of all commands
	unbind   func() bool             // from what ends them besides
	commands chan struct{}           // holds one for each
	running  sync.WaitGroup
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
	o.running.Go(func() { o.accept(commands) })
	return o, nil
}

// Close returns once no command uses the world any more. The world is still locked
// when the socket goes: whoever finds none finds the lock.
func (o *Owner) Close() {
	o.unbind()
	o.end(ErrEnding)
	o.socket.close()
	o.running.Wait()
}

func (o *Owner) accept(ctx context.Context) {
	connections := make(chan struct{}, maxConnections)
	for {
		select {
		case connections <- struct{}{}:
		case <-ctx.Done():
			return
		}
		conn, err := o.socket.accept()
		if err != nil {
			return // it is closed
		}
		o.running.Go(func() {
			defer func() { <-connections }()
			defer conn.Close() //nolint:errcheck // whatever was to be said has been written
			o.attendTo(ctx, conn)
		})
	}
}

// attendTo carries out what comes over a connection, unless it is refused. Who
// does not say what within the time is not answered.
func (o *Owner) attendTo(ctx context.Context, conn net.Conn) {
	r := bufio.NewReader(conn)
	var asked request
	if err := conn.SetDeadline(time.Now().Add(patienceLimit)); err != nil {
		return
	}
	if err := readHeader(r, &asked); err != nil {
		return
	}
	answer := response{Version: socketVersion}
	select {
	case o.commands <- struct{}{}:
		defer func() { <-o.commands }()
	default:
		answer.Refused = fmt.Sprintf("%d commands are being carried out already", maxCommands)
	}
	if asked.Version != socketVersion {
		answer.Refused = fmt.Sprintf("version %d is asked for", asked.Version)
	}
	if err := writeHeader(conn, answer); err != nil || answer.Refused != "" {
		return
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return
	}
	ctx, stop := context.WithCancelCause(ctx)
	l := &link{ctx: ctx, stop: stop, conn: conn, patience: o.patience, replies: make(chan frame, 1)}
	var heard sync.WaitGroup
	heard.Go(func() { l.hear(r) })
	code := o.carryOut(ctx, asked.Args, asked.Origin, Streams{stdinOf{l}, stdoutOf{l}, stderrOf{l}, l.prompt})
	_ = l.send(frame{frameExit, []byte{byte(code)}}) // the caller may have gone
	stop(nil)
	_ = conn.Close() // which ends hear
	heard.Wait()
}
