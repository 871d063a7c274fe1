package worldctl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/serve/owner"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// errBesides says that a verb has no business with a world that is open.
var errBesides = errors.New("this cannot be done beside the process that owns the world")

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
	lw, err := c.opened(at, c.in(dir, c.options()), local.Open)
	if err != nil {
		return notOpened(dir, err)
	}
	end, err := attend(ctx, lw, c.opts)
	if err != nil {
		c.note("note: other processes cannot use this world meanwhile: %s", err)
	}
	err = use(lw)
	if end != nil {
		end()
	}
	if closed := lw.Close(); err == nil {
		err = closed
	}
	return c.leaving(lw, err)
}

// leaving says which effects had not ended when the world was given up. That is an error
// where nothing else was, and a person has to decide.
func (c *cli) leaving(lw *local.World, err error) error {
	left := lw.Left()
	if len(left) == 0 {
		return err
	}
	oldest := visible(left[0].Kind+" of "+left[0].Cell, "")
	c.note("still under way when the time to end was over: %s, as %s; the next command finds them in doubt",
		view.Number(uint64(len(left)), "effect"), oldest)
	undecided := 0
	lw.View(func(m *world.Moment) {
		for i := range left {
			switch m.Manifest().Effects[left[i].Kind].OnInDoubt {
			case manifest.InDoubtRetry, manifest.InDoubtVerify, manifest.InDoubtFail:
			default:
				undecided++
			}
		}
	})
	if err == nil && undecided > 0 {
		err = fmt.Errorf("%w: %d of them", errUndecided, undecided)
	}
	return err
}

// attend carries out the command lines of other processes on a world that is open
// here, as run does what is typed here, until end is called.
func attend(ctx context.Context, lw *local.World, opts Options) (end func(), err error) {
	o, err := owner.Attend(ctx, lw.Dir(), func(ctx context.Context, args []string, from owner.Origin, s owner.Streams) int {
		c := &cli{
			opts: opts, args: args, origin: from, owned: lw,
			stdin: s.Stdin, stdout: bufio.NewWriter(s.Stdout), stderr: s.Stderr,
		}
		c.prompt = func(text string) ([]byte, error) {
			typed, err := s.Prompt(text)
			if errors.Is(err, owner.ErrNobody) {
				err = errNoPassphrase
			}
			return typed, err
		}
		return c.execute(ctx)
	})
	if err != nil {
		return nil, err
	}
	return o.Close, nil
}

// ownedError says that a world cannot be opened because another process owns it,
// which can carry out the command.
type ownedError struct {
	dir string
	err error
}

func (e *ownedError) Error() string { return e.err.Error() }
func (e *ownedError) Unwrap() error { return e.err }

// askOwner has the owner of a world carry out this command line, and returns its
// exit code. answered is false where nobody does, so that the world is locked and
// no more.
func (c *cli) askOwner(ctx context.Context, dir string) (code int, answered bool, err error) {
	from := c.origin
	from.Stored = c.placed != nil
	if from.Dir, err = os.Getwd(); err != nil {
		return 0, false, err
	}
	from.Login = c.actorOf("")
	if text, set := os.LookupEnv(passphraseEnv); set {
		from.Passphrase = &text
	}
	return owner.Ask(ctx, dir, c.args, from, owner.Streams{
		Stdin: c.stdin, Stdout: flushed{c.rawOut}, Stderr: c.rawErr, // it has spelled out what it answers
		Prompt: func(text string) ([]byte, error) {
			return c.onTerminal(func(prompt prompter) ([]byte, error) { return prompt(text) })
		},
	})
}

// askFor has the owner of a world carry out another verb than the one that was typed, with
// a path, and prints no more of it than what is wrong.
func (c *cli) askFor(ctx context.Context, dir, verb, path string) (code int, answered bool, err error) {
	at, err := filepath.Abs(dir) // it is in another directory
	if err != nil {
		return 0, false, err
	}
	asks := *c
	asks.args, asks.rawOut = []string{"-w", at, verb, path, "-q"}, bufio.NewWriter(io.Discard)
	return asks.askOwner(ctx, dir)
}

// flushed prints at once.
type flushed struct{ *bufio.Writer }

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	return n, errors.Join(err, f.Flush())
}

// besideOwner refuses verbs that have no business with a world that is open.
func (c *cli) besideOwner(cmd *cobra.Command) error {
	if c.owned == nil {
		return nil
	}
	switch verbOf(cmd) {
	case "init", "restore", "import", "dev":
		return errBesides
	}
	return nil
}

// verbOf returns the first word of a command after the program's name.
func verbOf(cmd *cobra.Command) string {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return cmd.Name()
}

// ofRecords reports whether a command answers from the records, all of them, or says
// itself of when its answer is.
func ofRecords(cmd *cobra.Command) bool {
	if at := cmd.Flags().Lookup("at"); at != nil && at.Changed {
		return true
	}
	switch verbOf(cmd) {
	case "status", "tail", "audit", "timeline", "why", "graph", "export", "backup", "verify", "replay":
		return true
	}
	return false
}

// A world that another process has, which carries out no commands of others, is waited for: most verbs
// have one for a moment, and who runs one listens soon after it has opened it.
const lockPatience, lockPause = time.Second, 20 * time.Millisecond

// opened opens a world in a directory. A signal ends what is lived again until it is open, and all that
// is lived again of a world that the verb only reads; it ends the process where anything else takes long.
func (c *cli) opened(dir string, opts local.Options, open func(string, local.Options) (*local.World, error)) (lw *local.World, err error) {
	opened, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(c.life, end)
	if opts.Life = opened; !c.reads {
		defer stop()
	}
	err = c.unlocked(func() error {
		lw, err = open(dir, opts)
		return err
	}, func() bool { return owner.Listens(dir) })
	return lw, err
}

// unlocked tries to open something until it is not locked any more, for a moment, unless somebody listens
// there.
func (c *cli) unlocked(try func() error, listens func() bool) error {
	defer c.opts.interrupts.opening()()
	for waited := time.Duration(0); ; waited += lockPause {
		err := try()
		if !errors.As(err, new(*store.LockedError)) || waited >= lockPatience || listens() {
			return err
		}
		<-time.After(lockPause)
	}
}
