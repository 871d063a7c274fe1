package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// answering is a host that answers every permit alike, at once.
type answering struct {
	world   string
	keys    *receipt.Keyring
	answers []receipt.Answer
	woken   chan struct{}
}

func (*answering) Live(string) bool { return false }

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
