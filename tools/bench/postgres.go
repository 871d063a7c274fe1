package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// postgresBench is the size of `bench postgres`.
type postgresBench struct {
	events, cells int
	singles       int
	scope
}

const postgresText = `Worlds on PostgreSQL, beside the same in a directory and beside bare statements.

A server is started for it, with what PostgreSQL is set to when it is installed. The same
events go to a world in a directory and to one whose journal lies on the server. The raw
frames are the rows that came of it, packed as they are: each is inserted into a table of
the same shape by a statement of its own, one after the other, without a kernel and without
anything that guards them. Opening is cold without the local copy.

The server is beside --dir, which the user who runs it has to be able to enter.`

func newPostgresCommand(p *program) *cobra.Command {
	var b postgresBench
	cmd, f := b.command(p, "postgres", postgresText, "  bench postgres\n  bench postgres --events 100000 --rounds 1", 3, b.run)
	f.IntVar(&b.events, "events", 500_000, "how many events to handle; each is two records")
	f.IntVar(&b.cells, "cells", 10_000, "over how many cells")
	f.IntVar(&b.singles, "singles", 2_000, "how many events to wait for, one after the other")
	return cmd
}

func (b *postgresBench) run(ctx context.Context, r *run) {
	server, err := pgtest.Run(filepath.Dir(r.dir), "shared_buffers=128MB", "min_wal_size=80MB", "max_wal_size=1GB")
	r.must(err)
	defer server.Close()
	b.each(func(ctx context.Context, r *run) {
		url, err := server.Database()
		r.must(err)
		r.must(pglog.Init(ctx, url))
		p := &onPostgres{run: r, server: server, url: url}
		p.store = p.connect(ctx, "bench")
		defer p.store.Close()
		b.bulk(ctx, p)
		b.one(ctx, p)
	})(ctx, r)
}

// onPostgres is a round on an empty database.
type onPostgres struct {
	*run
	server *pgtest.Server
	url    string
	store  *pglog.Store
}

func sealKey() []byte { return make([]byte, 32) }

// connect opens the store once more, as a process of its own would.
func (p *onPostgres) connect(ctx context.Context, node string) *pglog.Store {
	s, err := pglog.Open(ctx, p.url, pglog.Options{Node: node})
	p.must(err)
	return s
}

// options are those of a world whose journal lies on the server.
func (p *onPostgres) options(id string) local.Options {
	opts := accountOptions()
	opts.Copy = p.at(id + " copy")
	opts.Log = func([]byte) (journal.Log, error) { return p.store.World(id, pglog.Claim{Key: sealKey()}), nil }
	return opts
}

// world makes a world of accounts there.
func (p *onPostgres) world(ctx context.Context, id string) *local.World {
	p.must(p.store.Create(ctx, id, sealKey()))
	return p.accountsWith(p.at(id), p.options(id))
}

// spent is what work cost here and on the server.
type spent struct {
	measured
	server time.Duration // CPU
}

func (p *onPostgres) measure(work func()) spent {
	before := p.serverCPU()
	m := measure(work)
	return spent{m, p.serverCPU() - before}
}

// serverCPU is what the server's processes have used so far, also those that have ended.
func (p *onPostgres) serverCPU() time.Duration {
	text, err := os.ReadFile(filepath.Join(p.server.Dir, "data", "postmaster.pid"))
	p.must(err)
	var first int
	_, err = fmt.Sscan(string(text), &first)
	p.must(err)
	all, err := procfs.AllProcs()
	if err != nil && runtime.GOOS != "linux" {
		return 0
	}
	p.must(err)
	var ticks int
	for _, proc := range all {
		stat, err := proc.Stat()
		switch {
		case err != nil: // it has ended
		case stat.PID == first:
			ticks += int(stat.UTime+stat.STime) + stat.CUTime + stat.CSTime
		case stat.PPID == first:
			ticks += int(stat.UTime + stat.STime)
		}
	}
	return time.Duration(ticks) * time.Second / 100 // USER_HZ
}

// cost adds what an event took.
func (p *onPostgres) cost(name string, events int, s spent) {
	n := float64(events)
	p.add(name, "events/s", "", n/s.Wall.Seconds())
	p.add(name+", CPU here", "us/event", "", float64(s.CPU.Nanoseconds())/1e3/n)
	if s.server > 0 {
		p.add(name+", CPU of the server", "us/event", "", float64(s.server.Nanoseconds())/1e3/n)
	}
}

// bulk measures many events of one world, and opening it.
func (b *postgresBench) bulk(ctx context.Context, p *onPostgres) {
	lw := p.accounts(p.at("directory"))
	inPebble := p.measure(func() { p.credit(ctx, lw, b.events, b.cells) })
	inPebble.server = 0 // it had nothing to do with it
	p.must(lw.Close())
	lw = p.world(ctx, "bulk")
	onServer := p.measure(func() { p.credit(ctx, lw, b.events, b.cells) })
	records := float64(lw.Status().Head.ID)
	p.must(lw.Close())
	frames, size := p.frames(ctx)
	raw := p.measure(func() { p.insert(ctx, frames) })
	batches := p.batches(ctx)
	p.must(p.store.Create(ctx, "log", sealKey()))
	log := p.measure(func() { p.append(ctx, batches) })
	p.cost("durable, directory", b.events, inPebble)
	p.cost("durable, PostgreSQL", b.events, onServer)
	p.cost("log without a world", b.events, log)
	p.cost("raw frames", b.events, raw)
	p.add("PostgreSQL / directory", "ratio", ">= 0.7", inPebble.Wall.Seconds()/onServer.Wall.Seconds())
	p.add("PostgreSQL / raw frames", "ratio", ">= 0.8", raw.Wall.Seconds()/onServer.Wall.Seconds())
	p.add("log / raw frames", "ratio", "", raw.Wall.Seconds()/log.Wall.Seconds())
	p.add("records a frame", "records", "", records/float64(len(frames)))
	p.add("a record, with its index", "bytes", "<= 40", float64(size)/records)
	p.opening("open, with the copy", "")
	p.must(os.RemoveAll(p.options("bulk").Copy))
	p.opening("open, cold", "<= 2")
}

func (p *onPostgres) opening(name, reach string) {
	var lw *local.World
	s := p.measure(func() { lw = p.open(p.at("bulk"), p.options("bulk")) })
	p.add(name, "s", reach, s.Wall.Seconds())
	p.add(name+", CPU here", "s", "", s.CPU.Seconds())
	p.must(lw.Close())
}

// batches returns the world's records as it appends them.
func (p *onPostgres) batches(ctx context.Context) (all []journal.Batch) {
	chain := new(canon.Chain)
	var b journal.Batch
	for r, err := range p.store.World("bulk", pglog.Claim{}).Records(ctx, 0) {
		p.must(err)
		e, err := canon.DecodeEnvelopeAs(r.Bytes, journal.KindOf)
		p.must(err)
		b.Head = journal.Head{ID: r.ID, Root: chain.Add(e.ID, e.Kind, r.Bytes)}
		b.Records = append(b.Records, journal.Stored{ID: r.ID, Bytes: r.Bytes, Root: b.Head.Root})
		if len(b.Records) == world.DefaultBatchRecords {
			all, b = append(all, b), journal.Batch{After: b.Head}
		}
	}
	if len(b.Records) > 0 {
		all = append(all, b)
	}
	return all
}

// append appends them to another world, as many at a time as a store does.
func (p *onPostgres) append(ctx context.Context, batches []journal.Batch) {
	const under = 16
	log := p.store.World("log", pglog.Claim{Key: sealKey()})
	_, err := log.Own(ctx)
	p.must(err)
	var waiting []journal.Pending
	for _, b := range batches {
		pending, err := log.Append(b)
		p.must(err)
		if waiting = append(waiting, pending); len(waiting) == under {
			p.must(waiting[0].Wait())
			waiting = waiting[1:]
		}
	}
	for _, pending := range waiting {
		p.must(pending.Wait())
	}
}

// rawFrame is a row of the journal.
type rawFrame struct {
	First, Last int64
	Was, Body   []byte
}

const sqlRawFrame = "INSERT INTO raw (wid, first, last, epoch, was, body) VALUES (1, $1, $2, 1, $3, $4)"

// frames returns the journal's rows and how long their table is, and makes an empty one like it.
func (p *onPostgres) frames(ctx context.Context) (all []rawFrame, size int64) {
	c := p.raw(ctx)
	rows, err := c.Query(ctx, "SELECT first, last, was, body FROM worldkernel.frame ORDER BY first")
	p.must(err)
	all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[rawFrame])
	p.must(err)
	p.must(c.QueryRow(ctx, "SELECT sum(pg_total_relation_size(relid))::bigint FROM pg_partition_tree('worldkernel.frame')").Scan(&size))
	_, err = c.Exec(ctx, "CREATE TABLE raw (LIKE worldkernel.frame INCLUDING ALL)")
	p.must(errors.Join(err, c.Close(ctx)))
	return all, size
}

func (p *onPostgres) raw(ctx context.Context) *pgx.Conn {
	c, err := pgx.Connect(ctx, p.url)
	p.must(err)
	return c
}

// insert inserts rows, one after the other.
func (p *onPostgres) insert(ctx context.Context, frames []rawFrame) {
	c := p.raw(ctx)
	for _, f := range frames {
		_, err := c.Exec(ctx, sqlRawFrame, f.First, f.Last, f.Was, f.Body)
		p.must(err)
	}
	p.must(c.Close(ctx))
}

// one measures how long who sends one event waits until it is durable. The ways take turns, so
// that each has its share of what else goes on.
func (b *postgresBench) one(ctx context.Context, p *onPostgres) {
	worlds := []*local.World{p.accounts(p.at("one in a directory")), p.world(ctx, "one")}
	var ways []func(i int)
	for _, lw := range worlds {
		p.credit(ctx, lw, 1000, 100)
		ways = append(ways, func(i int) {
			_, err := lw.Submit(ctx, "account.credited", credit{To: "c" + strconv.Itoa(i%100), By: 1})
			p.must(err)
		})
	}
	c := p.raw(ctx)
	defer func() { _ = c.Close(ctx) }()
	was, body := make([]byte, len(journal.Hash{})), make([]byte, 100) // about what such a frame has
	took := p.p50(b.singles, append(ways, func(i int) {
		_, err := c.Exec(ctx, sqlRawFrame, -1-i, -1-i, was, body)
		p.must(err)
	}))
	for _, lw := range worlds {
		p.must(lw.Close())
	}
	for i, name := range []string{"one event, directory, p50", "one event, PostgreSQL, p50", "one row, raw, p50"} {
		p.add(name, "us", "", float64(took[i].Microseconds()))
	}
	p.add("one event, PostgreSQL / directory", "ratio", "<= 2", took[1].Seconds()/took[0].Seconds())
}

// p50 does work of several ways in turns, and returns the median of each.
func (p *onPostgres) p50(n int, ways []func(i int)) []time.Duration {
	took := make([][]time.Duration, len(ways))
	for i := range n {
		for way, work := range ways {
			began := time.Now()
			work(i)
			took[way] = append(took[way], time.Since(began))
		}
	}
	medians := make([]time.Duration, len(ways))
	for way := range ways {
		slices.Sort(took[way])
		medians[way] = took[way][n/2]
	}
	return medians
}
