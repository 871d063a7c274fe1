package reducer

import (
	"bytes"
	"fmt"
	"time"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// Context is what a typed reducer sees of its step besides state and event,
// and how it asks for events, effects and timers. It is valid during the step.
type Context struct {
	in     *Input
	out    *Output
	rand   *Rand // of this step, once it has begun
	spare  *Rand // memory for it
	delete bool
	err    error
}

// Typed makes a Factory of a function over Go types. S is the state: its zero
// value is the state of a new cell. E is the event's data; where E is [Event]
// itself the function gets the event undecoded, for reducers that handle events
// of several shapes (see [Decode]). Both are encoded by their cbor tags, as
// fxamacker/cbor defines them. gas is what one step costs, a constant.
func Typed[S, E any](gas uint64, reduce func(ctx *Context, state S, event E) (S, error)) Factory {
	return func() Reducer {
		t := &typed[S, E]{gas: gas, reduce: reduce}
		t.flatState, t.flatEvent = flatOf(&t.state), flatOf(&t.event)
		return t
	}
}

// Migrating makes a Factory of one of Typed whose reducers take over the states of
// earlier code: migrate gets such a state, canonical, and makes one of S.
func Migrating[S any](f Factory, migrate func(state Data) (S, error)) Factory {
	return func() Reducer { return &migrating[S]{Reducer: f(), migrate: migrate} }
}

type migrating[S any] struct {
	Reducer

	migrate func(Data) (S, error)
}

// Migrate implements Migrator.
func (m *migrating[S]) Migrate(in *Input, out *Output) error {
	state, err := m.migrate(in.State)
	if err != nil {
		return err
	}
	out.State, err = canon.Marshal(state)
	return err
}

type typed[S, E any] struct {
	gas    uint64
	reduce func(*Context, S, E) (S, error)
	// Scratch memory of one step, so that it costs no allocation.
	ctx   Context
	rand  Rand
	state S
	event E
	buf   bytes.Buffer
	// How state and event are read and written, where they are flat; else nil.
	flatState, flatEvent *flat
}

func (t *typed[S, E]) Reduce(in *Input, out *Output) error {
	t.ctx = Context{in: in, out: out, spare: &t.rand}
	var state S
	t.state = state
	if len(in.State) > 0 && !t.flatState.readMap(in.State) {
		t.state = state
		if err := canon.UnmarshalTrusted(in.State, &t.state); err != nil {
			return fmt.Errorf("state of %s: %w", in.Cell, err)
		}
	}
	if raw, ok := any(&t.event).(*Event); ok {
		*raw = in.Event
	} else {
		var event E
		if !t.flatEvent.readMap(in.Event.Data) {
			t.event = event
			if err := canon.UnmarshalTrusted(in.Event.Data, &t.event); err != nil {
				return fmt.Errorf("data of event %s: %w", in.Event.Name, err)
			}
		}
	}
	next, err := t.reduce(&t.ctx, t.state, t.event)
	if err != nil {
		return err
	}
	if t.ctx.err != nil {
		return t.ctx.err
	}
	out.Gas = t.gas
	out.State = out.State[:0]
	if t.ctx.delete {
		return nil
	}
	t.state = next
	if b, ok := t.flatState.append(out.State); ok {
		out.State = b
		return nil
	}
	t.buf.Reset()
	if err := canon.MarshalTo(&t.buf, &t.state); err != nil {
		return fmt.Errorf("new state of %s: %w", in.Cell, err)
	}
	out.State = append(out.State, t.buf.Bytes()...)
	return nil
}

// Cell returns the cell that the step belongs to.
func (c *Context) Cell() Cell { return c.in.Cell }

// Time returns the tick that the step happens at.
func (c *Context) Time() manifest.Tick { return c.in.Time }

// Ticks returns the whole ticks that last a duration, or a little longer: for Timer.
func (c *Context) Ticks(d time.Duration) manifest.Tick { return c.in.Clock.Ticks(d) }

// Params returns the reducer's params in the manifest, a map; empty: there are no params. See
// [Decode].
func (c *Context) Params() Data { return c.in.Params }

// Event returns the event as it arrived.
func (c *Context) Event() Event { return c.in.Event }

// Delete removes the cell's state when the step succeeds.
func (c *Context) Delete() { c.delete = true }

// Random returns a number in [0, n); n must not be 0.
func (c *Context) Random(n uint64) uint64 {
	if c.rand == nil {
		c.rand = c.spare
		c.in.Seed.Begin(c.rand)
	}
	v, err := c.rand.Below(n)
	c.fail(err)
	return v
}

// Emit sends an event through the manifest's routes. A value that has no
// canonical form fails the step.
func (c *Context) Emit(name string, data any) { c.EmitTo(name, data, "") }

// EmitTo is Emit with the key of the receiving cells.
func (c *Context) EmitTo(name string, data any, key string) {
	c.out.Events = append(c.out.Events, Emit{Name: name, Data: c.encode(data), Key: key})
}

// Effect asks for something outside; the tag comes back with the receipt. The
// first of the reducer's grants that fits is used.
func (c *Context) Effect(kind string, params any, tag string) {
	c.out.Effects = append(c.out.Effects, Effect{Kind: kind, Params: c.encode(params), Tag: tag})
}

// Timer sends an event to this cell after the given number of ticks.
func (c *Context) Timer(after manifest.Tick, name string, data any) {
	c.out.Timers = append(c.out.Timers, Timer{After: after, Name: name, Data: c.encode(data)})
}

// TimerTagged is Timer with a tag: it takes the place of the cell's timer of that tag, so
// that the same call again is what moves it.
func (c *Context) TimerTagged(after manifest.Tick, name string, data any, tag string) {
	c.out.Timers = append(c.out.Timers, Timer{After: after, Name: name, Data: c.encode(data), Tag: tag})
}

// Cancel takes back what the cell asked for under a tag, which is not empty, in this step
// and before: its timer does not fire.
func (c *Context) Cancel(tag string) { c.out.Cancel(tag) }

func (c *Context) encode(v any) Data {
	if v == nil {
		return Data(canon.Null)
	}
	b, err := canon.Marshal(v)
	c.fail(err)
	return b
}

func (c *Context) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// Receipt is the data of a [ReceiptEvent].
type Receipt struct {
	Tag     string `cbor:"tag"`
	Kind    string `cbor:"kind"`
	Status  string `cbor:"status"`
	Payload Data   `cbor:"payload"`

	Cancelled bool `cbor:"cancelled,omitempty"` // the cell has cancelled the tag since it asked
}

// Encode returns a Go value as data. JSON is made data by json.Unmarshal, and data
// JSON by json.Marshal.
func Encode(v any) (Data, error) { return canon.Marshal(v) }

// Decode parses data into a Go value by its cbor tags. Keys without a field are
// errors.
func Decode[T any](data Data) (T, error) {
	var v T
	err := canon.UnmarshalTrusted(data, &v)
	return v, err
}
