package local

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
)

// MaxSavedBytes is how much a saved snapshot may hold, uncompressed.
const MaxSavedBytes = 1 << 30

// ErrSavedOther says that a saved snapshot is of another world.
var ErrSavedOther = errors.New("the snapshot was saved from another world")

// SaveSnapshot writes a snapshot that is kept as a file of its own, the gzip of what
// world.SaveSnapshot returns, from which ReadSnapshot finds it again.
func (lw *World) SaveSnapshot(w io.Writer, name string) (snapshot.Snapshot, error) {
	s, err := lw.findSnapshot(name)
	if err != nil {
		return s, err
	}
	data, err := world.SaveSnapshot(lw.store, lw.keys.World(), s)
	if err != nil {
		return s, err
	}
	zip := gzip.NewWriter(w)
	_, err = zip.Write(data)
	return s, errors.Join(err, zip.Close())
}

// ReadSnapshot returns the snapshot of this world that a file of SaveSnapshot
// holds, once it has found that both are the same. The errors are world.ErrNotSaved,
// ErrSavedOther, and snapshot.ErrNoSnapshot where the world has let it go.
func (lw *World) ReadSnapshot(r io.Reader) (snapshot.Snapshot, error) {
	x, err := readSaved(r)
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	s, err := lw.findSnapshot(x.Hash().String())
	if err != nil && x.World() != lw.keys.World() {
		err = fmt.Errorf("%w: it is of %s, this is %s", ErrSavedOther, x.World(), lw.keys.World())
	}
	if err != nil {
		return s, err
	}
	return s, x.Compare(lw.store, s)
}

func (lw *World) findSnapshot(name string) (s snapshot.Snapshot, err error) {
	lw.View(func(m *world.Moment) { s, err = m.FindSnapshot(name) })
	return s, err
}

func readSaved(r io.Reader) (*world.SavedSnapshot, error) {
	zip, err := gzip.NewReader(r)
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%w: it is no gzip file", world.ErrNotSaved)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", world.ErrNotSaved, err)
	}
	data, err := io.ReadAll(io.LimitReader(zip, MaxSavedBytes+1))
	if err == nil && len(data) > MaxSavedBytes {
		err = fmt.Errorf("it holds more than %d bytes", MaxSavedBytes)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrCutOff
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", world.ErrNotSaved, err)
	}
	return world.ReadSaved(data)
}
