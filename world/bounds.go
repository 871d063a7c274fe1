package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
)

// Bounds are what whoever runs rules that he has not put in force allows them, whatever
// their limits say. What needs more has no outcome: it ends with a *BoundError. Zero
// fields bound nothing.
type Bounds struct {
	Gas    uint64 // of one step, of all code of a manifest while it is loaded, of all states that a Preview migrates, and evaluations of schemas in one check
	Memory uint64 // bytes: at most half of it is held at a time, and an eighth filled by one step
}

// DefaultBounds suit a laptop.
func DefaultBounds() Bounds { return Bounds{Gas: 10_000_000, Memory: 512 << 20} }

// Shares of Bounds.Memory.
const (
	heldShare = 2  // what the kernel holds from one unit to the next
	stepShare = 8  // what one step fills
	itemShare = 64 // one state, event or param: looking into it takes many times as much

	schemaShare = 2048 // the source of a schema: compiled it takes more, and the library's depth is its length
)

// What the kernel holds of a thing besides its bytes, roughly.
const (
	cellBytes   = 1024
	mailBytes   = 96
	entryBytes  = 1536
	recordBytes = 512
)

// BoundError says that rules need more than whoever runs them allows.
type BoundError struct {
	Name  string // of Bounds: "gas" or "memory"
	Bound uint64
	Needs uint64      // the least bound that would do for this one thing; 0: nobody can tell
	What  string      // e.g. "a step of cell person/ada"
	At    journal.Seq // the last record that was lived through
}

func (e *BoundError) Error() string {
	text := fmt.Sprintf("%s needs more %s than the bound of %s", e.What, e.Name, e.amount(e.Bound))
	if e.Needs != 0 {
		text += fmt.Sprintf(", at least %s", e.amount(e.Needs))
	}
	if e.At != 0 {
		text = fmt.Sprintf("after record #%d: %s", e.At, text)
	}
	return "world: " + text
}

// amount writes a bound as people set it.
func (e *BoundError) amount(n uint64) string {
	const kib, mib = 1 << 10, 1 << 20
	switch {
	case e.Name != "memory":
		return strconv.FormatUint(n, 10)
	case n < mib || n%kib == 0 && n%mib != 0:
		return strconv.FormatUint((n+kib-1)/kib, 10) + "KiB"
	}
	return strconv.FormatUint((n+mib-1)/mib, 10) + "MiB"
}

// guard holds rules to bounds, and ends what nobody waits for any more. A nil one lets
// all go on. Whatever runs under a guard that has ended is to be thrown away.
type guard struct {
	ctx    context.Context
	bounds Bounds
	step   reducer.Bounds
	shared bool   // migrations share their gas
	used   uint64 // gas of what shares it
	spared uint64 // bytes held that nobody counts: the history's own
	kept   uint64 // bytes held beside a kernel: code, states of a migration
	images uint64 // bytes of images, which rollbacks may return to
	next   uint64 // volume at which the kernel is weighed again
	err    error  // why it ended
}

// newGuard returns a guard, nil where nothing bounds and nobody can end.
func newGuard(ctx context.Context, b Bounds) *guard {
	if b == (Bounds{}) && ctx.Done() == nil {
		return nil
	}
	b.Gas, b.Memory = cmp.Or(b.Gas, math.MaxUint64), cmp.Or(b.Memory, math.MaxUint64)
	g := &guard{ctx: ctx, bounds: b, next: b.Memory / heldShare / 8}
	g.step = reducer.Bounds{Gas: b.Gas, Memory: b.Memory / stepShare, Ended: func() bool { return g.ctx.Err() != nil }}
	return g
}

// release has a guard that bounds nothing end what another ends, and nothing else.
func (g *guard) release(to *guard) {
	if g != nil {
		g.ctx, g.err = to.context(), nil
	}
}

// spare has the guard not count what a kernel holds already, and as much again.
func (g *guard) spare(k *kernel) {
	if g.bounded() {
		g.spared = 2 * k.held()
	}
}

// stepBounds returns the bounds of one step.
func (g *guard) stepBounds() *reducer.Bounds {
	if g == nil {
		return nil
	}
	return &g.step
}

// shareBounds returns the bounds of what shares its gas with all that has used some
// since the rules were begun.
func (g *guard) shareBounds() *reducer.Bounds {
	if g == nil {
		return nil
	}
	rest := g.step
	rest.Gas -= min(rest.Gas, g.used)
	return &rest
}

// migrationBounds returns the bounds of the migration of one state.
func (g *guard) migrationBounds() *reducer.Bounds {
	if g == nil || !g.shared {
		return g.stepBounds()
	}
	return g.shareBounds()
}

// share has the migrations that follow share their gas.
func (g *guard) share() {
	if g != nil {
		g.shared, g.used = true, 0
	}
}

// use counts gas that is shared.
func (g *guard) use(gas uint64) {
	if g != nil {
		g.used += min(gas, math.MaxUint64-g.used)
	}
}

// stepEnded returns what says, within a step, that nobody waits any more; nil: somebody does.
func (g *guard) stepEnded() func() bool {
	if g == nil {
		return nil
	}
	return g.step.Ended
}

// context returns what ends when nobody waits any more.
func (g *guard) context() context.Context {
	if g == nil {
		return context.Background()
	}
	return g.ctx
}

// ended returns why nothing goes on, nil where it does.
func (g *guard) ended() error {
	if g == nil {
		return nil
	}
	if g.err == nil && g.ctx.Err() != nil {
		g.err = context.Cause(g.ctx)
	}
	return g.err
}

// exceed ends what is under way; the first reason counts.
func (g *guard) exceed(e BoundError) {
	if g.err == nil {
		e.Bound = g.bounds.Gas
		if e.Name == "memory" {
			e.Bound = g.bounds.Memory
		}
		if e.Needs <= e.Bound { // it shares the bound with others
			e.Needs = 0
		}
		g.err = &e
	}
}

// stop ends what is under way if a step could not be finished, and reports that.
func (g *guard) stop(err error, what string, at journal.Seq) bool {
	if g == nil || !errors.Is(err, reducer.ErrBound) {
		return false
	}
	var bound *reducer.BoundError
	if g.ended() == nil && errors.As(err, &bound) {
		e := BoundError{Name: bound.Name, Needs: bound.Limit, What: what, At: at}
		if e.Name == "memory" {
			e.Needs = times(bound.Limit, stepShare)
		}
		g.exceed(e)
	}
	return true
}

// times is a product, and the greatest number where that is too great.
func times(a, b uint64) uint64 {
	if a > math.MaxUint64/b {
		return math.MaxUint64
	}
	return a * b
}

// beginRules says that other rules take the place of those before, which go.
func (g *guard) beginRules() {
	if g != nil {
		g.next -= min(g.next, g.kept) // else so much more could be written before the next weighing
		g.kept, g.used = 0, 0
	}
}

// image counts an image that is held beside the kernel.
func (g *guard) image(img *journal.Image) {
	if g == nil {
		return
	}
	g.images += uint64(len(img.Core))
	for i := range img.Cells {
		g.images += cellBytes + uint64(len(img.Cells[i].Bytes))
	}
	for i := range img.Intents {
		g.images += entryBytes + uint64(len(img.Intents[i].Bytes))
	}
	for i := range img.Counts {
		g.images += countBytes + uint64(len(img.Counts[i].Bytes))
	}
}

// keep counts n bytes that are held beside the kernel, and returns why nothing goes on.
func (g *guard) keep(n uint64, what string) error {
	if g == nil {
		return nil
	}
	if g.kept += n; g.kept > g.bounds.Memory/heldShare {
		g.exceed(BoundError{Name: "memory", Needs: times(g.kept, heldShare), What: fmt.Sprintf("%s (%d bytes in all)", what, g.kept)})
	}
	return g.ended()
}

// schema ends what is under way where a schema's source is too long.
func (g *guard) schema(n int, what string) {
	if g != nil && uint64(n) > g.bounds.Memory/schemaShare {
		g.exceed(BoundError{Name: "memory", Needs: times(uint64(n), schemaShare), What: fmt.Sprintf("%s of %d bytes", what, n)})
	}
}

// item ends what is under way where n bytes are too many to look into.
func (g *guard) item(n int, what, of string, at journal.Seq) {
	if g != nil && uint64(n) > g.bounds.Memory/itemShare {
		g.exceed(BoundError{Name: "memory", Needs: times(uint64(n), itemShare), What: fmt.Sprintf("%s %s of %d bytes", what, of, n), At: at})
	}
}

// bounded reports whether memory is.
func (g *guard) bounded() bool { return g != nil && g.bounds.Memory != math.MaxUint64 }

// weigh ends what is under way where a kernel holds too much. It looks at all of it
// after so much has been written that it may.
func (g *guard) weigh(on *ground) {
	if g == nil || on.volume+g.kept+g.images < g.next {
		return
	}
	most := g.bounds.Memory / heldShare
	held := on.weigh() + g.kept + g.images
	if held > g.spared && held-g.spared > most {
		g.exceed(BoundError{
			Name: "memory", Needs: times(held-g.spared, heldShare), At: on.last,
			What: fmt.Sprintf("what the world holds (%d bytes)", held),
		})
	}
	g.next = on.volume + g.kept + g.images + max((g.spared+most-min(held, g.spared+most))/2, most/8)
}

// held returns about how many bytes the kernel holds.
func (k *kernel) held() uint64 {
	n := k.ledger.Len()*entryBytes + k.ledger.Bytes() + countBytes*k.counts.len()
	for c := range k.cells.allCells() {
		n += c.size()
	}
	for _, waiting := range []alarms{k.timers, k.scheduled} {
		for _, x := range waiting {
			n += mailBytes + len(x.name) + len(x.data) + 16*len(x.to)
		}
	}
	return uint64(n)
}
