package governance

import (
	"cmp"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// word is a text that a value can be or, where it is open, begin with.
type word struct {
	text string
	open bool
}

// names are the words that a value can be.
type names struct {
	of    string // the variable whose value it is; "": a value that is made of others
	words []word // sorted by their texts
	open  bool   // some words are
}

func newNames(of string, words []word) *names {
	n := &names{of: of, words: slices.Clone(words)}
	slices.SortFunc(n.words, func(a, b word) int { return cmp.Compare(a.text, b.text) })
	for _, w := range n.words {
		n.open = n.open || w.open
	}
	return n
}

// listed returns the words as messages list them: those that are not empty.
func (n *names) listed() []string {
	var out []string
	for _, w := range n.words {
		if w.text != "" {
			out = append(out, w.text)
		}
	}
	return slices.Compact(out)
}

// parts returns the beginnings or the ends of the words, cut at their dots, sorted.
func (n *names) parts(ends bool) []string {
	all := make(map[string]bool)
	for _, text := range n.listed() {
		all[text] = true
		for i := range len(text) {
			switch {
			case text[i] != '.':
			case ends:
				all[text[i:]], all[text[i+1:]] = true, true
			default:
				all[text[:i]], all[text[:i+1]] = true, true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// The words that variables can be in a manifest.

func wordsOf(texts ...string) []word {
	out := make([]word, len(texts))
	for i, s := range texts {
		out[i].text = s
	}
	return out
}

func keysOf[T any](m map[string]T) []word { return wordsOf(slices.Sorted(maps.Keys(m))...) }

func kindWords(m *manifest.Manifest) []word { return keysOf(m.Effects) }

func capWords(m *manifest.Manifest) []word { return keysOf(m.Caps) }

// askedCapWords are the capabilities, and the empty one of an intent that asks for none.
func askedCapWords(m *manifest.Manifest) []word { return append(capWords(m), word{}) }

func capTypeWords(m *manifest.Manifest) []word {
	return fieldWords(m.Caps, func(c manifest.Cap) string { return c.Type })
}

func adapterWords(m *manifest.Manifest) []word {
	return fieldWords(m.Effects, func(e manifest.Effect) string { return e.Adapter })
}

// classWords are the classes of the effects, and the empty one, which any effect could have.
func classWords(m *manifest.Manifest) []word {
	return append(fieldWords(m.Effects, func(e manifest.Effect) string { return e.Class }), word{})
}

func fieldWords[T any](section map[string]T, field func(T) string) []word {
	all := make(map[string]bool)
	for _, x := range section { // order cannot show: a set
		all[field(x)] = true
	}
	return keysOf(all)
}

// reducerWords are the reducers, and the name that people ask for effects under.
func reducerWords(m *manifest.Manifest) []word {
	return append(keysOf(m.Reducers), word{text: reducer.Operator})
}

func cellWords(m *manifest.Manifest) []word {
	out := reducerWords(m)
	for i, w := range out {
		out[i] = word{w.text + "/", true}
	}
	return out
}

func worldWords(m *manifest.Manifest) []word { return wordsOf(m.World) }

func statusWords(*manifest.Manifest) []word {
	return wordsOf(string(receipt.StatusOK), string(receipt.StatusError), string(receipt.StatusTimeout),
		string(receipt.StatusDenied), string(receipt.StatusRejected), string(receipt.StatusCancelled))
}
