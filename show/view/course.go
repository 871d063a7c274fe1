package view

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// Course says what came of driving a world, as `worldctl run -o json` does.
type Course struct {
	Ticks         uint64        `json:"ticks"`   // that were run
	Records       uint64        `json:"records"` // that the journal has more
	Time          manifest.Tick `json:"time"`
	Head          journal.Head  `json:"head"`
	EventsPending int           `json:"events_pending"`
	CellsHalted   int           `json:"cells_halted"`
	Intents       IntentCounts  `json:"intents"`
	Timers        int           `json:"timers"`
	Idle          bool          `json:"idle"`
	Performed     uint64        `json:"performed,omitempty"` // attempts outside, of effects that nothing recorded answers, in a fork where something could
	Meanwhile     Meanwhile     `json:"meanwhile"`
	DeniedBy      []DeniedBy    `json:"denied_by"`     // what denied intents meanwhile, the most first
	Expired       []Expired     `json:"expired"`       // approvals that nobody gave in time, by their ticks
	Uncompensated []receipt.Key `json:"uncompensated"` // intents whose compensation came to nothing meanwhile
}

// Meanwhile counts the intents that ended while a world was driven, and those that were in
// doubt then.
type Meanwhile struct {
	Committed int `json:"committed"`
	Failed    int `json:"failed"`
	Denied    int `json:"denied"`
	Cancelled int `json:"cancelled"` // before anything was attempted
	InDoubt   int `json:"in_doubt"`  // also from before
}

// DeniedBy is what denied intents, and how many.
type DeniedBy struct {
	By      string `json:"by"` // rules of the policy, or a capability, and why
	Intents int    `json:"intents"`
}

// Expired says how many approvals expired at a tick.
type Expired struct {
	Time      manifest.Tick `json:"time"`
	Approvals int           `json:"approvals"`
}

// Course returns what came of driving a world as it is shown.
func (j Journal) Course(d *local.Driven) (Course, error) {
	s := &d.Status
	c := Course{
		Ticks: d.Ticks, Records: d.Records, Time: s.Time, Head: s.Head, EventsPending: s.EventsPending,
		CellsHalted: s.Halted, Intents: CountsOf(s), Timers: s.Timers, Idle: s.Idle,
		Meanwhile: Meanwhile{d.Committed, d.Failed, d.Denied, d.Cancelled, s.Intents[receipt.StateInDoubt]},
		Performed: d.Missed, DeniedBy: []DeniedBy{}, Expired: []Expired{}, Uncompensated: []receipt.Key{},
	}
	if d.Denied+d.Failed+d.Cancelled == 0 {
		return c, nil
	}
	since := s.Head.ID - journal.Seq(d.Records)
	for _, e := range j.Ledger() {
		if journal.Seq(e.Finished) <= since {
			continue
		}
		if e.For != nil && (e.State == receipt.StateFailed || e.State == receipt.StateDenied) {
			c.Uncompensated = append(c.Uncompensated, *e.For)
		}
		if e.State != receipt.StateDenied {
			continue
		}
		end, err := j.Entry(journal.Seq(e.Finished))
		if err != nil {
			return c, err
		}
		if b, ok := end.Body.(*journal.IntentDenied); ok {
			c.denied(whatDenied(b))
			if b.Code == string(world.CodeApprovalExpired) {
				c.expired(end.Time)
			}
		}
	}
	slices.SortStableFunc(c.DeniedBy, func(a, b DeniedBy) int {
		return cmp.Or(cmp.Compare(b.Intents, a.Intents), cmp.Compare(a.By, b.By))
	})
	slices.SortFunc(c.Expired, func(a, b Expired) int { return cmp.Compare(a.Time, b.Time) })
	return c, nil
}

func (c *Course) expired(at manifest.Tick) {
	entryOf(&c.Expired, Expired{Time: at}, func(x Expired) bool { return x.Time == at }).Approvals++
}

func (c *Course) denied(by string) {
	entryOf(&c.DeniedBy, DeniedBy{By: by}, func(d DeniedBy) bool { return d.By == by }).Intents++
}

// entryOf returns the entry of a list that is meant, which is added where there is none.
func entryOf[T any](list *[]T, added T, meant func(T) bool) *T {
	i := slices.IndexFunc(*list, meant)
	if i < 0 {
		i = len(*list)
		*list = append(*list, added)
	}
	return &(*list)[i]
}

// whatDenied names the rules that denied an intent, or the capability, with the code.
func whatDenied(b *journal.IntentDenied) string {
	by := decidedBy(b.Rules, b.Code)
	if ofCapability(b) {
		by = "capability " + b.Cap + ": " + by
	}
	return by
}

// ofCapability reports whether a capability, or its budget, denied an intent.
func ofCapability(b *journal.IntentDenied) bool {
	person := strings.HasPrefix(b.Code, "approval_") || b.Code == "stopped"
	return len(b.Rules) == 0 && b.Cap != "" && b.Code != string(governance.CodeNoPolicy) && !person
}

// WhyDenied says why an intent was denied, and by which capability where the reason names
// none.
func WhyDenied(b *journal.IntentDenied) string {
	if leavesOutCap(b) {
		return b.Code + ": " + b.Reason + " (capability " + b.Cap + ")"
	}
	return b.Code + ": " + b.Reason
}

// leavesOutCap reports whether a capability denied an intent that the reason does not name.
func leavesOutCap(b *journal.IntentDenied) bool {
	return ofCapability(b) && !strings.Contains(b.Reason, strconv.Quote(b.Cap))
}
