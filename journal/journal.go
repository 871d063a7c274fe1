// Package journal says what a record of a world is, and what a journal of them
// promises: the vocabulary that the kernel writes, that stores keep, and that
// verifiers read. It runs nothing and imports no engine: who reads a journal
// compiles neither policies nor scripts.
//
// A [Record] has a [Kind], and a payload that is the [Body] of its kind, in
// canonical CBOR; docs/journal-format.md has the bytes. [Journal] is what a kernel
// needs of a store to append, [History] what it needs to read, and an [Image] is a
// world at one head. Everything here can be used concurrently unless it is written
// to; what is decoded keeps the bytes that it was decoded from.
package journal

import (
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Seq is the id of a record: its position in the journal, from 1.
type Seq uint64

// Hash is a SHA-256 digest.
type Hash = canon.Hash

// Head is where a journal ends: the id and chain root of its last record. The
// zero value is the head of an empty journal.
type Head struct {
	ID   Seq  `json:"id"`
	Root Hash `json:"root"`
}

// Stored is a record as a journal holds it.
type Stored struct {
	ID    Seq
	Bytes []byte // canonical
	Root  Hash   // the chain root with this record
}

// LinkBytes is how much of its chain root is stored beside every record, so that
// a damaged record is named, and not only found out at the end.
const LinkBytes = 8

// Scanned is a record as read. Whoever computes the chain compares the roots with the links.
type Scanned struct {
	ID    Seq
	Bytes []byte          // kept by nobody else
	Link  [LinkBytes]byte // the beginning of the chain root with this record
	Root  Hash            // that root as whoever read it has computed it from all Bytes so far; zero: they have not

	// Record is what DecodeRecord makes of Bytes. Err says why it makes nothing,
	// or that a payload in place is not canonical.
	Record Record
	Err    error
}

// NewScanned decodes a record that was read.
func NewScanned(id Seq, data, link []byte) Scanned {
	rec, err := DecodeRecord(data)
	return newScanned(id, data, link, rec, err)
}

// ScannedAs is NewScanned of a record whose envelope is decoded already. Its payload
// may be part of other bytes than data that are the same.
func ScannedAs(e canon.Envelope, data, link []byte) Scanned {
	if e.Payload != nil {
		e.Payload = data[len(data)-len(e.Payload):] // it is the last item
	}
	rec, err := recordOf(e)
	return newScanned(Seq(e.ID), data, link, rec, err)
}

func newScanned(id Seq, data, link []byte, rec Record, err error) Scanned {
	s := Scanned{ID: id, Bytes: data, Link: [LinkBytes]byte(link[:LinkBytes])}
	if err == nil && rec.Payload != nil {
		err = canon.Valid(rec.Payload)
	}
	if err != nil {
		s.Err = fmt.Errorf("record #%d: %w", id, err)
		return s
	}
	s.Record = rec
	return s
}

// Blob is a content that records or manifests name by its hash.
type Blob struct {
	Hash  Hash
	Bytes []byte
}

// BlobList is the Blobs of a few contents at hand.
type BlobList []Blob

// Blob implements Blobs.
func (l BlobList) Blob(h Hash) ([]byte, error) {
	for _, b := range l {
		if b.Hash == h {
			return b.Bytes, nil
		}
	}
	return nil, ErrNotFound
}

// Batch is what becomes durable at once or not at all. The journal must not
// keep its slices after Append's Pending has been waited for.
type Batch struct {
	After   Head // the head that the journal must have
	Head    Head // the head it gets
	Records []Stored
	Blobs   []Blob // not stored before, or equal to what is
}

// Journal makes records durable. It knows the owner's epoch and puts it into
// every append. Batches are appended by one caller, in order; the next may be
// appended while the one before is pending.
type Journal interface {
	// Append begins to append a batch. Nothing in it is durable before the
	// Pending says so. An error means that nothing was appended.
	Append(b Batch) (Pending, error)
	// Checkpoint stores an image of the world at a head that Append was given
	// before, and lets go of the images that its Keep does not name. Losing it
	// costs time on opening, nothing else.
	Checkpoint(img *Image) error
	// Notify has wake called, in any goroutine, whenever a Pending becomes Done. A
	// journal whose Pendings always are need not.
	Notify(wake func())
}

// Pending is an append under way.
type Pending interface {
	// Wait returns when the batch is durable (nil), was refused because someone
	// else owns the world (ErrFenced), or when nobody can tell (ErrUnknown).
	// Any error ends the World in memory: reopen it.
	Wait() error
	// Done reports whether Wait would return at once.
	Done() bool
}

// Blobs reads contents by their hashes. Missing ones are ErrNotFound.
type Blobs interface {
	Blob(h Hash) ([]byte, error)
}

// History is all that a journal holds, for opening and replaying a world.
type History interface {
	Blobs
	// Record returns the stored bytes of a record, or ErrNotFound.
	Record(id Seq) ([]byte, error)
	// Image returns the last kept image whose head is not after a record, with all
	// its cells, intents and counts, or nil where there is none.
	Image(at Seq) (*Image, error)
	// Part returns the kept image at a head, ErrNotFound where there is none, with
	// its core, no intents and counts, and of its cells those that are named: a cell
	// that was not there then is left out.
	Part(at Seq, cells []string) (*Image, error)
	// Scan yields the records after a given one, in order, up to the end. An
	// error ends the sequence and names the record.
	Scan(after Seq) iter.Seq2[Scanned, error]
}

// Versions reads images piece by piece: a world that is larger than memory leaves there what
// it does not use. An image shows as soon as Checkpoint has been given it.
type Versions interface {
	// Core returns the last image whose head is not after a record, without its cells,
	// intents and counts; nil where there is none.
	Core(at Seq) (*Image, error)
	// CellVersion returns the version of a cell, or of what is kept beside one, in the last
	// image whose head is not after a record; nil: that has none.
	CellVersion(cell string, at Seq) (*CellVersion, error)
	// IntentVersion is CellVersion of an intent's ledger entry.
	IntentVersion(key Hash, at Seq) (*IntentVersion, error)
	// CellVersions yields the versions of all cells, and of what is kept beside them, whose
	// names begin so, in no order. Their bytes are good until the next one. An error ends
	// the sequence.
	CellVersions(prefix string, at Seq) iter.Seq2[CellVersion, error]
	// IntentVersions is CellVersions of the ledger's entries.
	IntentVersions(at Seq) iter.Seq2[IntentVersion, error]
	// CountVersion is CellVersion of a count.
	CountVersion(key CountKey, at Seq) (*CountVersion, error)
	// CountVersions is CellVersions of all counts.
	CountVersions(at Seq) iter.Seq2[CountVersion, error]
}

// Chainer is a History that can compute the chain ahead of who asks, as it reads.
type Chainer interface {
	// ScanChain is Scan with the roots of the records that follow a head. It compares
	// none of them with a link.
	ScanChain(after Head) iter.Seq2[Scanned, error]
}

// How an append can end other than durable, and a read without finding.
var (
	ErrFenced   = errors.New("journal: someone else owns this world")
	ErrUnknown  = errors.New("journal: the journal cannot tell whether the append is durable")
	ErrNotFound = errors.New("journal: not in the journal")
)

// Last is the record to ask for where the latest image is meant.
const Last = Seq(math.MaxUint64)

// Image is a world at a head: opening need not replay from record 1, and a rollback reads its
// destination here. Cells, Intents and Counts given to Journal.Checkpoint are those that changed
// since the last image; those that History.Image returns are all.
type Image struct {
	Head    Head
	Core    []byte        // canonical; the kernel's own, everything but cells, intents and counts
	Cells   []CellVersion // sorted by name: cells, and what else the kernel keeps beside a cell
	Intents []IntentVersion
	Counts  []CountVersion

	// Keep are the heads of the images before this one that stay, ascending. The
	// others go, with the versions of cells, intents and counts that only they need.
	Keep []Seq
}

// CellVersion is a cell as it was at an image's head, or what is kept beside one.
type CellVersion struct {
	Cell  string // "reducer/key", or a name that no cell has
	At    Seq    // the head of the image that it was written with; set by History
	First bool   // as in IntentVersion
	Bytes []byte // canonical; the kernel's own. Empty, in Checkpoint only: the cell is not there any more
}

// IntentVersion is an intent's ledger entry as it was at an image's head.
type IntentVersion struct {
	Key   Hash
	First bool   // in Checkpoint only: no image before had it, so nobody need look
	Bytes []byte // canonical
}

// CountKey names a count: of what a cell has asked for, one for each different thing.
type CountKey struct {
	Cell string   // "reducer/key"
	What [16]byte // the kernel's own
}

// CountVersion is a count as it was at an image's head.
type CountVersion struct {
	CountKey
	First bool   // as in IntentVersion
	Bytes []byte // canonical; the kernel's own
}

// ErrRedacted says that a payload was destroyed: a blob.redacted names it. It is
// an ErrNotFound.
var ErrRedacted = fmt.Errorf("%w: it was redacted", ErrNotFound)

// ErrArchived says that records were moved to an archive that cannot be read.
// The error around it is an *ArchivedError.
var ErrArchived = errors.New("archived")

// ArchivedError names the archive that holds records, and why it cannot be read.
type ArchivedError struct {
	File     string
	From, To Seq
	Err      error
}

func (e *ArchivedError) Error() string {
	return fmt.Sprintf("records #%d to #%d are archived in %s, which cannot be read: %v", e.From, e.To, e.File, e.Err)
}

// Unwrap returns ErrArchived and the reason.
func (e *ArchivedError) Unwrap() []error { return []error{ErrArchived, e.Err} }
