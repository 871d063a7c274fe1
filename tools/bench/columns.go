package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/columns"
	"github.com/worldkernel/worldkernel/world/api"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// columnsBench is the size of `bench columns`.
type columnsBench struct {
	records int
	cells   int
	scope
}

const columnsText = `A journal as columns: what it costs to make them, to hold and to send them.

A world is served whose journal has so many records. Its index is made, and all pages are
fetched over HTTP, as they are and in gzip. Beside it the same journal is scanned, and some
of its records are fetched as JSON. Last clients submit events over HTTP, and what the
index takes to read these is shown beside what it takes to serve them.`

func newColumnsCommand(p *program) *cobra.Command {
	var b columnsBench
	cmd, f := b.command(p, "columns", columnsText, "  bench columns\n  bench columns --records 100000 --rounds 1", 3, b.each(b.round))
	f.IntVar(&b.records, "records", 1_000_000, "how many records the journal has, about")
	f.IntVar(&b.cells, "cells", 10_000, "of how many cells")
	return cmd
}

func (b *columnsBench) round(ctx context.Context, r *run) {
	lw := r.accounts(r.dir)
	r.credit(ctx, lw, b.records/2, b.cells)
	j := view.Journal{Local: lw}
	records := float64(j.End())
	scan := measure(func() {
		for _, err := range lw.Scan(0) {
			r.must(err)
		}
	})
	x, before := j.Columns(), heapBytes()
	made := measure(func() { r.must(x.Extend(ctx, j.End())) })
	held := float64(heapBytes() - before)
	r.add("scan", "s of CPU", "", scan.CPU.Seconds())
	r.add("index", "s of CPU", "<= 2 for 1M records", made.CPU.Seconds())
	r.add("index / scan", "ratio", "", made.CPU.Seconds()/scan.CPU.Seconds())
	r.add("held", "bytes/record", "", held/records)
	runtime.KeepAlive(x)

	plain, zipped, whole := b.fetched(ctx, r, lw)
	r.add("page", "bytes/record", "<= 18", plain/records)
	r.add("page, gzip", "bytes/record", "", zipped/records)
	r.add("record as JSON", "bytes/record", "", whole)

	r.must(lw.Close())
	b.growth(ctx, r)
}

// growth has clients submit events over HTTP, and compares what serving that takes with
// what the index takes to read it.
func (b *columnsBench) growth(ctx context.Context, r *run) {
	lw := r.tallies(r.at("served"))
	clients := serveBench{clients: 16, events: max(1, b.records/500)}
	var serve measured
	serving(ctx, r, lw, clients.clients, func(client *benchClient) (err error) {
		serve = measure(func() { _, err = clients.load(ctx, client.submit) })
		return err
	})
	j := view.Journal{Local: lw}
	x := j.Columns()
	index := measure(func() { r.must(x.Extend(ctx, j.End())) })
	records := float64(j.End())
	r.add("growth, clients and server", "us of CPU/record", "", float64(serve.CPU.Microseconds())/records)
	r.add("growth, index", "us of CPU/record", "", float64(index.CPU.Microseconds())/records)
	r.add("growth, index / clients and server", "ratio", "<= 0.03", index.CPU.Seconds()/serve.CPU.Seconds())
	r.must(lw.Close())
}

// heapBytes is what the heap holds, collected.
func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// fetched has a client fetch all columns, and returns how many bytes come, as they are and
// in gzip, and how many a record has as JSON.
func (b *columnsBench) fetched(ctx context.Context, r *run, lw *local.World) (plain, zipped, whole float64) {
	secret, hash := api.NewToken()
	tokens, err := api.ParseTokens(fmt.Appendf(nil, "bench %s %s *", api.ScopeRead, hash))
	r.must(err)
	server, err := api.New(api.Config{Worlds: []*local.World{lw}, Tokens: tokens})
	r.must(err)
	get := func(path, encoding string) []byte {
		req := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/worlds/"+lw.Status().ID+path, nil)
		req.Header.Set("Authorization", "Bearer "+secret)
		req.Header.Set("Accept-Encoding", encoding)
		to := httptest.NewRecorder()
		server.Handler().ServeHTTP(to, req)
		if to.Code != http.StatusOK {
			r.must(fmt.Errorf("%s: %d %s", path, to.Code, to.Body))
		}
		return to.Body.Bytes()
	}
	get("/density", "") // the server makes its index, too
	var pages [][]byte
	fetch := measure(func() {
		for after := journal.Seq(0); ; {
			page := get(fmt.Sprintf("/columns?after=%d", after), "")
			p, err := columns.Decode(page)
			r.must(err)
			if p.Len() == 0 {
				return
			}
			after, plain, pages = after+journal.Seq(p.Len()), plain+float64(len(page)), append(pages, page)
		}
	})
	r.add("all pages, and read", "s of CPU", "", fetch.CPU.Seconds())
	inZip := measure(func() {
		after := journal.Seq(0)
		for _, page := range pages {
			zipped += float64(len(get(fmt.Sprintf("/columns?after=%d", after), "gzip")))
			p, err := columns.Decode(page)
			r.must(err)
			after += journal.Seq(p.Len())
		}
	})
	r.add("all pages in gzip", "s of CPU", "", inZip.CPU.Seconds())
	const some = 1000
	n, err := io.Copy(io.Discard, bytes.NewReader(get(fmt.Sprintf("/records?limit=%d", some), "")))
	r.must(err)
	r.must(server.Close())
	return plain, zipped, float64(n) / some
}
