package governance

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// lister is a list. What it costs to get at an item, at spends.
type lister interface {
	ref.Val
	size() int
	at(m *meter, i int) ref.Val
}

// mapper is a map. Keys are equal as numbers are, whatever their types.
type mapper interface {
	ref.Val
	size() int
	find(m *meter, key ref.Val) (ref.Val, bool)
	entry(m *meter, i int) (key, value ref.Val) // in an order of its own
	keys(m *meter) []ref.Val                    // in the order of keys
}

// container is what lists and maps have in common: all that the library could ask of
// them is answered here, by equal, index and the like.
type container struct{}

var errContainer = errors.New("a list or a map stands for itself alone")

func (container) ConvertToNative(reflect.Type) (any, error) { return nil, errContainer }
func (container) ConvertToType(ref.Type) ref.Val            { return noOverload() }
func (container) Equal(ref.Val) ref.Val                     { return noOverload() }
func (container) Value() any                                { return nil }

type listType struct{ container }

func (listType) Type() ref.Type { return types.ListType }

type mapType struct{ container }

func (mapType) Type() ref.Type { return types.MapType }

// list is a list in memory.
type list struct {
	listType
	items []ref.Val
	// grown is the longest list that begins with items, in the same memory: the next
	// one that is joined to it costs nothing but itself.
	grown *[]ref.Val
}

func newList(items []ref.Val) *list { return &list{items: items} }

func (l *list) size() int                  { return len(l.items) }
func (l *list) at(_ *meter, i int) ref.Val { return l.items[i] }

// join returns the list a + b.
func join(m *meter, a lister, b ref.Val) ref.Val {
	more, ok := b.(lister)
	if !ok {
		return noOverload()
	}
	l, ok := a.(*list)
	if !ok || l.grown == nil || len(*l.grown) != len(l.items) {
		m.spend(uint64(a.size()))
		items := make([]ref.Val, 0, a.size()+more.size())
		for i := range a.size() {
			items = append(items, a.at(m, i))
		}
		l = &list{items: items, grown: &items}
	}
	items := *l.grown
	for i := range more.size() {
		m.spend(1)
		items = append(items, more.at(m, i))
	}
	*l.grown = items
	return &list{items: items, grown: l.grown}
}

// dict is a map that an expression writes down.
type dict struct {
	mapType
	entries []entry     // in the order of their keys
	index   map[any]int // by indexKey
}

type entry struct{ key, value ref.Val }

// newDict makes a map of keys, each with its value after it; of a key that comes again
// the last one counts.
func newDict(m *meter, pairs []ref.Val) ref.Val {
	d := &dict{index: make(map[any]int, len(pairs)/2)}
	for i := 0; i < len(pairs); i += 2 {
		key, ok := indexKey(pairs[i])
		if !ok || isDouble(pairs[i]) {
			return types.NewErr("a map has a key that is not a boolean, an integer or a string")
		}
		m.spend(1 + textSteps(pairs[i:i+1]))
		at, again := d.index[key]
		if !again {
			at = len(d.entries)
			d.index[key] = at
			d.entries = append(d.entries, entry{})
		}
		d.entries[at] = entry{pairs[i], pairs[i+1]}
	}
	m.spendSort(len(d.entries))
	slices.SortStableFunc(d.entries, func(a, b entry) int { return compareKeys(a.key, b.key) })
	for i, e := range d.entries {
		key, _ := indexKey(e.key)
		d.index[key] = i
	}
	return d
}

func (d *dict) size() int { return len(d.entries) }

func (d *dict) entry(_ *meter, i int) (key, val ref.Val) { return d.entries[i].key, d.entries[i].value }

func (d *dict) keys(*meter) []ref.Val {
	out := make([]ref.Val, len(d.entries))
	for i, e := range d.entries {
		out[i] = e.key
	}
	return out
}

func (d *dict) find(m *meter, key ref.Val) (ref.Val, bool) {
	k, ok := indexKey(key)
	if !ok {
		return nil, false
	}
	m.spend(1 + textSteps([]ref.Val{key}))
	i, ok := d.index[k]
	if !ok {
		return nil, false
	}
	return d.entries[i].value, true
}

// negative is the key of a number below 0.
type negative int64

// indexKey returns what keys that are equal have in common; false: there is no such key.
func indexKey(v ref.Val) (any, bool) {
	switch v := v.(type) {
	case types.Bool:
		return bool(v), true
	case types.String:
		return string(v), true
	case types.Uint:
		return uint64(v), true
	case types.Int:
		if v < 0 {
			return negative(v), true
		}
		return uint64(v), true
	case types.Double:
		if i, ok := v.ConvertToType(types.IntType).(types.Int); ok && v.Equal(i) == types.True {
			return indexKey(i)
		}
	case *great:
		if v.IsUint64() {
			return v.Uint64(), true
		}
	}
	return nil, false
}

func isDouble(v ref.Val) bool {
	_, ok := v.(types.Double)
	return ok
}

// dataOf returns canonical CBOR as a value; what is in it is decoded when it is looked
// at. Bytes that are not canonical are an error.
func dataOf(data canon.Raw) ref.Val {
	if len(data) == 0 {
		return types.NullValue
	}
	if err := canon.Valid(data); err != nil {
		return types.WrapErr(err)
	}
	return item(data)
}

// item returns one item that is canonical.
func item(data canon.Raw) ref.Val {
	r := canon.NewReader(data)
	switch r.Kind() {
	case canon.KindBool:
		return types.Bool(r.Bool())
	case canon.KindInt:
		return integerOf(r)
	case canon.KindFloat:
		return types.Double(r.Float())
	case canon.KindBytes:
		return types.Bytes(r.Bytes())
	case canon.KindText:
		return types.String(r.Text())
	case canon.KindArray:
		n := r.Array()
		return &dataList{data: data, begin: r.Offset(), n: n}
	case canon.KindMap:
		n := r.Map()
		return &dataMap{data: data, begin: r.Offset(), n: n}
	default:
		return types.NullValue
	}
}

// spendItem takes what it costs to decode an item: the texts are copied.
func spendItem(m *meter, data canon.Raw) {
	switch canon.NewReader(data).Kind() {
	case canon.KindArray, canon.KindMap:
		m.spend(1)
	default:
		m.spend(1 + uint64(len(data))/bytesPerStep)
	}
}

// dataList is a list of canonical items.
type dataList struct {
	listType
	data  canon.Raw
	begin int // of the first item
	n     int
	ends  []int  // of items; nil: not looked for yet
	paid  uint64 // the evaluation that has paid for the search last
}

func (l *dataList) size() int { return l.n }

func (l *dataList) at(m *meter, i int) ref.Val {
	if l.paid != m.number {
		m.spend(uint64(l.n) + uint64(len(l.data))/bytesPerStep)
		l.paid = m.number
	}
	if l.ends == nil {
		l.ends = make([]int, l.n)
		r := canon.NewReader(l.data[l.begin:])
		for k := range l.ends {
			r.Raw()
			l.ends[k] = l.begin + r.Offset()
		}
	}
	from := l.begin
	if i > 0 {
		from = l.ends[i-1]
	}
	data := l.data[from:l.ends[i]]
	spendItem(m, data)
	return item(data)
}

// dataMap is a map of canonical items, whose keys are texts.
type dataMap struct {
	mapType
	data    canon.Raw
	begin   int // of the first key
	n       int
	entries []dataEntry // in canonical order; nil: not looked for yet
	sorted  []ref.Val   // keys; nil: likewise
	paid    uint64      // the evaluation that has paid for the search last
}

type dataEntry struct {
	key   canon.Raw // encoded
	value canon.Raw
	child ref.Val // value as a list or a map, once it was looked at
}

func (d *dataMap) size() int { return d.n }

// pay takes what it costs to look for all entries, once.
func (d *dataMap) pay(m *meter) {
	if d.paid != m.number {
		m.spend(2*uint64(d.n) + uint64(len(d.data))/bytesPerStep)
		d.paid = m.number
	}
}

// index looks for the entries.
func (d *dataMap) index() {
	if d.entries != nil {
		return
	}
	d.entries = make([]dataEntry, d.n)
	r := canon.NewReader(d.data[d.begin:])
	for i := range d.entries {
		d.entries[i] = dataEntry{key: r.Raw(), value: r.Raw()}
	}
}

// fewEntries are so few that looking through them costs less than an index of them.
const fewEntries = 16

// scan looks for a key without an index. It is not done where the value is a list or a map, of
// which the index keeps what was found in it.
func (d *dataMap) scan(m *meter, name string) (v ref.Val, done, found bool) {
	r := canon.NewReader(d.data[d.begin:])
	for range d.n {
		key, value := r.TextBytes(), r.Raw()
		if string(key) != name {
			continue
		}
		switch canon.NewReader(value).Kind() {
		case canon.KindArray, canon.KindMap:
			return nil, false, false
		default:
		}
		spendItem(m, value)
		return item(value), true, true
	}
	return nil, true, false
}

func (d *dataMap) find(m *meter, key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	d.pay(m)
	m.spend(3 + uint64(len(name))/bytesPerStep)
	if d.entries == nil && d.n <= fewEntries {
		if v, done, found := d.scan(m, string(name)); done {
			return v, found
		}
	}
	d.index()
	encoded := canon.AppendText(nil, string(name))
	i, found := slices.BinarySearchFunc(d.entries, encoded, func(e dataEntry, key []byte) int {
		return bytes.Compare(e.key, key)
	})
	if !found {
		return nil, false
	}
	return d.value(m, i), true
}

func (d *dataMap) value(m *meter, i int) ref.Val {
	e := &d.entries[i]
	spendItem(m, e.value)
	if e.child != nil {
		return e.child
	}
	v := item(e.value)
	switch v.(type) {
	case lister, mapper:
		e.child = v
	}
	return v
}

func (d *dataMap) entry(m *meter, i int) (key, value ref.Val) {
	d.pay(m)
	d.index()
	spendItem(m, d.entries[i].key)
	return item(d.entries[i].key), d.value(m, i)
}

func (d *dataMap) keys(m *meter) []ref.Val {
	d.pay(m)
	d.index()
	m.spendSort(d.n)
	m.spendBytes(len(d.data))
	if d.sorted == nil {
		d.sorted = make([]ref.Val, d.n)
		for i := range d.entries {
			d.sorted[i] = item(d.entries[i].key)
		}
		slices.SortFunc(d.sorted, compareKeys)
	}
	return d.sorted
}

// compareKeys orders keys by the name of their type, then by value.
func compareKeys(a, b ref.Val) int {
	if c := strings.Compare(a.Type().TypeName(), b.Type().TypeName()); c != 0 {
		return c
	}
	if comparer, ok := a.(traits.Comparer); ok {
		if c, ok := comparer.Compare(b).(types.Int); ok {
			return int(c)
		}
	}
	return 0
}
