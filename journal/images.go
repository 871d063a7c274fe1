package journal

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Images keeps images in memory, as a History returns them: what a journal in
// memory and a replay need. The zero value is empty.
type Images struct {
	kept []*Image // whole, by head
}

// Add takes an image as Journal.Checkpoint does. It keeps the slices.
func (x *Images) Add(img *Image) {
	whole := &Image{Head: img.Head, Core: img.Core}
	last := x.imageAt(Last)
	if last == nil {
		last = new(Image)
	}
	whole.Cells = withChanges(last.Cells, img)
	whole.Intents = merged(last.Intents, img.Intents, func(e *IntentVersion) Hash { e.First = false; return e.Key })
	whole.Counts = merged(last.Counts, img.Counts, func(c *CountVersion) CountKey { c.First = false; return c.CountKey })
	x.kept = slices.DeleteFunc(x.kept, func(old *Image) bool { return !slices.Contains(img.Keep, old.Head.ID) })
	x.kept = append(x.kept, whole)
}

// merged returns the versions of an image, of which changed are those that are others than
// before. They keep their places.
func merged[V any, K comparable](before, changed []V, keyOf func(*V) K) []V {
	if len(changed) == 0 {
		return before
	}
	out := slices.Clone(before)
	places := make(map[K]int, len(out))
	for i := range out {
		places[keyOf(&out[i])] = i
	}
	for _, v := range changed {
		key := keyOf(&v)
		if at, found := places[key]; found {
			out[at] = v
		} else {
			places[key] = len(out)
			out = append(out, v)
		}
	}
	return out
}

// withChanges returns the cells of an image, of which it says those that are others than
// before.
func withChanges(before []CellVersion, img *Image) []CellVersion {
	out := make([]CellVersion, 0, len(before)+len(img.Cells))
	for _, c := range img.Cells {
		at, found := slices.BinarySearchFunc(before, c.Cell, func(v CellVersion, name string) int { return strings.Compare(v.Cell, name) })
		out = append(out, before[:at]...)
		if before = before[at:]; found {
			before = before[1:]
		}
		if c.At, c.First = img.Head.ID, false; len(c.Bytes) > 0 {
			out = append(out, c)
		}
	}
	return append(out, before...)
}

// Size returns about how many bytes the images take.
func (x *Images) Size() (n int) {
	const cellVersion, intentVersion, countVersion = 56, 64, 64
	var before *Image
	for _, img := range x.kept {
		n += len(img.Core) + cellVersion*len(img.Cells) + intentVersion*len(img.Intents) + countVersion*len(img.Counts)
		own := img.since(before)
		for i := range own.Cells {
			n += len(own.Cells[i].Bytes)
		}
		for i := range own.Intents {
			n += len(own.Intents[i].Bytes)
		}
		for i := range own.Counts {
			n += len(own.Counts[i].Bytes)
		}
		before = img
	}
	return n
}

// Each yields the images in order, each as Checkpoint takes it: with what has changed since
// the one before.
func (x *Images) Each() iter.Seq[*Image] {
	return func(yield func(*Image) bool) {
		var before *Image
		var keep []Seq
		for _, img := range x.kept {
			own := img.since(before)
			own.Keep = slices.Clone(keep)
			if !yield(own) {
				return
			}
			before, keep = img, append(keep, img.Head.ID)
		}
	}
}

// since returns an image with what it has otherwise than another before it; nil: there is none.
func (img *Image) since(before *Image) *Image {
	if before == nil {
		return &Image{Head: img.Head, Core: img.Core, Cells: img.Cells, Intents: img.Intents, Counts: img.Counts}
	}
	own := &Image{Head: img.Head, Core: img.Core}
	was := before.Cells
	for _, c := range img.Cells {
		for len(was) > 0 && was[0].Cell < c.Cell {
			own.Cells, was = append(own.Cells, CellVersion{Cell: was[0].Cell}), was[1:] // it is gone
		}
		same := len(was) > 0 && was[0].Cell == c.Cell
		if !same || was[0].At != c.At {
			own.Cells = append(own.Cells, c)
		}
		if same {
			was = was[1:]
		}
	}
	for _, c := range was {
		own.Cells = append(own.Cells, CellVersion{Cell: c.Cell})
	}
	for i, e := range img.Intents { // they keep their places
		if i >= len(before.Intents) || !bytes.Equal(before.Intents[i].Bytes, e.Bytes) {
			own.Intents = append(own.Intents, e)
		}
	}
	for i, c := range img.Counts { // likewise
		if i >= len(before.Counts) || !bytes.Equal(before.Counts[i].Bytes, c.Bytes) {
			own.Counts = append(own.Counts, c)
		}
	}
	return own
}

// Clone returns a copy.
func (x *Images) Clone() Images { return Images{kept: slices.Clone(x.kept)} }

// imageAt returns the last image whose head is not after a record, or nil.
func (x *Images) imageAt(record Seq) *Image {
	for _, img := range slices.Backward(x.kept) {
		if img.Head.ID <= record {
			return img
		}
	}
	return nil
}

// Image is History.Image.
func (x *Images) Image(at Seq) (*Image, error) { return x.imageAt(at), nil }

// Part is History.Part.
func (x *Images) Part(at Seq, cells []string) (*Image, error) {
	img := x.imageAt(at)
	if img == nil || img.Head.ID != at {
		return nil, fmt.Errorf("image at #%d: %w", at, ErrNotFound)
	}
	part := &Image{Head: img.Head, Core: img.Core}
	named := slices.Sorted(slices.Values(cells))
	for _, c := range img.Cells {
		if _, is := slices.BinarySearch(named, c.Cell); is {
			part.Cells = append(part.Cells, c)
		}
	}
	return part, nil
}

// CellVersion is Versions.CellVersion.
func (x *Images) CellVersion(cell string, at Seq) (*CellVersion, error) {
	return firstOf(x.CellVersions("", at), func(v *CellVersion) bool { return v.Cell == cell })
}

// IntentVersion is Versions.IntentVersion.
func (x *Images) IntentVersion(key Hash, at Seq) (*IntentVersion, error) {
	return firstOf(x.IntentVersions(at), func(v *IntentVersion) bool { return v.Key == key })
}

// Core is Versions.Core.
func (x *Images) Core(at Seq) (*Image, error) {
	img := x.imageAt(at)
	if img == nil {
		return nil, nil
	}
	return &Image{Head: img.Head, Core: img.Core}, nil
}

// CellVersions is Versions.CellVersions.
func (x *Images) CellVersions(prefix string, at Seq) iter.Seq2[CellVersion, error] {
	return versions(x.imageAt(at), func(img *Image) []CellVersion { return img.Cells }, func(v *CellVersion) bool { return strings.HasPrefix(v.Cell, prefix) })
}

// IntentVersions is Versions.IntentVersions.
func (x *Images) IntentVersions(at Seq) iter.Seq2[IntentVersion, error] {
	return versions(x.imageAt(at), func(img *Image) []IntentVersion { return img.Intents }, func(*IntentVersion) bool { return true })
}

// CountVersion is Versions.CountVersion.
func (x *Images) CountVersion(key CountKey, at Seq) (*CountVersion, error) {
	return firstOf(x.CountVersions(at), func(v *CountVersion) bool { return v.CountKey == key })
}

// CountVersions is Versions.CountVersions.
func (x *Images) CountVersions(at Seq) iter.Seq2[CountVersion, error] {
	return versions(x.imageAt(at), func(img *Image) []CountVersion { return img.Counts }, func(*CountVersion) bool { return true })
}

// versions yields those of a part of an image that fit; of no image none.
func versions[V any](img *Image, part func(*Image) []V, fits func(*V) bool) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		if img == nil {
			return
		}
		for _, v := range part(img) {
			if fits(&v) && !yield(v, nil) {
				return
			}
		}
	}
}

// firstOf returns the first version that is meant; nil: there is none.
func firstOf[V any](all iter.Seq2[V, error], meant func(*V) bool) (*V, error) {
	for v, err := range all {
		if err != nil || meant(&v) {
			return &v, err
		}
	}
	return nil, nil
}
