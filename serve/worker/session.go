package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
)

// session is the work for one world under one manifest.
type session struct {
	*worldWorker
	host  *host.Host
	rules *rules
	life  context.Context // of what has to be done in any case
	kinds []string

	places  chan struct{} // a token for each attempt that can be taken on
	commits sync.WaitGroup

	end  context.CancelCauseFunc // of asking for more
	over context.Context
}

func newSession(life context.Context, w *worldWorker, h *host.Host, r *rules) *session {
	s := &session{worldWorker: w, host: h, rules: r, life: life, kinds: kindsOf(h, r), places: make(chan struct{}, w.cfg.Workers)}
	for range cap(s.places) {
		s.places <- struct{}{}
	}
	return s
}

// run works until ctx ends or another manifest is in force, and returns the attempts
// that were acquired under that. An error is final.
func (s *session) run(ctx context.Context, left []offer) (later []offer, err error) {
	s.over, s.end = context.WithCancelCause(ctx)
	defer s.end(nil)
	s.deliver() // what an earlier process or session has left comes first
	for range left {
		<-s.places
	}
	var hearing sync.WaitGroup
	hearing.Go(s.hear)
	s.perform(left)
	later, err = s.acquireAttempts()
	s.clear()
	closed := s.host.Close()
	hearing.Wait()
	s.commits.Wait()
	if ctx.Err() != nil && s.life.Err() == nil {
		s.deliver() // what Close has given back
	}
	s.leases.dropOthers(later)
	if cause := context.Cause(s.over); cause != nil && !errors.Is(cause, context.Cause(ctx)) {
		err = cause
	}
	return later, errors.Join(err, closed)
}

// deliver hands in what the effect store holds.
func (s *session) deliver() {
	var all sync.WaitGroup
	slots := make(chan struct{}, s.cfg.Workers)
	for _, data := range s.host.Stored() {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			s.commit(data)
		})
	}
	all.Wait()
}

// acquireAttempts acquires attempts and begins them.
func (s *session) acquireAttempts() (later []offer, err error) {
	for s.over.Err() == nil {
		free := s.takePlaces()
		offers, in, err := s.acquire(free)
		for range free - len(offers) {
			s.places <- struct{}{}
		}
		switch {
		case err != nil:
			if refusal(err) != nil && s.over.Err() == nil {
				s.log.Error("the server refuses the worker, which ends after what it has begun", "error", err)
			}
			return nil, unlessOver(s.over, err)
		case in != s.rules.hash:
			for range offers {
				s.places <- struct{}{} // they are for the next session
			}
			return offers, nil
		}
		s.perform(offers)
	}
	return nil, nil
}

// takePlaces takes the free places, as many as can be asked for: at least one, unless
// that is over.
func (s *session) takePlaces() (n int) {
	select {
	case <-s.places:
		n++
	case <-s.over.Done():
		return 0
	}
	for n < host.MaxOffers {
		select {
		case <-s.places:
			n++
		default:
			return n
		}
	}
	return n
}

// acquire asks for attempts and returns them with the manifest in force. Once it
// has asked it waits for the answer, also where there is nothing more to do: what
// is in it would be lost to everybody.
func (s *session) acquire(most int) (out []offer, in manifest.Hash, err error) {
	in = s.rules.hash
	if most == 0 {
		return nil, in, nil
	}
	if len(s.kinds) == 0 {
		in, err = s.changed()
		return nil, in, err
	}
	err = persist(s.over, s.logFailure("effects"), func(context.Context) error {
		if s.over.Err() != nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(s.life, pollWait+callLimit)
		defer cancel()
		var answer api.Offers
		asked := time.Now()
		err := s.client.postAndRead(ctx, ofWorld(s.id, "/effects/acquire"), api.AcquireRequest{
			Worker: s.cfg.Name, Kinds: s.kinds, Most: most, WaitSeconds: int(pollWait / time.Second),
		}, func(body io.Reader) error { return readOffers(body, most, &answer) })
		if err != nil {
			return err
		}
		in = answer.Manifest
		out = s.accept(&answer, asked)
		return nil
	})
	return out, in, err
}

// accept takes note of what was acquired. What was long on its way is renewed first.
func (s *session) accept(answer *api.Offers, asked time.Time) []offer {
	var out []offer
	var late sync.WaitGroup
	waited := time.Since(asked)
	for i := range answer.Offers {
		o := &answer.Offers[i]
		p, err := o.Permit()
		if err != nil {
			s.log.Error("an offer cannot be read", "error", err)
			continue
		}
		h := s.leases.add(&p, time.Duration(o.LeaseMillis)*time.Millisecond, asked)
		if waited > h.term/3 {
			late.Go(func() { s.renew(&p, h) })
		}
		go s.keep(p, h)
		out = append(out, offer{p, answer.Manifest})
	}
	late.Wait()
	return out
}

// changed waits for a while and returns the manifest in force then. It stands in for
// acquire where nothing can be performed here.
func (s *session) changed() (manifest.Hash, error) {
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.over.Done():
		return s.rules.hash, nil
	}
	r, err := s.fetch(s.over)
	return r.hash, err
}

// perform has the host perform what was acquired. What must not be is fenced off.
func (s *session) perform(offers []offer) {
	tasks := make([]receipt.Task, 0, len(offers))
	for i := range offers {
		p := offers[i].permit
		if !s.host.Live(&p.Intent) {
			s.log.Warn("an effect cannot be performed any more: its lease runs out", "kind", p.Kind, "key", p.Key.String())
			s.done(attemptOf(&p))
			continue
		}
		if offers[i].rules != s.rules.hash || s.over.Err() != nil {
			s.leases.lose(attemptOf(&p))
		}
		tasks = append(tasks, receipt.Task{Work: receipt.Perform, Permit: p})
	}
	s.host.Start(tasks)
}

// hear takes what the host has to say, until it is closed.
func (s *session) hear() {
	for {
		err := s.host.Wait(context.Background())
		if err == nil {
			var answers []receipt.Answer
			answers, err = s.host.Answers()
			for i := range answers {
				s.answered(&answers[i])
			}
		}
		if errors.Is(err, host.ErrClosed) {
			return
		}
		if err != nil {
			s.end(err) // the disk: no result could be kept
			return
		}
	}
}

// answered hands a result in, and makes the place free after that.
func (s *session) answered(a *receipt.Answer) {
	at := attempt{a.Key, a.Attempt}
	if a.Receipt == nil {
		s.log.Warn("nobody can tell what came of an effect", "key", a.Key.String(), "attempt", a.Attempt, "reason", a.Lost)
		s.commits.Go(func() {
			defer s.done(at)
			s.lose(at, a.Lost)
		})
		return
	}
	s.commits.Go(func() {
		defer s.done(at)
		s.commit(a.Receipt)
	})
}

// lose says that nobody can tell what came of an attempt. Where the server does not hear
// of it the lease runs out.
func (s *session) lose(at attempt, why string) {
	h := s.leases.leaseOf(at)
	if h == nil {
		return // it was lost before
	}
	_ = persist(s.life, s.logFailure("doubt"), func(ctx context.Context) error {
		return s.client.post(ctx, ofWorld(s.id, "/effects/lose"), api.LoseRequest{
			RenewRequest: api.RenewRequest{Worker: s.cfg.Name, Key: at.key, Attempt: at.number, Nonce: h.nonce.String()}, Reason: why,
		}, new(struct{}))
	})
}

func (s *session) done(at attempt) {
	if s.leases.drop(at) { // else it was lost before, and its result has come after all
		s.places <- struct{}{}
	}
}

// commit hands a result in until the server has it or refuses it for good. It stays
// in the effect store where neither comes in time.
func (s *session) commit(data []byte) {
	r, err := receipt.Decode(data)
	if err != nil {
		return // but its own host has made it
	}
	wait := s.host.RetryAfter(r.Key)
	err = persist(s.life, s.logFailure("result"), func(ctx context.Context) error {
		return s.client.post(ctx, ofWorld(s.id, "/effects/commit"), api.CommitRequest{
			Worker: s.cfg.Name, Receipt: data, RetryAfterMillis: wait.Milliseconds(),
		}, new(struct{}))
	})
	said := refusal(err)
	switch {
	case err == nil:
		s.logResult(r)
	case said == nil: // life is over
		return
	case !final(said):
		s.end(fmt.Errorf("hand a result in: %w", err)) // it may be taken one day
		return
	case said.name == "answered": // and nobody has told us
	default:
		s.log.Warn("the server does not take a result", "key", r.Key.String(), "attempt", r.Attempt, "reason", said.detail)
	}
	s.host.Start([]receipt.Task{{Work: receipt.Forget, Permit: receipt.Permit{
		Intent: receipt.Intent{Key: r.Key, Kind: r.Kind}, Attempt: r.Attempt,
	}}})
}

// logResult says what came of an effect.
func (s *session) logResult(r *receipt.Receipt) {
	about := []any{"kind", r.Kind, "key", r.Key.String(), "attempt", r.Attempt, "status", r.Status}
	switch r.Status {
	case receipt.StatusOK, receipt.StatusCancelled:
		s.log.Debug("an effect was performed", about...)
	default:
		s.log.Warn("an effect has failed", append(about, "outcome", r.Outcome(), "reason", view.FailureOf(r))...)
	}
}

// final reports whether a result will never be taken. Where the world is not there,
// or the token is not good, it may be one day.
func final(said *refusedError) bool {
	switch said.status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// clear waits until nothing is under way, for as long as that may take.
func (s *session) clear() {
	timer := time.NewTimer(s.cfg.Grace)
	defer timer.Stop()
	for range cap(s.places) {
		select {
		case <-s.places:
		case <-timer.C:
			return
		}
	}
}
