package store

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// order is what a doer is told to do: tool:KIND, ping:CELL, timer:TICKS.
type order struct {
	To  string   `cbor:"to,omitempty"`
	Do  []string `cbor:"do,omitempty"`
	Pad string   `cbor:"pad,omitempty"`
}

func doer(ctx *reducer.Context, seen []string, e reducer.Event) ([]string, error) {
	if e.Name == reducer.ReceiptEvent {
		r, err := reducer.Decode[reducer.Receipt](e.Data)
		return append(seen, fmt.Sprintf("%s %s", r.Tag, r.Status)), err
	}
	d, err := reducer.Decode[order](e.Data)
	if err != nil {
		return seen, err
	}
	for i, do := range d.Do {
		switch verb, what, _ := strings.Cut(do, ":"); verb {
		case "tool":
			ctx.Effect(what, map[string]string{"p": what + d.To}, fmt.Sprint(what, i))
		case "ping":
			ctx.EmitTo("ping", order{To: what}, what)
		case "timer":
			ticks, err := strconv.ParseUint(what, 10, 64)
			if err != nil {
				return seen, err
			}
			ctx.Timer(manifest.Tick(ticks), "alarm", order{To: d.To, Do: []string{"ping:late"}})
		}
	}
	return append(seen, fmt.Sprintf("%d %s %d", ctx.Time(), e.Name, len(d.Do)), d.Pad), nil
}

// doers is the manifest in which tool.ask needs a person, until ask is allowed.
func doers(version uint64, ask string) *manifest.Manifest {
	m := manifest.Manifest{
		World: "doers", Version: version, Seed: 7,
		Reducers: map[string]manifest.Reducer{"doer": {Engine: manifest.EngineGo, Name: "doer", Version: "1", Grants: []string{"tools"}}},
		Events:   map[string]manifest.Event{"go": {}, "ping": {}},
		Effects: map[string]manifest.Effect{
			"tool.a": {Adapter: "test", Compensate: &manifest.Compensate{Kind: "tool.undo", Params: `{"of": intent.params.p}`}},
			"tool.b": {Adapter: "test"}, "tool.undo": {Adapter: "test"}, "tool.ask": {Adapter: "test"},
		},
		Caps: map[string]manifest.Cap{"tools": {Type: manifest.CapAny, Params: manifest.CapParams{Kinds: []string{"tool.*"}}}},
		Policies: []manifest.Policy{
			{Name: "all", When: "true", Decide: manifest.DecideAllow},
			{Name: "ask", When: `intent.kind == "tool.ask"`, Decide: ask},
		},
		Routing: []manifest.Route{
			{Event: "go", Reducer: "doer", Key: "event.data.to"},
			{Event: "ping", Reducer: "doer", Key: "event.data.to"},
		},
		Limits: manifest.Limits{InFlight: 2},
	}
	m = m.WithDefaults()
	return &m
}

// chapter is a part of the story. One that was cut short can be told again.
type chapter struct {
	name string
	tell func(context.Context, *actors) error
	some bool // it is several batches; else it is one, so that it has happened or not
}

// chapters are a story of snapshots, rollbacks and manifests, and what happens
// between them. An intent is asked for before the first snapshot and answered
// after it, so that the rollbacks have something to tell again; another never
// starts, so that they have something to cancel; the timers outlive the ticks of
// their chapters.
func chapters() []chapter {
	big := strings.Repeat("long ", 1000)
	return []chapter{
		acting("run", 2, "", order{To: "a", Do: []string{"tool:tool.a", "tool:tool.ask", "timer:3"}}, order{To: "b", Do: []string{"ping:c"}, Pad: big}),
		snapshotting("first"),
		acting("run on", 5, "doer/a", order{To: "a", Do: []string{"tool:tool.a", "tool:tool.b"}}, order{To: "c", Do: []string{"tool:tool.ask", "timer:9"}}),
		snapshotting("second"),
		acting("run a little", 6, "", order{To: "b", Do: []string{"tool:tool.b"}, Pad: big}),
		snapshotting("third"),
		changing("prune", func(ctx context.Context, a *actors) error {
			return worldtest.ErrorOf(a.Prune(ctx, journal.SnapshotPruned{Name: "second", Actor: "ada"}))
		}),
		acting("run after pruning", 8, "", order{To: "d", Do: []string{"tool:tool.a", "ping:a"}}),
		returning("roll back to the first", journal.RolledBack{Snapshot: "first", Ack: true, Compensate: true}),
		acting("run after the rollback", 10, "", order{To: "a", Do: []string{"tool:tool.b", "timer:2"}}, order{To: "e", Do: []string{"tool:tool.ask"}}),
		changing("propose", func(ctx context.Context, a *actors) error {
			_, _, err := a.Propose(ctx, world.Proposal{
				Candidate: doers(2, manifest.DecideAllow), Base: a.Status().Manifest, Actor: "ada",
			})
			return err
		}),
		changing("shadow", func(ctx context.Context, a *actors) error {
			_, _, err := a.Shadow(ctx, 1, world.ShadowConfig{}, "ada")
			return err
		}),
		changing("approve", func(ctx context.Context, a *actors) error {
			all, f := a.Proposals()
			terms := all[0].Terms(f.World)
			return worldtest.ErrorOf(a.Approve(ctx, 1, terms, manifest.Sign(ed25519.NewKeyFromSeed(make([]byte, 32)), terms), "bob", ""))
		}),
		changing("apply", func(ctx context.Context, a *actors) error { return worldtest.ErrorOf(a.Apply(ctx, 1, "ada")) }),
		changing("retain one", func(ctx context.Context, a *actors) error {
			_, _, err := a.Retain(ctx, journal.SnapshotRetention{Max: 1, Actor: "ada"})
			return err
		}),
		snapshotting("fourth"),
		acting("run on the other manifest", 12, "", order{To: "e", Do: []string{"tool:tool.ask", "tool:tool.a"}, Pad: big}),
		returning("roll back to the fourth", journal.RolledBack{Snapshot: "fourth", Ack: true, Fresh: true}),
		acting("run to the end", 14, "", order{To: "b", Do: []string{"tool:tool.a"}}, order{To: "f"}),
	}
}

func changing(name string, tell func(context.Context, *actors) error) chapter {
	return chapter{name: name, tell: tell}
}

func snapshotting(name string) chapter {
	return changing("snapshot "+name, func(ctx context.Context, a *actors) error {
		_, err := a.Snapshot(ctx, name, "", "ada")
		return err
	})
}

func returning(name string, b journal.RolledBack) chapter {
	b.Actor, b.Reason = "ada", "a try"
	return changing(name, func(ctx context.Context, a *actors) error {
		_, _, err := a.Rollback(ctx, b)
		return err
	})
}

// acting submits orders, those that the journal does not have, approves what a cell
// asks for, and runs to a tick.
func acting(name string, until manifest.Tick, approve string, orders ...order) chapter {
	return chapter{name: name, some: true, tell: func(ctx context.Context, a *actors) error {
		for _, d := range orders {
			d.Pad += name // no chapter has the orders of another
			data, err := canon.Marshal(d)
			if err != nil {
				return err
			}
			if there, err := a.submitted(data); err != nil {
				return err
			} else if there {
				continue
			}
			if _, err = a.Submit(ctx, world.Submission{Name: "go", Data: data}); err != nil {
				return err
			}
		}
		for _, e := range a.Intents() {
			if e.Intent.Cell != approve || e.State != receipt.StateAwaitingApproval {
				continue
			}
			b := journal.Resolved{Key: e.Intent.Key, Params: e.Params, How: journal.Approve, Actor: "ada", Reason: "so"}
			if err := worldtest.ErrorOf(a.Resolve(ctx, b)); err != nil {
				return err
			}
		}
		for a.Time() < until {
			if err := a.Step(ctx); err != nil {
				return err
			}
		}
		return nil
	}}
}

func (a *actors) submitted(data []byte) (bool, error) {
	for s, err := range a.testJournal.Scan(0) {
		if err != nil {
			return false, err
		}
		if s.Record.Kind != journal.KindSubmitted {
			continue
		}
		rec := s.Record
		if err := rec.Load(a.testJournal); err != nil {
			return false, err
		}
		if strings.HasSuffix(string(rec.Payload), string(data)) {
			return true, nil
		}
	}
	return false, nil
}

// answering is a host that answers every permit alike, at once.
type answering struct {
	world   string
	keys    *receipt.Keyring
	answers []receipt.Answer
	woken   chan struct{}
}

func (*answering) Live(*receipt.Intent) bool { return false }
func (*answering) Queued() receipt.Queued    { return nil }

func (h *answering) Wake() {
	select {
	case h.woken <- struct{}{}:
	default:
	}
}

func (h *answering) Start(tasks []receipt.Task) {
	for _, t := range tasks {
		if t.Work == receipt.Forget {
			continue
		}
		r := receipt.New(h.world, t.Permit, receipt.StatusOK, receipt.Data(canon.AppendText(nil, t.Tag)))
		r.StartedAt, r.FinishedAt = t.Time, t.Time
		data, err := h.keys.Sign(&r)
		h.answers = append(h.answers, receipt.Answer{Key: t.Key, Attempt: t.Attempt, Receipt: data, Err: err})
	}
}

func (h *answering) Answers() ([]receipt.Answer, error) {
	answers := h.answers
	h.answers = nil
	return answers, nil
}

func (h *answering) Wait(ctx context.Context) error {
	if len(h.answers) > 0 {
		return nil
	}
	select {
	case <-h.woken:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// told is what is known of a story: the heads of its batches, and the last record
// that was acknowledged.
type told struct {
	mu    sync.Mutex
	heads []journal.Head
	acked atomic.Uint64
}

// testJournal is the journal of a world. A late one gives images to the store only when
// records after them are durable, as when their writer is slow.
type testJournal struct {
	*Store

	told *told
	late bool
	held []*journal.Image
}

func (s *testJournal) Append(b journal.Batch) (journal.Pending, error) {
	p, err := s.Store.Append(b)
	if err != nil {
		return nil, err
	}
	s.told.mu.Lock()
	s.told.heads = append(s.told.heads, b.Head)
	s.told.mu.Unlock()
	done := &shelved{Pending: p, told: s.told, head: b.Head.ID}
	if len(s.held) > 2 {
		if err := done.Wait(); err != nil {
			return nil, err
		}
		err = s.release()
	}
	return done, err
}

type shelved struct {
	journal.Pending

	told *told
	head journal.Seq
}

func (p *shelved) Wait() error {
	err := p.Pending.Wait()
	if err == nil {
		p.told.acked.Store(uint64(p.head))
	}
	return err
}

func (s *testJournal) Checkpoint(img *journal.Image) error {
	s.held = append(s.held, img)
	if s.late {
		return nil
	}
	return s.release()
}

func (s *testJournal) release() error {
	for _, img := range s.held {
		if err := s.Store.Checkpoint(img); err != nil {
			return err
		}
	}
	s.held = nil
	return nil
}

func (s *testJournal) Part(at journal.Seq, cells []string) (*journal.Image, error) {
	if err := s.release(); err != nil {
		return nil, err
	}
	return s.Store.Part(at, cells)
}

// actors is a world of doers and its store.
type actors struct {
	*world.World

	testJournal *testJournal
}

func doersOptions(files vfs.FS) Options {
	opts := testOptions(files)
	opts.EachCell = func(kind string, payload []byte, visit func(cell []byte)) {
		_ = journal.EachCell(journal.Kind(kind), payload, visit)
	}
	opts.IntentOf = func(kind string, payload []byte) (journal.Hash, []byte, bool) {
		return journal.IntentOf(journal.Kind(kind), payload)
	}
	return opts
}

func doersConfig(s *testJournal) world.Config {
	secret := sha256.Sum256([]byte("doers"))
	keys, err := receipt.NewKeyring("doers-1", []receipt.Epoch{{Number: 1, Secret: secret[:]}})
	if err != nil {
		panic(err)
	}
	registry := reducer.Registry{"doer@1": reducer.Typed(1, doer)}
	return world.Config{
		Journal: s, History: s, Keys: keys, Registry: registry, BatchRecords: 3,
		NewHost: func(id string, _ *manifest.Manifest) (world.Host, error) {
			return &answering{world: id, keys: keys, woken: make(chan struct{}, 1)}, nil
		},
	}
}

// begin opens the world, or makes it where there is none.
func begin(opts Options, to *told, late bool) (*actors, error) {
	s, err := Open(testDir, opts)
	if errors.Is(err, ErrNotWorld) {
		s, err = Create(testDir, opts)
	}
	if err != nil {
		return nil, err
	}
	a := &actors{testJournal: &testJournal{Store: s, told: to, late: late}}
	if s.Head().ID == 0 {
		a.World, err = world.Create(doersConfig(a.testJournal), world.Genesis{ID: "doers-1", Seed: 7, Manifest: doers(1, manifest.DecideRequireApproval)})
	} else {
		a.World, err = world.Open(doersConfig(a.testJournal))
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return a, nil
}

func (a *actors) end() error { return errors.Join(a.testJournal.release(), a.testJournal.Close()) }
