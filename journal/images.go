package journal

import (
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
	if last := x.at(Last); last != nil {
		whole.Cells, whole.Intents = slices.Clone(last.Cells), slices.Clone(last.Intents)
	}
	for _, c := range img.Cells {
		at, found := slices.BinarySearchFunc(whole.Cells, c.Cell, func(v CellVersion, name string) int { return strings.Compare(v.Cell, name) })
		if found {
			whole.Cells = slices.Delete(whole.Cells, at, at+1)
		}
		if c.At = img.Head.ID; len(c.Bytes) > 0 {
			whole.Cells = slices.Insert(whole.Cells, at, c)
		}
	}
	for _, e := range img.Intents {
		e.First = false
		at := slices.IndexFunc(whole.Intents, func(v IntentVersion) bool { return v.Key == e.Key })
		if at < 0 {
			whole.Intents = append(whole.Intents, e)
		} else {
			whole.Intents[at] = e
		}
	}
	x.kept = slices.DeleteFunc(x.kept, func(old *Image) bool { return !slices.Contains(img.Keep, old.Head.ID) })
	x.kept = append(x.kept, whole)
}

// Clone returns a copy.
func (x *Images) Clone() Images { return Images{kept: slices.Clone(x.kept)} }

// at returns the last image whose head is not after a record, or nil.
func (x *Images) at(record Seq) *Image {
	for _, img := range slices.Backward(x.kept) {
		if img.Head.ID <= record {
			return img
		}
	}
	return nil
}

// Image is History.Image.
func (x *Images) Image(at Seq) (*Image, error) { return x.at(at), nil }

// Part is History.Part.
func (x *Images) Part(at Seq, cells []string) (*Image, error) {
	img := x.at(at)
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
	for v, err := range x.CellVersions("", at) {
		if err != nil || v.Cell == cell {
			return &v, err
		}
	}
	return nil, nil
}

// IntentVersion is Versions.IntentVersion.
func (x *Images) IntentVersion(key Hash, at Seq) (*IntentVersion, error) {
	for v, err := range x.IntentVersions(at) {
		if err != nil || v.Key == key {
			return &v, err
		}
	}
	return nil, nil
}

// Core is Versions.Core.
func (x *Images) Core(at Seq) (*Image, error) {
	img := x.at(at)
	if img == nil {
		return nil, nil
	}
	return &Image{Head: img.Head, Core: img.Core}, nil
}

// CellVersions is Versions.CellVersions.
func (x *Images) CellVersions(prefix string, at Seq) iter.Seq2[CellVersion, error] {
	return func(yield func(CellVersion, error) bool) {
		if img := x.at(at); img != nil {
			for _, v := range img.Cells {
				if strings.HasPrefix(v.Cell, prefix) && !yield(v, nil) {
					return
				}
			}
		}
	}
}

// IntentVersions is Versions.IntentVersions.
func (x *Images) IntentVersions(at Seq) iter.Seq2[IntentVersion, error] {
	return func(yield func(IntentVersion, error) bool) {
		if img := x.at(at); img != nil {
			for _, v := range img.Intents {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}
