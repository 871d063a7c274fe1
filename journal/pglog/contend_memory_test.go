package pglog

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
)

// contendInMemory has eight contend for a world, each as often as it says.
func contendInMemory(t *testing.T, times int, open func(r *rand.Rand) journal.Log) *witness {
	t.Helper()
	var w witness
	var all sync.WaitGroup
	for i := range 8 {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		c := contender{Open: func() journal.Log { return open(random) }, Random: random, Acknowledged: w.Acknowledged}
		all.Go(func() {
			if err := c.Run(t.Context(), times); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return &w
}

func TestMemoryBearsEightOwners(t *testing.T) {
	var s logtest.Server
	w := contendInMemory(t, 100, func(*rand.Rand) journal.Log { return s.Log() })
	require.Greater(t, len(w.Check(t, s.Log())), 100)
}

func TestMemoryBearsABadConnection(t *testing.T) {
	var s logtest.Server
	w := contendInMemory(t, 100, func(r *rand.Rand) journal.Log { return &faulty{Log: s.Log(), Strike: strikeAt(r, 5)} })
	require.Greater(t, len(w.Check(t, s.Log())), 100)
}

// forgetful is a log that acknowledges before anything is durable.
type forgetful struct{ journal.Log }

func (f forgetful) Append(b journal.Batch) (journal.Pending, error) {
	if _, err := f.Log.Append(b); err != nil {
		return nil, err
	}
	return ended{}, nil
}

func TestAWitnessNoticesWhatIsLost(t *testing.T) {
	var s logtest.Server
	one := contender{
		Open:   func() journal.Log { return forgetful{s.Log()} },
		Random: rand.New(rand.NewPCG(1, 1)),
	}
	var w witness
	one.Acknowledged = func(h journal.Head) {
		w.Acknowledged(h)
		s.Restore(&logtest.Server{}) // what it has is lost
	}
	require.NoError(t, one.Run(t.Context(), 20))
	require.NotEmpty(t, w.heads)
	watched := &recorder{TB: t}
	var done sync.WaitGroup
	done.Go(func() { w.Check(watched, s.Log()) }) // which ends its goroutine
	done.Wait()
	require.True(t, watched.failed)
}

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }

func (r *recorder) FailNow() { runtime.Goexit() }
