// Package bundle writes and reads bundles: one file with all of a world, or of a range of its records,
// that somebody needs who verifies it offline, and no secret. It is a part of worldctl, and not an
// API.
//
// docs/bundle-format.md specifies the format. In short: a gzip file, unpacked a
// CBOR sequence (RFC 8742) of deterministic items:
//
//	array of 9   the header, first: see [Header]
//	byte string  a blob, before the first record that needs it
//	array of 1   [piece]: a part of the blob in pieces that follows it, and of others
//	array of 2   [length, list]: a blob in pieces; package chunk has the lists
//	array of 2   [record, link]: the stored bytes of a record in place, and the
//	             first 8 bytes of the chain root with it
//	text         a signed checkpoint, right after the last record that it covers
//
// The last item is a checkpoint of the last record. A second gzip member, which
// unpacks to nothing, holds the SHA-256 of the first.
//
// A [Reader] is a journal.History. What is wrong with records, their chain and the
// roots of checkpoints is found by whoever verifies that history, as in any other
// journal; what is wrong with the file below that, the Reader says itself.
package bundle

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// Why bytes are not read, and why something is not written.
var (
	// ErrNotBundle says that a file does not begin like a bundle.
	ErrNotBundle = errors.New("bundle: not a bundle")
	// ErrVersion says that a bundle was written by a later version of this program.
	ErrVersion = errors.New("bundle: written by a later version")
	// ErrSize says that a bundle unpacks to more bytes than its reader allows.
	ErrSize = errors.New("bundle: it unpacks to more bytes than are allowed")
	// ErrLimit says that a bundle holds more of something than is allowed.
	ErrLimit = errors.New("bundle: over a limit")
	// ErrInvalid says that what a Writer was given makes no bundle.
	ErrInvalid = errors.New("bundle: invalid")
)

// Limits. What a Writer has written is within them, so a Reader can read it.
const (
	// DefaultMaxBytes is how large a bundle may be unpacked.
	DefaultMaxBytes = 64 << 30

	// The largest payloads and contents that a manifest allows are 64 MiB, and what
	// is around one is small beside it.
	maxItemBytes = 128 << 20

	maxBlobs       = 1 << 22 // 48 bytes of memory each
	maxCheckpoints = 1 << 20
	maxWithheld    = 1 << 20
	maxKeys        = 4096 // one for every epoch of a keyring
)

const (
	magic       = "worldkernel/bundle"
	version     = 1
	headerItems = 9
)

// Header is what the first item of a bundle says about the others.
type Header struct {
	World string      // its id; of a fork, its own
	First journal.Seq // record
	Last  journal.Seq

	// What chain and Merkle tree go on from, where First is not 1; else zero.
	Root  journal.Hash   // the chain root before First
	Nodes []journal.Hash // checkpoint.Tree.Nodes of the tree over the records before First

	Withheld []journal.Hash      // payloads of its records that were left out, ascending
	Keys     []ed25519.PublicKey // that signed checkpoints in it, ascending
}

// sorted returns a copy whose lists are ascending and name nothing twice.
func (h Header) sorted() Header {
	h.Nodes = slices.Clone(h.Nodes)
	h.Withheld = slices.Compact(slices.SortedFunc(slices.Values(h.Withheld), compareHashes))
	h.Keys = slices.CompactFunc(slices.SortedFunc(slices.Values(h.Keys), compareKeys), func(a, b ed25519.PublicKey) bool { return bytes.Equal(a, b) })
	return h
}

func compareHashes(a, b journal.Hash) int { return bytes.Compare(a[:], b[:]) }

func compareKeys(a, b ed25519.PublicKey) int { return bytes.Compare(a, b) }

// faults returns all that no header of a bundle says.
func (h *Header) faults() (faults []error) {
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf("header: "+format, args...))
		}
	}
	fault(h.First == 0 || h.First > h.Last || h.Last > checkpoint.MaxSize, "records #%d to #%d are no range", h.First, h.Last)
	fault((h.First > 1) == h.Root.IsZero(), "there is a chain root before record #%d or there is none: it says the opposite", h.First)
	if h.First > 0 {
		_, err := checkpoint.Resume(uint64(h.First-1), h.Nodes)
		fault(err != nil, "%d nodes are not those of a tree over %d records", len(h.Nodes), h.First-1)
	}
	fault(!ascending(h.Withheld, compareHashes), "the hashes of what was withheld are not ascending")
	fault(slices.Contains(h.Withheld, journal.Hash{}), "the zero hash is withheld, and names nothing")
	fault(!ascending(h.Keys, compareKeys), "the keys are not ascending")
	fault(len(h.Keys) == 0, "there is no key, and the last item has to be a signed checkpoint")
	for _, key := range h.Keys {
		text, err := checkpoint.FormatKey(h.World, key)
		if err == nil {
			_, _, err = checkpoint.ParseKey(text) // which knows what a world can be called
		}
		fault(err != nil, "key %x: %w", []byte(key), err)
	}
	return faults
}

func ascending[T any](list []T, compare func(a, b T) int) bool {
	for i := 1; i < len(list); i++ {
		if compare(list[i-1], list[i]) >= 0 {
			return false
		}
	}
	return true
}

// overLimit returns an ErrLimit where a list is too long.
func (h *Header) overLimit() error {
	switch {
	case len(h.Withheld) > maxWithheld:
		return fmt.Errorf("%w: more than %d payloads are withheld", ErrLimit, maxWithheld)
	case len(h.Keys) > maxKeys:
		return fmt.Errorf("%w: more than %d keys", ErrLimit, maxKeys)
	}
	return nil
}

// append appends the item of h.
func (h *Header) append(b []byte) []byte {
	b = canon.AppendArray(b, headerItems)
	b = canon.AppendText(b, magic)
	b = canon.AppendUint(b, version)
	b = canon.AppendText(b, h.World)
	b = canon.AppendUint(b, uint64(h.First))
	b = canon.AppendUint(b, uint64(h.Last))
	if h.Root.IsZero() {
		b = canon.AppendBytes(b, nil)
	} else {
		b = canon.AppendBytes(b, h.Root[:])
	}
	for _, list := range [][]journal.Hash{h.Nodes, h.Withheld} {
		b = canon.AppendArray(b, len(list))
		for _, x := range list {
			b = canon.AppendBytes(b, x[:])
		}
	}
	b = canon.AppendArray(b, len(h.Keys))
	for _, key := range h.Keys {
		b = canon.AppendBytes(b, key)
	}
	return b
}

// decodeHeader reads the first item. The errors are ErrNotBundle, ErrVersion and
// ErrLimit.
func decodeHeader(data []byte) (h Header, err error) {
	r := canon.NewReader(data)
	n := r.Array()
	if name := r.Text(); r.Err() != nil || name != magic {
		return h, ErrNotBundle
	}
	v := r.Uint()
	if r.Err() == nil && v > version {
		return h, fmt.Errorf("%w: version %d of the format, not %d", ErrVersion, v, version)
	}
	if n != headerItems || v != version {
		return h, fmt.Errorf("%w: version %d, and %d items in its header", ErrNotBundle, v, n)
	}
	h.World, h.First, h.Last = r.Text(), journal.Seq(r.Uint()), journal.Seq(r.Uint())
	wrong := false
	if root := r.Bytes(); len(root) == len(h.Root) {
		h.Root = journal.Hash(root)
		wrong = h.Root.IsZero()
	} else {
		wrong = len(root) > 0
	}
	read := func(add func(b []byte)) {
		for range r.Array() {
			b := r.Bytes()
			if r.Err() != nil || len(b) != len(journal.Hash{}) {
				wrong = true
				return
			}
			add(b)
		}
	}
	read(func(b []byte) { h.Nodes = append(h.Nodes, journal.Hash(b)) })
	read(func(b []byte) { h.Withheld = append(h.Withheld, journal.Hash(b)) })
	read(func(b []byte) { h.Keys = append(h.Keys, bytes.Clone(b)) })
	if err := r.Close(); err != nil {
		return h, fmt.Errorf("%w: its header: %w", ErrNotBundle, err)
	}
	if wrong {
		return h, fmt.Errorf("%w: its header: a hash or key of other than %d bytes", ErrNotBundle, len(journal.Hash{}))
	}
	return h, h.overLimit()
}
