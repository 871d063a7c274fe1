package worldctl

import (
	"bytes"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// craft makes a mutant of a bundle, or nothing where there is nothing to change, or
// where the change shows in no byte.
type craft struct {
	name string
	make func(g good, x *counterfeit) ([]byte, due)
}

// inTurn returns what gives the crafts one after the other from the nth on, again and
// again.
func inTurn(all []craft, n uint64) func() craft {
	return func() craft {
		n++
		return all[(n-1)%uint64(len(all))]
	}
}

// crafts are all ways of making mutants.
func crafts() (all []craft) {
	for _, e := range editsOfFiles {
		all = append(all, craft{e.name, func(g good, x *counterfeit) ([]byte, due) {
			data := e.do(x, g.data, x.unpacked())
			if bytes.Equal(data, g.data) {
				return nil, refusal
			}
			return data, refusal
		}})
	}
	for _, e := range editsOfItems {
		all = append(all, craft{e.name, func(_ good, x *counterfeit) ([]byte, due) { return x.edited(e, bare), e.due }})
	}
	for _, e := range editsOfRecords {
		for _, far := range []depth{bare, chained, signed} {
			all = append(all, craft{e.name + ", " + far.String(), func(g good, x *counterfeit) ([]byte, due) {
				whole := x.header.First == 1
				switch data := x.edited(e, far); {
				case far < signed:
					return data, refusal
				case x.unreadable:
					return data, readersRefusal
				case !whole && e.past, g.gaps && e.due == kernelsRefusal, g.gaps && e.doubted, !whole && e.due == kernelsRefusal:
					return data, agreement
				default:
					return data, e.due
				}
			}})
		}
	}
	return all
}

// edited returns the bundle after an edit, nil where nothing has changed.
func (f *counterfeit) edited(e edit, far depth) []byte {
	before := f.unpacked()
	if !e.do(f) {
		return nil
	}
	if far >= chained {
		f.renumber()
		f.chain()
	}
	if far == signed {
		f.sign()
	}
	after := f.unpacked()
	if bytes.Equal(before, after) {
		return nil
	}
	return packed(f.t, after)
}

// editOfFile changes bytes and knows nothing of what they are.
type editOfFile struct {
	name string
	do   func(x *counterfeit, file, items []byte) []byte
}

var editsOfFiles = []editOfFile{
	{"a bit of the file", func(x *counterfeit, file, _ []byte) []byte { return x.flipped(file) }},
	{"a file cut short", func(x *counterfeit, file, _ []byte) []byte { return file[:x.rng.IntN(len(file))] }},
	{"something behind the file", func(x *counterfeit, file, _ []byte) []byte { return slices.Concat(file, []byte{byte(x.rng.IntN(256))}) }},
	{"items cut short", func(x *counterfeit, _, items []byte) []byte { return packed(x.t, items[:x.rng.IntN(len(items))]) }},
	{"bytes of the items gone", func(x *counterfeit, _, items []byte) []byte {
		at := x.rng.IntN(len(items))
		return packed(x.t, slices.Concat(items[:at], items[min(at+1+x.rng.IntN(8), len(items)):]))
	}},
	{"a bit of a piece or a list", ofPieces(func(x *counterfeit, it []byte) []byte { return x.flipped(it) })},
	{"a piece or a list less", ofPieces(func(*counterfeit, []byte) []byte { return nil })},
	{"a piece or a list twice", ofPieces(func(_ *counterfeit, it []byte) []byte { return slices.Concat(it, it) })},
	{"a bit of the items", func(x *counterfeit, _, items []byte) []byte { return packed(x.t, x.flipped(items)) }},
}

// ofPieces puts something else in the place of a piece, or of a blob in pieces.
func ofPieces(other func(x *counterfeit, it []byte) []byte) func(x *counterfeit, file, items []byte) []byte {
	return func(x *counterfeit, file, items []byte) []byte {
		var at [][2]int
		for r, end := canon.NewReader(items), 0; r.Kind() != canon.KindNone; {
			raw := r.Raw()
			begin := end
			end += len(raw)
			if y := canon.NewReader(raw); y.Kind() == canon.KindArray && begin > 0 && (y.Array() == 1 || y.Kind() == canon.KindInt) {
				at = append(at, [2]int{begin, end})
			}
		}
		if len(at) == 0 {
			return file
		}
		i := at[x.rng.IntN(len(at))]
		return packed(x.t, slices.Concat(items[:i[0]], other(x, items[i[0]:i[1]]), items[i[1]:]))
	}
}
