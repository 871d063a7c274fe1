package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/memory"
)

// moment is where the runs of an experiment begin that branches off.
type moment struct {
	dir  string // of the world
	name string // of the moment, as it was given
	at   journal.Head
	tick uint64          // of the world, there
	past *memory.Journal // up to there; nobody changes it
}

// actor is who forks worlds for runs.
const actor = "experiment"

// branch reads the moment of a world where the runs begin.
func (l *loader) branch(n *yaml.Node) (err error) {
	var text string
	if l.Text(&text)(n); l.Refused(n) {
		return nil
	}
	i := strings.LastIndexByte(text, '@')
	if i <= 0 || i == len(text)-1 {
		l.Fault(n, "from: want DIR@MOMENT, such as town@t100, town@noon or town@head")
		return nil
	}
	m := &moment{dir: l.path(text[:i]), name: text[i+1:]}
	lw, err := m.open(l.opts)
	switch {
	case errors.Is(err, local.ErrNoWorld), errors.Is(err, os.ErrNotExist):
		l.Fault(n, "there is no world in %q", text[:i])
		return nil
	case errors.As(err, new(*store.LockedError)):
		l.Fault(n, "the world in %q is %s: wait until that process has ended", text[:i], err)
		return nil
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, lw.Close()) }()
	at, err := view.Journal{Local: lw}.At(m.name)
	if err != nil {
		l.Fault(n, "the world has no moment %q: %s", m.name, oneLine(err))
		return nil
	}
	if err := m.copyPast(lw, at, l.opts.Reducers); err != nil {
		return fmt.Errorf("from %s: %w", text, err)
	}
	l.spec.from, l.spec.dir = m, m.dir
	return l.inForce(lw)
}

// open opens the world, to be read, with the adapters of its rules: what these answer within
// a tick bears on where a fork can begin.
func (m *moment) open(opts local.Options) (*local.World, error) {
	opts.Still, opts.Missed, opts.Instead = true, nil, nil
	return local.Open(m.dir, opts)
}

// copyPast copies the past, up to the last record that is not after one and that a fork can
// begin after.
func (m *moment) copyPast(lw *local.World, at journal.Seq, reducers reducer.Registry) error {
	branches, err := lw.Branches(at)
	if err != nil {
		return err
	}
	for _, at := range branches {
		if m.past, err = lw.InMemory(at); err != nil {
			return err
		}
		m.at = m.past.Head()
		seed := uint64(0)
		var w *memory.World
		if w, err = m.fork(context.Background(), nil, memory.Options{Seed: &seed, Reducers: reducers, Host: hostOf(nil)}); err == nil {
			m.tick = uint64(w.Time())
			return w.Close()
		}
	}
	return err
}

// hostOf makes hosts in which instead answers effects, and nobody those others that the
// adapters stub and recorded do not, such as of rules before those of a run.
func hostOf(instead map[string]host.Adapter) func(host.Config) (world.Host, error) {
	return func(cfg host.Config) (world.Host, error) {
		cfg.Instead = make(map[string]host.Adapter)
		for kind, e := range cfg.Manifest.Effects {
			if e.Adapter != "stub" && e.Adapter != "recorded" {
				cfg.Instead[kind] = &outside{answers: &answers{mode: EffectsStub}}
			}
		}
		maps.Copy(cfg.Instead, instead)
		return memory.Performer(cfg)
	}
}

// fork makes a world of the past.
func (m *moment) fork(ctx context.Context, amend world.Amendment, o memory.Options) (*memory.World, error) {
	o.Journal = m.past.Clone()
	w, err := memory.Fork(ctx, journal.ForkLive, actor, amend, o)
	if errors.As(err, new(*world.InputError)) && errors.Is(err, world.ErrSameWorld) { // whose id is that of worlds in memory
		o.ID, o.Journal = memory.DefaultID+"-2", m.past.Clone()
		w, err = memory.Fork(ctx, journal.ForkLive, actor, amend, o)
	}
	return w, err
}

// inForce takes the rules that are in force at the moment.
func (l *loader) inForce(lw *local.World) error {
	then, err := lw.At(l.spec.from.at.ID)
	if err != nil {
		return err
	}
	m := then.Manifest()
	contents := make(map[manifest.Hash][]byte)
	for _, h := range m.Contents() {
		if contents[h], err = lw.Blob(h); err != nil {
			return err
		}
	}
	l.base = rules{m, contents}
	return nil
}

// amend makes the rules of a run of those that are in force at the moment; nil: they are.
func (r *rules) amend(inForce *rules) (world.Amendment, error) {
	was, err := inForce.manifest.Hash()
	if err != nil {
		return nil, err
	}
	is, err := r.manifest.Hash()
	if err != nil || is == was {
		return nil, err
	}
	return func(base *manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
		next := *r.manifest
		next.Engines = base.Engines
		return &next, r.contents, nil
	}, nil
}

// fork makes a run that branches off on disk. None of the kinds of effects waits for a person: it is lived as in memory.
func (k *keeper) fork(ctx context.Context, dir string, kinds []string, amend world.Amendment, begin func(*local.World) error) (err error) {
	m := k.spec.from
	lw, err := m.open(k.opts)
	if err != nil {
		return err
	}
	_, err = lw.Fork(ctx, dir, local.ForkOptions{At: m.at.ID, Effects: journal.ForkLive, Live: kinds, Actor: actor, Amend: amend, Seed: &k.plan.Seed})
	if err = errors.Join(err, lw.Close()); err != nil {
		return err
	}
	fork, err := local.Open(dir, k.opts)
	if err == nil {
		err = errors.Join(begin(fork), fork.Close())
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}
