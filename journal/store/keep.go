package store

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/journal"
)

// keeper writes an image's versions and lets go of older ones, in one batch. A
// version written at v and followed by one at n is in the images kept at heads
// in [v, n), and goes with the last of them. Which those are is not searched
// for: a version that has been followed has a note under the largest of these
// heads, and only when that image goes is the version looked at again. So a
// checkpoint costs what changed, not what there is.
//
// A cell that is gone is a version without a body, which hides those before it.
// It is never a cell's first: then it would hide nothing.
type keeper struct {
	batch *pebble.Batch
	view  *view
	old   *versions   // all, as they were before the batch
	head  journal.Seq // the new image's

	kept, leaving []journal.Seq // heads of the images before it, ascending
	marked        []journal.Seq // of kept: those that the world does not need

	lately []written // by the images before it, the newest first
	now    written   // by it

	// Cells whose versions letGo has deleted, and the keys of these. Order cannot
	// show: they are only looked up.
	touched [][]byte
	gone    map[string]bool

	anew map[string]bool // names of what an image of the past brings; see insert

	lists map[string][][]byte // of versions in chunks that go, by the names of their cells

	part func(*pebble.Batch) (*pebble.Batch, error) // takes the batch when it is large, and gives the next; nil: all is one

	key, noted []byte
}

func newKeeper(batch *pebble.Batch, before *view, img *journal.Image, heads []journal.Seq, apart journal.Seq) (*keeper, error) {
	old, err := before.versions(versionPrefix, ledgerPrefix)
	if err != nil {
		return nil, err
	}
	k := &keeper{batch: batch, view: before, old: old, head: img.Head.ID, gone: map[string]bool{}, lists: map[string][][]byte{}}
	k.marked = moments(img, heads, apart)
	for _, head := range heads {
		switch {
		case head == img.Head.ID:
			k.leaving = append(k.leaving, head)
		case slices.Contains(img.Keep, head) || slices.Contains(k.marked, head):
			k.kept = append(k.kept, head)
		default:
			k.leaving = append(k.leaving, head)
		}
	}
	return k, nil
}

// neededBy returns the largest kept head whose image has a version written at v
// and followed by one at next.
func (k *keeper) neededBy(v, next journal.Seq) (journal.Seq, bool) {
	at, _ := slices.BinarySearch(k.kept, next)
	if at == 0 || k.kept[at-1] < v {
		return 0, false
	}
	return k.kept[at-1], true
}

// goesAlone is the body of the note of a cell's version that is in no chunks, not empty, and
// followed by no empty one. Notes of what is no cell have none.
const goesAlone = "\x01"

func (k *keeper) noteVersion(head journal.Seq, version []byte, alone bool) {
	var body []byte
	if alone {
		body = []byte(goesAlone)
	}
	k.noted = noteKey(k.noted[:0], head, version)
	seal(k.batch, k.noted, body)
}

// unmark has the notes of what is left of a cell, up to a version at a head, say nothing: an empty
// one comes after it.
func (k *keeper) unmark(name []byte, left []leftVersion, head journal.Seq) {
	for i, v := range left {
		next := head
		if i+1 < len(left) {
			next = min(head, left[i+1].at)
		}
		if needs, ok := k.neededBy(v.at, next); ok && v.at < head {
			k.noteVersion(needs, versionKey(nil, name, v.at), false)
		}
	}
}

// leave lets go of all images that are not kept.
func (k *keeper) leave() error {
	for _, head := range k.leaving {
		if err := k.letGo(head); err != nil {
			return err
		}
	}
	return k.tidy()
}

// letGo deletes an image, and the versions that only it needed.
func (k *keeper) letGo(head journal.Seq) error {
	for it, err := range k.view.walk(numberKey(notePrefix, head), numberKey(notePrefix, head+1)) {
		if err != nil {
			return &DamageError{What: "a note of " + nameOf(imageKey(head)), ID: head, Err: err}
		}
		if err := k.letGoOf(it, head); err != nil {
			return err
		}
	}
	return k.batch.Delete(imageKey(head), nil)
}

// letGoOf moves the note where it stands to the next image that needs the
// version, or deletes both.
func (k *keeper) letGoOf(it *pebble.Iterator, head journal.Seq) error {
	body, err := openAt(it)
	if err == nil {
		err = checkShape(it.Key(), body)
	}
	if err != nil {
		return err
	}
	if err := k.batch.Delete(it.Key(), nil); err != nil {
		return err
	}
	version, name, v, _ := splitNote(it.Key())
	if to, ok := k.neededBy(v, head); ok {
		k.noteVersion(to, version, len(body) > 0)
		return nil
	}
	k.gone[string(version)] = true
	if name[0] == versionPrefix && len(body) == 0 {
		k.touched = append(k.touched, slices.Clone(name)) // tidy looks whether it is in chunks
	}
	return k.batch.Delete(version, nil)
}

// delete deletes a version, and notes its list if it is in chunks. Of one that cannot
// be read they stay until Collect.
func (k *keeper) delete(name, version []byte) error {
	// Mostly the next version by name: stepping there costs less than looking it up.
	it := k.old.it
	if name[0] == versionPrefix && (it.Valid() && bytes.Equal(it.Key(), version) || it.SeekGE(version) && bytes.Equal(it.Key(), version)) {
		if body, err := k.old.body(); err == nil {
			k.noteList(name, body)
		}
	}
	return k.batch.Delete(version, nil)
}

// noteList notes the list of a version that goes, if it has one.
func (k *keeper) noteList(name, body []byte) {
	if isInChunks(body) {
		k.lists[string(name)] = append(k.lists[string(name)], bytes.Clone(body[1:]))
	}
}

// tidy looks at all versions of the cells of which letGo has deleted some: it notes the lists
// of those, and deletes what says of a cell that it is gone and hides nothing any more.
func (k *keeper) tidy() error {
	slices.SortFunc(k.touched, bytes.Compare)
	for _, name := range slices.CompactFunc(k.touched, bytes.Equal) { // several images may have gone
		left, err := k.left(name)
		if err != nil {
			return err
		}
		for i, v := range left {
			if !v.empty {
				break
			}
			key := versionKey(nil, name, v.at)
			k.gone[string(key)] = true
			if err := k.batch.Delete(key, nil); err != nil {
				return err
			}
			if i+1 == len(left) {
				break
			}
			if head, ok := k.neededBy(v.at, left[i+1].at); ok {
				if err := k.batch.Delete(noteKey(nil, head, key), nil); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// leftVersion is a version that is there and stays, so far.
type leftVersion struct {
	at    journal.Seq
	empty bool
}

// left returns the versions of a cell that letGo and tidy have left, in order, and notes the
// lists of the others.
func (k *keeper) left(name []byte) ([]leftVersion, error) {
	var left []leftVersion
	it := k.old.it
	for ok := it.SeekGE(name); ok; ok = it.Next() {
		got, at, whole := splitVersion(it.Key())
		if !whole || !bytes.Equal(got, name) {
			return left, nil
		}
		body, err := k.old.body()
		if k.gone[string(it.Key())] {
			if err == nil {
				k.noteList(name, body)
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		left = append(left, leftVersion{at: at, empty: len(body) == 0})
	}
	if err := it.Error(); err != nil {
		return nil, damaged(versionKey(nil, name, 0), err)
	}
	return left, nil
}

func (k *keeper) putAll(img *journal.Image) error {
	k.now = newWritten(img)
	var name []byte
	for i := range img.Cells {
		c := &img.Cells[i]
		name = cellName(name[:0], c.Cell)
		if err := k.put(name, c.Bytes, k.formerOfCell(c)); err != nil {
			return err
		}
		k.now.add(c)
	}
	for i := range img.Intents {
		in := &img.Intents[i]
		name = intentName(name[:0], in.Key)
		after := k.formerOfIntent(in)
		if err := k.put(name, in.Bytes, after); err != nil {
			return err
		}
		k.now.noteIntent(in.Key)
	}
	for i := range img.Counts {
		c := &img.Counts[i]
		name = countName(name[:0], &c.CountKey)
		if err := k.put(name, c.Bytes, formerOf(c.First)); err != nil {
			return err
		}
	}
	slices.Sort(k.now.cells)
	return nil
}

// parted begins another batch where this one is large, and need not be all.
func (k *keeper) parted() (err error) {
	if k.part != nil && k.batch.Len() >= spillBytes {
		k.batch, err = k.part(k.batch)
	}
	return err
}

// put writes a version at the new head, none where a cell is gone and hides nothing. The one
// before it, which is at after, stays for as long as a kept image needs it.
func (k *keeper) put(name, body []byte, after former) error {
	followed := false                                          // a version that goes at once
	if after.at != nowhere && len(k.kept)+len(k.leaving) > 0 { // else there is none
		var err error
		if followed, err = k.follow(name, after); err != nil {
			return err
		}
	}
	k.key = versionKey(k.key[:0], name, k.head)
	there := len(body) > 0 || name[0] != versionPrefix
	if !there {
		var err error
		if there, err = k.hides(name, followed); err != nil {
			return err
		}
	}
	if !there { // the same head may have had one
		return errors.Join(k.batch.Delete(k.key, nil), k.parted())
	}
	seal(k.batch, k.key, body)
	return k.parted()
}

// hides reports whether versions of a cell are there before the new head, where it is gone, and
// notes that of them; followed: besides the last, which goes at once.
func (k *keeper) hides(name []byte, followed bool) (bool, error) {
	left, err := k.left(name)
	if err != nil {
		return false, err
	}
	left = slices.DeleteFunc(left, func(v leftVersion) bool { return v.at >= k.head })
	if followed && len(left) > 0 {
		left = left[:len(left)-1]
	}
	k.unmark(name, left, k.head)
	return len(left) > 0, nil
}

// follow lets go of the last version of a name before the new head, or notes what
// it is kept for, and reports whether it goes.
func (k *keeper) follow(name []byte, after former) (bool, error) {
	v, alone := after.at, after.whole
	if v == anywhere {
		var ok bool
		var err error
		if v, ok, err = k.old.lastAt(name, k.head); err != nil || !ok {
			return false, err
		}
		body, err := k.old.body()
		alone = err == nil && len(body) > 0 && !isInChunks(body)
	}
	if v == k.head {
		return false, nil
	}
	version := versionKey(k.key[:0], name, v)
	k.key = version
	if len(k.gone) > 0 && k.gone[string(version)] {
		return false, nil
	}
	if head, ok := k.neededBy(v, k.head); ok {
		k.noteVersion(head, version, alone && name[0] == versionPrefix)
		return false, nil
	}
	if alone {
		return true, k.batch.Delete(version, nil)
	}
	return true, k.delete(name, version)
}
