package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

const town = "town"

func keys(t testing.TB) *receipt.Keyring {
	t.Helper()
	k, err := receipt.NewKeyring(town, []receipt.Epoch{{Number: 1, Secret: make([]byte, receipt.SecretBytes)}})
	require.NoError(t, err)
	return k
}

func data(t testing.TB, json string) receipt.Data {
	t.Helper()
	d, err := canon.FromJSON([]byte(json))
	require.NoError(t, err)
	return d
}

// setup puts a manifest together for New.
type setup struct {
	effects  map[string]manifest.Effect
	contents map[manifest.Hash][]byte
	limits   manifest.Limits
	adapters map[string]host.Factory
	workers  int
	reads    int // of contents
	more     func(*host.Config)
}

// file declares an effect whose config names one file with the given content.
func (s *setup) file(t testing.TB, kind, adapter, key, name, content string) {
	t.Helper()
	if s.effects == nil {
		s.effects, s.contents = map[string]manifest.Effect{}, map[manifest.Hash][]byte{}
	}
	h := canon.Sum([]byte(content))
	s.contents[h] = []byte(content)
	s.effects[kind] = manifest.Effect{
		Adapter: adapter, Config: data(t, fmt.Sprintf(`{%q: %q}`, key, name)), Files: map[string]manifest.Hash{key: h},
	}
}

// adapter declares an effect that the given adapter performs.
func (s *setup) adapter(kind string, a host.Adapter) {
	if s.adapters == nil {
		s.effects, s.adapters = map[string]manifest.Effect{}, map[string]host.Factory{}
	}
	s.effects[kind] = manifest.Effect{Adapter: kind}
	s.adapters[kind] = func(host.Setup) (host.Adapter, error) { return a, nil }
}

func (s *setup) new(t testing.TB) (*host.Host, error) {
	t.Helper()
	cfg := host.Config{
		World: town, Manifest: &manifest.Manifest{Effects: s.effects, Limits: s.limits}, Keys: keys(t),
		Adapters: s.adapters, Workers: s.workers,
		Content: func(h manifest.Hash) ([]byte, error) {
			s.reads++
			c, ok := s.contents[h]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return c, nil
		},
	}
	if s.more != nil {
		s.more(&cfg)
	}
	return host.New(cfg)
}

func (s *setup) open(t testing.TB) *host.Host {
	t.Helper()
	h, err := s.new(t)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

// permit is leave to ask for kind with params, for the n-th time in a cell.
func permit(t testing.TB, cell, kind, params string, n uint64) receipt.Permit {
	t.Helper()
	step := receipt.NewStepID(cell, n+1, 0, receipt.History{})
	p := data(t, params)
	key := receipt.NewKey(town, step, kind, p)
	return receipt.Permit{
		Intent:  receipt.Intent{Key: key, Step: step, Cell: cell, Kind: kind, Params: p, Cap: "tools", Occurrence: n},
		Attempt: 1, Nonce: receipt.Nonce{1}, Time: 1_767_225_600_000_000_000,
	}
}

// ask starts one effect and returns its receipt or why there is none.
func ask(t testing.TB, h *host.Host, p receipt.Permit) (*receipt.Receipt, error) {
	t.Helper()
	start(h, p)
	a := next(t, h)
	require.Equal(t, p.Key, a.Key)
	if a.Err != nil {
		require.Nil(t, a.Receipt)
		return nil, a.Err
	}
	r, err := receipt.Decode(a.Receipt)
	require.NoError(t, err)
	require.NoError(t, keys(t).Verify(r))
	return r, nil
}

// start begins to perform effects.
func start(h *host.Host, permits ...receipt.Permit) {
	tasks := make([]receipt.Task, len(permits))
	for i, p := range permits {
		tasks[i] = receipt.Task{Permit: p}
	}
	h.Start(tasks)
}

// next waits for answers, of which there must be one.
func next(t testing.TB, h *host.Host) receipt.Answer {
	t.Helper()
	all := await(t, h, 1)
	require.Len(t, all, 1)
	return all[0]
}

// await waits for n answers or more.
func await(t testing.TB, h *host.Host, n int) []receipt.Answer {
	t.Helper()
	var all []receipt.Answer
	for len(all) < n {
		require.NoError(t, h.Wait(t.Context()))
		some, err := h.Answers()
		require.NoError(t, err)
		all = append(all, some...)
	}
	return all
}

// perform is a deterministic adapter.
type perform func(ctx context.Context, call host.Call) (host.Result, error)

func (p perform) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	return p(ctx, call)
}
func (perform) Deterministic() bool { return true }

// live is an adapter that does not declare itself deterministic; undecided
// declares that it is not.
type live struct{}

func (live) Perform(context.Context, host.Call) (host.Result, error) { return host.Result{}, nil }

type undecided struct{ live }

func (undecided) Deterministic() bool { return false }

func TestNewNamesEveryEffectThatCannotBePerformed(t *testing.T) {
	fault := errors.New("no such planet")
	var s setup
	s.adapter("a.live", live{})
	s.adapter("b.undecided", undecided{})
	s.adapter("c.fine", perform(nil))
	s.adapter("d.faulty", nil)
	s.adapters["d.faulty"] = func(host.Setup) (host.Adapter, error) { return nil, fault }
	s.effects["e.http"] = manifest.Effect{Adapter: "http"}
	s.effects["f.absent"] = manifest.Effect{
		Adapter: "recorded", Config: data(t, `{"cassette": "x"}`), Files: map[string]manifest.Hash{"cassette": {1}},
	}
	s.adapter("g.none", nil)
	s.adapter("h.panics", nil)
	s.adapters["h.panics"] = func(host.Setup) (host.Adapter, error) { panic("no orbit") }
	s.adapter("i.nil", nil)
	s.adapters["i.nil"] = nil
	_, err := s.new(t)
	require.ErrorIs(t, err, host.ErrLive)
	require.ErrorIs(t, err, fault)
	require.ErrorContains(t, err, "effect g.none: adapter g.none: its factory made none")
	require.ErrorContains(t, err, "effect h.panics: adapter h.panics: its factory panicked: no orbit")
	require.ErrorContains(t, err, "effect i.nil: adapter i.nil: its factory panicked: ")
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, kind := range []string{"a.live", "b.undecided", "d.faulty", "e.http", "f.absent"} {
		require.ErrorContains(t, err, "effect "+kind)
	}
	require.NotContains(t, err.Error(), "effect c.fine")
}

func TestNewRefusesKeysOfAnotherWorld(t *testing.T) {
	empty, err := receipt.NewKeyring(town, nil)
	require.NoError(t, err)
	for _, cfg := range []host.Config{{World: "other", Keys: keys(t)}, {World: town, Keys: empty}} {
		cfg.Manifest = &manifest.Manifest{}
		_, err := host.New(cfg)
		require.Error(t, err)
	}
}

func TestSetupGivesConfigAndFiles(t *testing.T) {
	var s setup
	s.file(t, "k", "mine", "table", "dir/table.csv", "a,b")
	var got host.Setup
	s.adapters = map[string]host.Factory{"mine": func(e host.Setup) (host.Adapter, error) {
		got = e
		return perform(nil), nil
	}}
	s.open(t)
	require.Equal(t, "k", got.Kind)
	var config struct {
		Table string `cbor:"table"`
	}
	require.NoError(t, got.Decode(&config))
	require.Equal(t, "dir/table.csv", config.Table)
	content, err := got.File("table")
	require.NoError(t, err)
	require.Equal(t, "a,b", string(content))
	_, err = got.File("chair")
	require.Error(t, err)
	require.Error(t, got.Decode(&struct{}{}), "a key that nobody knows")
}

func TestContentIsReadOnceHoweverManyEffectsNameIt(t *testing.T) {
	var s setup
	for _, kind := range []string{"a", "b", "c"} {
		s.file(t, kind, "recorded", "cassette", "tape.jsonl", tape)
	}
	s.open(t)
	require.Equal(t, 1, s.reads)
}

func TestSamePermitGivesTheSameReceipt(t *testing.T) {
	var s setup
	s.file(t, "k", "stub", "answers", "a.jsonl", `{"kind": "k", "payload": {"b": 1, "a": [2.5]}}`)
	p := permit(t, "agent/1", "k", `{"x": 1}`, 0)
	var first []byte
	for range 3 {
		h := s.open(t) // another process, as it were
		for range 2 {
			r, err := ask(t, h, p)
			require.NoError(t, err)
			require.Equal(t, p.Time, r.StartedAt)
			require.Equal(t, p.Time, r.FinishedAt)
			b, err := r.Encode()
			require.NoError(t, err)
			if first == nil {
				first = b
			}
			require.Equal(t, first, b)
		}
	}
}

func TestReceiptAnswersItsPermit(t *testing.T) {
	var s setup
	s.adapter("k", perform(func(_ context.Context, call host.Call) (host.Result, error) {
		return host.Result{
			Status: receipt.StatusTimeout, Payload: canon.AppendText(nil, call.External), Cost: receipt.Cost{Tokens: 7},
		}, nil
	}))
	h := s.open(t)
	p := permit(t, "agent/1", "k", `{"x": 1}`, 0)
	r, err := ask(t, h, p)
	require.NoError(t, err)
	require.Equal(t, p.Nonce, r.Nonce)
	require.Equal(t, p.Attempt, r.Attempt)
	require.Equal(t, canon.Sum(p.Params), r.ParamsHash)
	require.Equal(t, receipt.StatusTimeout, r.Status)
	require.Equal(t, receipt.Cost{Tokens: 7}, r.Cost)
	require.Equal(t, data(t, `"`+p.Key.External(town)+`"`), r.Payload)
}

func TestNoReceiptWhereNobodyCanTell(t *testing.T) {
	lost := errors.New("connection lost")
	for name, a := range map[string]perform{
		"error":           func(context.Context, host.Call) (host.Result, error) { return host.Result{}, lost },
		"panic":           func(context.Context, host.Call) (host.Result, error) { panic("boom") },
		"no return":       func(context.Context, host.Call) (host.Result, error) { runtime.Goexit(); panic("never") },
		"no status":       func(context.Context, host.Call) (host.Result, error) { return host.Result{}, nil },
		"kernel's status": result(receipt.StatusDenied, nil),
		"faulty payload":  result(receipt.StatusOK, receipt.Data{0x18, 1}),
	} {
		var s setup
		s.adapter("k", a)
		s.adapter("fine", result(receipt.StatusOK, nil))
		s.workers = 1
		h := s.open(t)
		_, err := ask(t, h, permit(t, "agent/1", "k", `1`, 0))
		require.Error(t, err, name)
		if name == "error" {
			require.ErrorIs(t, err, lost)
		}
		_, err = ask(t, h, permit(t, "agent/1", "fine", `1`, 0))
		require.NoError(t, err, "the worker goes on")
	}
	h := new(setup).open(t)
	_, err := ask(t, h, permit(t, "agent/1", "unheard.of", `1`, 0))
	require.Error(t, err)
}

func result(status receipt.Status, payload receipt.Data) perform {
	return func(context.Context, host.Call) (host.Result, error) {
		return host.Result{Status: status, Payload: payload}, nil
	}
}

func TestReceiptOverTheLimitBecomesAnError(t *testing.T) {
	var s setup
	s.limits.Receipt = 1024
	s.adapter("k", result(receipt.StatusOK, canon.AppendBytes(nil, bytes.Repeat([]byte{7}, 2000))))
	r, err := ask(t, s.open(t), permit(t, "agent/1", "k", `1`, 0))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusError, r.Status)
	code, err := canon.Lookup(r.Payload, "code")
	require.NoError(t, err)
	require.Equal(t, data(t, `"receipt_too_large"`), code)
	require.Equal(t, receipt.OutcomeCompensatable, r.Class, "it happened")

	s.limits.Receipt = 100 // even that does not fit
	_, err = ask(t, s.open(t), permit(t, "agent/1", "k", `1`, 0))
	require.ErrorIs(t, err, receipt.ErrOverSize)
}
