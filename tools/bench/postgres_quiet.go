package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
)

// groupedStatements is how many statements a store has under way.
const groupedStatements = 2

// quietWarm is how many events of each world are not counted.
const quietWarm = 20

// quietly measures worlds that each wait for one event after the other.
func (b *postgresBench) quietly(ctx context.Context, p *onPostgres) {
	stores := make([]*pglog.Store, b.worlds)
	for i := range stores {
		stores[i] = p.connect(ctx, fmt.Sprint("node", i))
		defer stores[i].Close()
	}
	events := b.worlds * b.waits
	var walls []float64
	for _, way := range []struct {
		id    string
		name  string
		store func(i int) *pglog.Store
		under int
	}{
		{"grouped", "grouped", func(int) *pglog.Store { return p.store }, b.worlds},
		{"two", "alone, two under way", func(i int) *pglog.Store { return stores[i] }, groupedStatements},
		{"all", "alone, all under way", func(i int) *pglog.Store { return stores[i] }, b.worlds},
	} {
		worlds := make([]quietWorld, b.worlds)
		for i := range worlds {
			worlds[i] = p.quietWorld(ctx, way.store(i), fmt.Sprintf("%s/%d", way.id, i))
		}
		p.must(wait(worlds, quietWarm, way.under)) // connections are made
		s := p.measure(func() { p.must(wait(worlds, b.waits, way.under)) })
		p.cost("quiet worlds, "+way.name, events, s)
		walls = append(walls, s.Wall.Seconds())
	}
	p.add("grouped / alone, two under way", "ratio", ">= 5", walls[1]/walls[0])
	p.add("grouped / alone, all under way", "ratio", "", walls[2]/walls[0])
}

// quietWorld is a world that is owned, and the records that it writes.
type quietWorld struct {
	*pglog.World
	chain *canon.Chain
	head  journal.Head
}

func (p *onPostgres) quietWorld(ctx context.Context, s *pglog.Store, id string) quietWorld {
	p.must(s.Create(ctx, id, sealKey()))
	w := quietWorld{World: s.World(id, pglog.Claim{Key: sealKey()}), chain: new(canon.Chain)}
	_, err := w.Own(ctx)
	p.must(err)
	return w
}

// wait has each of the worlds wait for n events, of which so many are under way at most.
func wait(worlds []quietWorld, n, under int) error {
	var all sync.WaitGroup
	room := make(chan struct{}, under)
	failed := make([]error, len(worlds))
	for i := range worlds {
		all.Go(func() {
			for done := 0; done < n && failed[i] == nil; done++ {
				room <- struct{}{}
				failed[i] = worlds[i].event()
				<-room
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// event appends an event and what came of it, and waits for them.
func (w *quietWorld) event() error {
	batch := journal.Batch{After: w.head}
	for _, kind := range []journal.Kind{journal.KindSubmitted, journal.KindStepped} {
		id := uint64(w.head.ID) + 1
		payload := fmt.Appendf(nil, "%x", canon.Sum(canon.AppendUint(nil, id)))
		data := canon.AppendEnvelope(nil, canon.Envelope{ID: id, Time: id, Kind: string(kind), Payload: payload})
		w.head = journal.Head{ID: journal.Seq(id), Root: w.chain.Add(id, string(kind), data)}
		batch.Records = append(batch.Records, journal.Stored{ID: w.head.ID, Bytes: data, Root: w.head.Root})
	}
	batch.Head = w.head
	p, err := w.Append(batch)
	if err != nil {
		return err
	}
	return p.Wait()
}
