package pglog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// contender is a process among several that take a world from each other, append to it, and lose
// it.
type contender struct {
	Open         func() journal.Log
	Random       *rand.Rand
	Acknowledged func(journal.Head) // is told of each head that is durable

	// Beside does something else with the log between batches, as the owner that it is; nil: nothing.
	Beside func(context.Context, journal.Log, journal.Owned) error
}

// Run owns the world and appends to it, a number of times, and returns what a log must not say.
func (c *contender) Run(ctx context.Context, times int) error {
	for turn := range times {
		if err := c.turn(ctx, turn); errors.Is(err, journal.ErrRewound) {
			return err
		}
	}
	return nil
}

// turn lasts until the world is lost, or a few batches are appended.
func (c *contender) turn(ctx context.Context, turn int) error {
	l := c.Open()
	owned, err := l.Own(ctx)
	if err != nil {
		return err
	}
	m := maker{epoch: owned.Epoch, at: owned.Head, chain: canon.ResumeChain(owned.Head.Root)}
	type begun struct {
		journal.Pending
		head journal.Head
	}
	var under []begun
	settle := func(leave int) error {
		for len(under) > leave {
			if err := under[0].Wait(); err != nil {
				return err
			}
			c.Acknowledged(under[0].head)
			under = under[1:]
		}
		return nil
	}
	for range c.Random.IntN(6) {
		b := m.batch(1 + c.Random.IntN(5))
		p, err := l.Append(b)
		if err != nil {
			return err
		}
		under = append(under, begun{p, b.Head})
		if err := settle(c.Random.IntN(4)); err != nil {
			return err
		}
		if c.Beside != nil {
			if err := c.Beside(ctx, l, owned); err != nil {
				return err
			}
		}
	}
	if err := settle(0); err != nil {
		return err
	}
	if turn%4 == 0 {
		return l.Release(ctx, journal.WakeNow)
	}
	return nil
}

// maker makes batches that name themselves: their epoch, their number, and in each record which
// of how many it is.
type maker struct {
	epoch   uint64
	at      journal.Head
	chain   *canon.Chain
	batches int
}

const named = "epoch %d batch %d record %d of %d"

func (m *maker) batch(records int) journal.Batch {
	b := journal.Batch{After: m.at}
	m.batches++
	for i := range records {
		id := uint64(m.at.ID) + 1
		data := canon.AppendEnvelope(nil, canon.Envelope{
			ID: id, Time: id, Kind: string(journal.KindSubmitted),
			Payload: fmt.Appendf(nil, named, m.epoch, m.batches, i+1, records),
		})
		m.at = journal.Head{ID: journal.Seq(id), Root: m.chain.Add(id, string(journal.KindSubmitted), data)}
		b.Records = append(b.Records, journal.Stored{ID: m.at.ID, Bytes: data, Root: m.at.Root})
	}
	text := contentOf(m.epoch, m.batches)
	b.Head, b.Blobs = m.at, []journal.Blob{{Hash: canon.Sum(text), Bytes: text}}
	return b
}

func contentOf(epoch uint64, batch int) []byte {
	return fmt.Appendf(nil, "content of epoch %d batch %d", epoch, batch)
}

// witness remembers what was acknowledged to all who contend for a world. It is safe for
// concurrent use.
type witness struct {
	mu    sync.Mutex
	heads map[journal.Seq]journal.Head
	twice []journal.Seq // that were acknowledged with different roots
}

// Acknowledged notes a head that somebody was told to be durable.
func (w *witness) Acknowledged(h journal.Head) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.heads == nil {
		w.heads = map[journal.Seq]journal.Head{}
	}
	if was, there := w.heads[h.ID]; there && was != h {
		w.twice = append(w.twice, h.ID)
	}
	w.heads[h.ID] = h
}

// Check sees to it that the world is one chain, in which are all heads that were acknowledged, and
// batches as they were made: whole, once, each with its content, and none of an owner before after
// one of an owner that came later. It returns how many batches there are, by epoch.
func (w *witness) Check(t testing.TB, l journal.Past) map[uint64]int {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(t, w.twice, "acknowledged, and something else as well")
	end, err := l.End(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	var chain canon.Chain
	batches, missing := map[uint64]int{}, len(w.heads)
	at, epoch, next, of := journal.Seq(0), uint64(0), 1, 0
	for r, err := range l.Records(t.Context(), 0) {
		require.NoError(t, err)
		e, err := canon.DecodeEnvelope(r.Bytes)
		require.NoError(t, err)
		root := chain.Add(uint64(r.ID), e.Kind, r.Bytes)
		require.Equal(t, at+1, r.ID)
		require.True(t, bytes.Equal(root[:journal.LinkBytes], r.Link[:]), "record #%d does not follow", r.ID)
		at++
		var by uint64
		var batch, i, n int
		_, err = fmt.Sscanf(string(e.Payload), named, &by, &batch, &i, &n)
		require.NoError(t, err)
		require.GreaterOrEqual(t, by, epoch, "record #%d is of an owner that was fenced", r.ID)
		require.Equal(t, next, i, "record #%d: a batch is not whole", r.ID)
		if next, of, epoch = i+1, n, by; i == n {
			next = 1
			batches[by]++
			require.GreaterOrEqual(t, batch, batches[by])
			_, err := l.Blob(canon.Sum(contentOf(by, batch)))
			require.NoError(t, err)
		}
		if head, there := w.heads[r.ID]; there {
			require.Equal(t, head.Root, root, "#%d was acknowledged, and is another", r.ID)
			missing--
		}
	}
	require.Equal(t, 1, next, "the last batch ends within %d", of)
	require.Equal(t, journal.Head{ID: at, Root: chain.Root()}, end)
	require.Zero(t, missing, "heads that were acknowledged are not there")
	return batches
}
