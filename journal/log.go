package journal

import (
	"context"
	"errors"
	"iter"
	"math"
)

// Log is the journal of record of one world where that is outside of the world's directory:
// on a server that several machines share. What it has acknowledged is the world; a store
// that is given one keeps a copy, with all that is derived from it, which may be lost at any
// moment.
//
// Append is called by one goroutine, everything else by any.
type Log interface {
	// Own makes the caller the world's owner, and returns how the world stands. From then on
	// no append of an earlier owner takes effect: its Pendings, and all that it asks for
	// afterwards, are ErrFenced. It is called once, and before anything else.
	Own(ctx context.Context) (Owned, error)

	// Append begins to append a batch, which goes on from the one before. Contents come with
	// records only: what moves no head could come late, and bring back what was redacted. Nothing
	// in it is durable before the Pending says so, and then all before it is, too. Batches that
	// wait at the same time may become durable together. Its slices are in use until the Pending
	// has been waited for. Where an answer is lost the log finds out what became of the batch: an
	// ErrUnknown says that it could not in time, an ErrRewound that the log is not what it was.
	// After an error everything after it fails with the same.
	Append(b Batch) (Pending, error)

	// Release gives the world up, so that another may own it at once, and says when somebody has
	// to. Pendings have been waited for.
	Release(ctx context.Context, wake Wake) error

	Past
	Keep
}

// Wake is when a world that nobody owns has to have an owner again, because it goes on by itself
// then: in nanoseconds since 1970-01-01 UTC.
type Wake int64

// Always and never.
const (
	WakeNow   Wake = 0
	WakeNever Wake = math.MaxInt64
)

// Owned is how a world stood when somebody became its owner.
type Owned struct {
	Head  Head
	Epoch uint64 // of owners: each has a greater one. Only a token that nobody can guess fences
}

// Past is what a Log holds. Whoever reads owns nothing: it answers before Own, too.
type Past interface {
	// Blob returns a content by its hash: ErrNotFound, or ErrRedacted.
	Blobs

	// End returns the head of what is durable.
	End(ctx context.Context) (Head, error)

	// Records yields the records after one, in order, up to End. Their bytes may be kept. An
	// error ends the sequence.
	Records(ctx context.Context, after Seq) iter.Seq2[Linked, error]

	// Kept returns the image that was put last; nil: none was.
	Kept(ctx context.Context) (*KeptImage, error)

	// Notes yields the notes of sizes from one to another, both included, ascending.
	Notes(ctx context.Context, from, to Seq) iter.Seq2[Note, error]
}

// Keep is what a Log takes besides records. All of it is durable on return, and refused with
// ErrFenced where somebody else owns the world.
type Keep interface {
	// PutImage keeps an image in the place of the one before, at once or not at all. Its head
	// is durable.
	PutImage(ctx context.Context, img *KeptImage) error

	// PutNote keeps a note for ever, in the place of one of the same size.
	PutNote(ctx context.Context, n Note) error

	// Redact destroys a content: from then on it is ErrRedacted, until a batch brings it again.
	// The image may hold it, and stays, for without both nobody could open the world: who
	// redacts puts one before that does not.
	Redact(ctx context.Context, h Hash) error
}

// Linked is a record as it was appended, with the beginning of the chain root with it.
type Linked struct {
	ID    Seq
	Bytes []byte
	Link  [LinkBytes]byte
}

// KeptImage is a world at one head as a Log keeps it, so that opening it without a copy takes
// as long as its state is large, and not its journal. What is in it is the store's.
type KeptImage struct {
	Head  Head
	Tree  []byte                   // of the Merkle tree over the records up to the head what it takes to go on
	Parts iter.Seq2[[]byte, error] // each at most MaxKeptPart bytes, good until the next one
}

// MaxKeptPart is the greatest length of a part of an image in a Log, in bytes.
const MaxKeptPart = 4 << 20

// Note is a signed checkpoint of the records up to one.
type Note struct {
	Size Seq
	Text []byte
}

// ErrRewound means that a log is not the same as before: it was put back to an earlier state, or
// replaced. Nobody may go on with the world before a person has decided what holds.
var ErrRewound = errors.New("journal: the log has lost what it had acknowledged")

// Movable is a Log whose world can be moved into it, and out of it again. Whatever is not Live is
// refused to whoever would own or read it, but for who makes it.
type Movable interface {
	Log

	// Stands returns how the world stands, whoever has it.
	Stands(ctx context.Context) (Standing, error)

	// Make begins to make the world, without records. It comes before Own. What was being made
	// goes. A world that was moved away is made again over what is remembered of that alone: who makes
	// it has looked whether theirs goes on from there. It stays remembered until Publish, and is what
	// there is again where that does not come. Any other is refused, and so is one that is live.
	Make(ctx context.Context, m Making) error

	// Inherit has the world that its owner is making, and that has no records yet, begin with those
	// of another up to a head of its, and with all contents that it has, redacted ones as such. They
	// do not leave the store that both lie in: ErrElsewhere where they do not. After another error the world is to be
	// made anew. Notes and images are not inherited.
	Inherit(ctx context.Context, from Log, to Head) error

	// Publish makes the world live that its owner has made.
	Publish(ctx context.Context) error

	// MoveAway ends the world here, and remembers where its owner has it: a text for people, which
	// no other move has.
	MoveAway(ctx context.Context, to string) error
}

// ErrElsewhere says that a world does not lie in the store of another.
var ErrElsewhere = errors.New("journal: the worlds do not lie in the same store")

// Making is what a world is made of.
type Making struct {
	Over   Left   // what is remembered of it; zero: nothing may be
	Copies string // as of Standing
}

// Left is what is remembered of a world that was moved away.
type Left struct {
	Head Head
	To   string // as MoveAway was told
}

// Standing is how a world stands in a Movable.
type Standing struct {
	State  State
	Head   Head
	Left   Left   // of one that was moved away, also while it is made again
	Copies string // by which other places know that it is the world that they gave away, a word each
}

// State is whether a world is to be had from a log.
type State string

// The states of worlds.
const (
	Absent State = ""
	Live   State = "live"
	Made   State = "made" // being made: not yet
	Moved  State = "moved"
)
