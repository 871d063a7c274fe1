package worldctl

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/worldctl/owner"
)

// service is worlds that are run and served by this process.
type service struct {
	serving

	log     serviceLog
	adds    Options // of the program
	options local.Options
	out     func(serveAnswer) error // prints where the worlds are
	worlds  []*running
}

// running is a world of a service.
type running struct {
	lw     *local.World
	id     string
	dir    string       // as it was typed
	owner  *owner.Owner // nil: other processes cannot use the world meanwhile
	failed error        // why it could not go on; not read before its goroutine has ended
}

// open opens all worlds, or none. explain says more about one that was not opened.
func (v *service) open(ctx context.Context, dirs []string, explain func(dir string, err error) error) error {
	at, err := absolute(dirs)
	if err != nil {
		return err
	}
	for i, dir := range dirs {
		lw, err := local.Open(at[i], v.options)
		if err == nil && lw.Lacks() != nil {
			err = errors.Join(lw.Lacks(), lw.Close())
		}
		if err != nil {
			return errors.Join(explain(dir, fmt.Errorf("%s: %w", dir, err)), v.close())
		}
		w := &running{lw: lw, id: lw.Status().ID, dir: dir}
		v.worlds = append(v.worlds, w)
		if w.owner, err = attend(ctx, lw, v.adds); err != nil {
			v.log.Warn("other processes cannot use this world meanwhile", "world", w.id, "error", err)
		}
		if text := otherSource(lw); text != "" {
			v.log.Warn(text, "world", w.id)
		}
	}
	return nil
}

// close gives all worlds up. Effects that are being performed get the time that
// their hosts give them, at once.
func (v *service) close() error {
	errs := make([]error, len(v.worlds))
	var closing sync.WaitGroup
	for i, w := range v.worlds {
		closing.Go(func() {
			if w.owner != nil {
				w.owner.Close()
			}
			errs[i] = w.lw.Close()
		})
	}
	closing.Wait()
	return errors.Join(errs...)
}

// failed returns why worlds could not go on; nil: none had to stop.
func (v *service) failed() error {
	var errs []error
	for _, w := range v.worlds {
		if w.failed != nil {
			errs = append(errs, fmt.Errorf("world %s: %w", w.id, w.failed))
		}
	}
	return errors.Join(errs...)
}

// drive keeps all worlds running until ctx ends. stop is told the id of one that
// cannot go on. What drive returns is closed when none is run any more.
func (v *service) drive(ctx context.Context, stop func(id string)) (idle <-chan struct{}) {
	var driving sync.WaitGroup
	for _, w := range v.worlds {
		switch {
		case v.manual:
			driving.Go(func() { <-ctx.Done() })
			continue
		case !w.lw.Keys().CanSign():
			v.log.Warn("the world has no receipt keys: it can be read but not run", "world", w.id)
			driving.Go(func() { <-ctx.Done() })
			continue
		}
		driving.Go(func() {
			_, err := w.lw.Drive(ctx, local.Course{Stay: true})
			if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
				w.failed = err
			}
			if ctx.Err() != nil {
				return
			}
			stop(w.id)
			_, hint := judge(w.failed)
			v.log.Error("the world has stopped", "world", w.id, "dir", w.dir, "error", w.failed, "hint", hint)
		})
	}
	ended := make(chan struct{})
	go func() {
		driving.Wait()
		close(ended)
	}()
	return ended
}
