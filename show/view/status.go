package view

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// Status says where a world stands, as `worldctl status -o json` does.
type Status struct {
	World         string         `json:"world"` // the manifest's name
	WorldID       string         `json:"world_id"`
	Time          manifest.Tick  `json:"time"`
	Now           manifest.Tick  `json:"now,omitempty"` // the tick that a real clock has reached; left out of worlds without one, and of the past
	Head          journal.Head   `json:"head"`
	AsOf          journal.Seq    `json:"as_of"` // the record as of which the rest is; before the head where the program lacks Go reducers
	Manifest      ManifestInLine `json:"manifest"`
	Cells         int            `json:"cells"`
	EventsPending int            `json:"events_pending"`
	Intents       IntentCounts   `json:"intents"`
	Timers        int            `json:"timers"`
	Snapshots     int            `json:"snapshots"`
	Idle          bool           `json:"idle"`

	// The capabilities that rest, each with the record since which it does: what is asked for
	// under them waits for a person.
	Resting map[string]journal.Seq `json:"resting,omitempty"`

	Anchor Anchor `json:"anchor"`
}

// ManifestInLine names a manifest.
type ManifestInLine struct {
	Hash    journal.Hash `json:"hash"`
	Version uint64       `json:"version"`
}

// IntentCounts counts intents by their state.
type IntentCounts struct {
	Open                 int `json:"open"`
	InFlight             int `json:"in_flight"`
	InDoubt              int `json:"in_doubt"`
	AwaitingApproval     int `json:"awaiting_approval"`
	AwaitingAnswer       int `json:"awaiting_answer"`
	AwaitingConfirmation int `json:"awaiting_confirmation"`
	Committed            int `json:"committed"`
	Failed               int `json:"failed"`
	Denied               int `json:"denied"`
	Cancelled            int `json:"cancelled"` // before anything was attempted
}

// Awaiting returns how many intents await a person.
func (n *IntentCounts) Awaiting() int {
	return n.AwaitingApproval + n.AwaitingAnswer + n.AwaitingConfirmation
}

// Anchor compares the acknowledged head with the present head.
type Anchor struct {
	ID journal.Seq `json:"id"`
	OK bool        `json:"ok"`
}

// StatusOf returns a status as it is shown. stored is the end of what was stored then, or
// later. Opening refuses a store that is not what its anchor says, and every append moves
// both.
func StatusOf(s *world.Status, stored journal.Head, now manifest.Tick) Status {
	return Status{
		World: s.World, WorldID: s.ID, Time: s.Time, Now: now, Head: s.Head, AsOf: s.Head.ID, Manifest: ManifestInLine{Hash: s.Manifest, Version: s.Version},
		Cells: s.Cells, EventsPending: s.EventsPending, Intents: CountsOf(s), Timers: s.Timers, Snapshots: s.Snapshots, Idle: s.Idle, Resting: s.Resting,
		Anchor: Anchor{ID: stored.ID, OK: stored.ID > s.Head.ID || stored == s.Head},
	}
}

// CountsOf returns how many intents are in which state.
func CountsOf(s *world.Status) IntentCounts {
	return IntentCounts{
		Open: s.Intents[receipt.StateOpen], InFlight: s.Intents[receipt.StateInFlight],
		InDoubt: s.Intents[receipt.StateInDoubt], AwaitingApproval: s.Intents[receipt.StateAwaitingApproval],
		AwaitingAnswer: s.Intents[receipt.StateAwaitingAnswer], AwaitingConfirmation: s.Intents[receipt.StateAwaitingConfirmation],
		Committed: s.Intents[receipt.StateCommitted], Failed: s.Intents[receipt.StateFailed],
		Denied: s.Intents[receipt.StateDenied], Cancelled: s.Intents[receipt.StateCancelled],
	}
}
