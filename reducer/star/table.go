package star

import (
	"unsafe"

	"go.starlark.net/starlark"
)

// The library's dicts and sets are tables of buckets in chains. Which chain a key is in
// follows from its hash, which whoever writes the program can choose for integers,
// floats, short strings and tuples of these. What every look at a key costs is bounded
// by the longest chain, so that has to be known; the library does not tell. The types
// here are its own of the version that go.mod names; TestTablesAreTheLibrarys holds
// them to it.
type table struct {
	buckets []bucket // none, or a power of two
	first   [1]bucket
	len     uint32
}

type bucket struct {
	entries [8]tableEntry
	next    *bucket
}

type tableEntry struct {
	hash       uint32 // not 0: in use
	key, value starlark.Value
	next       *tableEntry
	prevLink   **tableEntry
}

// tableOf returns the table of a dict or set, and nil of anything else.
func tableOf(v starlark.Value) *table {
	switch v := v.(type) {
	case *starlark.Dict:
		return (*table)(unsafe.Pointer(v)) //nolint:gosec // see table
	case *starlark.Set:
		return (*table)(unsafe.Pointer(v)) //nolint:gosec // see table
	}
	return nil
}

const (
	freeChain     = 24      // entries of a chain: so many there are by chance
	sameHash      = 24      // what an entry of the same hash weighs: it is compared with
	weightPerStep = 16      // of a chain that is looked through
	opaqueSlots   = 1 << 14 // of the hashes that stand for those nobody knows
)

// insert charges for putting a key into a dict or set, before it is done, and notes
// the chain that the key comes into. Everything that looks for keys costs more from
// then on, where that is long.
func (m *meter) insert(into, key starlark.Value) {
	m.key(key)
	t := tableOf(into)
	if t == nil || t.len < freeChain {
		return
	}
	h, err := key.Hash()
	if err != nil {
		return // the library says so
	}
	model, known := modelHash(key, 0)
	if !known {
		m.insertOpaque(into, key, model)
		return
	}
	size := uint64(sameHash)
	if tuple, ok := key.(starlark.Tuple); ok {
		size += uint64(len(tuple))
	}
	m.chain(t.weight(max(h, 1), size))
}

// insertOpaque is insert for a key with a hash that is another in each process. What
// its chain would be is told by a hash made likewise, and counted over all tables.
func (m *meter) insertOpaque(into, key starlark.Value, model uint32) {
	if m.opaque == nil {
		m.opaque = make(map[uint32]uint64)
	}
	slot := model % opaqueSlots
	if found, err := has(into, key); found || err != nil {
		m.chain(0) // nothing is added, or the library says why not
		return
	}
	size := uint64(sameHash)
	if tuple, ok := key.(starlark.Tuple); ok {
		size += uint64(len(tuple))
	}
	if m.opaque[slot]++; m.opaque[slot] <= freeChain {
		size = 0
	}
	m.chain(m.opaque[slot] * size)
}

func has(in, key starlark.Value) (bool, error) {
	switch in := in.(type) {
	case *starlark.Dict:
		_, found, err := in.Get(key)
		return found, err
	case *starlark.Set:
		return in.Has(key)
	}
	return false, nil
}

// weight returns what looking through the chain of a hash costs, by the entries whose
// hash is the same everywhere; same is what one of that very hash weighs.
func (t *table) weight(h uint32, same uint64) uint64 {
	first := &t.buckets[h&uint32(len(t.buckets)-1)]
	n := 0
	for b := first; b != nil; b = b.next {
		n += len(b.entries)
	}
	if n <= freeChain {
		return 0
	}
	weight, count := uint64(0), 0
	for b := first; b != nil; b = b.next {
		for i := range b.entries {
			e := &b.entries[i]
			if e.hash == 0 {
				continue
			}
			if _, known := modelHash(e.key, 0); !known {
				continue
			}
			weight++
			if count++; e.hash == h {
				weight += same
			}
		}
	}
	if count <= freeChain {
		return 0
	}
	return weight
}

// survey notes the longest chain of a dict or set that the library has filled.
func (m *meter) survey(v starlark.Value) {
	t := tableOf(v)
	if t == nil || t.len < freeChain {
		return
	}
	m.spend(uint64(len(t.buckets)) / 4)
	most := uint64(0)
	for i := range t.buckets {
		most = max(most, t.heaviest(&t.buckets[i]))
	}
	m.chain(most)
}

// heaviest returns the greatest weight of a hash in a chain.
func (t *table) heaviest(first *bucket) uint64 {
	slots := 0
	for b := first; b != nil; b = b.next {
		slots += len(b.entries)
	}
	if slots <= freeChain {
		return 0
	}
	count, size, most := uint64(0), uint64(sameHash), uint64(0)
	same := make(map[uint32]uint64)
	for b := first; b != nil; b = b.next {
		for i := range b.entries {
			e := &b.entries[i]
			if e.hash == 0 {
				continue
			}
			if _, known := modelHash(e.key, 0); !known {
				continue
			}
			if tuple, ok := e.key.(starlark.Tuple); ok {
				size = max(size, uint64(sameHash+len(tuple)))
			}
			count++
			same[e.hash]++
			most = max(most, same[e.hash])
		}
	}
	if count <= freeChain {
		return 0
	}
	return count + most*size
}

// chain notes a chain of such a weight, and charges for looking through the heaviest
// that there is: nobody knows which the next key comes into.
func (m *meter) chain(weight uint64) {
	m.heaviest = max(m.heaviest, weight)
	m.spend(m.heaviest / weightPerStep)
}

// Bounds of the tuples that are looked through to find out whether their hash is
// known.
const (
	maxKnownTuple = 16
	maxKnownDepth = 4
)

// modelHash returns the library's hash of a key and true, where that is the same in
// every process; else another that is, and false.
func modelHash(v starlark.Value, depth int) (hash uint32, known bool) {
	switch v := v.(type) {
	case starlark.String:
		return textHash(string(v))
	case starlark.Bytes:
		return textHash(string(v))
	case starlark.Callable:
		return textHash(v.Name())
	case starlark.Tuple:
		x, factor := uint32(0x345678), uint32(1000003) // as the library has it
		known = len(v) <= maxKnownTuple && depth < maxKnownDepth
		for _, item := range v {
			y, ok := modelHash(item, depth+1)
			x ^= y * factor
			factor += 82520 + uint32(2*len(v))
			known = known && ok
		}
		return x, known
	}
	hash, _ = v.Hash()
	return hash, true
}

// hashedSafely is the length in bytes from which the library hashes strings with a seed; shorter ones
// with FNV-1a, for which anyone can find thousands of keys that share a bucket.
const hashedSafely = 12

// textHash is modelHash for a text.
func textHash(s string) (uint32, bool) {
	known := len(s) < hashedSafely
	if len(s) > 64 {
		s = s[:32] + s[len(s)-32:]
	}
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h, known
}
