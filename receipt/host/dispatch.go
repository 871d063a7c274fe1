package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// ErrClosed is what Await returns after Close.
var ErrClosed = errors.New("host: closed")

var _ world.Host = (*Host)(nil)

// Host performs effects in goroutines of its own; see [world.Host]. It is safe
// for concurrent use, but for Await, which is for one caller at a time. Its
// queues have no bound of their own: a world never has more than
// limits.in_flight effects in flight.
type Host struct {
	cfg      Config
	adapters map[string]Adapter // by effect kind
	limit    uint64             // bytes of one receipt

	stop     context.CancelFunc
	done     <-chan struct{} // closed by stop
	workers  sync.WaitGroup
	answered chan struct{} // holds a token when answers came since Await looked

	mu      sync.Mutex // guards what follows
	work    *sync.Cond // signalled when queue grows or closed becomes true
	queue   []receipt.Permit
	answers []world.Answer
	closed  bool
}

func start(cfg Config, adapters map[string]Adapter) *Host {
	ctx, stop := context.WithCancel(context.Background())
	h := &Host{
		cfg: cfg, adapters: adapters, limit: cfg.Manifest.Limits.WithDefaults().Receipt,
		stop: stop, done: ctx.Done(), answered: make(chan struct{}, 1),
	}
	h.work = sync.NewCond(&h.mu)
	for range cfg.Workers {
		h.workers.Go(func() { h.run(ctx) })
	}
	return h
}

// Close stops the workers and waits for them. Effects that are not answered
// stay in flight.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.stop()
	h.work.Broadcast()
	h.workers.Wait()
}

// Start begins to perform effects and returns at once.
func (h *Host) Start(permits []receipt.Permit) {
	h.mu.Lock()
	h.queue = append(h.queue, permits...)
	h.mu.Unlock()
	h.work.Broadcast()
}

// Await returns the next answer, in the order in which they came, and waits
// for one until ctx ends or the Host is closed (ErrClosed).
func (h *Host) Await(ctx context.Context) (world.Answer, error) {
	for {
		if err := ctx.Err(); err != nil {
			return world.Answer{}, err
		}
		if a, ok, err := h.next(); ok || err != nil {
			return a, err
		}
		select {
		case <-h.answered:
		case <-ctx.Done():
		case <-h.done:
		}
	}
}

func (h *Host) next() (a world.Answer, ok bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return a, false, ErrClosed
	}
	if len(h.answers) == 0 {
		return a, false, nil
	}
	a = h.answers[0]
	h.answers = h.answers[1:]
	return a, true, nil
}

// run is one worker.
func (h *Host) run(ctx context.Context) {
	for {
		p, ok := h.take()
		if !ok {
			return
		}
		a := world.Answer{Key: p.Key}
		a.Receipt, a.Err = h.answer(ctx, p)
		h.mu.Lock()
		h.answers = append(h.answers, a)
		h.mu.Unlock()
		select {
		case h.answered <- struct{}{}:
		default: // the token is there
		}
	}
}

func (h *Host) take() (p receipt.Permit, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.queue) == 0 && !h.closed {
		h.work.Wait()
	}
	if h.closed {
		return p, false
	}
	p = h.queue[0]
	h.queue = h.queue[1:]
	return p, true
}

// answer performs one attempt and signs its receipt.
func (h *Host) answer(ctx context.Context, p receipt.Permit) ([]byte, error) {
	adapter := h.adapters[p.Kind]
	if adapter == nil {
		return nil, fmt.Errorf("host: the manifest has no effect %s, which %s asks for", p.Kind, p.Step)
	}
	result, err := perform(ctx, adapter, Call{Permit: p, External: p.Key.External(h.cfg.World)})
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	data, err := h.sign(p, result)
	if err == nil && uint64(len(data)) > h.limit {
		data, err = h.sign(p, tooLarge(result, len(data), h.limit))
	}
	if err == nil && uint64(len(data)) > h.limit {
		err = receipt.ErrOverSize
	}
	if err != nil {
		return nil, fmt.Errorf("host: receipt of %s for %s: %w", p.Kind, p.Step, err)
	}
	return data, nil
}

// perform calls the adapter; its panic is its own fault, not the world's end.
func perform(ctx context.Context, a Adapter, call Call) (result Result, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the adapter of %s panicked on %s: %v", call.Permit.Kind, call.Permit.Step, fault)
		}
	}()
	result, err = a.Perform(ctx, call)
	if err != nil {
		return result, err
	}
	switch result.Status {
	case receipt.StatusOK, receipt.StatusError, receipt.StatusTimeout:
		return result, nil
	default:
		return result, fmt.Errorf("the adapter of %s gave the status %q for %s", call.Permit.Kind, result.Status, call.Permit.Step)
	}
}

// sign makes the receipt of a deterministic effect: the world's time stands in
// for the clock's, so that the same permit has the same receipt.
func (h *Host) sign(p receipt.Permit, result Result) ([]byte, error) {
	r := receipt.New(h.cfg.World, p, result.Status, result.Payload)
	r.Cost = result.Cost
	r.StartedAt, r.FinishedAt = p.Time, p.Time
	return h.cfg.Keys.Sign(&r)
}

// tooLarge replaces a result whose receipt no world would take. The effect did
// happen, so the cell is told instead of being left waiting.
func tooLarge(result Result, size int, limit uint64) Result {
	text := fmt.Sprintf("the receipt would have %d bytes; limits.receipt is %d", size, limit)
	payload := canon.AppendMap(nil, 2)
	payload = canon.AppendText(canon.AppendText(payload, "code"), "receipt_too_large")
	payload = canon.AppendText(canon.AppendText(payload, "error"), text)
	return Result{Status: receipt.StatusError, Payload: payload, Cost: result.Cost}
}
