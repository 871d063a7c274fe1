package gateway_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// slowLog is a log that takes its time, and tells up to where it is durable.
type slowLog struct {
	journal.Log

	durable atomic.Uint64
}

type slowBatch struct {
	journal.Pending

	log  *slowLog
	upTo journal.Seq
}

func (l *slowLog) Append(b journal.Batch) (journal.Pending, error) {
	p, err := l.Log.Append(b)
	return &slowBatch{p, l, b.Head.ID}, err
}

func (b *slowBatch) Wait() error {
	<-time.After(3 * time.Millisecond) // may be late: disks are slow
	b.log.durable.Store(uint64(b.upTo))
	return b.Pending.Wait()
}

// An answer that the world has, but not the disk, reaches no agent, however much comes in at once.
func TestAnAnswerReachesTheAgentWhenItIsDurable(t *testing.T) {
	s := newStage(t)
	log := &slowLog{Log: new(logtest.Server).Log()}
	s.dir, s.log = filepath.Join(t.TempDir(), "w"), log
	require.NoError(t, examples.Copy("gateway", s.dir))
	require.NoError(t, local.Create(s.dir, local.CreateOptions{}, s.options(nil, nil)))
	r := s.start()
	type had struct{ answers, durable uint64 }
	var answers atomic.Uint64
	var agents sync.WaitGroup
	all := make(chan had, 160)
	for agent := range 16 {
		agents.Go(func() {
			for n := range 10 {
				if code, _ := r.post("openai", chatPath, ask(fmt.Sprint(agent, n))); code == http.StatusOK {
					so := answers.Add(1)
					all <- had{so, log.durable.Load()}
				}
			}
		})
	}
	agents.Wait()
	close(all)
	require.Len(t, all, 160)
	r.lw.View(func(m *world.Moment) {
		for h := range all {
			ended := uint64(0)
			for _, e := range m.Intents() {
				if e.Finished <= h.durable {
					ended++
				}
			}
			require.GreaterOrEqual(t, ended, h.answers, "an answer came before it was durable")
		}
	})
}
