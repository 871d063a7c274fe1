package twice

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// deal is what a payment is for, whoever asks for it under whatever key.
type deal struct{ cell, kind, params string }

func dealOf(cell, kind string, params receipt.Data) deal {
	text, err := canon.ToJSON(params)
	if err != nil {
		panic(err) // the ledger has taken it
	}
	return deal{cell, kind, string(text)}
}

func (d deal) String() string { return d.kind + d.params + " of " + d.cell }

// bank is the outside of a life: all processes and all worlds of it have the same.
// What was sent to it arrives, whatever has become of the sender. Of what it did
// it keeps a book, by external key and by deal. It is safe for concurrent use.
type bank struct {
	seed   uint64
	struck *fault.Struck

	mu     sync.Mutex
	fates  map[deal]uint64   // how many it has given out
	asks   map[string]uint64 // of verifiers, by external key
	done   map[string]int    // by external key
	coming map[string]int    // requests on their way, by external key
	deals  map[deal]int
	book   []entry
	undone map[deal]int           // payments that were taken back
	madeUp map[receipt.StepID]int // likewise, by the step that asked for the payment
}

// entry is one execution.
type entry struct {
	at       time.Time
	deal     deal
	key      receipt.Key
	external string
	times    int // that the deal was made, with this
	undone   int // of them, that were taken back
}

func newBank(seed uint64, struck *fault.Struck) *bank {
	return &bank{
		seed: seed, struck: struck, asks: make(map[string]uint64), fates: make(map[deal]uint64), done: make(map[string]int),
		coming: make(map[string]int), deals: make(map[deal]int), undone: make(map[deal]int), madeUp: make(map[receipt.StepID]int),
	}
}

// ending is what becomes of a request.
type ending string

const (
	paid    ending = "paid"
	busy    ending = "busy"    // it is not done now, and may be tried again
	refused ending = "refused" // it is not done
	halfway ending = "halfway" // it is done, and was not what was wanted: to be made up for
	unsent  ending = "unsent"  // it never left
)

// line is what becomes of the connection.
type line string

const (
	heard   line = "heard"
	dropped line = "dropped" // at any moment after the request has left, mostly before it has arrived
	silent  line = "silent"  // nothing is heard until the time is over
)

// fate is decided for each request before it is sent. It depends on the life's
// seed and on which request for its deal this is, not on who runs when.
type fate struct {
	ending            ending
	line              line
	before, way, back time.Duration // until it leaves, arrives, and is answered
	drop              time.Duration // after it left
}

// fate draws what becomes of the next request for a deal. What has left arrives
// within the timeout, counted from the beginning of the attempt.
func (b *bank) fate(call host.Call, e *manifest.Effect) fate {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := dealOf(call.Permit.Cell, call.Permit.Kind, call.Permit.Params)
	b.fates[d]++
	rng := rand.New(rand.NewChaCha8(canon.Sum(fmt.Append(nil, b.seed, d, b.fates[d]))))
	f := fate{ending: ends(rng, e), line: heard, before: span(rng, timeout/10), way: span(rng, timeout/20), back: span(rng, timeout/10)}
	if rng.IntN(3) == 0 {
		f.way = span(rng, timeout*8/10)
	}
	switch rng.IntN(7) {
	case 0:
		f.line, f.drop = dropped, span(rng, f.way+f.back+1)
	case 1:
		f.line = silent
	}
	return f
}

// notes counts what becomes of a request, once it is sent or is not.
func (f *fate) notes(struck *fault.Struck) {
	switch f.ending {
	case unsent:
		struck.Count("request never left")
		return
	case busy:
		struck.Count("busy")
	case refused:
		struck.Count("refused")
	case halfway:
		struck.Count("halfway")
	case paid:
	}
	if f.way > timeout/2 {
		struck.Count("slow way")
	}
	switch {
	case f.line == silent:
		struck.Count("silence")
	case f.line == dropped && f.drop < f.way:
		struck.Count("connection dropped before the deed")
	case f.line == dropped:
		struck.Count("connection dropped after the deed")
	}
}

// away reports whether the bank cannot be reached by who asks it now.
func (b *bank) away(external string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asks[external]++
	return canon.Sum(fmt.Append(nil, b.seed, external, b.asks[external]))[0] < 8
}

func ends(rng *rand.Rand, e *manifest.Effect) ending {
	switch rng.IntN(14) {
	case 0:
		return unsent
	case 1, 2:
		return busy
	case 3:
		return refused
	case 4:
		if e.Compensate != nil {
			return halfway
		}
	}
	return paid
}

// send has a request arrive, and returns where its answer will be.
func (b *bank) send(call host.Call, f fate, idempotent bool) <-chan ending {
	answer := make(chan ending, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.coming[call.External]++
	time.AfterFunc(f.way, func() {
		end := f.ending
		if b.arrive(call, f, idempotent) && end == refused {
			end = paid // it was, and is not refused any more
		}
		if f.line == heard {
			time.AfterFunc(f.back, func() { answer <- end })
		}
	})
	return answer
}

// arrive executes a request. It reports whether the bank has done it before, and
// cares.
func (b *bank) arrive(call host.Call, f fate, idempotent bool) (known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.coming[call.External]--
	again := b.done[call.External] > 0
	if f.ending == busy || f.ending == refused || idempotent && again {
		return idempotent && again
	}
	d := dealOf(call.Permit.Cell, call.Permit.Kind, call.Permit.Params)
	b.done[call.External]++
	b.deals[d]++
	if of, ok := d.refunded(); ok {
		step := receipt.StepID(strings.TrimSuffix(string(call.Permit.Step), "!compensate"))
		if b.madeUp[step]++; b.madeUp[step] == 1 { // a second refund takes no other payment back
			b.undone[of]++
		}
	}
	b.book = append(b.book, entry{time.Now(), d, call.Permit.Key, call.External, b.deals[d], b.undone[d]})
	return false
}

// refunded returns the deal that d takes back, if it is a refund.
func (d deal) refunded() (deal, bool) {
	if d.kind != refundKind {
		return deal{}, false
	}
	var of struct {
		Of   string `cbor:"of"`
		What string `cbor:"what"`
	}
	data, err := canon.FromJSON([]byte(d.params))
	if err == nil {
		err = canon.UnmarshalTrusted(data, &of)
	}
	if err != nil {
		panic(err)
	}
	return deal{d.cell, of.Of, paramsOf(of.What)}, true
}

// happened reports how often an intent was executed, under the external keys of
// all worlds, and whether a request for it is still on its way.
func (b *bank) happened(key receipt.Key) (times int, coming bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	suffix := ":" + key.String()
	for external, n := range b.done {
		if strings.HasSuffix(external, suffix) {
			times += n
		}
	}
	for external, n := range b.coming {
		coming = coming || n > 0 && strings.HasSuffix(external, suffix)
	}
	return times, coming
}

// tookBack reports whether what a step had asked for was taken back.
func (b *bank) tookBack(step receipt.StepID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.madeUp[step] > 0
}

// shows reports what the bank says to whoever asks now about an external key.
func (b *bank) shows(external string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done[external] > 0
}

// made returns how often a deal was made, and how often that was taken back.
func (b *bank) made(d deal) (times, undone int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.deals[d], b.undone[d]
}

// since returns what the book has from its n-th entry on.
func (b *bank) since(n int) []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.book[n:])
}
