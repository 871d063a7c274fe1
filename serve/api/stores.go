package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/worldkernel/worldkernel/journal"
)

// Stores knows the worlds of a store, or of several, which other processes serve, too.
type Stores interface {
	// Owner returns where the process is that serves a world, and has this one serve it where no
	// process does: "" then. The error is ErrNoWorld, or a *NotNowError.
	Owner(ctx context.Context, id string) (url string, err error)
	// Worlds returns at most so many worlds of the store after an id, by their ids, and how many stores
	// have not answered, whose worlds are lacking. Only names those that it is about; nil: all.
	Worlds(ctx context.Context, after string, only []string, most int) (page []Stored, away int, err error)
}

// Stored is what a store says of a world.
type Stored struct {
	ID    string
	Head  journal.Head
	Owner string // the node that has it; "": none
	Due   string // when it goes on by itself, that nobody owns: a time, or now; "": when it is asked for
	Owed  int    // attempts of effects that have begun and not ended
}

// ErrNoWorld says that there is no world of an id, here or elsewhere.
var ErrNoWorld = errors.New("api: there is no such world")

// NotNowError says why nobody answers for a world for now.
type NotNowError struct {
	Why string // for whoever asked; it betrays no secret
	Err error  // for the log; may be nil

	Rests bool // the world cannot go on: who waits for a moment has it no sooner
}

func (e *NotNowError) Error() string {
	if e.Err == nil {
		return "api: " + e.Why
	}
	return "api: " + e.Why + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *NotNowError) Unwrap() error { return e.Err }

// movingPause is how long a call waits before it looks again who serves a world.
const movingPause = 50 * time.Millisecond

// find has the call be about the world that its path names, which stays until exit, or has the
// process answer that serves it: there is no world then, and nothing more to do.
func (c *call) find() error {
	id := c.PathValue("id")
	if c.token != nil && !c.token.sees(id) {
		return errNoWorld()
	}
	err := c.enterWorld(id)
	switch {
	case err == nil || c.server.cfg.Stores == nil:
		return err
	case c.Header.Get(passedHeader) != "":
		f := errMoving() // another process is its owner by now, and is found by who passed it on
		f.header.Set(movingHeader, "1")
		return f
	case c.isSession():
		return errOtherSession()
	}
	return c.findInStores(id)
}

// enterWorld has the call be about a world that is served here. What a worker holds is its host's
// business alone, which says itself when it is closed: no world waits for such a call.
func (c *call) enterWorld(id string) error {
	h := c.server.worlds.get(id)
	switch {
	case h == nil:
		return errNoWorld()
	case h.stopped.Load() != nil:
		return h.stopped.Load()
	case h.enter():
		c.exit = h.exit
	case !c.route.held:
		return errMoving()
	}
	c.world = h
	return nil
}

func errNoWorld() error { return notFound("there is no such world") }

// findInStores is find for a world that is not served here when it is asked for. While it moves,
// the call waits for a while, and for longer than a process is missed before it is taken to be gone.
func (c *call) findInStores(id string) error {
	waiting, cancel := context.WithTimeout(c.Context(), c.server.cfg.Limits.Moving)
	defer cancel()
	var rests *NotNowError
	for {
		url, err := c.server.cfg.Stores.Owner(waiting, id)
		switch {
		case errors.Is(err, ErrNoWorld):
			return errNoWorld()
		case errors.As(err, &rests) && rests.Rests:
			return notNow(err)
		case err != nil:
			err = notNow(err)
		case url == "":
			if err = c.enterWorld(id); err == nil {
				return nil
			}
		default:
			again, failed := c.pass(id, url)
			if !again {
				return failed
			}
			err = failed
		}
		pause := time.NewTimer(movingPause)
		select {
		case <-pause.C:
		case <-c.server.life.Done():
			return errMoving()
		case <-waiting.Done():
			pause.Stop()
			return err
		}
	}
}

// notNow is the failure of a call about a world that nobody answers for.
func notNow(err error) error {
	var known *NotNowError
	switch {
	case errors.As(err, &known) && known.Rests:
		return busy("ended", known.Why)
	case errors.As(err, &known):
		return busy("moving", known.Why)
	case errors.Is(err, context.DeadlineExceeded):
		return errMoving()
	}
	return err
}

// isSession reports whether the caller shows a token that is good in this process only.
func (c *call) isSession() bool {
	return c.token != nil && c.server.tokens.Load().with(c.token.hash) == nil
}

// errOtherSession says that a session ends where its process does.
func errOtherSession() error {
	return failed(http.StatusConflict, "elsewhere", "another process serves the world, and a session is good in one process only: use worldctl serve --ui with a token file that all processes have")
}
