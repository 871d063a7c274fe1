package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// actor is who decides in a scenario.
const actor = "scenario"

// Play plays a scenario in a world that is made of what was loaded, and returns what is
// not as expected, nothing where all is. Effects that the scenario does not answer are
// performed by the adapters recorded and stub of the manifest, and by no other. The same
// scenario comes to the same each time. The error says that it could not be played.
func Play(ctx context.Context, loaded *source.Loaded, s *Scenario, opts local.Options) (faults []string, err error) {
	dir, remove, err := opts.MakeTemporary("worldkernel-test-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	opts.Life = ctx
	loaded = simulated(loaded)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	out := &outside{
		clock: loaded.Manifest.Clock, steps: cmp.Or(s.Steps, DefaultSteps), end: end, next: notYet,
		left: s.Answers, used: make([]uint64, len(s.Answers)), given: make(map[string]*given),
	}
	if faults := s.unknown(loaded.Manifest); faults != nil {
		return faults, nil
	}
	opts.Scratch, opts.Instead = true, make(map[string]host.Adapter)
	for kind, effect := range loaded.Manifest.Effects {
		answered := slices.ContainsFunc(s.Answers, func(a Answer) bool { return a.Effect == kind })
		if answered || effect.Adapter != "stub" && effect.Adapter != "recorded" {
			opts.Instead[kind] = out
		}
	}
	out.kinds = opts.Instead
	if err := local.CreateOf(loaded, dir, local.CreateOptions{ID: "test"}, opts); err != nil {
		return nil, err
	}
	lw, err := local.Open(dir, opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lw.Close()) }()
	p := &play{lw: lw, s: s, out: out}
	err = p.playScenario(ctx)
	var missed *host.MissError
	switch {
	case errors.Is(context.Cause(ctx), errSteps):
		return []string{p.endless(fmt.Sprintf("%d steps; steps of the scenario", cmp.Or(s.Steps, DefaultSteps)))}, nil
	case errors.Is(err, errTicks):
		return []string{p.endless(fmt.Sprintf("%d ticks; ticks of the scenario", p.most()))}, nil
	case errors.As(err, &missed):
		return []string{missed.Error()}, nil
	case err != nil:
		return nil, err
	}
	if err := p.compare(); err != nil {
		return nil, err
	}
	return append(p.faults, out.unused()...), nil
}

// simulated returns the world with a simulated clock, whose attempts follow each other at
// once: a scenario waits for nothing.
func simulated(loaded *source.Loaded) *source.Loaded {
	m := *loaded.Manifest // which other scenarios are played with
	m.Clock.Mode = ""
	m.Effects = maps.Clone(m.Effects)
	for kind, e := range m.Effects {
		e.Retry.Backoff = 1
		if e.OnInDoubt == manifest.InDoubtVerify { // there is nobody to ask
			e.OnInDoubt = manifest.InDoubtAsk
		}
		m.Effects[kind] = e
	}
	return &source.Loaded{Manifest: &m, Contents: loaded.Contents}
}

// unknown returns the names of effects, events and cells that the world cannot have: who
// expects nothing of a cell whose name is misspelt is not to believe that it is so.
func (s *Scenario) unknown(m *manifest.Manifest) (faults []string) {
	effect := func(kind string) {
		if _, ok := m.Effects[kind]; !ok && kind != "" {
			faults = append(faults, fmt.Sprintf("the manifest declares no effect %q%s", kind, manifest.Instead(kind, slices.Sorted(maps.Keys(m.Effects)))))
		}
	}
	cell := func(name string) {
		if name == "" {
			return
		}
		c, err := reducer.ParseCell(name)
		if _, ok := m.Reducers[c.Reducer]; err == nil && !ok {
			err = fmt.Errorf("cell %s: the manifest declares no reducer %q%s", name, c.Reducer, manifest.Instead(c.Reducer, slices.Sorted(maps.Keys(m.Reducers))))
		}
		if err != nil {
			faults = append(faults, err.Error())
		}
	}
	for _, g := range s.Given {
		effect(g.Approve)
		effect(g.Deny)
	}
	for _, a := range s.Answers {
		effect(a.Effect)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Expect.Cells)) {
		cell(name)
	}
	for _, e := range s.Expect.Events {
		if _, ok := m.Events[e.Event]; !ok {
			faults = append(faults, fmt.Sprintf("the manifest declares no event %q%s", e.Event, manifest.Instead(e.Event, slices.Sorted(maps.Keys(m.Events)))))
		}
		cell(e.To)
	}
	for _, x := range slices.Concat(s.Expect.Intents, s.Expect.Denials) {
		effect(x.Effect)
		cell(x.Cell)
	}
	return faults
}

// play is one scenario while it is played.
type play struct {
	lw     *local.World
	s      *Scenario
	out    *outside
	faults []string
	ticks  uint64 // that were run
}

func (p *play) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// playScenario gives the world what the scenario gives, and runs it until it is idle.
func (p *play) playScenario(ctx context.Context) error {
	err := p.lw.Update(func(w *world.World) error {
		w.TellBy(p.out.tell)
		return nil
	})
	if err != nil {
		return err
	}
	for i, g := range p.s.Given {
		var err error
		switch {
		case g.Event != "":
			err = p.send(ctx, &g)
		case g.Run != Span{}:
			err = p.run(ctx, g.Run.in(p.out.clock))
		default:
			err = p.decide(ctx, &g)
		}
		if refused, ok := errors.AsType[*world.InputError](err); ok {
			p.fault("given, item %d: %v", i+1, refused)
		} else if err != nil {
			return err
		}
	}
	return p.rest(ctx)
}

func (p *play) send(ctx context.Context, g *Given) error {
	data, err := canon.Marshal(g.Data)
	if err != nil {
		return &world.InputError{Err: world.ErrBadData, Field: "data", Rule: err.Error()}
	}
	s := world.Submission{Name: g.Event, Data: data, When: g.At.when}
	if after := g.In.in(p.out.clock); after > 0 {
		p.lw.View(func(m *world.Moment) { s.At = m.Time() + after })
	}
	if g.To != "" {
		cell, err := reducer.ParseCell(g.To)
		if err != nil {
			return &world.InputError{Err: world.ErrNoRoute, Field: "to", Rule: err.Error()}
		}
		s.To = &cell
	}
	_, err = p.lw.SubmitEvent(ctx, s)
	return err
}

// decide decides about the oldest intent of a kind that waits for a person.
func (p *play) decide(ctx context.Context, g *Given) error {
	if err := p.rest(ctx); err != nil {
		return err
	}
	kind, how := g.Approve, journal.Approve
	if g.Deny != "" {
		kind, how = g.Deny, journal.Disapprove
	}
	var found *receipt.Entry
	p.lw.View(func(m *world.Moment) {
		for _, e := range m.Intents() {
			if e.State.AwaitsPerson() && e.Intent.Kind == kind && (found == nil || e.Emitted < found.Emitted) {
				found = &e
			}
		}
	})
	if found == nil {
		return &world.InputError{Err: world.ErrNoIntent, Field: kind, Rule: "none waits for a person"}
	}
	return p.lw.Decide(ctx, &journal.Resolved{Key: found.Intent.Key, How: how, Params: found.Params, Actor: actor}, found)
}

// seen is what the records of a play say.
type seen struct {
	events  []*journal.Emitted
	intents []asked
	fails   []string
}

// asked is an intent, and why it was denied, if it was.
type asked struct {
	cell, kind, code string
	reason           string // of a denial
	key              receipt.Key
	params           canon.Raw
	denied           bool
}

func (p *play) seenNow() (*seen, error) {
	x := new(seen)
	at := make(map[receipt.Key]int)
	add := func(a asked) {
		if i, ok := at[a.key]; ok { // awaited approval before
			x.intents[i].denied, x.intents[i].code, x.intents[i].reason = a.denied, a.code, a.reason
			return
		}
		at[a.key] = len(x.intents)
		x.intents = append(x.intents, a)
	}
	for s, err := range p.lw.Scan(0) {
		if err = errors.Join(err, s.Err); err != nil {
			return nil, err
		}
		body, err := s.Record.LoadBody(p.lw)
		if err != nil {
			return nil, err
		}
		switch b := body.(type) {
		case *journal.Emitted:
			x.events = append(x.events, b)
		case *journal.Failed:
			x.fails = append(x.fails, b.Cell+": "+b.Error)
		case *journal.IntentEmitted:
			add(asked{cell: b.Cell, kind: b.Kind, key: b.Key, params: b.Params})
		case *journal.IntentAwaitingApproval:
			add(asked{cell: b.Cell, kind: b.Kind, key: b.Key, params: b.Params})
		case *journal.IntentDenied:
			add(asked{cell: b.Cell, kind: b.Kind, key: b.Key, params: b.Params, denied: true, code: b.Code, reason: b.Reason})
		}
	}
	return x, nil
}

// compare compares what came of it with what is expected.
func (p *play) compare() error {
	x, err := p.seenNow()
	if err != nil {
		return err
	}
	given := len(p.faults)
	if err := p.cells(); err != nil {
		return err
	}
	states, err := p.states()
	if err != nil {
		return err
	}
	want := p.s.Expect
	err = inOrder(p, "event", want.Events, x.events, func(e Event) string { return e.Event }, func(e Event, have *journal.Emitted) (string, error) {
		switch {
		case e.Event != have.Name:
			return otherKind, nil
		case e.To != "" && len(have.To) == 0:
			return "it reaches no cell", nil
		case e.To != "" && !slices.Contains(have.To, e.To):
			return fmt.Sprintf("it reaches %s, not %s", strings.Join(have.To, ", "), e.To), nil
		}
		return fits(e.Data, have.Data)
	})
	intent := func(i Intent, have asked) (string, error) {
		switch {
		case i.Effect != have.kind:
			return otherKind, nil
		case i.Cell != "" && i.Cell != have.cell:
			return fmt.Sprintf("%s asks for it, not %s", have.cell, i.Cell), nil
		case i.State != "" && i.State != states[have.key]:
			return fmt.Sprintf("it is %s, not %s", states[have.key], i.State), nil
		case i.Code != "" && i.Code != have.code:
			return fmt.Sprintf("its code is %q, not %q", have.code, i.Code), nil
		}
		return fits(i.Params, have.params)
	}
	kind := func(i Intent) string { return i.Effect }
	err = errors.Join(err, inOrder(p, "intent", want.Intents, x.intents, kind, intent))
	denied := slices.DeleteFunc(slices.Clone(x.intents), func(a asked) bool { return !a.denied })
	err = errors.Join(err, inOrder(p, "denial", want.Denials, denied, kind, intent))
	p.faults = slices.Insert(p.faults, given, p.causes(x, denied)...)
	return errors.Join(err, inOrder(p, "failed step", want.Fails, x.fails, func(s string) string { return s }, func(want, have string) (string, error) {
		if !strings.Contains(have, want) {
			return have, nil
		}
		return "", nil
	}))
}

// causes returns what often is why the rest is not as expected, and so comes before it: steps
// that failed, and denials.
func (p *play) causes(x *seen, denied []asked) (out []string) {
	if len(p.s.Expect.Fails) == 0 {
		for _, text := range x.fails {
			out = append(out, "a step failed: "+text)
		}
	}
	if len(p.s.Expect.Denials) == 0 && len(p.faults) > 0 {
		for _, a := range denied {
			out = append(out, fmt.Sprintf("%s of %s was denied: %s: %s", a.kind, a.cell, a.code, a.reason))
		}
	}
	return out
}

// states returns where intents stand, as intent list says it.
func (p *play) states() (map[receipt.Key]string, error) {
	j := view.Journal{Local: p.lw}
	states := make(map[receipt.Key]string)
	for _, e := range j.Ledger() {
		state, err := j.StateOf(&e)
		if err != nil {
			return nil, err
		}
		states[e.Intent.Key] = string(state)
	}
	return states, nil
}

// cells compares states.
func (p *play) cells() error {
	for _, name := range slices.Sorted(maps.Keys(p.s.Expect.Cells)) {
		id, err := reducer.ParseCell(name)
		if err != nil {
			p.fault("cell %s: %v", name, err)
			continue
		}
		var state journal.Data
		p.lw.View(func(m *world.Moment) {
			if c, ok := m.Cell(id); ok {
				state = c.State
			}
		})
		want := p.s.Expect.Cells[name]
		if want == nil && len(state) > 0 {
			p.fault("cell %s: want no state, not %s", name, brief(state))
			continue
		}
		text, err := fits(want, state)
		if err != nil {
			return err
		}
		if text != "" {
			p.fault("cell %s: %s", name, text)
		}
	}
	return nil
}

// otherKind is why something does not fit that was not meant.
const otherKind = "-"

// inOrder finds what is wanted among what there is, one after the other.
func inOrder[W, H any](p *play, what string, want []W, have []H, name func(W) string, differs func(W, H) (string, error)) error {
	at := 0
	for i, w := range want {
		nearest, found := "", false
		for ; at < len(have) && !found; at++ {
			text, err := differs(w, have[at])
			if err != nil {
				return err
			}
			if found = text == ""; text != otherKind && nearest == "" {
				nearest = text
			}
		}
		if found {
			continue
		}
		if nearest != "" {
			nearest = "; nearest: " + nearest
		}
		p.fault("%s %d, %s: there is none%s%s", what, i+1, name(w), map[bool]string{true: " after those before", false: ""}[i > 0], nearest)
		return nil
	}
	return nil
}
