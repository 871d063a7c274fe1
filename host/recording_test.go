package host_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

func each(all ...host.Recorded) iter.Seq2[host.Recorded, error] {
	return func(yield func(host.Recorded, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestRecordingAnswersEveryEffect(t *testing.T) {
	said := func(occurrence uint64, r host.Result) host.Recorded {
		return host.Recorded{Cell: "agent/1", Kind: "k", Params: data(t, `{"x": 1}`), Occurrence: occurrence, Result: r}
	}
	rec, err := host.NewRecording("other", each(
		said(0, host.Result{Status: receipt.StatusOK, Payload: data(t, `"rolled back"`)}),
		said(1, host.Result{
			Status: receipt.StatusTimeout, Class: receipt.OutcomeRetryableFailure, Unsent: true, Cost: receipt.Cost{Tokens: 3},
		}),
		said(0, host.Result{Status: receipt.StatusOK, Payload: data(t, `"first"`)}),
	))
	require.NoError(t, err)
	s := newLive("", nil) // live, but for the recording
	s.effects["k"] = manifest.Effect{Adapter: "there is none", Verify: &manifest.Verify{Adapter: "nor here"}}
	s.more = func(cfg *host.Config) { cfg.Recording = rec }
	h := s.open(t)
	require.False(t, h.Live(&receipt.Intent{Kind: "k"}))

	p := permit(t, "agent/1", "k", `{"x": 1}`, 0)
	r, err := ask(t, h, p)
	require.NoError(t, err)
	require.Equal(t, data(t, `"first"`), r.Payload)
	require.Equal(t, p.Time, r.StartedAt, "as of a deterministic effect")
	r, err = ask(t, h, permit(t, "agent/1", "k", `{"x": 1}`, 1))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusTimeout, r.Status)
	require.Equal(t, receipt.OutcomeRetryableFailure, r.Class)
	require.True(t, r.Unsent)
	require.Equal(t, receipt.Cost{Tokens: 3}, r.Cost)

	_, err = ask(t, h, permit(t, "agent/1", "k", `{"x": 1}`, 7))
	var miss *host.MissError
	require.ErrorAs(t, err, &miss)
	require.Equal(t, "other", miss.File)
	require.Contains(t, miss.Nearest, "other occurrences: 2, the first with occurrence 0")
	_, err = ask(t, h, permit(t, "agent/2", "k", `{"x": 2}`, 0))
	require.ErrorAs(t, err, &miss)
	require.Contains(t, miss.Nearest, `cell agent/1, params {"x":1}`)

	h.Start(task(receipt.Verify, p))
	require.Equal(t, receipt.Unknown, next(t, h).Found.Verdict, "the outside is not asked")
}

// Where stubs answer what is theirs nobody asks the outside about it: its verifier is not
// even made.
func TestWhatStubsAnswerHasNoVerifier(t *testing.T) {
	rec, err := host.NewRecording("other", each())
	require.NoError(t, err)
	s := new(setup)
	s.adapter("k", result(receipt.StatusOK, nil))
	e := s.effects["k"]
	e.Verify = &manifest.Verify{Adapter: "ask"}
	s.effects["k"] = e
	s.more = func(cfg *host.Config) {
		cfg.Recording, cfg.Live, cfg.Stubs = rec, manifest.Live{"k"}, true
		cfg.Verifiers = map[string]host.VerifierFactory{"ask": func(host.Setup) (host.Verifier, error) {
			t.Error("it is made")
			return nil, nil
		}}
	}
	h := s.open(t)
	_, err = ask(t, h, nth(t, 1))
	require.NoError(t, err)
	h.Start(task(receipt.Verify, nth(t, 1)))
	require.Equal(t, receipt.Unknown, next(t, h).Found.Verdict)
}

func TestRecordingHoldsAnswersOfTheOutsideOnly(t *testing.T) {
	_, err := host.NewRecording("other", each(host.Recorded{Result: host.Result{Status: receipt.StatusDenied}}))
	require.Error(t, err)
	fault := errors.New("no such record")
	_, err = host.NewRecording("other", func(yield func(host.Recorded, error) bool) { yield(host.Recorded{}, fault) })
	require.ErrorIs(t, err, fault)
}
