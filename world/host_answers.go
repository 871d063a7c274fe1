package world

import (
	"context"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// recover asks the host about the effects that were under way when the last process ended; every lease has
// run out since. Tasks to do again wait until the world is driven, so opening a world for a look touches
// nothing outside.
func (w *World) recover() error {
	if w.host == nil {
		return nil // without keys: the world can only be read
	}
	k := w.k
	var lost []receipt.Task
	for _, e := range k.ledger.InFlight() {
		if w.host.Live(&e.Intent) {
			lost = append(lost, receipt.Task{Work: receipt.Recover, Permit: k.permit(e)})
		} else {
			w.held = append(w.held, receipt.Task{Work: receipt.Perform, Permit: k.permit(e)})
		}
	}
	for _, e := range k.ledger.Waiting() {
		wait := receipt.Retry
		if e.Accepted() != "" && k.cancelledByCell(e) { // the outside hears of the cancellation now
			wait = receipt.Hasten
		}
		w.held = append(w.held, e.Task(wait, e.Attempt))
	}
	for _, e := range k.ledger.In(receipt.StateInDoubt) {
		if e.Waiting {
			w.held = append(w.held, receipt.Task{Work: receipt.Verify, Permit: k.permit(e)})
		}
		lost = append(lost, receipt.Task{Work: receipt.Recover, Permit: k.permit(e)}) // a late result may have been stored
	}
	if len(lost) == 0 {
		return nil
	}
	w.host.Start(lost)
	answers, err := w.host.Answers()
	if err != nil {
		return err
	}
	for _, a := range answers {
		if a.Unbegun {
			w.held = append(w.held, receipt.Task{Work: receipt.Perform, Permit: k.permit(k.ledger.Entry(a.Key))})
			continue // startTasks leaves it out if it is in doubt
		}
		if a.Lost == "" {
			w.came = append(w.came, a) // its result is durable in the effect store
			continue
		}
		if err := k.expire(a.Key, a.Attempt, a.Lost); err != nil && !errors.Is(err, errNotInFlight) {
			return err
		}
	}
	w.held = append(w.held, k.tasks...) // tasks of expired intents wait, too
	k.tasks = nil
	return w.sync()
}

// startHeld hands the host the tasks that waited since the world was opened.
func (w *World) startHeld() error {
	if len(w.held) == 0 {
		return nil
	}
	if err := w.sync(); err != nil {
		return err
	}
	held := w.held
	w.held = nil
	w.startTasks(held)
	return nil
}

// startTasks hands the host tasks with durable records, except attempts that Receive has ended since.
func (w *World) startTasks(tasks []receipt.Task) {
	todo := tasks[:0]
	for _, t := range tasks {
		switch {
		case t.Work == receipt.Perform && !w.inFlight(t.Key, t.Attempt):
			continue
		case (t.Work == receipt.Forget || t.Work == receipt.GiveBack) && !w.host.Live(&w.k.ledger.Entry(t.Key).Intent):
			continue // nothing was stored, and the answer comes at the barrier
		case t.Work == receipt.Verify:
			w.asked++
		}
		todo = append(todo, t)
	}
	if w.k.stills > 0 { // Hold takes back what was not begun
		for _, t := range todo {
			if t.Work == receipt.Perform && w.host.Live(&t.Intent) {
				todo = append(todo, w.giveBack(t.Permit))
			}
		}
	}
	if len(todo) > 0 {
		w.host.Start(todo)
	}
}

// barrier waits for the receipts of all deterministic effects in flight, also of new ones, and admits them
// in the order of their permits. Receipts of live effects are admitted as they come; a patient barrier waits
// for them, too.
func (w *World) barrier(ctx context.Context, patient bool) error {
	for {
		admit := w.admit
		if w.passing {
			admit = w.gather
		}
		if err := admit(); err != nil {
			return err
		}
		e := w.firstDue()
		if e == nil {
			if err := w.askConfirmations(); err != nil {
				return w.syncAfter(err)
			}
			if patient && (len(w.k.ledger.InFlight()) > 0 || w.awaitsConfirmation()) {
				if err := w.more(ctx); err != nil {
					return w.syncAfter(err)
				}
				continue
			}
			return nil
		}
		data, err := w.await(ctx, e.Intent.Key)
		if err == nil && data != nil {
			if _, err = w.k.receive(data); err != nil && !w.host.Live(&e.Intent) {
				w.again(e)
			}
		}
		if err != nil {
			return w.syncAfter(err)
		}
		if err := w.appendFull(); err != nil {
			return err
		}
	}
}

// firstDue returns the deterministic effect in flight whose answer is next: the first permitted, or the one
// that w.telling names; nil: none.
func (w *World) firstDue() *receipt.Entry {
	if w.answerOrder != nil {
		return w.answerOrder(w.k.now, w.k.handled, w.k.ledger.InFlight())
	}
	for _, e := range w.k.ledger.InFlight() {
		if !w.host.Live(&e.Intent) {
			return e
		}
	}
	return nil
}

// await returns the receipt of a deterministic effect in flight; nil: the outcome is unknown, and the intent
// is in doubt now.
func (w *World) await(ctx context.Context, key receipt.Key) ([]byte, error) {
	for {
		if data, ok := w.answers[key]; ok {
			delete(w.answers, key)
			return data, nil
		}
		if a, ok := w.failures[key]; ok {
			delete(w.failures, key)
			if a.Lost != "" {
				return nil, w.k.expire(key, a.Attempt, a.Lost)
			}
			return nil, w.unanswered(w.k.ledger.Entry(key), a.Err)
		}
		if err := w.more(ctx); err != nil {
			return nil, err
		}
		if err := w.admit(); err != nil {
			return nil, err
		}
	}
}

// more blocks until the host has an answer, or a batch is durable whose tasks the host can begin.
func (w *World) more(ctx context.Context) error {
	if err := w.appendAll(); err != nil {
		return err
	}
	if err := w.startHeld(); err != nil {
		return err
	}
	if len(w.came) > 0 {
		return nil
	}
	if err := w.host.Wait(ctx); err != nil {
		return err
	}
	return w.finishDone()
}

// admit takes the host's answers. Answers of deterministic effects are kept until their turn, findings of
// verifiers until the end of the tick.
func (w *World) admit() error {
	if w.host == nil {
		return nil
	}
	answers, err := w.host.Answers()
	if err != nil {
		return w.syncAfter(err)
	}
	// Only after Answers, which resets Wake: a batch that becomes durable from here on wakes again.
	if err := w.finishDone(); err != nil {
		w.came = append(w.came, answers...)
		return err
	}
	if len(w.came) > 0 {
		answers = append(w.came, answers...)
		w.came = nil
	}
	for i := range answers {
		if err := w.takeAnswer(&answers[i]); err != nil {
			w.came = append(w.came, answers[i+1:]...)
			return w.syncAfter(err)
		}
		if err := w.appendFull(); err != nil {
			return err
		}
	}
	return nil
}

// takeAnswer handles an answer.
func (w *World) takeAnswer(a *receipt.Answer) error {
	e, inFlight := w.k.ledger.Entry(a.Key), w.inFlight(a.Key, a.Attempt)
	hasTurn := inFlight && (w.answerOrder != nil || !w.host.Live(&e.Intent)) // answers of its effect have an order
	var err error
	switch {
	case a.Work == receipt.Withdraw: // withdraw has looked at it
	case (a.Lost != "" || a.Err != nil && w.answerOrder != nil) && hasTurn:
		w.failures[a.Key] = *a
	case a.Err != nil:
		if !inFlight {
			return nil // Receive took a receipt for it meanwhile
		}
		return w.unanswered(e, a.Err)
	case a.Work == receipt.Confirm:
		return w.takeConfirmation(a)
	case a.Found != nil:
		w.asked--
		w.found = append(w.found, *a)
	case a.Due:
		err = w.k.due(a.Key, a.Attempt)
	case a.Lost != "":
		err = w.k.expire(a.Key, a.Attempt, a.Lost)
	case hasTurn:
		w.answers[a.Key] = a.Receipt
	default:
		if a.Checked != nil && a.Checked.By(w.k.keys) {
			_, err = w.k.receiveChecked(a.Checked)
		} else {
			_, err = w.k.receive(a.Receipt)
		}
		switch {
		case errors.Is(err, receipt.ErrDuplicate),
			errors.Is(err, receipt.ErrWrongAttempt) && !inFlight:
			err = nil // Receive took it meanwhile
		case errors.Is(err, receipt.ErrRevokedKey):
			err = w.k.expire(a.Key, a.Attempt, "its stored result is signed with a key that was revoked since")
		}
	}
	if errors.Is(err, errNotInFlight) {
		return nil
	}
	return err
}

// unanswered has an attempt made again when the world goes on, and returns the error.
func (w *World) unanswered(e *receipt.Entry, why error) error {
	w.again(e)
	return fmt.Errorf("world: effect %s of %s: %w", e.Intent.Kind, e.Intent.Step, why)
}

// decideFound resolves intents in doubt by the findings of verifiers. If a verifier could not tell, the
// intent stays in doubt for a person.
func (w *World) decideFound() error {
	for len(w.found) > 0 && !w.k.tickOpen() {
		a := w.found[0]
		w.found = w.found[1:]
		e := w.k.ledger.Entry(a.Key)
		if e == nil || e.State != receipt.StateInDoubt || e.Attempt != a.Attempt {
			continue
		}
		b := journal.Resolved{
			Key: a.Key, Params: e.Params, Payload: a.Found.Payload, Reason: a.Found.Reason,
			Actor: verifierActor + w.k.rules.effects[e.Intent.Kind].Verify.Adapter,
		}
		switch a.Found.Verdict {
		case receipt.Happened:
			b.How = journal.Executed
		case receipt.NotHappened:
			b.How = journal.NotExecuted
		default:
			continue
		}
		if err := w.k.resolve(b); err != nil {
			return w.syncAfter(err)
		}
		if err := w.deliverRecalled(); err != nil {
			return err
		}
	}
	return nil
}

// inFlight reports whether an attempt waits for its receipt.
func (w *World) inFlight(key receipt.Key, attempt uint64) bool {
	e := w.k.ledger.Entry(key)
	return e != nil && e.State == receipt.StateInFlight && e.Attempt == attempt
}

// Host performs the effects that the ledger permitted. It does so in its own
// goroutines; the World calls it from one.
type Host interface {
	// Live reports whether an intent touches the outside: then nobody may repeat an
	// attempt, and its answer is admitted when it comes. The others are
	// deterministic: the same permit gets the same receipt, whenever it is asked. It
	// says the same of an intent whenever it is asked, in every process.
	Live(in *receipt.Intent) bool
	// Start begins to do tasks, whose records are durable, and returns at once.
	// The answers to Recover and Withdraw are there when it returns, but for those of attempts
	// that workers elsewhere still perform, and of those that are given back.
	Start(tasks []receipt.Task)
	// Answers returns the answers that have come, oldest first, each once. It does
	// not block. After an error nothing more will come.
	Answers() ([]receipt.Answer, error)
	// Queued returns the attempts that Withdraw would take back.
	Queued() receipt.Queued
	// Wait blocks until Answers has something to return, Wake is called, or ctx
	// ends. Unlike the others, these two may be called beside them.
	Wait(ctx context.Context) error
	// Wake ends every Wait until Answers is called.
	Wake()
}
