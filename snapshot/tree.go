package snapshot

// Tree is a set of leaves that knows the root of Root, and hashes no more for
// it than the ways to the leaves that changed. The zero value is empty. It
// takes some 125 bytes a leaf, of the most leaves that it ever had. It is not
// safe for concurrent use, and its copy is no second tree.
type Tree struct {
	top    ref
	leaves pool[Leaf]
	nodes  pool[node]
	path   []ref // the nodes above the end of the last find, from the top
}

// ref names a subtree: 0 is empty, i+1 is node i, ^i is leaf i. Numbers take
// half the room of pointers and are nothing to the garbage collector; memory
// runs out before they do.
type ref int32

// node is a subtree of two leaves or more.
type node struct {
	root Hash // zero: to be computed; it is then zero in all nodes above too
	kids [2]ref
}

func (t *Tree) leaf(r ref) *Leaf { return t.leaves.at(int32(^r)) }
func (t *Tree) node(r ref) *node { return t.nodes.at(int32(r - 1)) }

// Len returns the number of leaves.
func (t *Tree) Len() int { return int(t.leaves.made) - len(t.leaves.free) }

// Root returns what Root returns for the leaves.
func (t *Tree) Root() Hash { return t.root(t.top) }

func (t *Tree) root(r ref) Hash {
	switch {
	case r == 0:
		return Hash{}
	case r < 0:
		return t.leaf(r).root()
	}
	n := t.node(r)
	if n.root.IsZero() {
		n.root = join(t.root(n.kids[0]), t.root(n.kids[1]))
	}
	return n.root
}

// Set gives a key a value, whether it had one or not.
func (t *Tree) Set(key, value Hash) {
	end := t.find(&key)
	if end < 0 && t.leaf(end).Key == key {
		if l := t.leaf(end); l.Value != value {
			l.Value = value
			t.replace(&key, end)
		}
		return
	}
	fresh := ^ref(t.leaves.add(Leaf{Key: key, Value: value}))
	if end == 0 {
		t.replace(&key, fresh)
		return
	}
	depth := shared(&key, &t.leaf(end).Key)
	fork := t.newNode(bit(&key, depth), fresh, end)
	for depth--; depth >= len(t.path); depth-- {
		fork = t.newNode(bit(&key, depth), fork, 0)
	}
	t.replace(&key, fork)
}

// Delete removes a key and its value. One that is not there is no fault.
func (t *Tree) Delete(key Hash) {
	end := t.find(&key)
	if end == 0 || t.leaf(end).Key != key {
		return
	}
	t.leaves.drop(int32(^end))
	var alone ref // the leaf that is left of a subtree takes its place
	for len(t.path) > 0 {
		last := len(t.path) - 1
		beside := t.node(t.path[last]).kids[1-bit(&key, last)]
		if alone == 0 && beside < 0 {
			alone = beside
		} else if alone == 0 || beside != 0 {
			break
		}
		t.nodes.drop(int32(t.path[last] - 1))
		t.path = t.path[:last]
	}
	t.replace(&key, alone)
}

// find goes down the way of a key, writes it to t.path, and returns what is at
// its end: nothing or a leaf.
func (t *Tree) find(key *Hash) ref {
	t.path = t.path[:0]
	at := t.top
	for at > 0 {
		depth := len(t.path)
		t.path = append(t.path, at)
		at = t.node(at).kids[bit(key, depth)]
	}
	return at
}

// replace puts r below the last node of t.path, which leads to key, and makes
// the roots above it be computed again.
func (t *Tree) replace(key *Hash, r ref) {
	last := len(t.path) - 1
	if last < 0 {
		t.top = r
		return
	}
	t.node(t.path[last]).kids[bit(key, last)] = r
	for ; last >= 0; last-- {
		n := t.node(t.path[last])
		if n.root.IsZero() {
			return
		}
		n.root = Hash{}
	}
}

// newNode returns a node with one child on the given side and another beside it.
func (t *Tree) newNode(side int, child, beside ref) ref {
	n := node{}
	n.kids[side], n.kids[1-side] = child, beside
	return ref(t.nodes.add(n) + 1)
}

// pool holds values by number, in blocks, so that it grows without moving them.
type pool[T any] struct {
	blocks []*[blockLen]T
	made   int32   // numbers that were ever given
	free   []int32 // those that were given back
}

const blockLen = 128

func (p *pool[T]) at(i int32) *T { return &p.blocks[uint32(i)/blockLen][uint32(i)%blockLen] }

func (p *pool[T]) add(v T) int32 {
	var i int32
	if last := len(p.free) - 1; last >= 0 {
		i, p.free = p.free[last], p.free[:last]
	} else {
		if i = p.made; i%blockLen == 0 {
			p.blocks = append(p.blocks, new([blockLen]T))
		}
		p.made++
	}
	*p.at(i) = v
	return i
}

func (p *pool[T]) drop(i int32) { p.free = append(p.free, i) }
