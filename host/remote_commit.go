package host

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/worldkernel/worldkernel/receipt"
)

// Commit takes the result of an attempt that a worker holds, or has held: the
// receipt that the worker's own Host has made, whose signature means nothing
// here. It is signed anew, and durable when Commit returns nil: then the worker
// may forget it. retryAfter is what the worker's RetryAfter says. To commit
// the same again does no harm; ErrOtherResult where it is not the same.
//
// ErrBadReceipt says that it is not for the attempt that was handed out, or that
// no adapter can say this, and ErrNotHeld that it is another worker's.
// ErrUnknownAttempt says that this Host has not handed the attempt out, or that
// the journal has its result already: then Sign makes a receipt that
// World.Receive can judge. Any other error is ErrClosed or the effect store's:
// the worker has to commit again, to the Host that comes next.
func (h *Host) Commit(worker string, data []byte, retryAfter time.Duration) error {
	r, result, signed, err := h.checkReceipt(data)
	if err != nil {
		return err
	}
	e, first, err := h.accept(worker, r, signed)
	if err != nil || e == nil {
		return err
	}
	if first {
		result.RetryAfter = retryAfter
		if err := e.job.stillAtWork(&result, time.Now()); err != nil {
			h.lose(e, err)
			return nil
		}
		h.remember(e.job, result, time.Now())
		if !h.log.put(entry{attempt: attempt{r.Key, r.Attempt}, receipt: signed, sure: true}) {
			h.dropped(e)
		}
	}
	<-e.finished
	return e.err // nobody writes it any more
}

// accept finds the attempt that a receipt answers, or none where the result is
// durable already, and reports whether it is the first one.
func (h *Host) accept(worker string, r *receipt.Receipt, signed []byte) (e *remoteTask, first bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := attempt{r.Key, r.Attempt}
	if e = h.remote.tasks[at]; e == nil {
		if h.log == nil {
			return nil, false, ErrUnknownAttempt
		}
		stored, ok := h.log.get(at)
		if !ok {
			return nil, false, ErrUnknownAttempt
		}
		return nil, false, sameResult(stored, signed)
	}
	switch b := &e.blank; {
	case e.job == nil || e.job.worker != worker:
		return nil, false, ErrNotHeld
	case r.Nonce != b.Nonce:
		return nil, false, fmt.Errorf("%w: %w", ErrBadReceipt, receipt.ErrWrongAttempt)
	case r.Kind != b.Kind || r.ParamsHash != b.ParamsHash || r.Cap != b.Cap:
		return nil, false, fmt.Errorf("%w: %w", ErrBadReceipt, receipt.ErrWrongIntent)
	case e.result != nil:
		return e, false, sameResult(e.result, signed)
	case h.failed != nil:
		return nil, false, h.failed
	}
	h.takeBack(e)
	e.result = signed
	return e, true, nil
}

// lose ends an attempt whose result is no use to anybody.
func (h *Host) lose(e *remoteTask, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addAnswer(receipt.Answer{Key: e.Key, Attempt: e.Attempt, Work: e.Work, Lost: h.secrets.hide(why).Error()})
	e.finish(nil)
}

// dropped is told that the effect store did not take a result. Where neither
// Close nor a failure shows yet, fail is about to be called.
func (h *Host) dropped(e *remoteTask) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.over(); err != nil {
		e.finish(err)
	}
}

// Sign makes a receipt of the world of one that a worker has made, as Commit
// does, and stores and answers nothing. It is for ErrUnknownAttempt: World.Receive
// knows the attempt, by its nonce, and whether its result is still wanted. What
// that refuses the worker may forget: receipt.ErrDuplicate, and also
// receipt.ErrWrongAttempt, say that it was taken before, or never will be.
func (h *Host) Sign(data []byte) ([]byte, error) {
	_, _, signed, err := h.checkReceipt(data)
	return signed, err
}

// checkReceipt checks what can be said of a worker's receipt without its attempt, and signs
// it anew.
func (h *Host) checkReceipt(data []byte) (r *receipt.Receipt, result Result, signed []byte, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrBadReceipt, err)
		}
	}()
	if uint64(len(data)) > h.limit {
		return nil, result, nil, receipt.ErrOverSize
	}
	if r, err = receipt.Decode(data); err != nil {
		return nil, result, nil, err
	}
	// It is signed with the worker's own key, which is not among ours.
	if err := h.cfg.Keys.Verify(r); errors.Is(err, receipt.ErrWrongWorld) || errors.Is(err, receipt.ErrBadHash) {
		return nil, result, nil, err
	}
	if h.effects[r.Kind] != nil && !h.Performs(r.Kind) {
		return nil, result, nil, fmt.Errorf("%s is not performed by workers", r.Kind)
	}
	result = Result{
		Status: r.Status, Class: r.Class, Unsent: r.Unsent, Payload: r.Payload, Cost: r.Cost, Exact: r.Exact,
		ExternalRef: r.ExternalRef, StateChange: r.StateChange,
	}
	if err := result.check(); err != nil {
		return nil, result, nil, err
	}
	result.Cost.Calls = result.calls()
	made, err := h.complete(*r, result)
	return r, result, made.Bytes(), err
}

// sameResult returns ErrOtherResult where two receipts say different things,
// whatever keys of this world have signed them.
func sameResult(a, b []byte) error {
	var said [2][]byte
	for i, data := range [][]byte{a, b} {
		r, err := receipt.Decode(data)
		if err != nil {
			return err
		}
		r.KeyID, r.Hash, r.MAC = "", receipt.Hash{}, receipt.Hash{}
		if said[i], err = r.Encode(); err != nil {
			return err
		}
	}
	if !bytes.Equal(said[0], said[1]) {
		return ErrOtherResult
	}
	return nil
}
