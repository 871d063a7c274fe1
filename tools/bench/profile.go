package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/world/local"
)

// profileBench is the size of `bench profile`.
type profileBench struct {
	events, cells    int
	callers, effects int
	scope
}

const profileText = `Where the CPU goes: of a durable event, a replayed one and an effect, by part.

The work of the kernel and effects benchmarks runs under Go's CPU profiler, and a
sample counts for the innermost part of the program that it was in: SHA-256 called by
the chain is the chain's. What no part claims is "other". Beside them, measured in the
same run, what is inherent: the hashes of the same bytes, and syncs, alone.`

func newProfileCommand(p *program) *cobra.Command {
	var b profileBench
	cmd, f := b.command(p, "profile", profileText, "  bench profile\n  bench profile --events 200000 --rounds 1", 3, b.each(b.round))
	f.IntVar(&b.events, "events", 1_000_000, "how many events to handle")
	f.IntVar(&b.cells, "cells", 10_000, "over how many cells")
	f.IntVar(&b.callers, "callers", 100, "how many cells ask for effects")
	f.IntVar(&b.effects, "effects", 500, "how many effects each of them asks for")
	return cmd
}

// part is a part of the program: what the names of its functions begin with, without the
// path of the module. The longest name that fits decides.
type part struct {
	name  string
	funcs []string
}

const otherPart = "other"

// parts are in the order of an event's way.
//
//nolint:gochecknoglobals // an immutable table
var parts = []part{
	{"encode and decode", []string{"internal/canon.", "journal.", "github.com/fxamacker/cbor"}},
	{"chain", []string{"internal/canon.(*Chain)"}},
	{"hashes of state, history and intent", []string{"internal/canon.Sum", "world.(*cell).nextHistory", "receipt.NewKey", "receipt.NewNonce"}},
	{"reducer, with its codec", []string{"reducer.", "reducer/star.", "go.starlark.net/"}},
	{"kernel", []string{"world.", "world/local.", "manifest.", "snapshot.", "checkpoint."}},
	{"gate", []string{"governance.", "cel.dev/", "github.com/google/cel-go"}},
	{"ledger", []string{"receipt.(*Ledger)", "receipt.(*Entry)"}},
	{"receipts, with their MAC", []string{"receipt."}},
	{"host", []string{"host.", "main.echo"}},
	{"effect store", []string{"host.(*effectLog)"}},
	{"tree", []string{"journal/store.(*Store).growTree", "golang.org/x/mod/sumdb/tlog.", "journal/store.(*treeReader)", "journal/store.rootOf"}},
	{"segments", []string{"journal/store.", "hash/crc32."}},
	{"log (WAL)", []string{"github.com/cockroachdb/pebble/v2/record."}},
	{"memtable", []string{"github.com/cockroachdb/pebble/v2."}},
	{"frames, with zstd", []string{"journal/pglog.(*packer)", "github.com/klauspost/compress/zstd"}},
	{"statements", []string{"journal/pglog.", "github.com/jackc/"}},
	{"flush and compaction", []string{
		"github.com/cockroachdb/pebble/v2.(*DB).flush1", "github.com/cockroachdb/pebble/v2.(*DB).compact", "github.com/cockroachdb/pebble/v2.(*DB).runCompaction",
		"github.com/cockroachdb/pebble/v2/internal/compact.", "github.com/cockroachdb/pebble/v2/sstable",
	}},
	{"anchor", []string{"journal/store.(*anchor)", "journal/store.(*Store).acknowledge", "journal/store.(*Store).anchorAt", "journal/store.encodeSlot"}},
	{"image and index", []string{"journal/store.(*Store).writeImages", "world.(*kernel).image", "journal/store.(*Store).addPostings", "journal/store.(*Store).mentions", "journal/store.(*concerns)", "journal/store.(*keeper)", "journal/store.(*sealer)"}},
	{"allocation and collector", []string{"runtime.mallocgc", "runtime.gcBgMarkWorker", "runtime.gcAssist", "runtime.gcStart", "runtime.bgsweep", "runtime.bgscavenge", "runtime.growslice", "runtime.newobject", "runtime.makeslice", "runtime.wbBuf", "runtime.gcWriteBarrier"}},
	{"wake-ups", []string{"runtime.schedule", "runtime.findRunnable", "runtime.mcall", "runtime.park_m", "runtime.goready", "runtime.ready", "runtime.wakep", "runtime.futex", "runtime.notewakeup", "runtime.notetsleep", "runtime.mstart", "runtime.sysmon", "runtime.resetspinning", "runtime.goschedImpl", "runtime.gopreempt_m", "runtime.netpoll"}},
}

// partOf returns the part that a function is of; "": of none.
func partOf(function string) string {
	function = strings.TrimPrefix(function, "github.com/worldkernel/worldkernel/")
	found, longest := "", 0
	for _, p := range parts {
		for _, f := range p.funcs {
			if len(f) > longest && strings.HasPrefix(function, f) {
				found, longest = p.name, len(f)
			}
		}
	}
	return found
}

// profiled measures work by part, in CPU.
func (r *run) profiled(work func()) map[string]time.Duration {
	var b bytes.Buffer
	r.must(pprof.StartCPUProfile(&b))
	work()
	pprof.StopCPUProfile()
	p, err := profile.Parse(&b)
	r.must(err)
	out := make(map[string]time.Duration)
	for _, s := range p.Sample {
		out[partOfStack(s.Location)] += time.Duration(s.Value[1]) // samples, nanoseconds
	}
	return out
}

// partOfStack returns the part of the innermost function that is of one.
func partOfStack(stack []*profile.Location) string {
	for _, at := range stack {
		for _, line := range at.Line {
			if p := partOf(line.Function.Name); p != "" {
				return p
			}
		}
	}
	return otherPart
}

// addParts adds what each of n things took in each part.
func (r *run) addParts(name, thing string, took map[string]time.Duration, n int) {
	unit := "us/" + thing
	all := time.Duration(0)
	for _, p := range append(parts[:len(parts):len(parts)], part{name: otherPart}) {
		r.add(name+": "+p.name, unit, "", took[p.name].Seconds()*1e6/float64(n))
		all += took[p.name]
	}
	r.add(name+": all", unit, "", all.Seconds()*1e6/float64(n))
}

func (b *profileBench) round(ctx context.Context, r *run) {
	lw := r.accounts(r.at("events"))
	r.addParts("event", "event", r.profiled(func() {
		r.credit(ctx, lw, b.events, b.cells)
	}), b.events)
	r.addParts("replayed event", "replayed event", r.profiled(func() {
		_, err := lw.Replay(ctx, 0, nil)
		r.must(err)
	}), b.events)
	r.inherent(lw, b.events)
	r.must(lw.Close())

	lw = r.world(r.at("effects"), agentRules(), "", effectsOptions())
	r.begin(ctx, lw, b.callers, b.effects)
	r.addParts("effect", "effect", r.profiled(func() { r.must(lw.Run(ctx)) }), b.callers*b.effects)
	r.must(lw.Close())
}

// inherent measures what no event can do without: hashing the bytes of its records for
// the chain and for the tree, and a sync for all that wait.
func (r *run) inherent(lw *local.World, events int) {
	var records [][]byte
	for s, err := range lw.Scan(0) {
		r.must(err)
		records = append(records, s.Bytes)
	}
	per := func(name string, work func()) {
		r.add("inherent: "+name, "us/event", "", measure(work).CPU.Seconds()*1e6/float64(events))
	}
	per("SHA-256 of its records, for the chain", func() {
		chain := new(canon.Chain)
		for i, b := range records {
			chain.Add(uint64(i+1), "event.submitted", b)
		}
	})
	per("SHA-256 of its records and of two hashes each, for the tree", func() {
		var h tlog.Hash
		for _, b := range records {
			h = tlog.NodeHash(h, tlog.Hash(checkpoint.Leaf(b)))
		}
	})
	per("SHA-256 of a state and a history", func() {
		b := make([]byte, 64)
		for range events {
			sum := sha256.Sum256(b)
			copy(b, sum[:])
			sum = sha256.Sum256(b)
			copy(b[32:], sum[:])
		}
	})
	const syncs = 200
	f, err := os.Create(r.at("sync"))
	r.must(err)
	_, err = f.Write(make([]byte, 1<<20))
	r.must(err)
	r.must(f.Sync())
	alone := measure(func() {
		for range syncs {
			_, err := f.WriteAt(make([]byte, 4096), 0)
			r.must(err)
			r.must(f.Sync())
		}
	})
	r.must(f.Close())
	r.add("inherent: a write and a sync, CPU", "us", "", alone.CPU.Seconds()*1e6/syncs)
	r.add("inherent: a write and a sync", "us", "", alone.Wall.Seconds()*1e6/syncs)
}
