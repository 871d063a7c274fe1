package twice

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// life is one world and its forks, whatever is done to them, and the bank.
type life struct {
	rng    *rand.Rand
	rare   *rand.Rand // decides about what was added later, so that other lives stay what they were
	total  map[string]int
	struck *fault.Struck
	story  []scene
	began  time.Time

	*process
	home     *home
	bank     *bank
	said     *said
	history  *history
	sound    judge
	orders   []order // that were sent, oldest first
	forks    int
	returned bool // to a part that a rollback had left
	cancels  bool // its cells cancel: what they have to tell apart is up to the machine
}

// live lives the life of a seed, in a synctest bubble. The error says what was
// done twice, or what else is wrong.
func live(seed uint64, dir string, total map[string]int, struck *fault.Struck) (*life, error) {
	l := &life{
		rng: rand.New(rand.NewPCG(seed, 12)), rare: rand.New(rand.NewPCG(seed, 13)), total: total, struck: struck, began: time.Now(),
		bank: newBank(seed, struck), said: newSaid(), history: newHistory(), sound: newJudge(),
		home: newHome("world", dir, new(worldtest.Journal)), cancels: seed%4 == 3,
	}
	m := rules(l.rng)
	l.declared(&m)
	if faults := m.Validate(); len(faults) > 0 {
		return l, fmt.Errorf("the manifest: %v", faults)
	}
	p := new(process)
	var err error
	p.World, err = world.Create(l.config(p), world.Genesis{ID: l.home.id, Seed: 1, Manifest: &m})
	if err != nil {
		return l, err
	}
	l.process = p
	defer func() { _ = l.home.kill(l.process) }() // nothing of it outlives the bubble
	if err := l.disturb(); err != nil {
		return l, err
	}
	return l, l.end()
}

func (l *life) config(p *process) world.Config {
	return l.home.config(p, l.bank, 1+l.rng.IntN(3), time.Duration(1+l.rng.IntN(9))*time.Second)
}

// scene is a line of the story.
type scene struct {
	at   time.Time
	text string
}

func (l *life) tell(format string, args ...any) { l.tellAt(time.Now(), format, args...) }

func (l *life) tellAt(at time.Time, format string, args ...any) {
	l.story = append(l.story, scene{at, fmt.Sprintf(format, args...)})
}

// tale is the story so far, in the order of time.
func (l *life) tale() string {
	slices.SortStableFunc(l.story, func(a, b scene) int { return a.at.Compare(b.at) })
	var b strings.Builder
	for _, s := range l.story {
		fmt.Fprintf(&b, "%8.2fs  %s\n", s.at.Sub(l.began).Seconds(), s.text)
	}
	return b.String()
}

func (l *life) count(what string) { l.total[what]++ }

// declared begins the story with what the manifest says.
func (l *life) declared(m *manifest.Manifest) {
	for _, kind := range append(slices.Clone(kinds), refundKind) {
		e := m.Effects[kind]
		text := fmt.Sprintf("%s: on_repeat %s, on_in_doubt %s, attempts %d", kind, e.OnRepeat, e.OnInDoubt, e.Retry.Attempts)
		if e.Idempotent {
			text += ", idempotent"
		}
		if e.Compensate != nil {
			text += ", compensate"
		}
		l.tell("%s", text)
	}
}

// disturb does things at random.
func (l *life) disturb() error {
	for range 15 + l.rng.IntN(45) {
		if err := l.attempt(l.action()); err != nil {
			return err
		}
	}
	return nil
}

// action is one thing that is done to a world. Its error is the world's.
type action func(ctx context.Context) error

func (l *life) action() action {
	if l.rare.IntN(120) == 0 {
		return l.sleep
	}
	if l.cancels && l.rare.IntN(8) == 0 && len(l.orders) > 0 {
		return l.withdraw
	}
	n := l.rng.IntN(40)
	for _, chance := range []struct {
		below int
		do    action
	}{
		{7, l.pay},
		{9, l.remark},
		{12, l.step},
		{21, l.drive},
		{24, l.snapshot},
		{29, l.rollback},
		{31, l.again},
		{36, l.decide},
		{38, l.crash},
		{39, l.restart},
	} {
		if n < chance.below {
			return chance.do
		}
	}
	return l.fork
}

// attempt does an action, waits until all that goes on beside it has come to rest,
// and judges. A journal that failed is the end of the process.
func (l *life) attempt(do action) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*timeout)
	defer cancel()
	input, refused := new(world.InputError), new(world.SideEffectsError)
	err := do(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		l.struck.Count("call interrupted")
		err = nil
	case err == nil, errors.As(err, &input), errors.As(err, &refused):
		err = nil
	case errors.Is(err, worldtest.ErrInjected):
		err = l.crash(ctx)
	}
	if err != nil {
		return err
	}
	synctest.Wait()
	return l.sound.look(l)
}

func (l *life) pay(ctx context.Context) error {
	o := order{To: pick(l.rng, clients...), Kind: pick(l.rng, kinds...), What: pick(l.rng, wares...)}
	if l.cancels && l.rare.IntN(4) == 0 {
		o.Within = 1 + manifest.Tick(l.rare.IntN(8))
	}
	return l.send(ctx, o)
}

// withdraw takes back one of the last orders, whatever became of it.
func (l *life) withdraw(ctx context.Context) error {
	o := l.orders[max(0, len(l.orders)-1-l.rare.IntN(3))]
	l.tell("withdraw %s of %s", o.tag(), o.To)
	_, err := l.Submit(ctx, world.Submission{Name: "withdraw", Data: encoded(o)})
	return err
}

func (l *life) send(ctx context.Context, o order) error {
	l.tell("pay %s for %s, within %d", o.tag(), o.To, o.Within)
	l.orders = append(l.orders, o)
	_, err := l.Submit(ctx, world.Submission{Name: "pay", Data: encoded(o)})
	return err
}

// remark changes a client's history: what it asks for next has another key.
func (l *life) remark(ctx context.Context) error {
	to := pick(l.rng, clients...)
	l.tell("remark to %s", to)
	_, err := l.Submit(ctx, world.Submission{Name: "remark", Data: encoded(order{To: to})})
	return err
}

// again sends some of the last orders once more, in any order.
func (l *life) again(ctx context.Context) error {
	if l.rng.IntN(2) == 0 {
		if err := l.remark(ctx); err != nil {
			return err
		}
	}
	last := slices.Clone(l.orders[max(0, len(l.orders)-4):])
	l.rng.Shuffle(len(last), func(i, j int) { last[i], last[j] = last[j], last[i] })
	for _, o := range last {
		if err := l.send(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) step(ctx context.Context) error {
	l.tell("step")
	ctx, cancel := context.WithTimeout(ctx, span(l.rng, timeout))
	defer cancel()
	return l.Step(ctx)
}

// drive goes on for some time, or until nothing more can happen.
func (l *life) drive(ctx context.Context) error {
	wait := span(l.rng, pick(l.rng, time.Second, timeout, 2*timeout))
	l.tell("run for %s", wait.Round(10*time.Millisecond))
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := l.Run(ctx)
	if err == nil && l.rng.IntN(2) == 0 {
		<-ctx.Done() // the bank goes on where the world is idle
	}
	return err
}

// crash kills the process at a moment at which nothing is about to happen at
// once, and begins the next.
func (l *life) crash(context.Context) error {
	l.struck.Count("process killed")
	l.tell("kill")
	if err := l.home.kill(l.process); err != nil {
		return err
	}
	if l.rare.IntN(8) == 0 {
		l.struck.Count("effect store torn")
		if err := l.home.tear(l.rare); err != nil {
			return err
		}
	}
	return l.open()
}

// restart ends the process gracefully and begins the next.
func (l *life) restart(context.Context) error {
	l.struck.Count("process stopped")
	l.tell("stop")
	if err := l.home.stop(l.process); err != nil {
		return err
	}
	return l.open()
}

// sleep lets a day pass in which nobody drives the world: the machine slept.
func (l *life) sleep(context.Context) error {
	l.struck.Count("machine asleep")
	l.tell("a day passes")
	<-time.After(24 * time.Hour)
	return nil
}

// underWay reports whether attempts are in flight, or may be.
func (l *life) underWay() bool {
	s := l.Status().Intents
	return s[receipt.StateInFlight]+s[receipt.StateInDoubt] > 0
}

func (l *life) open() error {
	p := new(process)
	var err error
	if p.World, err = world.Open(l.config(p)); err == nil {
		l.process = p
	}
	return err
}

// entry returns what the ledger knows of an intent.
func (l *life) entry(key receipt.Key) receipt.Entry {
	e, _ := l.Intent(key)
	return e
}
