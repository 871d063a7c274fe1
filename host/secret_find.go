package host

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxEscapes is how many times one in the other a text may be escaped and what is
// secret in it still be found.
const maxEscapes = 4

// finder finds values in foreign text. The zero value finds nothing; it is not
// changed once it is in use.
type finder struct {
	forms map[string][]form // by their first minRedacted bytes, the longest first
	pairs [1 << 13]byte     // a bit for each two bytes that a form begins with
}

// form is one way to write a value, at least minRedacted bytes.
type form struct{ text, reference string }

// match is where a value stands, in bytes.
type match struct {
	from, to  int
	reference string
}

func (f *finder) add(text, reference string) {
	head := text[:minRedacted]
	at, _ := slices.BinarySearchFunc(f.forms[head], len(text), func(x form, n int) int { return n - len(x.text) })
	f.forms[head] = slices.Insert(f.forms[head], at, form{text, reference})
	pair := uint(head[0])<<8 | uint(head[1])
	f.pairs[pair>>3] |= 1 << (pair & 7)
}

// find returns the places of values, in their order and none in another: as they
// are, and behind escapes.
func (f *finder) find(text string) []match {
	if f == nil {
		return nil
	}
	found := f.scan(nil, text, nil)
	for _, unescape := range []func(string) (string, []int32){unescapeJSON, unescapePercent} {
		plain, at := unescape(text)
		for depth := 1; at != nil; depth++ {
			found = f.scan(found, plain, at)
			if depth == maxEscapes {
				break
			}
			again, inner := unescape(plain)
			for i, j := range inner {
				inner[i] = at[j]
			}
			plain, at = again, inner
		}
	}
	slices.SortFunc(found, func(a, b match) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	out := found[:0]
	for _, m := range found {
		if n := len(out); n > 0 && m.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, m.to)
			continue
		}
		out = append(out, m)
	}
	return out
}

// scan appends the places of values in text, the longest at each. at has the
// place of each byte, and of the end, in the text that was unescaped; nil: it is
// that text.
func (f *finder) scan(found []match, text string, at []int32) []match {
	for i := 0; i+minRedacted <= len(text); i++ {
		if pair := uint(text[i])<<8 | uint(text[i+1]); f.pairs[pair>>3]&(1<<(pair&7)) == 0 {
			continue
		}
		for _, x := range f.forms[text[i:i+minRedacted]] {
			if !strings.HasPrefix(text[i:], x.text) {
				continue
			}
			m := match{i, i + len(x.text), x.reference}
			if at != nil {
				m.from, m.to = int(at[m.from]), int(at[m.to])
			}
			found = append(found, m)
			i += len(x.text) - 1
			break
		}
	}
	return found
}

// replace returns the end of a text, from byte start on, with references in the
// place of values. One that begins before start is one all the same.
func replace(text string, found []match, start int) string {
	var b strings.Builder
	for _, m := range found {
		if m.to > start {
			b.WriteString(text[start:max(start, m.from)])
			b.WriteString(m.reference)
			start = m.to
		}
	}
	if b.Len() == 0 {
		return text[start:]
	}
	b.WriteString(text[start:])
	return b.String()
}

// unescapeJSON undoes what a JSON text may escape, and says for each byte and the
// end where it was; nil: there was nothing to undo.
func unescapeJSON(text string) (string, []int32) {
	return unescape(text, '\\', func(rest string) (rune, int) {
		if len(rest) < 2 {
			return 0, 0
		}
		if i := strings.IndexByte(`"\/bfnrt`, rest[1]); i >= 0 {
			return rune("\"\\/\b\f\n\r\t"[i]), 2
		}
		r, ok := unit(rest)
		if !ok {
			return 0, 0
		}
		if low, ok := unit(rest[6:]); ok && utf16.IsSurrogate(r) {
			return utf16.DecodeRune(r, low), 12
		}
		return r, 6
	})
}

// unit reads a \u escape.
func unit(text string) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	return rune(n), err == nil
}

// unescapePercent is unescapeJSON for URLs.
func unescapePercent(text string) (string, []int32) {
	return unescape(text, '%', func(rest string) (rune, int) {
		if len(rest) < 3 {
			return 0, 0
		}
		n, err := strconv.ParseUint(rest[1:3], 16, 8)
		if err != nil {
			return 0, 0
		}
		return -rune(n) - 1, 3
	})
}

// unescape has decode read what begins with mark: a character, or a byte b as
// -b-1, and how long the escape is, 0 where it is none.
func unescape(text string, mark byte, decode func(rest string) (rune, int)) (string, []int32) {
	first := strings.IndexByte(text, mark)
	if first < 0 {
		return "", nil
	}
	plain, at := make([]byte, 0, len(text)), make([]int32, 0, len(text)+1)
	changed := false
	for i := 0; i < len(text); {
		n := len(plain)
		r, size := rune(0), 0
		if text[i] == mark {
			r, size = decode(text[i:])
		}
		switch {
		case size == 0:
			plain, size = append(plain, text[i]), 1
		case r < 0:
			plain, changed = append(plain, byte(-r-1)), true //nolint:gosec // a byte
		default:
			plain, changed = utf8.AppendRune(plain, r), true
		}
		for range len(plain) - n {
			at = append(at, int32(i)) //nolint:gosec // an answer is smaller
		}
		i += size
	}
	if !changed {
		return "", nil
	}
	return string(plain), append(at, int32(len(text))) //nolint:gosec // likewise
}
