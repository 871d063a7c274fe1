package store

import (
	"bytes"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/journal"
)

// maxPrev is how many versions are stepped over before seeking past them: a seek
// costs about as much as that many steps.
const maxPrev = 8

// versions reads cell versions and ledger entries. A name is what the keys of all
// versions of a cell or an intent begin with; see cellName.
type versions struct {
	it     *pebble.Iterator
	chunks *chunkReader
	seek   []byte
}

// versions reads what lies under the prefixes from one to another.
func (v *view) versions(from, to byte) (*versions, error) {
	it, err := v.iterate([]byte{from}, []byte{to + 1})
	if err != nil {
		return nil, err
	}
	return &versions{it: it, chunks: v.chunkReader()}, nil
}

// close needs no error: it would be that of the iterator, which is asked for.
func (x *versions) close() { _ = x.it.Close() }

// body is the version's where the iterator stands, valid until it moves: of one that is
// in chunks the list.
func (x *versions) body() ([]byte, error) { return openAt(x.it) }

// lastAt moves to the last version of a name at or before a head, if there is one.
func (x *versions) lastAt(name []byte, head journal.Seq) (at journal.Seq, ok bool, err error) {
	if !x.seekTo(name, head) {
		if err := x.it.Error(); err != nil {
			return 0, false, damaged(versionKey(nil, name, head), err)
		}
		return 0, false, nil
	}
	got, at, ok := splitVersion(x.it.Key())
	return at, ok && bytes.Equal(got, name), nil
}

// seekTo moves to the last key that is not after a name's version at a head.
func (x *versions) seekTo(name []byte, head journal.Seq) bool {
	x.seek = append(versionKey(x.seek[:0], name, head), 0)
	return x.it.SeekLT(x.seek)
}

// readVersion returns where lastAt leads to, and a copy of the body, which is nil where
// there is no version.
func (x *versions) readVersion(name []byte, head journal.Seq) (journal.Seq, []byte, error) {
	at, ok, err := x.lastAt(name, head)
	if err != nil || !ok {
		return 0, nil, err
	}
	body, err := x.body()
	if err == nil && name[0] == versionPrefix {
		body, err = x.chunks.version(x.it.Key(), body)
	}
	if err != nil {
		return 0, nil, err
	}
	return at, append([]byte{}, body...), nil
}

// eachVersion visits, for every name that begins so, its last version at or
// before a head, sorted by name but backwards: so the last version of a name
// comes first. The slices are valid until visit returns; false ends it.
func (v *view) eachVersion(prefix []byte, head journal.Seq, visit func(name []byte, at journal.Seq, body []byte) bool) error {
	x, err := v.versions(prefix[0], prefix[0])
	if err != nil {
		return err
	}
	defer x.close()
	x.it.SetBounds(prefix, after(prefix))
	var found []byte
	steps := 0
	for ok := x.it.Last(); ok; {
		name, at, whole := splitVersion(x.it.Key())
		switch {
		case !whole:
			return damaged(x.it.Key(), errShape)
		case bytes.Equal(name, found):
			if steps++; steps%maxPrev == 0 {
				ok = x.it.SeekLT(found)
				continue
			}
		case at > head:
			if steps++; steps%maxPrev == 0 {
				ok = x.seekTo(name, head)
				continue
			}
		default:
			body, err := x.body()
			if err == nil && prefix[0] == versionPrefix {
				body, err = x.chunks.version(x.it.Key(), body)
			}
			if err != nil {
				return err
			}
			found, steps = append(found[:0], name...), 0
			if !visit(found, at, body) {
				return nil
			}
		}
		ok = x.it.Prev()
	}
	if err := x.it.Error(); err != nil {
		what := fmt.Sprintf("what has keys from %q", prefix)
		if len(found) > 0 {
			what = "what comes before " + nameOf(versionKey(nil, found, 0))
		}
		return &DamageError{What: what, Err: err}
	}
	return nil
}

// after returns the first key after all those that begin so.
func after(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; ; i-- { // the first byte is no 0xff
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}

// openAt returns the body at an iterator's place, valid until it moves.
func openAt(it *pebble.Iterator) ([]byte, error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return nil, damaged(it.Key(), err)
	}
	return unseal(it.Key(), value)
}
