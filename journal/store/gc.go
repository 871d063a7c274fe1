package store

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/internal/chunk"
	"github.com/worldkernel/worldkernel/journal"
)

// Garbage counts what nothing referred to.
type Garbage struct {
	Blobs     uint64 `json:"blobs"` // that no record names, nor a blob that one names
	BlobBytes uint64 `json:"blob_bytes"`
	Versions  uint64 `json:"versions"` // of cells and intents, in no image
	Notes     uint64 `json:"notes"`    // about versions that are gone

	Chunks     uint64 `json:"chunks"` // that no blob and no version needs, those above left out
	ChunkBytes uint64 `json:"chunk_bytes"`
}

// Collect deletes what nothing refers to and gives its room back. Records and
// archives must all be readable: what cannot be read might refer to anything. It
// must not run beside an append. Its memory grows with the number of blobs.
func (s *Store) Collect() (Garbage, error) {
	s.settleImages()
	b := s.db.NewBatch()
	c := collector{store: s, batch: b}
	err := c.collectBlobs()
	if err == nil {
		err = c.collectVersions()
	}
	if err == nil {
		err = s.commit(b)
	}
	if err == nil {
		err = s.sweep(&c.found)
	}
	if err == nil {
		err = s.rewrite(blobPrefix, listPrefix, chunkPrefix, findPrefix, versionPrefix, notePrefix, imagePrefix, ledgerPrefix, countPrefix)
	}
	if err != nil {
		return Garbage{}, fmt.Errorf("store: collect: %w", err)
	}
	return c.found, nil
}

// collector puts deletions into a batch.
type collector struct {
	store *Store
	batch *pebble.Batch
	found Garbage

	unnamed map[journal.Hash]uint64 // blobs that nothing was found to refer to yet, and their sizes
	named   []journal.Hash          // blobs that may refer to others
}

// collectBlobs deletes the blobs that no record refers to. Whatever stands as a
// byte string of the length of a hash in a record, or in a blob that one refers
// to, and is the hash of a blob, is a reference: so later kinds need no word here.
func (c *collector) collectBlobs() error {
	if err := c.listBlobs(); err != nil {
		return err
	}
	for e, err := range c.store.entries(1) {
		if err != nil {
			return err
		}
		if len(c.unnamed) > 0 {
			c.mark(e.record)
		}
	}
	for len(c.named) > 0 && len(c.unnamed) > 0 {
		blob := c.named[len(c.named)-1]
		c.named = c.named[:len(c.named)-1]
		content, err := c.store.Blob(blob)
		if err != nil {
			return err
		}
		c.mark(content)
	}
	for blob, size := range c.unnamed { // order cannot show: each is deleted
		c.found.Blobs++
		c.found.BlobBytes += size
		if err := deleteBlob(c.batch, blob); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) listBlobs() (err error) {
	c.unnamed = make(map[journal.Hash]uint64)
	c.store.each(blobPrefix, func(key, value []byte) error {
		if len(key) != 1+len(journal.Hash{}) {
			return damaged(key, errShape)
		}
		c.unnamed[journal.Hash(key[1:])] = uint64(len(value))
		return nil
	}, firstInto(&err))
	if err != nil {
		return err
	}
	c.store.eachSealed(listPrefix, func(key, body []byte) error {
		l, err := chunk.Parse(body, maxContentBytes)
		if err != nil || len(key) != 1+len(journal.Hash{}) {
			return damaged(key, errShape)
		}
		c.unnamed[journal.Hash(key[1:])] = l.Bytes()
		return nil
	}, firstInto(&err))
	return err
}

// deleteBlob deletes a content, but not the chunks that it needs.
func deleteBlob(b *pebble.Batch, h journal.Hash) error {
	return errors.Join(b.Delete(hashKey(blobPrefix, h), nil), b.Delete(hashKey(listPrefix, h), nil))
}

// mark takes all that data may refer to off the list. It looks at every place
// where CBOR could begin a byte string of 32 bytes.
func (c *collector) mark(data []byte) {
	head := []byte{0x58, byte(len(journal.Hash{}))}
	for {
		at := bytes.Index(data, head)
		if at < 0 || len(data) < at+len(head)+len(journal.Hash{}) {
			return
		}
		data = data[at+1:]
		blob := journal.Hash(data[1:])
		if _, ok := c.unnamed[blob]; ok {
			delete(c.unnamed, blob)
			c.named = append(c.named, blob)
		}
	}
}

// collectVersions deletes the versions that are in no image, and notes about
// versions that are gone.
func (c *collector) collectVersions() error {
	v, err := c.store.openView()
	if err != nil {
		return err
	}
	defer v.close()
	heads, err := v.heads()
	if err != nil {
		return err
	}
	kept := keeper{kept: heads}
	for _, prefix := range []byte{versionPrefix, countPrefix, ledgerPrefix} {
		if err := c.collectUnder(v, prefix, &kept); err != nil {
			return err
		}
	}
	return c.collectNotes(v)
}

func (c *collector) collectUnder(v *view, prefix byte, kept *keeper) error {
	it, err := v.iterate([]byte{prefix}, []byte{prefix + 1})
	if err != nil {
		return err
	}
	defer func() { _ = it.Close() }() // its error is Error's
	next, follows := journal.Last, []byte(nil)
	for ok := it.Last(); ok; ok = it.Prev() { // the one that follows comes first
		name, at, whole := splitVersion(it.Key())
		if !whole {
			return damaged(it.Key(), errShape)
		}
		if !bytes.Equal(name, follows) {
			next, follows = journal.Last, append(follows[:0], name...)
		}
		if _, needed := kept.neededBy(at, next); !needed {
			c.found.Versions++
			if err := c.batch.Delete(bytes.Clone(it.Key()), nil); err != nil {
				return err
			}
			continue
		}
		next = at
	}
	return it.Error()
}

func (c *collector) collectNotes(v *view) error {
	for it, err := range v.walk([]byte{notePrefix}, []byte{notePrefix + 1}) {
		if err != nil {
			return err
		}
		version, _, _, whole := splitNote(it.Key())
		if !whole {
			return damaged(it.Key(), errShape)
		}
		_, closer, err := v.snapshot.Get(version)
		switch {
		case err == nil:
			err = closer.Close()
		case errors.Is(err, pebble.ErrNotFound):
			c.found.Notes++
			err = c.batch.Delete(bytes.Clone(it.Key()), nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
