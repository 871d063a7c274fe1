package host

import (
	"context"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// recorded answers from a Recording.
type recorded struct {
	*Recording
	means canon.Hash // of the effect now; zero: what it was asked as does not matter
}

// newRecorded returns the factory of one Host's recorded adapters.
func newRecorded() Factory {
	cassettes := make(shared[*Recording])
	return func(s Setup) (Adapter, error) {
		var config struct {
			Cassette string `cbor:"cassette"`
		}
		if err := s.Decode(&config); err != nil {
			return nil, err
		}
		r, err := cassettes.get(s, "cassette", func(data []byte) (*Recording, error) { return readRecording(config.Cassette, data, cassetteLines()) })
		return &recorded{Recording: r}, err
	}
}

func (r *recorded) Deterministic() bool { return true }

func (r *recorded) Perform(_ context.Context, call Call) (Result, error) {
	result, miss := r.answer(&call.Permit, r.means)
	switch {
	case miss != nil:
		return Result{}, miss
	case result.Status == statusLost:
		return Result{}, &DoubtError{Reason: "the recording has no answer: what came of it is not known"}
	}
	return result, nil
}

// has reports whether what an intent asks for is known: it is answered, or may be yet.
func (r *recorded) has(in *receipt.Intent) bool {
	l := r.find(in)
	return l != nil && (l.Unanswered || l.answers(r.means))
}
