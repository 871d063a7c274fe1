package store

import (
	"encoding/binary"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/journal"
)

// postingBytes is how long a value of posting lists gets before the next one
// begins: a reader of one cell reads one value a checkpoint.
const postingBytes = 8 << 10

// postingWriter gathers posting lists, which come sorted by cell, into values.
type postingWriter struct {
	batch *pebble.Batch
	at    journal.Seq // the checkpoint
	key   []byte
	value []byte
}

func (w *postingWriter) add(cell string, list []byte) {
	if len(w.value) == 0 {
		w.key = postingKey(w.key[:0], w.at, cell)
	}
	w.value = binary.AppendUvarint(w.value, uint64(len(cell)))
	w.value = append(w.value, cell...)
	w.value = binary.AppendUvarint(w.value, uint64(len(list)))
	w.value = append(w.value, list...)
	if len(w.value) >= postingBytes {
		w.flush()
	}
}

func (w *postingWriter) flush() {
	if len(w.value) > 0 {
		seal(w.batch, w.key, w.value)
		w.value = w.value[:0]
	}
}

func postingKey(b []byte, at journal.Seq, cell string) []byte {
	b = binary.BigEndian.AppendUint64(append(b, postingPrefix), uint64(at))
	return append(b, cell...)
}

// yieldPostings yields the ids after one that are indexed of a cell, and reports
// whether more is wanted.
func (v *view) yieldPostings(cell string, after journal.Seq, yield func(journal.Seq, error) bool) (bool, error) {
	it, err := v.iterate([]byte{postingPrefix}, []byte{postingPrefix + 1})
	if err != nil {
		return false, err
	}
	defer func() { _ = it.Close() }() // its error is Error's
	// Checkpoints before after hold nothing that comes after it.
	for ok := it.SeekGE(postingKey(nil, after, "")); ok; {
		if !hasNumber(it.Key()) {
			return false, damaged(it.Key(), errShape)
		}
		at := recordID(it.Key())
		// The last value that begins at the cell or before it may hold the cell.
		if it.SeekLT(postingKey(nil, at, cell+"\x00")) && recordID(it.Key()) == at {
			body, err := openAt(it)
			if err != nil {
				return false, err
			}
			list, err := postingsOf(it.Key(), body, cell)
			if err != nil {
				return false, err
			}
			for id := range postings(list) {
				if id > after && !yield(id, nil) {
					return false, nil
				}
			}
		}
		ok = it.SeekGE(postingKey(nil, at+1, ""))
	}
	if err := it.Error(); err != nil {
		return false, &DamageError{What: "index of cell " + cell, Err: err}
	}
	return true, nil
}

// postingsOf returns the list of one cell in a value, empty where it has none.
func postingsOf(key, value []byte, cell string) (list []byte, err error) {
	for len(value) > 0 {
		var name []byte
		var ok bool
		if name, value, ok = cut(value); ok {
			list, value, ok = cut(value)
		}
		if !ok {
			return nil, damaged(key, errShape)
		}
		if string(name) == cell {
			return list, checkList(key, list)
		}
	}
	return nil, nil
}

// checkPostings reports whether a value holds posting lists.
func checkPostings(key, value []byte) error {
	for len(value) > 0 {
		name, rest, ok := cut(value)
		if !ok {
			return damaged(key, errShape)
		}
		if _, err := postingsOf(key, value, string(name)); err != nil {
			return err
		}
		_, value, _ = cut(rest)
	}
	return nil
}

// cut takes a length and as many bytes off the beginning of b.
func cut(b []byte) (head, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}

func checkList(key, list []byte) error {
	for len(list) > 0 {
		distance, n := binary.Uvarint(list)
		if n <= 0 || distance == 0 {
			return damaged(key, errShape)
		}
		list = list[n:]
	}
	return nil
}

// postings yields the ids of a list that checkList has accepted.
func postings(list []byte) iter.Seq[journal.Seq] {
	return func(yield func(journal.Seq) bool) {
		var id journal.Seq
		for len(list) > 0 {
			distance, n := binary.Uvarint(list)
			id, list = id+journal.Seq(distance), list[n:]
			if !yield(id) {
				return
			}
		}
	}
}
