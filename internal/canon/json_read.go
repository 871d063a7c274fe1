package canon

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// errNotRead says that a jsonReader cannot read a text; faultOf says why.
var errNotRead = errors.New("not JSON")

// errHalf is of an escape such as \ud800 without the other one of its pair.
var errHalf = errors.New("is half of a surrogate pair")

// jsonReader writes the canonical bytes of one JSON value as it reads it, into one
// buffer: what a value costs is in proportion to its bytes, however many small items it
// is made of.
type jsonReader struct {
	in        []byte // UTF-8
	at        int    // in it
	out       []byte
	pairs     []jsonPair // of the objects that are open
	spare     []byte     // for what is put in order, or was escaped
	maxDigits int        // of an integer
}

// newJSONReader returns a reader with room for what most texts need.
func newJSONReader(in []byte, maxDigits int) jsonReader {
	const most, pairs = 512, 8
	n := min(len(in)+1, most)
	room := make([]byte, 2*n)
	return jsonReader{in: in, out: room[:0:n], spare: room[n:n], pairs: make([]jsonPair, 0, pairs), maxDigits: maxDigits}
}

// jsonPair is where in out a key begins, its item, and what follows.
type jsonPair struct{ key, item, end int }

// value reads the next value; depth is how many containers may still be opened.
func (r *jsonReader) value(depth int) error {
	r.space()
	if r.at == len(r.in) {
		return errNotRead
	}
	switch c := r.in[r.at]; c {
	case '{', '[':
		if depth == 0 {
			return errNotRead
		}
		r.at++
		if c == '[' {
			return r.array(depth - 1)
		}
		return r.object(depth - 1)
	case '"':
		return r.text()
	case 't':
		r.out = AppendBool(r.out, true)
		return r.word("true")
	case 'f':
		r.out = AppendBool(r.out, false)
		return r.word("false")
	case 'n':
		r.out = AppendNull(r.out)
		return r.word("null")
	}
	return r.number()
}

func (r *jsonReader) space() {
	for r.at < len(r.in) {
		switch r.in[r.at] {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return
		}
	}
}

// is reads a byte if it is the next one after space.
func (r *jsonReader) is(c byte) bool {
	r.space()
	if r.at == len(r.in) || r.in[r.at] != c {
		return false
	}
	r.at++
	return true
}

func (r *jsonReader) word(word string) error {
	if !bytes.HasPrefix(r.in[r.at:], []byte(word)) {
		return errNotRead
	}
	r.at += len(word)
	return nil
}

func (r *jsonReader) array(depth int) error {
	start, n := r.open(), 0
	for !r.is(']') {
		if n > 0 && !r.is(',') {
			return errNotRead
		}
		if err := r.value(depth); err != nil {
			return below("["+strconv.Itoa(n)+"]", err)
		}
		n++
	}
	r.close(start, majorArray, n)
	return nil
}

func (r *jsonReader) object(depth int) error {
	start, first := r.open(), len(r.pairs)
	for !r.is('}') {
		if len(r.pairs) > first && !r.is(',') {
			return errNotRead
		}
		p := jsonPair{key: len(r.out)}
		if r.space(); r.at == len(r.in) || r.in[r.at] != '"' {
			return errNotRead
		}
		if err := r.text(); err != nil {
			return err
		}
		p.item = len(r.out)
		if !r.is(':') {
			return errNotRead
		}
		if err := r.value(depth); err != nil {
			return below("."+r.name(p), err)
		}
		p.end = len(r.out)
		r.pairs = append(r.pairs, p)
	}
	pairs := r.pairs[first:]
	if err := r.order(start+1, pairs); err != nil {
		return err
	}
	r.pairs = r.pairs[:first]
	r.close(start, majorMap, len(pairs))
	return nil
}

// order puts the pairs of an object, which begin at a place in out, in canonical order.
func (r *jsonReader) order(at int, pairs []jsonPair) error {
	byKey := func(a, b jsonPair) int { return bytes.Compare(r.out[a.key:a.item], r.out[b.key:b.item]) }
	sorted := slices.IsSortedFunc(pairs, byKey)
	if !sorted {
		slices.SortFunc(pairs, byKey)
	}
	for i := 1; i < len(pairs); i++ {
		if byKey(pairs[i-1], pairs[i]) == 0 {
			return fmt.Errorf("duplicate key %q", r.name(pairs[i]))
		}
	}
	if sorted {
		return nil
	}
	r.spare = r.spare[:0]
	for _, p := range pairs {
		r.spare = append(r.spare, r.out[p.key:p.end]...)
	}
	copy(r.out[at:], r.spare)
	return nil
}

func (r *jsonReader) name(p jsonPair) string { return NewReader(r.out[p.key:p.item]).Text() }

// open leaves room for a short head of a container, and returns where that is.
func (r *jsonReader) open() (start int) {
	r.out = append(r.out, 0)
	return len(r.out) - 1
}

// close writes the head of a container.
func (r *jsonReader) close(start int, major byte, n int) {
	const longest = 9 // bytes of a head
	var room [longest]byte
	head := appendHead(room[:0], major, uint64(n))
	if len(head) > 1 {
		r.out = slices.Insert(r.out, start, head[1:]...)
	}
	copy(r.out[start:], head)
}

// text reads a text from its first quote on.
func (r *jsonReader) text() error {
	r.at++
	for i := r.at; i < len(r.in); i++ {
		switch c := r.in[i]; {
		case c == '"':
			r.out = append(appendHead(r.out, majorText, uint64(i-r.at)), r.in[r.at:i]...)
			r.at = i + 1
			return nil
		case c < ' ':
			return errNotRead
		case c == '\\':
			return r.escaped()
		}
	}
	return errNotRead
}

// escaped reads the rest of a text that has escapes.
func (r *jsonReader) escaped() error {
	s := r.spare[:0]
	defer func() { r.spare = s }()
	for r.at < len(r.in) {
		c := r.in[r.at]
		r.at++
		switch {
		case c == '"':
			r.out = append(appendHead(r.out, majorText, uint64(len(s))), s...)
			return nil
		case c < ' ':
			return errNotRead
		case c != '\\':
			s = append(s, c)
			continue
		case r.at == len(r.in):
			return errNotRead
		}
		c = r.in[r.at]
		r.at++
		if c == 'u' {
			u, err := r.unicode()
			if err != nil {
				return err
			}
			s = utf8.AppendRune(s, u)
			continue
		}
		i := bytes.IndexByte([]byte(`"\/bfnrt`), c)
		if i < 0 {
			return errNotRead
		}
		s = append(s, "\"\\/\b\f\n\r\t"[i])
	}
	return errNotRead
}

// unicode reads what follows the u of an escape, and the second escape of a pair. Half of
// a pair is no character: two texts that differ in it must not become one.
func (r *jsonReader) unicode() (rune, error) {
	u, ok := r.hex(r.at)
	if !ok {
		return 0, errNotRead
	}
	r.at += 4
	if !utf16.IsSurrogate(u) {
		return u, nil
	}
	if bytes.HasPrefix(r.in[r.at:], []byte(`\u`)) {
		if low, ok := r.hex(r.at + 2); ok {
			if whole := utf16.DecodeRune(u, low); whole != utf8.RuneError {
				r.at += 6
				return whole, nil
			}
		}
	}
	return 0, fmt.Errorf(`\u%04x %w, near byte %d`, u, errHalf, r.at)
}

// hex reads the four digits at a place.
func (r *jsonReader) hex(at int) (u rune, ok bool) {
	const digits = 4
	if at+digits > len(r.in) {
		return 0, false
	}
	for _, c := range r.in[at : at+digits] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		u = u<<4 | rune(c)
	}
	return u, true
}

func (r *jsonReader) number() error {
	start := r.at
	r.byteOf("-")
	if !r.byteOf("0") && !r.digits() {
		return errNotRead
	}
	if r.byteOf(".") && !r.digits() {
		return errNotRead
	}
	if r.byteOf("eE") {
		r.byteOf("+-")
		if !r.digits() {
			return errNotRead
		}
	}
	if n, ok := shortInt(r.in[start:r.at]); ok {
		r.out = AppendInt(r.out, n)
		return nil
	}
	out, err := appendNumber(r.out, string(r.in[start:r.at]), r.maxDigits)
	if err != nil {
		return errNotRead
	}
	r.out = out
	return nil
}

// shortInt returns an integer of a few digits, as most are.
func shortInt(text []byte) (n int64, ok bool) {
	const short = 18 // digits that an int64 has in any case
	digits, negative := bytes.CutPrefix(text, []byte("-"))
	if len(digits) > short {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// byteOf reads a byte that is one of some.
func (r *jsonReader) byteOf(some string) bool {
	if r.at == len(r.in) || bytes.IndexByte([]byte(some), r.in[r.at]) < 0 {
		return false
	}
	r.at++
	return true
}

// digits reads one or more.
func (r *jsonReader) digits() bool {
	start := r.at
	for r.at < len(r.in) && '0' <= r.in[r.at] && r.in[r.at] <= '9' {
		r.at++
	}
	return r.at > start
}
