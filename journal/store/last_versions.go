package store

import (
	"slices"

	"github.com/worldkernel/worldkernel/journal"
)

// written is the cells and intents that an image has put there: the next ones often put
// most of these cells there again, and end the intents that were open. They need not search
// then for the versions that they follow, nor read them to learn that they have no chunks.
type written struct {
	head    journal.Seq
	cells   []string          // ascending
	special map[string]former // what to say of those that are not there as a whole
	intents map[journal.Hash]struct{}
	size    int // of all, about, in bytes
}

// How many images are remembered at most, and how many bytes of names of those before the last.
// Where events wait for longer than from one image to the next, as when many come at once, the
// cells that they reach were put there by the one before it.
const (
	mostRemembered = 4
	rememberedSize = 8 << 20

	nameBytes = 16 // that a name takes besides its own
)

// mostWritten is how many intents are remembered of an image: what has more is rare.
const mostWritten = 1 << 17

func newWritten(img *journal.Image) written {
	w := written{head: img.Head.ID, special: map[string]former{}}
	if n := len(img.Intents); n <= mostWritten {
		w.intents = make(map[journal.Hash]struct{}, n)
	}
	return w
}

// after returns what is to be remembered once an image is written, the newest first.
func (w *written) after(lately []written) []written {
	n := 0
	for i := range lately {
		if n += lately[i].size; n > rememberedSize || i+1 == mostRemembered {
			return append([]written{*w}, lately[:i]...)
		}
	}
	return append([]written{*w}, lately...)
}

// add remembers a cell.
func (w *written) add(c *journal.CellVersion) {
	w.cells = append(w.cells, c.Cell)
	w.size += nameBytes + len(c.Cell)
	switch {
	case len(c.Bytes) == 0: // tidy may delete it
		w.special[c.Cell] = former{at: anywhere}
	case isInChunks(c.Bytes):
		w.special[c.Cell] = former{at: w.head}
	}
}

// noteIntent remembers an intent.
func (w *written) noteIntent(intent journal.Hash) {
	if w.intents != nil {
		w.intents[intent] = struct{}{}
		w.size += len(intent)
	}
}

// has reports whether the image has put an intent there, as far as is known.
func (w *written) has(intent journal.Hash) bool {
	_, ok := w.intents[intent]
	return ok
}

// former says where the version before one is.
type former struct {
	at    journal.Seq
	whole bool // it is known to have no chunks
}

// Where no head tells: it has to be searched for, or there is none.
const (
	anywhere = journal.Last
	nowhere  = journal.Last - 1
)

// formerOf says where the version before one is, where nobody has remembered it.
func formerOf(first bool) former {
	if first {
		return former{at: nowhere}
	}
	return former{at: anywhere}
}

func (k *keeper) formerOfCell(c *journal.CellVersion) former {
	if !c.First {
		for i := range k.lately {
			w := &k.lately[i]
			if _, is := slices.BinarySearch(w.cells, c.Cell); is {
				if f, special := w.special[c.Cell]; special {
					return f
				}
				return former{at: w.head, whole: true}
			}
		}
	}
	return formerOf(c.First)
}

func (k *keeper) formerOfIntent(in *journal.IntentVersion) former {
	if !in.First {
		for i := range k.lately {
			w := &k.lately[i]
			if w.intents == nil { // nobody knows, and those before it are older
				break
			}
			if w.has(in.Key) {
				return former{at: w.head, whole: true}
			}
		}
	}
	return formerOf(in.First)
}
