package twice

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/receipt"
)

// errLine is all that is known where the bank did not answer.
var errLine = errors.New("the line is dead")

// teller is the bank's adapter and verifier in one process. When the process is
// killed whatever it has not sent is never sent.
type teller struct {
	bank *bank
	dead chan struct{}

	mu     sync.Mutex
	active map[receipt.Key]int // attempts that are being made
	begun  []receipt.Key       // since the last call of news
	unsure bool                // it could not be reached for a confirmation
}

func newTeller(b *bank) *teller {
	return &teller{bank: b, dead: make(chan struct{}), active: make(map[receipt.Key]int)}
}

// bankAdapter is the teller for one kind of effect.
type bankAdapter struct {
	*teller
	effect host.Setup
}

// Perform sends a request, and waits for the answer.
func (t bankAdapter) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	if !t.begin(call.Permit.Key) {
		return host.Result{}, errLine
	}
	defer t.end(call.Permit.Key)
	f := t.bank.fate(call, &t.effect.Effect)
	select {
	case <-time.After(f.before):
	case <-ctx.Done():
		return notSent(receipt.StatusCancelled), nil
	case <-t.dead:
		return host.Result{}, errLine
	}
	f.notes(t.bank.struck)
	if f.ending == unsent {
		return notSent(receipt.StatusError), nil
	}
	answer := t.bank.send(call, f, t.effect.Effect.Idempotent)
	var drop <-chan time.Time
	if f.line == dropped {
		drop = time.After(f.drop)
	}
	select {
	case end := <-answer:
		return told(end), nil
	case <-drop:
	case <-ctx.Done():
	case <-t.dead:
	}
	return host.Result{}, errLine
}

func notSent(status receipt.Status) host.Result {
	return host.Result{Status: status, Class: receipt.OutcomeRetryableFailure, Unsent: true}
}

func told(end ending) host.Result {
	switch end {
	case busy:
		return host.Result{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure}
	case refused:
		return host.Result{Status: receipt.StatusError}
	case halfway:
		return host.Result{Status: receipt.StatusError, Class: receipt.OutcomeCompensatable}
	default:
		return host.Result{Status: receipt.StatusOK}
	}
}

// Verify asks the bank, which tells the truth of the moment.
func (t bankAdapter) Verify(ctx context.Context, call host.Call) (receipt.Found, error) {
	return t.ask(ctx, call.External)
}

// Confirm does the same. What a fork has of its parent the bank has under the
// parent's name.
func (t bankAdapter) Confirm(ctx context.Context, _ host.Call, r *receipt.Receipt) (receipt.Found, error) {
	found, err := t.ask(ctx, r.Key.External(r.World))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unsure = t.unsure || err != nil
	return found, err
}

// isUnsure reports whether the bank could not be reached for a confirmation.
func (t *teller) isUnsure() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unsure
}

func (t bankAdapter) ask(ctx context.Context, external string) (receipt.Found, error) {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
		return receipt.Found{}, ctx.Err()
	case <-t.dead:
		return receipt.Found{}, errLine
	}
	if t.bank.away(external) {
		t.bank.struck.Count("verifier unavailable")
		return receipt.Found{}, errLine
	}
	if t.bank.shows(external) {
		return receipt.Found{Verdict: receipt.Happened, Reason: "the bank has it"}, nil
	}
	return receipt.Found{Verdict: receipt.NotHappened, Reason: "the bank does not have it"}, nil
}

// begin notes that an attempt begins; false: the process is dead.
func (t *teller) begin(key receipt.Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.dead:
		return false
	default:
	}
	t.active[key]++
	t.begun = append(t.begun, key)
	return true
}

func (t *teller) end(key receipt.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active[key]--
}

// at reports whether an attempt for an intent is being made.
func (t *teller) at(key receipt.Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.active[key] > 0
}

// news returns the intents of which an attempt has begun since the last call.
func (t *teller) news() []receipt.Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	begun := t.begun
	t.begun = nil
	return begun
}

// die ends all that the process does.
func (t *teller) die() { close(t.dead) }
