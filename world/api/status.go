package api

import (
	"net/http"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// Worlds lists the worlds that are served and that the caller may see.
type Worlds struct {
	Schema string      `json:"schema"`
	Worlds []WorldLine `json:"worlds"`
}

// WorldLine is a world in a list.
type WorldLine struct {
	ID   string     `json:"id"`
	Name string     `json:"name"` // the manifest's
	Head world.Head `json:"head"`
	Idle bool       `json:"idle"`
}

// Status says where a world stands, as `worldctl status -o json` does.
type Status struct {
	Schema        string         `json:"schema"`
	World         string         `json:"world"` // the manifest's name
	WorldID       string         `json:"world_id"`
	Time          manifest.Tick  `json:"time"`
	Head          world.Head     `json:"head"`
	Manifest      ManifestInLine `json:"manifest"`
	Cells         int            `json:"cells"`
	EventsPending int            `json:"events_pending"`
	Intents       IntentCounts   `json:"intents"`
	Timers        int            `json:"timers"`
	Snapshots     int            `json:"snapshots"`
	Idle          bool           `json:"idle"`
	Anchor        Anchor         `json:"anchor"`
}

// ManifestInLine names a manifest.
type ManifestInLine struct {
	Hash    world.Hash `json:"hash"`
	Version uint64     `json:"version"`
}

// IntentCounts counts intents by their state.
type IntentCounts struct {
	Open      int `json:"open"`
	InFlight  int `json:"in_flight"`
	InDoubt   int `json:"in_doubt"`
	Parked    int `json:"parked"`
	Committed int `json:"committed"`
	Failed    int `json:"failed"`
	Denied    int `json:"denied"`
}

// Anchor says whether what was acknowledged is what there is.
type Anchor struct {
	ID world.Seq `json:"id"`
	OK bool      `json:"ok"`
}

func listWorlds(c *call) error {
	out := Worlds{Schema: schemaOf("worlds"), Worlds: []WorldLine{}}
	for _, h := range c.server.sorted() {
		if c.token.sees(h.id) {
			s := h.lw.Status()
			out.Worlds = append(out.Worlds, WorldLine{ID: s.ID, Name: s.World, Head: s.Head, Idle: s.Idle})
		}
	}
	return c.ok(out)
}

func showStatus(c *call) error {
	s := c.world.lw.Status()
	stored := c.world.lw.Store().Head()
	return c.ok(Status{
		Schema: schemaOf("status"), World: s.World, WorldID: s.ID, Time: s.Time, Head: s.Head,
		Manifest: ManifestInLine{Hash: s.Manifest, Version: s.Version}, Cells: s.Cells, EventsPending: s.EventsPending,
		Intents: countsOf(&s), Timers: s.Timers, Snapshots: s.Snapshots, Idle: s.Idle,
		// Opening refuses a store that is not what its anchor says, and every append
		// moves both.
		Anchor: Anchor{ID: stored.ID, OK: stored.ID >= s.Head.ID},
	})
}

func countsOf(s *world.Status) IntentCounts {
	return IntentCounts{
		Open: s.Intents[receipt.StateOpen], InFlight: s.Intents[receipt.StateInFlight],
		InDoubt: s.Intents[receipt.StateInDoubt], Parked: s.Intents[receipt.StateParked],
		Committed: s.Intents[receipt.StateCommitted], Failed: s.Intents[receipt.StateFailed],
		Denied: s.Intents[receipt.StateDenied],
	}
}

// Health says that every world goes on.
type Health struct {
	OK bool `json:"ok"`
}

func health(c *call) error {
	for _, h := range c.server.sorted() {
		if h.ended() != nil {
			return failed(http.StatusServiceUnavailable, "ended", "a world has ended in this process")
		}
	}
	return c.ok(Health{OK: true})
}
