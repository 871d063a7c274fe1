package worldctl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
)

// interrupts has the process end as its signals say. The first one ends what goes on in order: effects under
// way have their time. Others within a second are one with it: timeout and process runners send two at once.
// The next one ends the process, unless that leaves effects in doubt: these are named, and one more ends it.
// Nil hears nothing. It is safe for concurrent use.
type interrupts struct {
	now  func() time.Time
	wait func(time.Duration) <-chan time.Time
	end  context.CancelCauseFunc // in order
	kill func(os.Signal)         // at once
	say  func(text string)

	mu     sync.Mutex // guards what follows
	left   os.Signal  // that somebody else looks after
	heard  bool       // the first one
	warned bool       // of what will be in doubt
	opens  int        // worlds that are being opened
	last   time.Time  // when a signal came that was not one with another
	begun  uint64     // attempts
	flight map[uint64]receipt.Permit
	made   map[string]bool // temporary directories that are there
}

// together is for how long signals are one.
const together = time.Second

// errTerm is why a context has ended after SIGTERM.
var errTerm = fmt.Errorf("terminated: %w", context.Canceled)

func newInterrupts(end context.CancelCauseFunc) *interrupts {
	return &interrupts{
		now: time.Now, wait: time.After, end: end, kill: endBy, say: func(text string) { fmt.Fprintln(os.Stderr, text) },
		flight: map[uint64]receipt.Permit{}, made: map[string]bool{},
	}
}

// listen hears the signals of the process. A hangup that was to be ignored, as under nohup, is.
func (x *interrupts) listen() {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	came := make(chan os.Signal, len(all))
	signal.Notify(came, all...)
	go func() {
		for s := range came {
			x.hear(s)
		}
	}()
}

// The process is ended where it does not end by itself: opening a world soon, anything else when effects
// under way, and requests of a server, have had their time. What was told to anybody is durable.
const openPatience, endPatience = 2 * time.Second, 30 * time.Second

// locked does something with them under mu, if there are any.
func (x *interrupts) locked(do func()) {
	if x != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		do()
	}
}

// opening takes note of a world that is being opened.
func (x *interrupts) opening() (opened func()) {
	x.locked(func() { x.opens++ })
	return func() { x.locked(func() { x.opens-- }) }
}

// watch ends the process where a first signal does not. Effects under way are left to their hosts.
func (x *interrupts) watch(s os.Signal) {
	for spent := time.Second; ; spent += time.Second {
		<-x.wait(time.Second)
		x.mu.Lock()
		kill := len(x.flight) == 0 && (spent >= endPatience || spent >= openPatience && x.opens > 0)
		x.mu.Unlock()
		if kill {
			x.say("it did not end by itself, and is ended: what was done is durable")
			x.mu.Lock()
			defer x.mu.Unlock()
			x.killBy(s)
			return
		}
	}
}

// leave has a signal be somebody else's business.
func (x *interrupts) leave(s os.Signal) { x.locked(func() { x.left = s }) }

// tell has what there is to say go somewhere else than to stderr.
func (x *interrupts) tell(say func(text string)) { x.locked(func() { x.say = say }) }

// underWay takes note of an attempt; see host.Config.
func (x *interrupts) underWay(p receipt.Permit) (ended func()) {
	var n uint64
	x.locked(func() {
		x.begun++
		n = x.begun
		x.flight[n] = p
	})
	return func() { x.locked(func() { delete(x.flight, n) }) }
}

// hear does what a signal says. It waits for nobody who reads what it says.
func (x *interrupts) hear(s os.Signal) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.now()
	if s == x.left || x.heard && now.Sub(x.last) < together {
		return
	}
	x.last = now
	under := len(x.flight) > 0
	switch {
	case !x.heard:
		x.heard = true
		go x.watch(s)
		if s == syscall.SIGTERM {
			x.end(errTerm)
		} else {
			x.end(context.Canceled)
		}
		if under {
			go x.say(fmt.Sprintf("finishing %s; for %s, after which what still runs is in doubt", x.names(), host.DefaultGrace))
		}
	case under && !x.warned:
		x.warned = true
		go x.say(fmt.Sprintf("to end now leaves in doubt %s; one more Ctrl-C or signal does that", x.names()))
	default:
		x.killBy(s)
	}
}

// temporary makes a directory as os.MkdirTemp does, and returns what removes it. It goes, too, where the
// process is ended before that.
func (x *interrupts) temporary(pattern string) (dir string, remove func() error, err error) {
	if dir, err = os.MkdirTemp("", pattern); err != nil {
		return "", nil, err
	}
	x.locked(func() { x.made[dir] = true })
	return dir, func() error {
		x.keep(dir)
		return os.RemoveAll(dir)
	}, nil
}

// keep has a directory of temporary stay where the process is ended.
func (x *interrupts) keep(dir string) { x.locked(func() { delete(x.made, dir) }) }

// killBy ends the process at once, without its temporary directories. It is called with mu held.
func (x *interrupts) killBy(s os.Signal) {
	for dir := range x.made { // order cannot show
		_ = os.RemoveAll(dir) // what else could be done about it
	}
	x.kill(s)
}

// names names the effects under way, the oldest first. It is called with mu held.
func (x *interrupts) names() string {
	const most = 5
	var all []string
	for _, n := range slices.Sorted(maps.Keys(x.flight)) {
		p := x.flight[n]
		all = append(all, visible(p.Kind, "")+" "+view.Short(p.Key))
	}
	named := strings.Join(all[:min(most, len(all))], ", ")
	if more := len(all) - most; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return view.Number(uint64(len(all)), "effect") + " under way: " + named
}

// untilTerm works until ctx ends, and returns what that comes to: nothing after SIGTERM, by which servers
// are ended.
func untilTerm(ctx context.Context, work func() error) (ended, err error) {
	err = work()
	if errors.Is(context.Cause(ctx), errTerm) {
		return nil, err
	}
	return ctx.Err(), err
}
