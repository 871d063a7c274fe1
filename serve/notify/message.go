package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/link"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

// Message tells of what newly waits in a world.
type Message struct {
	Schema  string `json:"schema"`
	ID      string `json:"id"` // of all that it tells of: one that comes twice has it twice
	World   string `json:"world"`
	Text    string `json:"text"` // for a person, in the words of this program only
	Link    string `json:"link"`
	New     []Item `json:"new"`     // the first maxItems
	More    int    `json:"more"`    // others that are new
	Waiting int    `json:"waiting"` // in all
}

// Item is a waiting decision.
type Item struct {
	ID       string      `json:"id"`
	Wants    view.Wanted `json:"wants"`
	Cell     string      `json:"cell"`             // shortened, controls spelled out; empty: it is a proposal
	Kind     string      `json:"kind"`             // of an effect; empty: it is none
	Proposal string      `json:"proposal"`         // empty: it is none
	Since    journal.Seq `json:"since"`            // the record
	Decide   string      `json:"decide,omitempty"` // a link by which whoever has it decides about this

	intent receipt.Key // zero: it is none
}

const (
	maxItems = 50
	maxText  = 200 // bytes of a name
)

// What is told of besides.
const (
	wantsReview  view.Wanted = "review" // a proposal
	wantsNothing view.Wanted = "denied" // an intent; only Follow tells of it
)

// waiting returns what waits for a person in a world.
func waiting(j view.Journal) (all []Item) {
	world := j.Local.Keys().World()
	for _, d := range j.Debts() {
		all = append(all, Item{ID: idOf(world, d.Occasion), Wants: d.Wants, Cell: short(d.Cell), Kind: short(d.Kind), Since: d.Since, intent: d.Intent})
	}
	for _, p := range j.Proposals(false) {
		all = append(all, Item{ID: idOf(world, p.Proposal, string(p.Stage)), Wants: wantsReview, Proposal: p.Proposal, Since: p.Record})
	}
	return all
}

// idOf returns what stands for some texts.
func idOf(of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// short returns the beginning of what somebody wrote, of which nothing acts.
func short(name string) string {
	if len(name) > maxText {
		name = strings.ToValidUTF8(name[:maxText], "") + "…"
	}
	return view.Visible(name, "")
}

// summed says how many want what.
func summed(counts map[view.Wanted]int) string {
	var parts []string
	for _, wants := range []view.Wanted{
		view.WantsResolve, view.WantsRepeat, view.WantsApprove, view.WantsAnswer, view.WantsConfirm, view.WantsResume, wantsReview, wantsNothing,
	} {
		if n := counts[wants]; n > 0 {
			parts = append(parts, words(wants, n))
		}
	}
	return strings.Join(parts, ", ")
}

// only is words of one thing, which is named next.
func only(wants view.Wanted) string { return strings.TrimPrefix(words(wants, 1), "1 ") }

// words says what so many that want something do.
func words(wants view.Wanted, n int) string {
	one := map[view.Wanted][2]string{
		view.WantsApprove: {"effect waits for approval", "effects wait for approval"},
		view.WantsRepeat:  {"effect may be a repeat", "effects may be repeats"},
		view.WantsAnswer:  {"effect asks something", "effects ask something"},
		view.WantsConfirm: {"effect waits to be confirmed", "effects wait to be confirmed"},
		view.WantsResolve: {"effect is in doubt", "effects are in doubt"},
		view.WantsResume:  {"cell is halted", "cells are halted"},
		wantsReview:       {"proposal waits", "proposals wait"},
		wantsNothing:      {"intent was denied", "intents were denied"},
	}[wants]
	return fmt.Sprintf("%d %s", n, one[min(n, 2)-1])
}

// notices is what was notices of a world.
type notices struct {
	world *local.World
	url   [sha256.Size]byte // whom
	ids   map[string]bool   // of what waits still
}

func (t *notices) id() string { return t.world.Keys().World() }

// message returns a message about what was not told yet; nil: there is nothing.
func (t *notices) message(waits []Item, where string) *Message {
	m := &Message{Schema: view.SchemaOf("notify"), World: t.id(), Link: where, Waiting: len(waits), New: []Item{}}
	var ids []string
	counts := make(map[view.Wanted]int)
	for _, x := range waits {
		if t.ids[x.ID] {
			continue
		}
		ids = append(ids, x.ID)
		counts[x.Wants]++
		if len(m.New) < maxItems {
			m.New = append(m.New, x)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	m.ID, m.More = idOf(ids...), len(ids)-len(m.New)
	m.Text = fmt.Sprintf("%s: %s\n%s", m.World, summed(counts), where)
	return m
}

// addLink adds the link of what waits for approval, if it begins with anything.
func (t *notices) addLink(x *Item, decides string) {
	e, ok := view.Journal{Local: t.world}.LedgerEntry(x.intent)
	if of := link.Of(t.world, &e); ok && decides != "" && of != "" {
		x.Decide = decides + of
	}
}

// noted is the content of the file.
type noted struct {
	URL  string   `json:"url"` // the SHA-256 of it
	Told []string `json:"told"`
}

// maxNoted is how long the file may be.
const maxNoted = 64 << 20

// readTold reads what was told to the same URL.
func (t *notices) readTold() error {
	t.ids = make(map[string]bool)
	data, err := file.Read(t.world.NotifiedFile(), maxNoted)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var n noted
	if err == nil {
		err = json.Unmarshal(data, &n)
	}
	if err != nil || n.URL != hex.EncodeToString(t.url[:]) {
		return err
	}
	for _, id := range n.Told {
		t.ids[id] = true
	}
	return nil
}

// noteTold takes note that all that waits was told. What does not wait any more is forgotten:
// should it wait again it is news.
func (t *notices) noteTold(waits []Item) error {
	ids, same := make(map[string]bool, len(waits)), len(waits) == len(t.ids)
	for _, x := range waits {
		ids[x.ID], same = true, same && t.ids[x.ID]
	}
	if same {
		return nil
	}
	t.ids = ids
	n := noted{URL: hex.EncodeToString(t.url[:]), Told: []string{}}
	for id := range ids { // order cannot show: sorted below
		n.Told = append(n.Told, id)
	}
	slices.Sort(n.Told)
	return file.Replace(t.world.NotifiedFile(), 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(n) })
}
