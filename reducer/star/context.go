package star

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// stepContext is the ctx of a program. Its functions are bound once, for the
// engine that it is part of.
type stepContext struct {
	object
	e      *engine
	in     *reducer.Input
	out    *reducer.Output
	limits manifest.ReducerLimits
	rand   *reducer.Rand // of this step, once it has begun: spare
	spare  reducer.Rand
	event  stepEvent

	emit, effect, timer, cancel, random *starlark.Builtin

	params, schemas starlark.Value // frozen
}

func (c *stepContext) init(e *engine) {
	c.object, c.e = "ctx", e
	c.event = stepEvent{object: "event", ctx: c}
	c.emit = starlark.NewBuiltin("emit", c.doEmit)
	c.effect = starlark.NewBuiltin("effect", c.doEffect)
	c.timer = starlark.NewBuiltin("timer", c.doTimer)
	c.cancel = starlark.NewBuiltin("cancel", c.doCancel)
	c.random = starlark.NewBuiltin("random", c.doRandom)
}

func (c *stepContext) bind(in *reducer.Input, out *reducer.Output, limits manifest.ReducerLimits) {
	c.in, c.out, c.limits, c.rand, c.event.data = in, out, limits, nil, nil
}

// unbind forgets the step, whose memory is the caller's.
func (c *stepContext) unbind() {
	c.in, c.out, c.rand, c.event.data = nil, nil, nil, nil
}

// Attr returns a field or function of ctx.
func (c *stepContext) Attr(name string) (starlark.Value, error) {
	switch name {
	case "emit":
		return c.emit, nil
	case "effect":
		return c.effect, nil
	case "timer":
		return c.timer, nil
	case "random":
		return c.random, nil
	case "params":
		return c.params, nil
	case "schemas":
		return c.schemas, nil
	}
	if c.in == nil { // while the module is loaded there is no ctx to be had
		return nil, nil
	}
	switch name {
	case "cancel":
		return c.cancel, nil
	case "time":
		return starlark.MakeUint64(uint64(c.in.Time)), nil
	case "cell":
		return starlark.String(c.in.Cell.String()), nil
	case "key":
		return starlark.String(c.in.Cell.Key), nil
	}
	return nil, noField(c, name)
}

// noField returns the error that lists what an object has.
func noField(x starlark.HasAttrs, name string) error {
	return starlark.NoSuchAttrError(fmt.Sprintf("%s has no .%s field or method, only %s", x.Type(), name, strings.Join(x.AttrNames(), ", ")))
}

// AttrNames returns the names that Attr knows.
func (c *stepContext) AttrNames() []string {
	return []string{"cancel", "cell", "effect", "emit", "key", "params", "random", "schemas", "time", "timer"}
}

func (c *stepContext) doEmit(
	_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	var name, key text
	var data starlark.Value = starlark.None
	if !plain(args, kwargs, &name, &data) {
		err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name, "data?", &data, "key?", &key)
		if err != nil {
			return nil, err
		}
	}
	if uint64(len(c.out.Events)) >= c.limits.Events {
		c.e.exceed("limits.events is %d", c.limits.Events)
	}
	c.e.names(name, key)
	b2, err := c.encode("data", data)
	if err != nil {
		return nil, err
	}
	c.out.Events = append(c.out.Events, reducer.Emit{Name: string(name), Data: b2, Key: string(key)})
	return starlark.None, nil
}

func (c *stepContext) doEffect(
	_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	var kind, tag, grant text
	var params starlark.Value = starlark.None
	err := starlark.UnpackArgs(b.Name(), args, kwargs, "kind", &kind, "params?", &params, "tag?", &tag, "cap?", &grant)
	if err != nil {
		return nil, err
	}
	if uint64(len(c.out.Effects)) >= c.limits.Effects {
		c.e.exceed("limits.effects is %d", c.limits.Effects)
	}
	c.e.names(kind, tag, grant)
	data, err := c.encode("params", params)
	if err != nil {
		return nil, err
	}
	effect := reducer.Effect{Kind: string(kind), Params: data, Tag: string(tag), Cap: string(grant)}
	c.out.Effects = append(c.out.Effects, effect)
	return starlark.None, nil
}

func (c *stepContext) doTimer(
	_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	after := ticks{c: c}
	var name, tag text
	var data starlark.Value = starlark.None
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "after_ticks", &after, "name", &name, "data?", &data, "tag?", &tag); err != nil {
		return nil, err
	}
	if after.n == 0 {
		return nil, fmt.Errorf("timer: after_ticks is %v, want at least 1 and at most 64 bits", after.given)
	}
	if uint64(len(c.out.Timers)) >= c.limits.Timers {
		c.e.exceed("limits.timers is %d", c.limits.Timers)
	}
	c.e.names(name, tag)
	b2, err := c.encode("data", data)
	if err != nil {
		return nil, err
	}
	c.out.Timers = append(c.out.Timers, reducer.Timer{After: after.n, Name: string(name), Data: b2, Tag: string(tag)})
	return starlark.None, nil
}

func (c *stepContext) doCancel(
	_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	var tag text
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "tag", &tag); err != nil {
		return nil, err
	}
	if tag == "" {
		return nil, fmt.Errorf("cancel: the tag is empty")
	}
	if uint64(len(c.out.Cancels)) >= c.limits.Timers {
		c.e.exceed("limits.timers is %d", c.limits.Timers)
	}
	c.e.names(tag)
	c.e.walk(c.tagBytes())
	c.out.Cancel(string(tag))
	return starlark.None, nil
}

// tagBytes returns how many bytes are looked at where a tag is looked for among all that
// the step has asked for.
func (c *stepContext) tagBytes() int {
	n := 0
	for _, e := range c.out.Effects {
		n += len(e.Tag) + 1
	}
	for _, t := range c.out.Timers {
		n += len(t.Tag) + 1
	}
	for _, tag := range c.out.Cancels {
		n += len(tag) + 1
	}
	return n
}

func (c *stepContext) doRandom(
	_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	var n starlark.Int
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "n", &n); err != nil {
		return nil, err
	}
	below, ok := n.Uint64()
	if !ok || below == 0 {
		return nil, fmt.Errorf("random: n is %v, want at least 1 and at most 64 bits", n)
	}
	if c.rand == nil {
		c.rand = &c.spare
		c.in.Seed.Begin(c.rand)
	}
	v, err := c.rand.Below(below)
	return starlark.MakeUint64(v), err
}

// encode returns the canonical bytes of v, in memory of its own.
func (c *stepContext) encode(what string, v starlark.Value) (reducer.Data, error) {
	var scratch [128]byte
	b, err := c.e.enc.encode(scratch[:0], what, v, c.limits.Value, "limits.value")
	if err != nil {
		return nil, err
	}
	if len(b) <= len(scratch) {
		b = append([]byte(nil), b...)
	}
	return b, nil
}

// plain takes the arguments of the usual call f(name, data).
func plain(args starlark.Tuple, kwargs []starlark.Tuple, name *text, data *starlark.Value) bool {
	if len(args) != 2 || len(kwargs) > 0 {
		return false
	}
	*data = args[1]
	return name.Unpack(args[0]) == nil
}

// names charges for what was looked through to see that it is UTF-8.
func (m *meter) names(names ...text) {
	n := 0
	for _, s := range names {
		n += len(s)
	}
	m.walk(n)
}

// ticks is an argument that says how long: a number of ticks or a
// duration.
type ticks struct {
	c     *stepContext
	given starlark.Value
	n     manifest.Tick // 0: given is no such number
}

// Unpack is called by the library's unpacking of arguments.
func (t *ticks) Unpack(v starlark.Value) error {
	t.given = v
	switch v := v.(type) {
	case starlark.Int:
		if n, ok := v.Uint64(); ok {
			t.n = manifest.Tick(n)
		}
		return nil
	case starlark.String:
		d, err := manifest.ParseDuration(string(v))
		if err == nil {
			t.n = t.c.in.Clock.Ticks(d)
		}
		return err
	}
	return fmt.Errorf("got %s, want int", v.Type())
}

// text is a string argument that must be UTF-8.
type text string

// Unpack is called by the library's unpacking of arguments.
func (t *text) Unpack(v starlark.Value) error {
	s, ok := v.(starlark.String)
	if !ok {
		return fmt.Errorf("got %s, want string", v.Type())
	}
	if !utf8.ValidString(string(s)) {
		return fmt.Errorf("got a string that is not UTF-8")
	}
	*t = text(s)
	return nil
}

// stepEvent is the event of a program: its data is decoded when it is first
// asked for.
type stepEvent struct {
	object
	ctx  *stepContext
	data starlark.Value
}

// Attr returns name or data.
func (v *stepEvent) Attr(name string) (starlark.Value, error) {
	if v.ctx.in == nil {
		return nil, nil
	}
	switch name {
	case "name":
		return v.ctx.e.dec.word([]byte(v.ctx.in.Event.Name)), nil
	case "data":
		if v.data == nil {
			data, err := v.ctx.e.dec.decode("event.data", v.ctx.in.Event.Data)
			if err != nil {
				return nil, err
			}
			v.data = data
		}
		return v.data, nil
	}
	return nil, noField(v, name)
}

// AttrNames returns the names that Attr knows.
func (v *stepEvent) AttrNames() []string { return []string{"data", "name"} }

// object is the part of a value that ctx and event have in common; it is its name.
type object string

// String returns the object's name.
func (o object) String() string { return string(o) }

// Type returns the object's name.
func (o object) Type() string { return string(o) }

// Freeze does nothing: programs cannot change an object.
func (o object) Freeze() {}

// Truth is true.
func (o object) Truth() starlark.Bool { return true }

// Hash refuses.
func (o object) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: %s", string(o)) }
