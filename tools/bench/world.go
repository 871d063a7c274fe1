package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// rules are the manifest of a world with one reducer and one event.
func rules(reducer, engine, event string) string {
	return fmt.Sprintf(`world: bench
version: 1
reducers:
  %[1]s: {%[2]s}
events:
  %[3]s: {}
routing:
  - {event: %[3]s, reducer: %[1]s, key: event.data.to}
`, reducer, engine, event)
}

// The engines of reducers.
const inStarlark = "engine: starlark, source: " + starFile

func inGo(name string) string { return `engine: go, version: "1", name: ` + name }

// asking grants a reducer the effects of withEffects.
const asking = ", grants: [tools]"

// withEffects adds live effects to rules.
const withEffects = `effects:
  tool.call: {adapter: echo}
caps:
  tools: {type: any, params: {kinds: ["tool.*"]}}
policies:
  - {name: tools, when: 'intent.kind.startsWith("tool.")', decide: allow}
`

// withEcho adds the live adapter that answers at once.
func withEcho(opts local.Options) local.Options {
	opts.Adapters = map[string]host.Factory{"echo": func(host.Setup) (host.Adapter, error) { return echo{}, nil }}
	return opts
}

// starFile is where a world has the code of a reducer in Starlark.
const starFile = "account.star"

// world makes a world of a manifest, and of the code in starFile.
func (r *run) world(dir, manifest, star string, opts local.Options) *local.World {
	r.must(os.MkdirAll(dir, 0o755))
	r.must(os.WriteFile(filepath.Join(dir, local.ManifestFile), []byte(manifest), 0o600))
	r.must(os.WriteFile(filepath.Join(dir, starFile), []byte(star), 0o600))
	r.must(local.Create(dir, local.CreateOptions{ID: "bench"}, opts))
	return r.open(dir, opts)
}

func (r *run) open(dir string, opts local.Options) *local.World {
	lw, err := local.Open(dir, opts)
	r.must(err)
	return lw
}

// feed submits n events, chunk of them a tick, and lets the world handle them. The data
// of an event has to last until that of the next one is made.
func (r *run) feed(ctx context.Context, lw *local.World, name string, n, chunk int, data func(i int) ([]byte, error)) {
	for from := 0; from < n; from += chunk {
		_, _, err := lw.SubmitAll(ctx, func(yield func(world.Submission, error) bool) {
			for i := from; i < min(n, from+chunk); i++ {
				b, err := data(i)
				if !yield(world.Submission{Name: name, Data: b}, err) {
					return
				}
			}
		})
		r.must(err)
		r.must(lw.Step(ctx))
	}
}

// replay measures the replay of a world.
func (r *run) replay(lw *local.World) measured {
	return measure(func() {
		_, err := lw.Replay(context.Background(), 0, nil)
		r.must(err)
	})
}

// The accounts of a world add up what they are sent.
type account struct {
	Count uint64 `cbor:"count"`
	Total uint64 `cbor:"total"`
}

type credit struct {
	To string `cbor:"to"`
	By uint64 `cbor:"by"`
}

func credited(_ *reducer.Context, a account, c credit) (account, error) {
	return account{Count: a.Count + 1, Total: a.Total + c.By}, nil
}

func accountOptions() local.Options {
	return local.Options{Reducers: reducer.Registry{"account@1": reducer.Typed(1, credited)}}
}

// accounts makes a world whose accounts are reduced in Go.
func (r *run) accounts(dir string) *local.World { return r.accountsWith(dir, accountOptions()) }

func (r *run) accountsWith(dir string, opts local.Options) *local.World {
	return r.world(dir, rules("account", inGo("account"), "account.credited"), "", opts)
}

const chunk = 100_000 // events a tick

// credit sends events to so many accounts, in turn, in memory that it reuses.
func (r *run) credit(ctx context.Context, lw *local.World, events, cells int) {
	r.creditFrom(ctx, lw, 0, events, cells)
}

// creditFrom is credit that begins with another account than the first.
func (r *run) creditFrom(ctx context.Context, lw *local.World, first, events, cells int) {
	var b []byte
	r.feed(ctx, lw, "account.credited", events, chunk, func(i int) ([]byte, error) {
		b = canon.AppendMap(b[:0], 2)
		b = canon.AppendUint(canon.AppendText(b, "by"), uint64(i%1000))
		b = canon.AppendText(b, "to")
		at := len(b)
		b = append(b, 0x60, 'c') // a text string, whose length follows
		b = strconv.AppendInt(b, int64((first+i)%cells), 10)
		b[at] |= byte(len(b) - at - 1)
		return b, nil
	})
}
