package world

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// Why an input is refused. An *InputError wraps one of these and names the
// field and the rule.
var (
	ErrUnknownEvent = errors.New("the manifest declares no such event")
	ErrSchema       = errors.New("the data breaks the event's schema")
	ErrNoRoute      = errors.New("no route of the manifest takes this event")
	ErrBadKey       = errors.New("the event has no usable key")
	ErrBadData      = errors.New("this cannot be kept as data")
	ErrBadAnswer    = errors.New("that is no answer to what is asked")
	ErrTooLarge     = errors.New("the data is larger than limits.payload")
	ErrAlarms       = errors.New("too many events are scheduled")
	ErrMailboxFull  = errors.New("the cell's mailbox is full")
	ErrBadTick      = errors.New("the tick has passed already")
	ErrNoTick       = errors.New("the world's clock does not get there")
	ErrNoCell       = errors.New("there is no such cell")
	ErrNotHalted    = errors.New("the cell is not halted")
	ErrNoEffect     = errors.New("the manifest declares no such effect")
	ErrNoReason     = errors.New("a reason is missing")
	ErrNoIntent     = errors.New("there is no such intent")
	ErrNotWaiting   = errors.New("the intent does not wait for that decision")
	ErrGate         = errors.New("the gate denies it")
	ErrOtherParams  = errors.New("the decision is about other params than the intent's")
	ErrSameParams   = errors.New("the edit changes nothing")
	ErrMayBeDone    = errors.New("it failed, and may have happened all the same")
	ErrNoBudget     = errors.New("the budget does not allow another attempt")
	ErrForkLive     = errors.New("what is performed in a fork is said by kind")
	ErrForkEffects  = errors.New("effects of a fork are on hold, live or recorded")
	ErrSeed         = errors.New("a world keeps its seed, whatever its rules are")
	ErrSameWorld    = errors.New("a fork is another world and needs another id")
	ErrMigration    = errors.New("a cell cannot be migrated")
	ErrManifestSize = errors.New("the manifest is too large")
	ErrUnderWay     = errors.New("effects are under way that the manifest does not take over")
	ErrRetention    = errors.New("at least one snapshot is kept")
	ErrNoRepeat     = errors.New("the intent repeats none whose result could be used")
)

// InputError says why an input was refused. Nothing has changed.
type InputError struct {
	Err   error  // one of the errors above
	Field string // what is wrong, e.g. data.customer
	Rule  string // what it should be, or what it is
}

func (e *InputError) Error() string {
	return fmt.Sprintf("%s: %v: %s", e.Field, e.Err, e.Rule)
}

func (e *InputError) Unwrap() error { return e.Err }

func refuse(err error, field, rule string, args ...any) *InputError {
	return &InputError{Err: err, Field: field, Rule: fmt.Sprintf(rule, args...)}
}

// route sends an event to one cell of a reducer, or to each.
type route struct {
	reducer string
	key     manifest.KeyExpr
	each    *cell // everyone; nil: it goes to one
	random  bool  // in random order
}

// event returns the rule of a declared event.
func (r *rules) event(name string) (*eventRule, error) {
	rule := r.events[name]
	if rule == nil {
		return nil, refuse(ErrUnknownEvent, "event", "%q is not one of the declared events", name)
	}
	return rule, nil
}

// check reports why data cannot be the event's.
func (e *eventRule) check(data journal.Data, limits *manifest.Limits) error {
	if len(data) == 0 {
		data = journal.Data(canon.Null)
	}
	if uint64(len(data)) > limits.Payload {
		return refuse(ErrTooLarge, "data", "%d bytes, the most is %d", len(data), limits.Payload)
	}
	if e.schema == nil {
		return nil
	}
	if field, rule, ok := e.schema.check(data); !ok {
		return refuse(ErrSchema, field, "%s", rule)
	}
	return nil
}

// route appends the cells that an event goes to, in the order of the
// manifest's routes, each once: everyone of a reducer is one of them. An empty key means the
// routes' own keys.
func (r *roster) route(to []*cell, e *eventRule, key string, data journal.Data) ([]*cell, error) {
	for _, rt := range e.routes {
		var c *cell
		switch {
		case key != "":
			if err := manifest.CheckKey(key); err != nil {
				return nil, refuse(ErrBadKey, "key", "%v", err)
			}
			c = r.cellFor(reducer.Cell{Reducer: rt.reducer, Key: key})
		case rt.each != nil:
			c = rt.each
		case rt.key.Path == nil:
			c = r.cellFor(reducer.Cell{Reducer: rt.reducer, Key: rt.key.Literal})
		default:
			var err error
			if c, err = r.routeByData(rt, data); err != nil {
				return nil, err
			}
		}
		if !slices.ContainsFunc(to, func(o *cell) bool { return o.name == c.name }) {
			to = append(to, c)
		}
	}
	return to, nil
}

// routeByData finds the cell whose key is a field of the event's data.
func (r *roster) routeByData(rt route, data journal.Data) (*cell, error) {
	field := func() string {
		s := "data"
		for _, name := range rt.key.Path {
			s += "." + name
		}
		return s
	}
	item, err := canon.Lookup(data, rt.key.Path...)
	if err != nil {
		return nil, refuse(ErrBadKey, field(), "missing, and it is the key of %s", rt.reducer)
	}
	is := canon.NewReader(item)
	if text := is.TextBytes(); is.Err() == nil {
		if c := r.cells.get(reducer.Cell{Reducer: rt.reducer, Key: string(text)}); c != nil {
			return c, nil // the common case, without an allocation
		}
		if err := manifest.CheckKey(string(text)); err != nil {
			return nil, refuse(ErrBadKey, field(), "%v", err)
		}
		return r.cellFor(reducer.Cell{Reducer: rt.reducer, Key: string(text)}), nil
	}
	is = canon.NewReader(item)
	if n := is.Uint(); is.Err() == nil {
		return r.cellFor(reducer.Cell{Reducer: rt.reducer, Key: strconv.FormatUint(n, 10)}), nil
	}
	text, err := canon.ToJSON(item)
	if err != nil {
		return nil, err
	}
	return nil, refuse(ErrBadKey, field(), "a key is a string or a non-negative integer, not %s", text)
}
