package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// effect is what a Host knows of one kind.
type effect struct {
	adapter  Adapter
	verifier Verifier  // nil: none is declared
	live     bool      // its adapter touches the outside, where no Recording answers
	waits    bool      // its adapter is Waiting
	recorded *recorded // what answers of a Recording; nil: there is none, or the adapter answers all the same
	asks     bool      // the adapter, where recorded does not know
	withheld error     // why no attempt of it is made here; nil: it is
	declared manifest.Effect
}

// performs reports whether the adapter is asked, and touches the outside.
func (e *effect) performs() bool { return e.live && (e.recorded == nil || e.asks) }

func (e *effect) timeout() time.Duration {
	if e.declared.Timeout == 0 {
		return time.Duration(manifest.DefaultTimeout)
	}
	return time.Duration(e.declared.Timeout)
}

// do sees a job through to its answer.
func (h *Host) do(j *job) {
	done := false
	defer func() {
		if !done {
			h.deserted(j)
		}
	}()
	switch {
	case j.Work != receipt.Perform:
		h.verify(j)
	case h.Live(&j.Intent):
		h.attempt(j)
	default:
		a := receipt.Answer{Key: j.Key, Attempt: j.Attempt, Work: j.Work}
		a.Receipt, a.Err = h.askDeterministic(j)
		if doubt := (*DoubtError)(nil); errors.As(a.Err, &doubt) {
			a.Lost, a.Err = doubt.Reason, nil
		}
		h.post(a)
	}
	done = true
}

// deserted answers for a job whose adapter or verifier has ended the worker's goroutine, as
// a test that fails there does.
func (h *Host) deserted(j *job) {
	const reason = "its adapter ended the goroutine that it was called in"
	tame := j.Work == receipt.Perform && !h.Live(&j.Intent)
	held := tame || h.leases.release(j.claim(), j)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !j.lost {
		h.crewOf(j.Task).busy--
		h.hire()
	}
	switch {
	case tame:
		h.addAnswer(receipt.Answer{Key: j.Key, Attempt: j.Attempt, Work: j.Work, Err: errors.New(reason)})
	case held:
		h.addAnswer(h.gaveUp(j, reason))
	}
}

// DoubtError is what an adapter that is Deterministic returns where nobody is to be able to
// tell what came of an attempt: the attempt is in doubt then, as one of a live adapter with
// any error is.
type DoubtError struct{ Reason string }

func (e *DoubtError) Error() string { return e.Reason }

// askDeterministic makes the receipt of a deterministic effect: the world's time stands in
// for the clock's, so that the same permit has the same receipt.
func (h *Host) askDeterministic(j *job) ([]byte, error) {
	if j.effect == nil {
		return nil, fmt.Errorf("host: the manifest has no effect %s, which %s asks for", j.Kind, j.Step)
	}
	adapter := j.effect.adapter
	if h.Recorded(&j.Intent) {
		adapter = j.effect.recorded
	}
	result, err := perform(h.tame, adapter, h.call(j))
	if err != nil {
		return nil, fmt.Errorf("host: %w", h.secrets.hide(err))
	}
	signed, err := h.sign(&j.Permit, result, j.Time, j.Time)
	if err != nil {
		return nil, fmt.Errorf("host: receipt of %s for %s: %w", j.Kind, j.Step, err)
	}
	return signed.Bytes(), nil
}

// attempt makes one attempt of a live effect. Its result is in the effect store
// before anyone hears of it.
func (h *Host) attempt(j *job) {
	j.context.life, j.context.deadline = h.live, j.deadline
	if j.asking != nil {
		j.context.life = j.asking
		defer j.stop(nil)
	}
	defer j.context.endAttempt()
	ctx := context.Context(&j.context)
	if h.cfg.Fence != nil {
		var err error
		if ctx, err = h.cfg.Fence(ctx, j.Permit); err != nil {
			h.fenced(j)
			return
		}
	}
	ended := h.underWay(j)
	if !h.beginAttempt(ctx, j) {
		ended()
		return
	}
	started := time.Now()
	result, err := perform(ctx, j.effect.adapterFor(&j.Permit), h.call(j))
	if err != nil {
		err = fmt.Errorf("%s for %s: %w", j.Kind, j.Step, err)
	}
	if err == nil && result.Short && h.awaitMeans(j, &result) {
		ended()
		h.attempt(j) // if the world is still its owner's
		return
	}
	finished := started.Add(time.Since(started)) // also where the wall clock was set back
	if j.asking != nil && errors.Is(context.Cause(j.asking), errUnwanted) && !isOver(&result, err) {
		h.fenced(j)
		return
	}
	if err == nil {
		err = j.stillAtWork(&result, finished)
	}
	if err == nil {
		result = h.secrets.redact(result)
		if result.Status == receipt.StatusCancelled && !result.Short && h.live.Err() == nil {
			result.Status = receipt.StatusError // nobody has stopped it: see giveBack
		}
		result.Cost.Calls = result.calls()
		j.made, err = h.sign(&j.Permit, result, started.UnixNano(), finished.UnixNano())
	}
	held := h.leases.release(j.claim(), j)
	switch {
	case err == nil:
		h.remember(j, result, finished)
		if h.log.put(entry{attempt: attempt{j.Key, j.Attempt}, receipt: j.made.Bytes(), checked: &j.made, safe: ended}) {
			return
		}
	case held:
		h.post(receipt.Answer{Key: j.Key, Attempt: j.Attempt, Work: j.Work, Lost: h.secrets.hide(err).Error()})
	}
	ended()
}

// underWay tells that an attempt is about to be begun, and returns what tells of its end.
func (h *Host) underWay(j *job) (ended func()) {
	if h.cfg.UnderWay == nil || j.Accepted != "" {
		return func() {}
	}
	return h.cfg.UnderWay(j.Permit)
}

// fenced ends a job whose attempt must not be made.
func (h *Host) fenced(j *job) {
	held := h.leases.release(j.claim(), j)
	if err := h.giveBack(j); err != nil && held {
		h.post(receipt.Answer{Key: j.Key, Attempt: j.Attempt, Work: j.Work, Lost: err.Error()})
	}
}

// remember keeps what the outside asked for until Retry comes.
func (h *Host) remember(j *job, result Result, finished time.Time) {
	if result.RetryAfter <= 0 || !j.effect.goesOn(&j.Permit, &result) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notBefore[j.Key] = finished.Add(min(result.RetryAfter, maxRetryAfter))
}

// goesOn reports whether another attempt may follow one that came to a result.
func (e *effect) goesOn(p *receipt.Permit, r *Result) bool {
	switch r.Class {
	case receipt.OutcomeAccepted:
		return true
	case receipt.OutcomeRetryableFailure:
		return p.Accepted != "" || p.Attempt < e.declared.Retry.Attempts
	default:
		return false
	}
}

func (h *Host) call(j *job) Call { return h.callFor(j, h.cfg.World) }

// callFor is the call of an attempt that a world made: this one, or of a receipt that
// a fork has from its parent, that.
func (h *Host) callFor(j *job, world string) Call {
	c := Call{Permit: j.Permit, External: j.Key.External(world), Cap: h.cfg.Manifest.Caps[j.Cap]}
	if j.effect.declared.ExternalKey == manifest.ExternalPerAttempt {
		c.External += ":" + strconv.FormatUint(j.Attempt, 10)
	}
	return c
}

// perform calls the adapter; its panic is its own fault, not the world's end.
func perform(ctx context.Context, a Adapter, call Call) (result Result, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the adapter of %s panicked on %s: %v", call.Permit.Kind, call.Permit.Step, fault)
		}
	}()
	result, err = a.Perform(ctx, call)
	result.Short = result.Short && result.Unsent
	if err == nil {
		err = result.check()
	}
	return result, err
}

// asking is an adapter that only asks about what the outside has accepted.
type asking struct{ Adapter }

// adapterFor returns what is to make an attempt.
func (e *effect) adapterFor(p *receipt.Permit) Adapter {
	if p.Accepted != "" {
		return asking{e.adapter}
	}
	return e.adapter
}

// Perform asks.
func (a asking) Perform(ctx context.Context, call Call) (Result, error) {
	if to, ok := a.Adapter.(Accepting); ok {
		return to.Ask(ctx, call)
	}
	return Result{}, fmt.Errorf("its adapter cannot be asked about %q, which another one had accepted", call.Permit.Accepted)
}

// errUnwanted ends an attempt that only asks what came of something which the cell has
// cancelled meanwhile.
var errUnwanted = errors.New("host: nobody wants any more what it asks about")

// isOver reports whether an attempt that asked knows what came of it, or that nobody will.
func isOver(r *Result, err error) bool {
	if err != nil {
		return !errors.Is(err, context.Canceled)
	}
	return r.Class != receipt.OutcomeAccepted && r.Class != receipt.OutcomeRetryableFailure
}

// overdue reports whether what the outside has accepted should have ended.
func (j *job) overdue(now time.Time) bool {
	return j.AskUntil > 0 && now.UnixNano() >= j.AskUntil
}

// stillAtWork returns an error where an attempt that asked was not the first to hear so
// late that what the outside has accepted has not ended, or to hear nothing.
func (j *job) stillAtWork(r *Result, now time.Time) error {
	if j.Accepted == "" || !j.overdue(now) || isOver(r, nil) {
		return nil
	}
	said := "it cannot be asked"
	if a, err := receipt.DecodeAccepted(r.Payload); err == nil && r.Class == receipt.OutcomeAccepted {
		said = a.Message
	}
	until := time.Unix(0, j.AskUntil).UTC().Format(time.RFC3339)
	return fmt.Errorf("%s for %s: the outside has not ended what it calls %q, and was to by %s: %s", j.Kind, j.Step, j.Accepted, until, said)
}

// check refuses what no adapter can say of an effect.
func (r *Result) check() error {
	switch r.Status {
	case receipt.StatusOK:
		if r.Class != "" {
			return fmt.Errorf("the adapter gave the outcome %q with the status ok", r.Class)
		}
		return nil
	case receipt.StatusError, receipt.StatusTimeout, receipt.StatusCancelled:
	default:
		return fmt.Errorf("the adapter gave the status %q", r.Status)
	}
	switch r.Class {
	case "", receipt.OutcomePermanentFailure, receipt.OutcomeRetryableFailure, receipt.OutcomeCompensatable:
		return nil
	case receipt.OutcomeInputRequired:
		_, err := receipt.DecodeQuestion(r.Payload)
		return err
	case receipt.OutcomeAccepted:
		_, err := receipt.DecodeAccepted(r.Payload)
		return err
	default:
		return fmt.Errorf("the adapter gave the outcome %q", r.Class)
	}
}

// calls is how many calls a result costs.
func (r *Result) calls() uint64 {
	if r.Unsent {
		return 0
	}
	return 1
}

// sign makes the receipt of a permit.
func (h *Host) sign(p *receipt.Permit, result Result, started, finished int64) (receipt.Checked, error) {
	r := receipt.New(h.cfg.World, *p, result.Status, result.Payload)
	r.StartedAt, r.FinishedAt = started, finished
	return h.complete(r, result)
}

// complete fills a result in and signs: or the one that says that the receipt
// would be too large.
func (h *Host) complete(r receipt.Receipt, result Result) (receipt.Checked, error) {
	signed, err := h.fill(r, result)
	if n := len(signed.Bytes()); err == nil && uint64(n) > h.limit {
		signed, err = h.fill(r, tooLarge(result, n, h.limit))
	}
	if err == nil && uint64(len(signed.Bytes())) > h.limit {
		err = receipt.ErrOverSize
	}
	return signed, err
}

func (h *Host) fill(r receipt.Receipt, result Result) (receipt.Checked, error) {
	r.Status, r.Payload = result.Status, result.Payload
	r.Cost, r.Exact, r.Class, r.Unsent = result.Cost, result.Exact, result.Class, result.Unsent
	r.ExternalRef, r.StateChange = result.ExternalRef, result.StateChange
	return h.cfg.Keys.SignChecked(r)
}

// tooLarge replaces a result whose receipt no world would take. What happened has
// left something behind, so it is not one that may be asked for again without a word.
func tooLarge(result Result, size int, limit uint64) Result {
	class := result.Class
	switch {
	case result.Status == receipt.StatusOK:
		class = receipt.OutcomeCompensatable
	case class == receipt.OutcomeInputRequired, class == receipt.OutcomeAccepted:
		class = receipt.OutcomePermanentFailure // nobody can read the question, or the name
	}
	text := fmt.Sprintf("the receipt would have %d bytes; limits.receipt is %d", size, limit)
	return Result{Status: receipt.StatusError, Payload: failure("receipt_too_large", text), Class: class, Cost: result.Cost, Exact: result.Exact, Unsent: result.Unsent}
}

// settles returns after how long an attempt in doubt cannot arrive outside any more.
func (e *effect) settles() time.Duration { return time.Duration(e.declared.Settles()) }

// verify asks a verifier. Where it cannot tell, a person has to.
func (h *Host) verify(j *job) {
	ctx, cancel := context.WithDeadline(h.tame, j.deadline)
	defer cancel()
	asked := time.Now()
	found, err := h.find(ctx, j)
	for Short(err) && ctx.Err() == nil {
		awaitMoment(ctx)
		found, err = h.find(ctx, j)
	}
	if err != nil {
		found = receipt.Found{Verdict: receipt.Unknown, Reason: err.Error()}
	}
	found.Reason = h.secrets.redactText(found.Reason)
	found.Payload = h.secrets.redact(Result{Payload: found.Payload}).Payload
	held := h.leases.release(j.claim(), j)
	h.leases.forget(j.claim(), j.Attempt) // it may be asked again
	if !held {
		h.yield(j)
		return
	}
	if j.Work == receipt.Verify && h.askLater(j, &found, asked) {
		return
	}
	h.post(receipt.Answer{Key: j.Key, Attempt: j.Attempt, Work: j.Work, Found: &found})
}

func (h *Host) find(ctx context.Context, j *job) (found receipt.Found, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the verifier of %s panicked: %v", j.Kind, fault)
		}
	}()
	if j.effect.verifier == nil {
		return found, fmt.Errorf("%s declares no verifier", j.Kind)
	}
	if j.Work == receipt.Verify {
		found, err = j.effect.verifier.Verify(ctx, h.call(j))
	} else {
		var r *receipt.Receipt
		if r, err = receipt.Decode(j.Receipt); err == nil {
			found, err = j.effect.verifier.Confirm(ctx, h.callFor(j, r.World), r)
		}
	}
	if err != nil {
		return found, err
	}
	switch found.Verdict {
	case receipt.Happened, receipt.NotHappened, receipt.Unknown:
	default:
		return found, fmt.Errorf("the verifier of %s gave the verdict %q", j.Kind, found.Verdict)
	}
	if len(found.Payload) == 0 {
		return found, nil
	}
	if err := canon.Valid(found.Payload); err != nil {
		return found, fmt.Errorf("the verifier of %s: payload: %w", j.Kind, err)
	}
	return found, nil
}
