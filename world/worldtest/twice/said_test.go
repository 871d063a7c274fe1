package twice

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// said is what somebody has said may be done once more than once: persons, by
// what they decided, and the manifest, by what it declares. It comes from the
// journals, which are what everybody can be held to.
type said struct {
	deals map[deal][]string // who said so
	keys  map[string][]string
	ran   map[receipt.Key]bool // of kinds declared on_repeat: run
	// Known from before a fork, whose parent may have gone on with it, or asked for the
	// like under another key: whoever approves it in the fork, or says there that its
	// attempt did not happen, says that it is to be done there, too.
	elsewhere map[receipt.Key]bool
	onHold    bool                 // the world is a fork that asks a person about everything
	known     map[receipt.Key]deal // of all worlds
	parted    map[receipt.Key]int  // executions that live forks were allowed to repeat
}

func newSaid() *said {
	return &said{
		deals: make(map[deal][]string), keys: make(map[string][]string), known: make(map[receipt.Key]deal), parted: make(map[receipt.Key]int),
		ran: make(map[receipt.Key]bool), elsewhere: make(map[receipt.Key]bool),
	}
}

func (s *said) once(d deal, who string) { s.deals[d] = append(s.deals[d], who) }

// hear takes what a record of the journal says.
func (s *said) hear(body journal.Body, h *history, m *manifest.Manifest, id string) {
	maps.Copy(s.known, h.deals)
	switch b := body.(type) {
	case *journal.Resolved:
		d, rules := h.deals[b.Key], h.asked[b.Key]
		switch {
		case b.How == journal.RetryAnyway:
			s.once(d, "a person: retry")
			s.keys[b.Key.External(id)] = append(s.keys[b.Key.External(id)], "a person: retry")
		case b.How == journal.NotExecuted && s.elsewhere[b.Key]:
			s.once(d, "a person: not executed by the fork's parent")
		case b.How == journal.Approve && (s.onHold || s.elsewhere[b.Key] || slices.Contains(rules, "possible_repeat")):
			s.once(d, "a person: approve of "+strings.Join(rules, ", "))
		}
	case *journal.RolledBack:
		if b.Fresh {
			s.fresh(h)
		}
	case *journal.IntentEmitted:
		if m.Effects[b.Kind].OnRepeat == manifest.RepeatRun && !s.ran[b.Key] {
			s.ran[b.Key] = true
			s.once(h.deals[b.Key], "on_repeat: run")
		}
	}
}

// fresh notes that everything is meant anew.
func (s *said) fresh(h *history) {
	seen := make(map[deal]bool)
	for _, d := range h.deals {
		if !seen[d] {
			seen[d] = true
			s.once(d, "--fresh-effects")
		}
	}
}

// allows reports why a payment in the bank's book is one too many: nil where it is
// the first, or the one before was taken back, or somebody said that there may be
// another. byKey is how often it was executed under its external key.
func (s *said) allows(e entry, byKey int) error {
	if most := 1 + len(s.keys[e.external]); byKey > most {
		return fmt.Errorf("%s was executed %d times under the key %s: once, and %d because somebody said so: %q",
			e.deal, byKey, brief(e.key), most-1, s.keys[e.external])
	}
	if who := s.deals[e.deal]; e.times > 1+e.undone+len(who) {
		return fmt.Errorf("%s was executed %d times: once, %d because it was taken back, and %d because somebody said so: %q",
			e.deal, e.times, e.undone, len(who), who)
	}
	return nil
}

// allowsRefund is allows for the refund of a deal, which was paid so many times.
func (s *said) allowsRefund(e entry, of deal, byKey, paid int) error {
	if who := s.deals[e.deal]; e.times > paid+len(who) || byKey > 1+len(s.keys[e.external]) {
		return fmt.Errorf("%s was paid %d times and refunded %d times, %d because somebody said so: %q", of, paid, e.times, len(who), who)
	}
	return nil
}

func brief(key receipt.Key) string { return key.String()[:6] }
