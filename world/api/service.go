package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/notify"
)

// Service is worlds that this process drives and serves: Open them, Serve them once, and
// Close them. It is not for concurrent use.
//
//	v := &api.Service{Config: api.Config{Tokens: tokens}, Options: options, Serving: told}
//	err := v.Open(ctx, "town", "desk")
//	err = v.Serve(ctx, listener)
//	err = errors.Join(err, v.Close(), v.Failed())
type Service struct {
	Config                // without its worlds
	Options local.Options // to open them with
	// Place says where a world of a name lies, and with what it is opened; nil: names are directories.
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

	worlds []*Running
}

// Running is a world of a Service.
type Running struct {
	Local *local.World
	ID    string
	Dir   string // as it was named

	end    func() // of Attend; nil: other processes cannot use the world meanwhile
	failed error  // why it could not go on; not read before its goroutine has ended
}

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
		if err := v.open(ctx, dir); err != nil {
			return errors.Join(&OpenError{dir, err}, v.Close())
		}
	}
	return nil
}

func (v *Service) open(ctx context.Context, dir string) error {
	at, opts, err := dir, v.Options, error(nil)
	if v.Place != nil {
		at, opts, err = v.Place(dir)
	}
	if err == nil {
		at, err = filepath.Abs(at) // others than this process are told
	}
	if err != nil {
		return err
	}
	lw, err := local.Open(at, opts)
	if err == nil && lw.Lacks() != nil {
		err = errors.Join(lw.Lacks(), lw.Close())
	}
	if err != nil {
		return err
	}
	w := &Running{Local: lw, ID: lw.Status().ID, Dir: dir}
	v.worlds = append(v.worlds, w)
	if v.Attend == nil {
		return nil
	}
	if w.end, err = v.Attend(ctx, lw); err != nil {
		v.Events.Warn("other processes cannot use this world meanwhile", "world", w.ID, "error", err)
	}
	return nil
}

// Worlds returns those that are open, in the order in which they were named.
func (v *Service) Worlds() []*Running { return v.worlds }

// Close gives all worlds up. Effects that are being performed get the time that
// their hosts give them, at once.
func (v *Service) Close() error {
	errs := make([]error, len(v.worlds))
	var closing sync.WaitGroup
	for i, w := range v.worlds {
		closing.Go(func() {
			if w.end != nil {
				w.end()
			}
			errs[i] = w.Local.Close()
		})
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

// drive keeps all worlds running until ctx ends. stop is told the id of one that
// cannot go on. What drive returns is closed when none is run any more.
func (v *Service) drive(ctx context.Context, stop func(id string)) (idle <-chan struct{}) {
	var driving sync.WaitGroup
	for _, w := range v.worlds {
		switch {
		case v.Manual:
			driving.Go(func() { <-ctx.Done() })
			continue
		case !w.Local.Keys().CanSign():
			v.Events.Warn("the world has no receipt keys: it can be read but not run", "world", w.ID)
			driving.Go(func() { <-ctx.Done() })
			continue
		}
		driving.Go(func() {
			_, err := w.Local.Drive(ctx, local.Course{Stay: true, Behind: func(by time.Duration) {
				v.Events.Warn("the wall clock is behind the world, which waits for it", "world", w.ID, "by", by)
			}})
			if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
				w.failed = err
			}
			if ctx.Err() != nil {
				return
			}
			stop(w.ID)
			hint := ""
			if v.Hint != nil {
				hint = v.Hint(w.failed)
			}
			v.Events.Error("the world has stopped", "world", w.ID, "dir", w.Dir, "error", w.failed, "hint", hint)
		})
	}
	ended := make(chan struct{})
	go func() {
		driving.Wait()
		close(ended)
	}()
	return ended
}
