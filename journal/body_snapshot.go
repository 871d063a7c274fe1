package journal

import (
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// SnapshotCreated is the payload of snapshot.created. The snapshot is of the
// world as it was after the record before it.
type SnapshotCreated struct {
	Version
	Name      string   `json:"name"`
	At        Seq      `json:"at"`
	ChainRoot Hash     `json:"chain_root"` // at At
	StateRoot Hash     `json:"state_root"`
	Cells     uint64   `json:"cells"`
	Label     string   `json:"label"`
	Actor     string   `json:"actor"`  // "": the world itself, by snapshot_every
	Pruned    []string `json:"pruned"` // what the retention let go for it
}

// SnapshotHash returns what names a snapshot besides its name: H of the canonical array
// [name, at, chain root, state root, cells].
func (x *SnapshotCreated) SnapshotHash() Hash {
	b := canon.AppendArray(nil, 5)
	b = canon.AppendText(b, x.Name)
	b = canon.AppendUint(b, uint64(x.At))
	b = canon.AppendBytes(b, x.ChainRoot[:])
	b = canon.AppendBytes(b, x.StateRoot[:])
	return canon.Sum(canon.AppendUint(b, x.Cells))
}

// SnapshotPinned is the payload of snapshot.pinned.
type SnapshotPinned struct {
	Version
	Name   string `json:"name"`
	Pinned bool   `json:"pinned"`
	Actor  string `json:"actor"`
}

// SnapshotPruned is the payload of snapshot.pruned: a person lets a snapshot go.
type SnapshotPruned struct {
	Version
	Name  string `json:"name"`
	Actor string `json:"actor"`
}

// SnapshotRetention is the payload of snapshot.retention: how many snapshots are
// kept from now on, in the place of what the manifest says.
type SnapshotRetention struct {
	Version
	Max    uint64   `json:"max"`
	Actor  string   `json:"actor"`
	Pruned []string `json:"pruned"`
}

// RolledBack is the payload of rollback.applied: cells, mailboxes and timers are
// again what they were at a snapshot. Nothing else returns.
type RolledBack struct {
	Version
	Snapshot    string       `json:"snapshot"`
	Hash        Hash         `json:"snapshot_hash"`
	SnapshotLen Seq          `json:"snapshot_journal_len"` // records when the snapshot was made
	PriorLen    Seq          `json:"prior_journal_len"`    // records before this one
	Reason      string       `json:"reason"`
	Actor       string       `json:"actor"`
	Ack         bool         `json:"ack"`           // the actor knows of the side effects that stay
	Compensate  bool         `json:"compensate"`    // where a kind declares how, side effects are made up for
	Fresh       bool         `json:"fresh_effects"` // the same steps get other keys than before
	Abandoned   []SideEffect `json:"abandoned"`
}

// Count returns how many side effects have one of some dispositions.
func (x *RolledBack) Count(of ...Disposition) int {
	n := 0
	for _, e := range x.Abandoned {
		if slices.Contains(of, e.Disposition) {
			n++
		}
	}
	return n
}

// SideEffect is what the part of a history that a rollback leaves has done, or
// may have done, to the outside.
type SideEffect struct {
	_           struct{}       `cbor:",toarray"`
	Key         receipt.Key    `json:"key"`
	Step        receipt.StepID `json:"step_id"`
	Cell        string         `json:"cell"`
	Kind        string         `json:"kind"`
	State       receipt.State  `json:"state"`  // committed; failed while its compensation is under way; else it may yet happen
	Record      Seq            `json:"record"` // that committed it; else the last that says so
	Disposition Disposition    `json:"disposition"`
}

// Disposition says what becomes of a side effect that a rollback leaves behind.
type Disposition string

// The dispositions of side effects.
const (
	Kept         Disposition = "kept"         // an operator asked for it: it has nothing to do with the rollback
	Compensated  Disposition = "compensate"   // its compensation is asked for
	Acknowledged Disposition = "acknowledged" // it stays, and whoever rolls back knows of it
	Cancelled    Disposition = "cancelled"    // nothing was attempted, or its attempt in flight was not begun: it never will be
	MadeUpFor    Disposition = "made_up_for"  // it is in the history that comes back, and is done no more: an earlier rollback made up for it
)

// Forked is the payload of world.forked: from here on this is another world.
type Forked struct {
	Version
	World     string      `json:"world"`  // the id of the new world
	Parent    string      `json:"parent"` // the id of the world that it shares its past with
	At        Seq         `json:"at"`     // the last record that both have
	ChainRoot Hash        `json:"chain_root"`
	Effects   ForkEffects `json:"effects"`
	Live      []string    `json:"live"`     // the kinds of effects that may be performed, by name; see ForkLive
	Manifest  Hash        `json:"manifest"` // that is in force from here on; mostly the parent's
	Actor     string      `json:"actor"`
	Seed      *uint64     `json:"seed,omitempty"` // where randomness comes from, from here on; nil: it is the parent's
}

// ForkEffects says what becomes of the effects of a fork.
type ForkEffects string

// Known reports whether e is ForkHold, ForkLive or ForkRecorded.
func (e ForkEffects) Known() bool {
	switch e {
	case ForkHold, ForkLive, ForkRecorded:
		return true
	}
	return false
}

// What can become of a fork's effects. What was under way in the parent is the
// parent's: only a person can have it done here, too.
const (
	ForkHold     ForkEffects = "hold"     // each waits for a person
	ForkLive     ForkEffects = "live"     // new ones of the kinds in Live are performed, and others wait for a person; without Live all are performed
	ForkRecorded ForkEffects = "recorded" // what was recorded answers them; what the parent has not asked for is performed where Live has its kind, and nothing else reaches the outside
)

// Redacted is the payload of blob.redacted: a payload's bytes are destroyed. Its
// hash stays in the record.
type Redacted struct {
	Version
	Blob   Hash   `json:"blob"`
	Actor  string `json:"actor"`
	Reason string `json:"reason"`
}
