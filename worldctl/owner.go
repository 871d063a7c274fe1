package worldctl

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/world/local"
)

// A world has one owner, and a process that drives one is its owner for long. So
// that other processes can be used on the world meanwhile, it listens on the Unix
// socket .world/owner.sock, which only its own user may use, and carries out what
// was typed elsewhere: the same command in this process, with the world that is
// open here, and with the streams, the working directory and the surroundings of
// whoever typed it.
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

// The limits of an owner.
const (
	maxCommands    = 64               // carried out at once
	maxConnections = 2 * maxCommands  // those that are refused among them
	ownerPatience  = 30 * time.Second // with a caller that says nothing, or does not read
)

// owner carries out the commands of other processes on a world that this one owns.
type owner struct {
	lw       *local.World
	opts     Options
	patience time.Duration
	socket   *socket
	end      context.CancelCauseFunc // of all commands
	unbind   func() bool             // from what ends them besides
	commands chan struct{}           // holds one for each
	running  sync.WaitGroup
}

// own opens the world, for what drives it, and gives it up again. Meanwhile the
// commands of other processes are carried out.
func (c *cli) own(ctx context.Context, use func(lw *local.World) error) error {
	dir, err := c.dir()
	if err != nil {
		return err
	}
	if c.owns(dir) {
		return errBesides
	}
	at, err := filepath.Abs(dir) // who asks is in another directory
	if err != nil {
		return err
	}
	lw, err := local.Open(at, c.options())
	if err != nil {
		return notOpened(dir, err)
	}
	o, err := attend(ctx, lw, c.opts, ownerPatience)
	if err != nil {
		c.note("note: other processes cannot use this world meanwhile: %s", err)
	}
	err = use(lw)
	if o != nil {
		o.close()
	}
	if closed := lw.Close(); err == nil {
		err = closed
	}
	return err
}

// attend listens for what other processes ask to be done with a world, until
// close. What is still being done then is interrupted, and so it is when ctx ends.
func attend(ctx context.Context, lw *local.World, opts Options, patience time.Duration) (*owner, error) {
	s, err := listen(lw.Dir())
	if err != nil {
		return nil, err
	}
	o := &owner{lw: lw, opts: opts, patience: patience, socket: s, commands: make(chan struct{}, maxCommands)}
	commands, end := context.WithCancelCause(context.WithoutCancel(ctx))
	o.end = end
	o.unbind = context.AfterFunc(ctx, func() { end(errEnding) })
	o.running.Go(func() { o.accept(commands) })
	return o, nil
}

// close returns once nothing uses the world any more. The world is still locked
// when the socket goes: whoever finds none finds the lock.
func (o *owner) close() {
	o.unbind()
	o.end(errEnding)
	o.socket.close()
	o.running.Wait()
}

func (o *owner) accept(ctx context.Context) {
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
func (o *owner) attendTo(ctx context.Context, conn net.Conn) {
	r := bufio.NewReader(conn)
	var asked request
	if err := conn.SetDeadline(time.Now().Add(o.patience)); err != nil {
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
	code := o.carryOut(l, &asked)
	_ = l.send(frame{frameExit, []byte{byte(code)}}) // the caller may have gone
	stop(nil)
	_ = conn.Close() // which ends hear
	heard.Wait()
}

// carryOut is run for what was typed elsewhere.
func (o *owner) carryOut(l *link, asked *request) (code int) {
	c := &cli{
		opts: o.opts, args: asked.Args, origin: asked.Origin, owned: o.lw, prompt: l.prompt,
		stdin: stdinOf{l}, stdout: bufio.NewWriter(stdoutOf{l}), stderr: stderrOf{l},
	}
	return c.execute(l.ctx)
}

// besideOwner refuses verbs that have no business with a world that is open.
func (c *cli) besideOwner(cmd *cobra.Command) error {
	if c.owned == nil {
		return nil
	}
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	switch cmd.Name() {
	case "init", "restore", "import":
		return errBesides
	}
	return nil
}
