package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// outside is a live adapter.
type outside func(ctx context.Context, call host.Call) (host.Result, error)

func (o outside) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	return o(ctx, call)
}

// newLive returns a setup whose effects of kind "k" the outside performs, and
// whose effect store is at path.
func newLive(path string, o outside) *setup {
	s := new(setup)
	s.adapter("k", o)
	s.effects["k"] = manifest.Effect{
		Adapter: "k", Timeout: int64(30 * time.Second), Retry: manifest.Retry{Attempts: 3, Backoff: int64(time.Second)},
	}
	s.more = func(cfg *host.Config) {
		cfg.EffectLog = path
		cfg.Manifest.Caps = map[string]manifest.Cap{"tools": {Type: manifest.CapAny}}
	}
	return s
}

func storeAt(t testing.TB) string { return filepath.Join(t.TempDir(), "effects") }

func task(work receipt.Work, p receipt.Permit) []receipt.Task {
	return []receipt.Task{{Work: work, Permit: p}}
}

func nth(t testing.TB, n int) receipt.Permit {
	return permit(t, "agent/1", "k", strconv.Itoa(n), uint64(n))
}

// recovered returns what a next process finds of an attempt.
func recovered(t testing.TB, path string, p receipt.Permit) receipt.Answer {
	t.Helper()
	h, err := newLive(path, nil).new(t)
	require.NoError(t, err)
	h.Start(task(receipt.Recover, p))
	answers, err := h.Answers()
	require.NoError(t, err)
	require.Len(t, answers, 1, "the answer is there when Start returns")
	require.NoError(t, h.Close())
	require.Equal(t, receipt.Recover, answers[0].Work)
	return answers[0]
}

func decoded(t testing.TB, a receipt.Answer) *receipt.Receipt {
	t.Helper()
	require.NoError(t, a.Err)
	require.Empty(t, a.Lost)
	r, err := receipt.Decode(a.Receipt)
	require.NoError(t, err)
	require.NoError(t, keys(t).Verify(r))
	require.Equal(t, a.Key, r.Key)
	require.Equal(t, a.Attempt, r.Attempt)
	return r
}

func ok(context.Context, host.Call) (host.Result, error) {
	return host.Result{Status: receipt.StatusOK}, nil
}

func TestLiveReceiptTellsWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		change := &receipt.StateChange{Resource: "file:x", ETag: "7"}
		s := newLive(storeAt(t), func(ctx context.Context, call host.Call) (host.Result, error) {
			deadline, _ := ctx.Deadline()
			require.Equal(t, 30*time.Second, time.Until(deadline))
			require.Equal(t, manifest.CapAny, call.Cap.Type)
			require.Equal(t, call.Permit.Key.External(town)+":1", call.External)
			<-time.After(3 * time.Second)
			return host.Result{
				Status: receipt.StatusError, Class: receipt.OutcomeCompensatable, Payload: data(t, `{"a": 1}`),
				Cost: receipt.Cost{Tokens: 5, Calls: 9}, ExternalRef: "ref", StateChange: change,
			}, nil
		})
		e := s.effects["k"]
		e.ExternalKey = manifest.ExternalPerAttempt
		s.effects["k"] = e
		h := s.open(t)
		require.True(t, h.Live(&receipt.Intent{Kind: "k"}))
		require.False(t, h.Live(&receipt.Intent{Kind: "unheard.of"}))
		start(h, nth(t, 1))
		r := decoded(t, next(t, h))
		require.Equal(t, receipt.StatusError, r.Status)
		require.Equal(t, receipt.OutcomeCompensatable, r.Class)
		require.Equal(t, receipt.Cost{Tokens: 5, Calls: 1}, r.Cost)
		require.Equal(t, "ref", r.ExternalRef)
		require.Equal(t, change, r.StateChange)
		require.Equal(t, data(t, `{"a": 1}`), r.Payload)
		require.Equal(t, began.UnixNano(), r.StartedAt)
		require.Equal(t, began.Add(3*time.Second).UnixNano(), r.FinishedAt)
	})
}

func TestUnsentCostsNoCall(t *testing.T) {
	s := newLive(storeAt(t), func(context.Context, host.Call) (host.Result, error) {
		return host.Result{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, Unsent: true}, nil
	})
	h := s.open(t)
	start(h, nth(t, 1))
	r := decoded(t, next(t, h))
	require.True(t, r.Unsent)
	require.Zero(t, r.Cost)
}

func TestResultIsStoredBeforeItIsAnswered(t *testing.T) {
	path, copied := storeAt(t), storeAt(t)
	h := newLive(path, ok).open(t)
	before := h.Stats()
	start(h, nth(t, 1))
	a := next(t, h)
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, file, 0o600)) // the process dies here
	require.Equal(t, a.Receipt, recovered(t, copied, nth(t, 1)).Receipt)
	require.Greater(t, h.Stats().EffectBytes, before.EffectBytes+uint64(len(a.Receipt)))
}

func TestWhatWasNotStoredIsLost(t *testing.T) {
	path := storeAt(t)
	h := newLive(path, ok).open(t)
	p := nth(t, 1)
	start(h, p)
	next(t, h)
	h.Start(task(receipt.Forget, p))
	require.NoError(t, h.Close())
	require.NotEmpty(t, recovered(t, path, p).Lost, "the journal has it")
	require.NotEmpty(t, recovered(t, path, nth(t, 2)).Lost)
	p.Attempt = 2
	require.NotEmpty(t, recovered(t, path, p).Lost)
}

func TestSamePermitIsExecutedOnce(t *testing.T) {
	var calls atomic.Int64
	asked := make(chan struct{}) // what is done already is answered with what is stored, each time
	path := storeAt(t)
	s := newLive(path, func(context.Context, host.Call) (host.Result, error) {
		calls.Add(1)
		<-asked
		return host.Result{Status: receipt.StatusOK}, nil
	})
	h := s.open(t)
	p := nth(t, 1)
	for range 10 {
		start(h, p, p)
	}
	close(asked)
	first := await(t, h, 1)[0] // who is late is answered with it, too
	start(h, p)                // and is answered with what is stored
	require.Equal(t, first.Receipt, await(t, h, 1)[0].Receipt)
	stale := p
	stale.Attempt = 0
	start(h, stale)
	require.NoError(t, h.Close())
	require.EqualValues(t, 1, calls.Load())

	h = s.open(t) // another process, that does not know better
	start(h, p)
	require.Equal(t, first.Receipt, next(t, h).Receipt)
	require.EqualValues(t, 1, calls.Load())
}

func TestWhatNobodyCanTellIsLost(t *testing.T) {
	for name, o := range map[string]outside{
		"error":           func(context.Context, host.Call) (host.Result, error) { return host.Result{}, errors.New("reset") },
		"panic":           func(context.Context, host.Call) (host.Result, error) { panic("boom") },
		"no return":       func(context.Context, host.Call) (host.Result, error) { runtime.Goexit(); panic("never") },
		"no status":       func(context.Context, host.Call) (host.Result, error) { return host.Result{}, nil },
		"kernel's status": outside(result(receipt.StatusDenied, nil)),
		"odd class": func(context.Context, host.Call) (host.Result, error) {
			return host.Result{Status: receipt.StatusError, Class: receipt.OutcomeSuccess}, nil
		},
		"class of ok": func(context.Context, host.Call) (host.Result, error) {
			return host.Result{Status: receipt.StatusOK, Class: receipt.OutcomeRetryableFailure}, nil
		},
		"faulty payload": outside(result(receipt.StatusOK, receipt.Data{0x18, 1})),
	} {
		path := storeAt(t)
		h := newLive(path, o).open(t)
		start(h, nth(t, 1))
		a := next(t, h)
		require.NotEmpty(t, a.Lost, name)
		require.NoError(t, a.Err, name)
		require.Nil(t, a.Receipt, name)
		require.NoError(t, h.Close())
		require.NotEmpty(t, recovered(t, path, nth(t, 1)).Lost, name)
	}
}

func TestNoSecretGetsOut(t *testing.T) {
	const secret = "correct horse battery"
	s := newLive(storeAt(t), nil)
	s.effects["d"] = manifest.Effect{Adapter: "d"}
	leak := func(e host.Setup, live bool) host.Adapter {
		spill := func(_ context.Context, call host.Call) (host.Result, error) {
			value, err := e.Secret("secret://pass")
			require.NoError(t, err)
			switch call.Permit.Params[0] { // small integers are one byte
			case 1:
				return host.Result{Status: receipt.StatusOK, Payload: canon.AppendText(nil, value), ExternalRef: value}, nil
			case 2:
				return host.Result{}, errors.New("sent " + value)
			default:
				panic(value)
			}
		}
		if live {
			return outside(spill)
		}
		return perform(spill)
	}
	s.adapters["k"] = func(e host.Setup) (host.Adapter, error) { return leak(e, true), nil }
	s.adapters["d"] = func(e host.Setup) (host.Adapter, error) { return leak(e, false), nil }
	more := s.more
	s.more = func(cfg *host.Config) {
		more(cfg)
		cfg.Secrets = func(name string) (string, error) {
			require.Equal(t, "pass", name)
			return secret, nil
		}
	}
	h := s.open(t)
	for n := 1; n <= 3; n++ {
		start(h, nth(t, n))
		a := next(t, h)
		require.NotContains(t, string(a.Receipt)+a.Lost, secret)
		require.Contains(t, string(a.Receipt)+a.Lost, "secret://pass")
	}
	for n := 2; n <= 3; n++ {
		start(h, permit(t, "agent/1", "d", strconv.Itoa(n), 0))
		a := next(t, h)
		require.NotContains(t, a.Err.Error(), secret)
		require.Contains(t, a.Err.Error(), "secret://pass")
	}
}

func TestAnAdapterThatHangsLosesItsLeaseAndItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var running, most atomic.Int64
		s := newLive(storeAt(t), func(_ context.Context, call host.Call) (host.Result, error) {
			if call.Permit.Key == nth(t, 1).Key {
				<-release // whatever its context says
			} else {
				most.Store(max(most.Load(), running.Add(1)))
				<-time.After(time.Second)
				running.Add(-1)
			}
			return host.Result{Status: receipt.StatusOK}, nil
		})
		s.workers = 1
		h := s.open(t)
		began := time.Now()
		start(h, nth(t, 1), nth(t, 2))
		a := next(t, h)
		require.Equal(t, nth(t, 1).Key, a.Key)
		require.NotEmpty(t, a.Lost)
		require.GreaterOrEqual(t, time.Since(began), 30*time.Second, "its timeout")
		require.LessOrEqual(t, time.Since(began), 45*time.Second)
		require.Equal(t, nth(t, 2).Key, decoded(t, next(t, h)).Key, "others have its place")
		start(h, nth(t, 1))
		synctest.Wait()
		none, err := h.Answers()
		require.NoError(t, err)
		require.Empty(t, none, "the attempt was made")
		close(release)
		require.Equal(t, nth(t, 1).Key, decoded(t, next(t, h)).Key, "the late result is not thrown away")
		start(h, nth(t, 3), nth(t, 4), nth(t, 5))
		synctest.Wait()
		start(h, nth(t, 6))
		await(t, h, 4)
		require.EqualValues(t, 1, most.Load(), "who came back has no place")
	})
}

func TestWhatWasLostIsNotLostAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := newLive(storeAt(t), func(context.Context, host.Call) (host.Result, error) {
			<-release
			return host.Result{}, errors.New("reset")
		}).open(t)
		start(h, nth(t, 1))
		require.NotEmpty(t, next(t, h).Lost)
		close(release)
		synctest.Wait()
		none, err := h.Answers()
		require.NoError(t, err)
		require.Empty(t, none)
	})
}

func TestWhatIsNotRecoveredIsForgottenWithTheFirstAttempt(t *testing.T) {
	path := storeAt(t)
	h := newLive(path, ok).open(t)
	start(h, nth(t, 1), nth(t, 2))
	await(t, h, 2)
	require.NoError(t, h.Close())

	h = newLive(path, ok).open(t)
	h.Start(task(receipt.Recover, nth(t, 1)))
	decoded(t, next(t, h))
	start(h, nth(t, 3))
	next(t, h)
	require.NoError(t, h.Close())
	decoded(t, recovered(t, path, nth(t, 1)))
	decoded(t, recovered(t, path, nth(t, 3)))
	require.NotEmpty(t, recovered(t, path, nth(t, 2)).Lost)
}

func TestASlowAdapterKeepsItsLeaseUntilItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLive(storeAt(t), func(ctx context.Context, _ host.Call) (host.Result, error) {
			<-ctx.Done()
			return host.Result{Status: receipt.StatusTimeout}, nil
		})
		h := s.open(t)
		start(h, nth(t, 1))
		require.Equal(t, receipt.StatusTimeout, decoded(t, next(t, h)).Status)
	})
}

func TestRetryIsDueAfterTheBackoffAndNotBeforeTheOutsideAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLive(storeAt(t), func(_ context.Context, call host.Call) (host.Result, error) {
			r := host.Result{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure}
			switch call.Permit.Key {
			case nth(t, 1).Key:
				r.RetryAfter = time.Minute
			case nth(t, 2).Key:
				r.RetryAfter = 1000 * time.Hour
			}
			return r, nil
		})
		h := s.open(t)
		for n, bounds := range [][2]time.Duration{
			{2 * time.Second, 2500 * time.Millisecond},
			{time.Minute, time.Minute},
			{time.Hour, time.Hour}, // there is an end to everything
		} {
			p := nth(t, n)
			p.Attempt = 2
			start(h, p)
			decoded(t, next(t, h))
			began := time.Now()
			h.Start(task(receipt.Retry, p))
			a := next(t, h)
			require.Equal(t, receipt.Answer{Key: p.Key, Attempt: 2, Work: receipt.Retry, Due: true}, a)
			require.GreaterOrEqual(t, time.Since(began), bounds[0])
			require.LessOrEqual(t, time.Since(began), bounds[1])
		}
	})
}

// asked is a verifier.
type asked struct {
	verify  func(context.Context, host.Call) (receipt.Found, error)
	confirm func(context.Context, *receipt.Receipt) (receipt.Found, error)
}

func (a asked) Verify(ctx context.Context, call host.Call) (receipt.Found, error) {
	return a.verify(ctx, call)
}

func (a asked) Confirm(ctx context.Context, _ host.Call, r *receipt.Receipt) (receipt.Found, error) {
	return a.confirm(ctx, r)
}

func withVerifier(t testing.TB, v asked) *setup {
	s := newLive(storeAt(t), ok)
	e := s.effects["k"]
	e.Verify = &manifest.Verify{Adapter: "ask", Config: data(t, `{"at": "x"}`)}
	s.effects["k"] = e
	more := s.more
	s.more = func(cfg *host.Config) {
		more(cfg)
		cfg.Verifiers = map[string]host.VerifierFactory{"ask": func(e host.Setup) (host.Verifier, error) {
			require.Equal(t, data(t, `{"at": "x"}`), e.Config)
			return v, nil
		}}
	}
	return s
}

func TestVerifierAnswersForTheOutside(t *testing.T) {
	happened := receipt.Found{Verdict: receipt.Happened, Payload: data(t, `1`), Reason: "it is there"}
	h := withVerifier(t, asked{
		verify: func(_ context.Context, call host.Call) (receipt.Found, error) {
			require.Equal(t, call.Permit.Key.External(town), call.External)
			return happened, nil
		},
		confirm: func(_ context.Context, r *receipt.Receipt) (receipt.Found, error) {
			return receipt.Found{Verdict: receipt.NotHappened, Reason: string(r.Status)}, nil
		},
	}).open(t)
	p := nth(t, 1)
	for range 2 { // as often as it is asked
		h.Start(task(receipt.Verify, p))
		require.Equal(t, receipt.Answer{Key: p.Key, Attempt: 1, Work: receipt.Verify, Found: &happened}, next(t, h))
	}
	start(h, p)
	a := next(t, h)
	h.Start([]receipt.Task{{Work: receipt.Confirm, Permit: p, Receipt: a.Receipt}})
	a = next(t, h)
	require.Equal(t, receipt.Confirm, a.Work)
	require.Equal(t, receipt.NotHappened, a.Found.Verdict)
	require.Equal(t, "ok", a.Found.Reason)
}

func TestVerifierThatCannotTellIsUnknown(t *testing.T) {
	for name, verify := range map[string]func(context.Context, host.Call) (receipt.Found, error){
		"error": func(context.Context, host.Call) (receipt.Found, error) {
			return receipt.Found{}, errors.New("no answer")
		},
		"panic":   func(context.Context, host.Call) (receipt.Found, error) { panic("boom") },
		"exit":    func(context.Context, host.Call) (receipt.Found, error) { runtime.Goexit(); panic("never") },
		"verdict": func(context.Context, host.Call) (receipt.Found, error) { return receipt.Found{Verdict: "perhaps"}, nil },
		"payload": func(context.Context, host.Call) (receipt.Found, error) {
			return receipt.Found{Verdict: receipt.Happened, Payload: receipt.Data{0x18, 1}}, nil
		},
	} {
		h := withVerifier(t, asked{verify: verify}).open(t)
		h.Start(task(receipt.Verify, nth(t, 1)))
		a := next(t, h)
		require.Equal(t, receipt.Unknown, a.Found.Verdict, name)
		require.NotEmpty(t, a.Found.Reason, name)
	}
	h := newLive(storeAt(t), ok).open(t)
	for _, work := range []receipt.Work{receipt.Verify, receipt.Confirm} {
		h.Start(task(work, nth(t, 1)))
		require.Equal(t, receipt.Unknown, next(t, h).Found.Verdict, "none is declared")
	}
	h = withVerifier(t, asked{}).open(t)
	h.Start(task(receipt.Confirm, nth(t, 1)))
	require.Equal(t, receipt.Unknown, next(t, h).Found.Verdict, "no receipt")
}

func TestAVerifierThatHangsIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := withVerifier(t, asked{verify: func(context.Context, host.Call) (receipt.Found, error) {
			<-release
			return receipt.Found{Verdict: receipt.Happened}, nil
		}})
		h := s.open(t)
		h.Start(task(receipt.Verify, nth(t, 1)))
		require.Equal(t, receipt.Unknown, next(t, h).Found.Verdict)
		close(release)
		synctest.Wait()
		none, err := h.Answers()
		require.NoError(t, err)
		require.Empty(t, none, "it is answered once")
	})
}

// TestAnAttemptIsUnderWayUntilItsResultIsSafe: from before it is begun, for then it is in doubt should the
// process end; and one that nobody can tell about until that is said.
func TestAnAttemptIsUnderWayUntilItsResultIsSafe(t *testing.T) {
	for _, lost := range []error{nil, errors.New("no answer")} {
		var under atomic.Int64
		a := own(t, new(logtest.Server))
		a.before = func(*receipt.AttemptChanges) { require.Equal(t, int64(1), under.Load()) }
		s := newShared(a, func(context.Context, host.Call) (host.Result, error) {
			require.Equal(t, int64(1), under.Load())
			return host.Result{Status: receipt.StatusOK}, lost
		})
		more := s.more
		s.more = func(cfg *host.Config) {
			more(cfg)
			cfg.UnderWay = func(receipt.Permit) func() {
				under.Add(1)
				return func() { under.Add(-1) }
			}
		}
		h := s.open(t)
		start(h, nth(t, 1))
		got := next(t, h)
		require.NoError(t, h.Close())
		require.Equal(t, lost != nil, got.Lost != "")
		require.Zero(t, under.Load())
	}
}
