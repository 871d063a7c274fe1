package chunk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// How long lists get; see the package comment.
const (
	inlineEntries = 24
	leastEntries  = 16
	mostEntries   = 256
	endsBelow     = 4 // first byte of a piece's sum

	maxLevel   = 4
	leastBytes = 64 // of a piece that is not its content's last
)

// ErrList says that bytes are no list, or that a list does not fit the content or the
// pieces that it is about.
var ErrList = errors.New("the list of its pieces makes no sense")

// Entry is one entry of a list.
type Entry struct {
	Number uint64 // of the piece
	Bytes  uint64 // of the content, for which it stands
}

// List is a content in pieces, or a part of it.
type List struct {
	Level   int // 0: the entries are the content's pieces; else they are lists of the level below
	Entries []Entry
}

// Keeper stores chunks and returns a chunk's number and checksum: equal chunks share a number, but short ones of
// a content may have several. It must not keep the slice.
type Keeper func(piece []byte, list bool) (number uint64, sum Sum, err error)

// Build cuts a content into pieces, and its list if that is long, and has keep keep
// them: each before a list that names it. A part that last has is not cut and kept again; nil: none is remembered.
func Build(content []byte, last *Part, keep Keeper) (List, error) {
	b := builder{keep: keep}
	from := 0
	for end := range parts(content) {
		if err := b.part(content[from:end], last); err != nil {
			return List{}, err
		}
		from = end
	}
	for level := 0; ; level++ {
		if len(b.level[level].whole) <= inlineEntries {
			return List{Level: level, Entries: b.level[level].whole}, nil
		}
		if err := b.cut(level); err != nil {
			return List{}, err
		}
	}
}

// Part is the last long part of a content, and its pieces. It is for one Keeper, and as long as that has the pieces.
type Part struct {
	bytes []byte
	whole []Entry
	ends  []bool
}

// The lengths of parts that are remembered, in bytes.
const (
	shortPart = longest
	longPart  = 1 << 20
)

// part cuts a part.
func (b *builder) part(part []byte, last *Part) error {
	at := &b.level[0]
	before := len(at.whole)
	if last != nil && len(part) > shortPart && bytes.Equal(part, last.bytes) {
		at.whole, at.ends = append(at.whole, last.whole...), append(at.ends, last.ends...)
		*last = Part{} // an event and its intent have it, and nobody else soon
		return nil
	}
	for rest := part; len(rest) > 0; {
		n := Cut(rest)
		if left := len(rest) - n; left < leastBytes {
			n += left // a shorter piece could be the last alone
		}
		if err := b.add(0, rest[:n], uint64(n)); err != nil {
			return err
		}
		rest = rest[n:]
	}
	if last != nil && len(part) > shortPart && len(part) <= longPart {
		*last = Part{bytes.Clone(part), slices.Clone(at.whole[before:]), slices.Clone(at.ends[before:])}
	}
	return nil
}

// builder has the entries of each level; that of one are complete before it is cut.
type builder struct {
	keep  Keeper
	level [maxLevel + 2]struct {
		whole []Entry
		ends  []bool // after which entries a list may end
	}
}

func (b *builder) add(level int, piece []byte, bytes uint64) error {
	number, sum, err := b.keep(piece, level > 0)
	if err != nil {
		return err
	}
	if level > maxLevel {
		return fmt.Errorf("%w: it is too long", ErrList)
	}
	at := &b.level[level]
	at.whole = append(at.whole, Entry{Number: number, Bytes: bytes})
	at.ends = append(at.ends, sum[0] < endsBelow)
	return nil
}

// cut makes lists of the entries of a level, which are the entries of the level above.
func (b *builder) cut(level int) error {
	at := &b.level[level]
	from := 0
	for i := range at.whole {
		n := i + 1 - from
		if i+1 < len(at.whole) && n < mostEntries && (n < leastEntries || !at.ends[i]) {
			continue
		}
		part := List{Level: level, Entries: at.whole[from : i+1]}
		if err := b.add(level+1, part.Append(nil), part.Bytes()); err != nil {
			return err
		}
		from = i + 1
	}
	return nil
}

// Bytes returns how long the content is.
func (l List) Bytes() (n uint64) {
	for _, e := range l.Entries {
		n += e.Bytes
	}
	return n
}

// Append appends the encoding of a list to b.
func (l List) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(l.Level))
	for _, e := range l.Entries {
		b = binary.AppendUvarint(binary.AppendUvarint(b, e.Number), e.Bytes)
	}
	return b
}

// Parse decodes a list of a content, or of a part of it, of at most so many bytes. The
// error is an ErrList.
func Parse(b []byte, most uint64) (List, error) {
	level, b, ok := uvarint(b)
	if !ok || level > maxLevel {
		return List{}, ErrList
	}
	l := List{Level: int(level), Entries: make([]Entry, 0, min(len(b)/2, mostEntries))}
	for len(b) > 0 {
		var e Entry
		var whole bool
		if e.Number, b, ok = uvarint(b); !ok {
			return List{}, ErrList
		}
		if e.Bytes, b, whole = uvarint(b); !whole || e.Bytes == 0 || e.Bytes > most {
			return List{}, ErrList
		}
		most -= e.Bytes
		l.Entries = append(l.Entries, e)
	}
	return l, nil
}

// uvarint takes a number in its shortest form off b.
func uvarint(b []byte) (n uint64, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || size > 1 && b[size-1] == 0 {
		return 0, nil, false
	}
	return n, b[size:], true
}

// Pieces returns a piece by its number. What it returns is not changed.
type Pieces func(number uint64) ([]byte, error)

// Read calls visit for the pieces of a content, in order. An error of pieces or visit
// ends it; one that is about a list is an ErrList. It asks for at most one piece for
// every 64 bytes of the content, and on each level for as many lists.
func (l List) Read(pieces Pieces, visit func(number uint64, piece []byte) error) error {
	r := reader{pieces: pieces, visit: visit}
	return r.readList(l)
}

type reader struct {
	pieces Pieces
	visit  func(number uint64, piece []byte) error
	ended  bool // a piece was so short that it has to be the last
}

func (r *reader) readList(l List) error {
	for _, e := range l.Entries {
		if r.ended {
			return fmt.Errorf("%w: a piece of less than %d bytes is not the last", ErrList, leastBytes)
		}
		if l.Level > 0 {
			below, err := l.below(e, r.pieces)
			if err == nil {
				err = r.readList(below)
			}
			if err != nil {
				return err
			}
			continue
		}
		piece, err := r.pieces(e.Number)
		if err == nil && uint64(len(piece)) != e.Bytes {
			err = fmt.Errorf("%w: piece %d has %d bytes, not %d", ErrList, e.Number, len(piece), e.Bytes)
		}
		if err == nil {
			r.ended = e.Bytes < leastBytes
			err = r.visit(e.Number, piece)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// below returns the list that an entry names.
func (l List) below(e Entry, pieces Pieces) (List, error) {
	piece, err := pieces(e.Number)
	if err != nil {
		return List{}, err
	}
	below, err := Parse(piece, e.Bytes)
	if err != nil || below.Level != l.Level-1 || below.Bytes() != e.Bytes {
		return List{}, fmt.Errorf("%w: piece %d is not the list of %d bytes that it has to be", ErrList, e.Number, e.Bytes)
	}
	return below, nil
}

// Each calls visit for every piece that a list needs, lists among them. Of a list for
// which visit returns false, what it needs itself is left out: whoever has seen it before
// has seen that. It asks for lists alone.
func (l List) Each(pieces Pieces, visit func(number uint64, list bool) bool) error {
	for _, e := range l.Entries {
		if !visit(e.Number, l.Level > 0) || l.Level == 0 {
			continue
		}
		below, err := l.below(e, pieces)
		if err == nil {
			err = below.Each(pieces, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
