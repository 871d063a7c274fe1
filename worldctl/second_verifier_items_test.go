package worldctl

import (
	"bytes"
	"crypto/ed25519"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// editsOfItems leave all else as it is.
var editsOfItems = []edit{
	{name: "a checkpoint of another history", do: noteOf(func(f *counterfeit, size uint64, root checkpoint.Hash) []byte {
		root[f.rng.IntN(len(root))]++
		return f.note(size, root)
	})},
	{name: "a checkpoint of another size", do: noteOf(func(f *counterfeit, size uint64, root checkpoint.Hash) []byte {
		return f.note(size+1+uint64(f.rng.IntN(3)), root)
	})},
	{name: "a checkpoint of another world", do: noteOf(func(f *counterfeit, size uint64, root checkpoint.Hash) []byte {
		x := *f
		x.header.World += "2"
		return x.note(size, root)
	})},
	{name: "a checkpoint by a stranger", do: noteOf(func(f *counterfeit, size uint64, root checkpoint.Hash) []byte {
		x := *f
		x.keys = []ed25519.PrivateKey{worldtest.Key(stranger)}
		return x.note(size, root)
	})},
	{name: "a checkpoint by a stranger, too", due: agreement, do: noteOf(func(f *counterfeit, size uint64, root checkpoint.Hash) []byte {
		x := *f
		x.keys = append([]ed25519.PrivateKey{worldtest.Key(stranger)}, f.keys...)
		return x.note(size, root)
	})},
	{name: "a bit of a checkpoint", do: flipAny(aNote)},
	{name: "a checkpoint that was moved", do: noteMoved},
	{name: "a checkpoint behind the next blob", do: noteBehindBlob},
	{name: "a checkpoint twice", do: repeatAny(aNote)},
	{name: "no checkpoint at the end", do: noteless},
	{name: "a key that has not signed", do: func(f *counterfeit) bool {
		f.header.Keys = append(slices.Clone(f.header.Keys), worldtest.Public(stranger))
		slices.SortFunc(f.header.Keys, func(a, b ed25519.PublicKey) int { return bytes.Compare(a, b) })
		return true
	}},
	{name: "a withheld payload that is none", do: func(f *counterfeit) bool {
		f.header.Withheld = sortedHashes(slices.Values(append(f.header.Withheld, canon.Sum([]byte{byte(f.rng.IntN(256))}))))
		return true
	}},
	{name: "a payload that is said to be withheld", do: saidToBeWithheld},
	{name: "another end", do: func(f *counterfeit) bool { f.header.Last++; return true }},
	{name: "another world", do: func(f *counterfeit) bool { f.header.World += "x"; return true }},
	{name: "a blob that nobody needs", do: func(f *counterfeit) bool {
		f.bring(f.rng.IntN(len(f.items)), []byte("nobody needs it"))
		return true
	}},
	{name: "a blob twice", do: repeatAny(aBlob)},
	{name: "a blob less", do: dropAny(aBlob)},
	{name: "an item that is none", do: func(f *counterfeit) bool {
		f.items = slices.Insert(f.items, f.rng.IntN(len(f.items)), item{sort: aBlob, bytes: nil})
		return true
	}},
	{name: "two items changed places", do: func(f *counterfeit) bool {
		i, j := f.rng.IntN(len(f.items)), f.rng.IntN(len(f.items))
		same := f.items[i].sort == f.items[j].sort && bytes.Equal(f.items[i].bytes, f.items[j].bytes)
		f.items[i], f.items[j] = f.items[j], f.items[i]
		return !same && !f.justBlobs(i, j)
	}},
}

// justBlobs reports whether there are only blobs from an item to another: their order
// is the writer's business.
func (f *counterfeit) justBlobs(i, j int) bool {
	return !slices.ContainsFunc(f.items[min(i, j):max(i, j)+1], func(x item) bool { return x.sort != aBlob })
}

// noteOf puts another checkpoint in the place of one.
func noteOf(other func(f *counterfeit, size uint64, root checkpoint.Hash) []byte) func(*counterfeit) bool {
	return func(f *counterfeit) bool {
		at := f.anyOf(aNote)
		c, err := checkpoint.Parse(f.items[at].bytes)
		require.NoError(f.t, err)
		f.items[at].bytes = other(f, c.Size, c.Root)
		return true
	}
}

func noteMoved(f *counterfeit) bool {
	at := f.anyOf(aNote)
	note := f.items[at]
	f.remove(at)
	to := f.anyOf(aRecord) + 1
	f.items = slices.Insert(f.items, to, note)
	return to != at
}

func noteBehindBlob(f *counterfeit) bool {
	for at := len(f.items) - 1; at > 0; at-- {
		if f.items[at].sort != aBlob || f.items[at-1].sort == aBlob {
			continue
		}
		if f.items[at-1].sort == aNote {
			f.items[at], f.items[at-1] = f.items[at-1], f.items[at]
			return true
		}
		f.items = slices.Insert(f.items, at+1, item{sort: aNote})
		f.sign() // the others as they were
		return true
	}
	return false
}

func noteless(f *counterfeit) bool {
	f.items = f.items[:len(f.items)-1]
	return true
}

func saidToBeWithheld(f *counterfeit) bool {
	for _, at := range f.records() {
		e, ok := f.envelope(at)
		if !ok || e.Blob.IsZero() {
			continue
		}
		if _, err := f.Blob(e.Blob); err == nil {
			f.header.Withheld = sortedHashes(slices.Values(append(f.header.Withheld, e.Blob)))
			return true
		}
	}
	return false
}
