package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/serve/notify"
	"github.com/worldkernel/worldkernel/world/local"
)

// Service is worlds that this process drives and serves: Open them, Serve them once, and
// Close them. It is not for concurrent use, but for what Keep does.
//
//	v := &api.Service{Config: api.Config{Tokens: tokens}, Options: options, Serving: told}
//	err := v.Open(ctx, "town", "desk")
//	err = v.Serve(ctx, listener)
//	err = errors.Join(err, v.Close(), v.Failed())
type Service struct {
	Config                // without its worlds
	Options local.Options // to open them with
	// Place says where a world that Open names lies, and with what it is opened; nil: names are directories.
	Place  func(name string) (dir string, opts local.Options, err error)
	Manual bool         // they stand still but for what is asked of them
	Events *slog.Logger // what becomes of the service; nil: nobody reads it

	// Serving is told where the worlds are, once they are.
	Serving func(url string) error
	// Notify tells people outside of what newly waits for them; nil: nobody does. Link
	// begins the addresses of the page that it names; empty: where the worlds are served.
	Notify *notify.Notifier
	Link   string

	// Attend lets other processes use a world meanwhile; nil: they cannot. end, which
	// is called before the world is closed, is the end of that.
	Attend func(context.Context, *local.World) (end func(), err error)
	// Hint says what to do about the error of a world that cannot go on; nil: nothing.
	Hint func(error) string

	TokenFile string           // read again when Again says so
	Again     <-chan os.Signal // nil: never

	// Keep brings worlds by Join and takes them away by Leave while they are served, until its
	// context ends. Nil: they are those of Open, and Serve ends when none of them can go on.
	Keep func(context.Context)

	mu      sync.Mutex // guards what follows
	worlds  []*Running
	serving *serving // nil: before and after Serve
}

// serving is what Join and Leave need of Serve.
type serving struct {
	ctx    context.Context // ends with the service
	server *Server
	url    string // where
}

// Running is a world of a Service.
type Running struct {
	Local *local.World
	ID    string
	Dir   string // as it was named

	end     func() // of Attend; nil: other processes cannot use the world meanwhile
	stop    context.CancelFunc
	ended   chan struct{}  // closed when it is not driven any more
	telling sync.WaitGroup // who tells of what waits in it
	failed  error          // why it could not go on; not read before it has ended
}

// Ended is closed when the world is not driven any more.
func (w *Running) Ended() <-chan struct{} { return w.ended }

// Failed returns why the world could not go on, once it has ended; nil: it could.
func (w *Running) Failed() error { return w.failed }

// OpenError says which world of a Service was not opened, and why.
type OpenError struct {
	Dir string // as it was named
	Err error
}

func (e *OpenError) Error() string { return fmt.Sprintf("%s: %v", e.Dir, e.Err) }

// Unwrap returns the reason.
func (e *OpenError) Unwrap() error { return e.Err }

// Open opens all worlds, or none: an *OpenError then. A world whose reducers are lacking
// is not served.
func (v *Service) Open(ctx context.Context, dirs ...string) error {
	if v.Events == nil {
		v.Events = slog.New(slog.DiscardHandler)
	}
	for _, dir := range dirs {
		w, err := v.openNamed(ctx, dir)
		if err != nil {
			return errors.Join(&OpenError{dir, err}, v.Close())
		}
		v.worlds = append(v.worlds, w)
	}
	return nil
}

// Join opens one more world, of a name, in a directory, and drives and serves it from now on. It may be
// called at the same time for other worlds.
func (v *Service) Join(ctx context.Context, name, dir string, opts local.Options) (*Running, error) {
	w, err := v.open(ctx, name, dir, opts)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.serving.server.Add(w.Local); err != nil {
		return nil, errors.Join(err, w.close())
	}
	v.worlds = append(v.worlds, w)
	v.drive(w)
	return w, nil
}

// Leave ends what is asked of a world, and gives it up.
func (v *Service) Leave(w *Running) error {
	v.mu.Lock()
	at := slices.Index(v.worlds, w)
	if at >= 0 {
		v.worlds = slices.Delete(v.worlds, at, at+1)
	}
	v.mu.Unlock()
	if at < 0 {
		return nil
	}
	v.serving.server.Remove(w.ID)
	w.stop()
	<-w.ended
	w.telling.Wait()
	defer v.serving.server.Forget(w.ID)
	return w.close()
}

func (v *Service) openNamed(ctx context.Context, name string) (*Running, error) {
	if v.Place == nil {
		return v.open(ctx, name, name, v.Options)
	}
	dir, opts, err := v.Place(name)
	if err != nil {
		return nil, err
	}
	return v.open(ctx, name, dir, opts)
}

func (v *Service) open(ctx context.Context, name, dir string, opts local.Options) (*Running, error) {
	at, err := filepath.Abs(dir) // others than this process are told
	if err != nil {
		return nil, err
	}
	opts.Withheld = func(world, kind string, why error) {
		v.Events.Warn("effects of a kind are not performed here, and wait: they are not trusted", "world", world, "kind", kind, "reason", why)
	}
	lw, err := local.Open(at, opts)
	if err == nil && lw.Lacks() != nil {
		err = errors.Join(lw.Lacks(), lw.Close())
	}
	if err != nil {
		return nil, err
	}
	w := &Running{Local: lw, ID: lw.Status().ID, Dir: name, ended: make(chan struct{})}
	v.warnOfNoApprovers(w)
	if v.Attend == nil {
		return w, nil
	}
	if w.end, err = v.Attend(ctx, lw); err != nil {
		v.Events.Warn("other processes cannot use this world meanwhile", "world", w.ID, "error", err)
	}
	return w, nil
}

// warnOfNoApprovers tells whose tokens are enough to put any rules of a world in force.
func (v *Service) warnOfNoApprovers(w *Running) {
	m, _ := w.Local.InForce()
	if m == nil || len(m.Governance.Approvers) > 0 || v.Tokens == nil {
		return
	}
	admins, approvers := v.Tokens.holders(ScopeAdmin, w.ID), v.Tokens.holders(ScopeApprove, w.ID)
	if len(admins) > 0 && len(approvers) > 0 {
		v.Events.Warn("nobody is named as an approver: who has the scopes admin and approve puts any rules in force", "world", w.ID,
			"admin", admins, "approve", approvers, "next", "name approvers under governance in world.yaml")
	}
}

// Quiet returns for how long nobody has asked anything of a world, or followed it.
func (v *Service) Quiet(w *Running) time.Duration {
	if h := v.serving.server.worlds.get(w.ID); h != nil {
		return h.quiet()
	}
	return 0
}

// Serves reports whether a world is open here, and answers whoever asks.
func (v *Service) Serves(id string) bool {
	h := v.serving.server.worlds.get(id)
	return h != nil && h.stopped.Load() == nil && !h.leaving.Load()
}

// close gives the world up.
func (w *Running) close() error {
	if w.end != nil {
		w.end()
	}
	return w.Local.Close()
}

// Worlds returns those that are open, in the order in which they were named or have come.
func (v *Service) Worlds() []*Running {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.worlds)
}

// Close gives all worlds up. Effects that are being performed get the time that
// their hosts give them, at once.
func (v *Service) Close() error {
	worlds := v.Worlds()
	errs := make([]error, len(worlds))
	var closing sync.WaitGroup
	for i, w := range worlds {
		closing.Go(func() { errs[i] = w.close() })
	}
	closing.Wait()
	return errors.Join(errs...)
}

// Failed returns why worlds could not go on; nil: none had to stop.
func (v *Service) Failed() error {
	var errs []error
	for _, w := range v.worlds {
		if w.failed != nil {
			errs = append(errs, fmt.Errorf("world %s: %w", w.ID, w.failed))
		}
	}
	return errors.Join(errs...)
}

// drive keeps a world running until the service or the world ends. One that cannot go on is not
// served any more.
func (v *Service) drive(w *Running) {
	ctx, stop := context.WithCancel(v.serving.ctx)
	w.stop = stop
	v.notify(ctx, w)
	go func() {
		defer close(w.ended)
		defer stop()
		if v.Manual {
			<-ctx.Done()
			return
		}
		if !w.Local.Keys().CanSign() {
			v.Events.Warn("the world has no receipt keys: it can be read but not run", "world", w.ID)
			<-ctx.Done()
			return
		}
		_, err := w.Local.Drive(ctx, local.Course{Stay: true, Last: true, Behind: func(by time.Duration) {
			v.Events.Warn("the wall clock is behind the world, which waits for it", "world", w.ID, "by", by)
		}})
		if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
			w.failed = err
		}
		if ctx.Err() == nil {
			v.tellStopped(w)
		}
	}()
}

func (v *Service) tellStopped(w *Running) {
	v.serving.server.Stop(w.ID, w.failed)
	hint := ""
	if v.Hint != nil {
		hint = v.Hint(w.failed)
	}
	v.Events.Error("the world has stopped", "world", w.ID, "dir", w.Dir, "error", w.failed, "hint", hint)
}

// idle returns what is closed when no world is driven any more; nil where others may come.
func (v *Service) idle() <-chan struct{} {
	if v.Keep != nil {
		return nil
	}
	ended := make(chan struct{})
	go func() {
		for _, w := range v.worlds {
			<-w.ended
		}
		close(ended)
	}()
	return ended
}
