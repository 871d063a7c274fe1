package view

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// IntentLine is an intent in a list.
type IntentLine struct {
	Key         receipt.Key    `json:"key"`
	Cell        string         `json:"cell"`
	Kind        string         `json:"kind"`
	State       receipt.State  `json:"state"`
	Attempt     uint64         `json:"attempt"`
	StepID      receipt.StepID `json:"step_id"`
	ExternalKey string         `json:"external_key"`
	Params      journal.Data   `json:"params"`
	Cap         string         `json:"cap"`
	Decision    string         `json:"decision"`
	Rules       []string       `json:"rules"`
	Reason      string         `json:"reason"` // why it stands where it does, and what a person has to do

	// Its cell has cancelled it, or that in the place of which it is asked for: whatever
	// comes of it, the cell is told so.
	Cancelled bool `json:"cancelled"`
}

// Intent is an intent with all attempts and where the journal tells of it.
type Intent struct {
	IntentLine
	Tag        string           `json:"tag"`
	Occurrence uint64           `json:"occurrence"`
	ParamsHash journal.Hash     `json:"params_hash"` // what a decision is bound to
	Outcome    receipt.Outcome  `json:"outcome"`     // the last; empty while there is none
	Cost       receipt.Cost     `json:"cost"`        // of all attempts
	Reserved   receipt.Cost     `json:"reserved"`    // of budgets
	Deadline   manifest.Tick    `json:"deadline"`    // the tick at which it is denied unless a person approves it; 0: none
	For        *receipt.Key     `json:"for"`         // the intent that it makes up for; null: none
	Instead    *receipt.Key     `json:"instead"`     // the intent that a person has asked for in its place; null: none
	InsteadOf  *receipt.Key     `json:"instead_of"`  // the intent in the place of which a person has asked for it; null: none
	Repeats    *receipt.Key     `json:"repeats"`     // what a rollback left behind and it equals; null: nothing
	Reused     bool             `json:"reused"`      // it was not performed: what it repeats is its result
	Emitted    journal.Seq      `json:"emitted"`
	Started    journal.Seq      `json:"started"`  // 0: not yet
	Finished   journal.Seq      `json:"finished"` // 0: not yet
	Attempts   []Attempt        `json:"attempts"`
	Decisions  []IntentDecision `json:"decisions"`
	Asks       []Asked          `json:"asks"`     // of a person, in the order of the attempts that did
	Accepted   *Accepted        `json:"accepted"` // by the outside, the last; null: nothing ever
}

// Attempt is one attempt of an intent.
type Attempt struct {
	Attempt uint64          `json:"attempt"`
	Started journal.Seq     `json:"started"`
	Expired journal.Seq     `json:"expired"` // when it was given up; 0: it was not
	Receipt journal.Seq     `json:"receipt"` // 0: none
	Late    bool            `json:"late"`    // the receipt
	Status  receipt.Status  `json:"status"`
	Outcome receipt.Outcome `json:"outcome"`
	Cost    receipt.Cost    `json:"cost"`
	Charged *receipt.Cost   `json:"charged,omitempty"` // where Cost is more than it can have used, what the budgets are charged; its capability rests from there on
	Unsent  bool            `json:"unsent"`
	Reason  string          `json:"reason"` // why it was given up
}

// Why no intent is what was asked for.
var (
	ErrState  = errors.New("unknown state")
	ErrPrefix = errors.New("not the key of an intent")
	ErrKeys   = errors.New("the beginning of several intents")
)

// Ledger returns what the ledger knows of all intents, in the order of the records
// that made them, or that approved them.
func (j Journal) Ledger() (entries []receipt.Entry) {
	j.Local.View(func(w *world.Moment) { entries = w.Intents() })
	return entries
}

// minPrefix is the least number of digits of its key that name an intent.
const minPrefix = 8

// FindIntent returns the intent whose key begins with what a person typed. The error is
// ErrPrefix, ErrKeys or receipt.ErrUnknownIntent.
func (j Journal) FindIntent(prefix string) (*receipt.Entry, error) {
	if len(prefix) < minPrefix || strings.Trim(prefix, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("%q is %w: want at least %d of its hex digits", prefix, ErrPrefix, minPrefix)
	}
	var found *receipt.Entry
	for _, e := range j.Ledger() {
		if !strings.HasPrefix(e.Intent.Key.String(), prefix) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%q is %w: %s and %s", prefix, ErrKeys, found.Intent.Key, e.Intent.Key)
		}
		found = &e
	}
	if found == nil {
		return nil, fmt.Errorf("%s: %w", prefix, receipt.ErrUnknownIntent)
	}
	return found, nil
}

// LedgerEntry returns what the ledger knows of an intent.
func (j Journal) LedgerEntry(key receipt.Key) (e receipt.Entry, ok bool) {
	j.Local.View(func(w *world.Moment) { e, ok = w.Intent(key) })
	return e, ok
}

// Intent returns all that is known of an intent.
func (j Journal) Intent(e *receipt.Entry) (*Intent, error) {
	line, err := j.IntentLine(e)
	if err != nil {
		return nil, err
	}
	a := &Intent{
		IntentLine: line, Tag: e.Intent.Tag, Occurrence: e.Intent.Occurrence, ParamsHash: e.Params, Outcome: e.Outcome,
		Reserved: e.Reserved, Deadline: deadlineOf(e), For: e.For, InsteadOf: j.insteadOf(e), Repeats: e.Repeats, Reused: e.Reused,
		Emitted: journal.Seq(e.Emitted), Started: journal.Seq(e.Started), Finished: journal.Seq(e.Finished),
	}
	if in := j.places()[e.Intent.Step]; in != nil {
		a.Instead = &in.Intent.Key
	}
	if a.Asks, err = asksOf(e); err != nil {
		return nil, err
	}
	if a.Decisions, err = j.decisions(e, a.InsteadOf); err != nil {
		return nil, err
	}
	a.Attempts, a.Accepted, err = j.attempts(e)
	for _, x := range a.Attempts {
		x.Cost.Calls = 1
		if x.Unsent {
			x.Cost.Calls = 0
		}
		a.Cost = governance.Sum(a.Cost, x.Cost)
	}
	return a, err
}

// OfIntent yields, in order, the records about an intent, beginning with its creation or its
// approval.
func (j Journal) OfIntent(of *receipt.Entry) iter.Seq2[*Entry, error] {
	return each(j.Concerning(of.Intent.Cell, journal.Seq(of.Emitted)-1), func(e *Entry) (*Entry, bool, error) {
		key, _ := e.Intent()
		return e, key == of.Intent.Key, nil
	})
}

// attempts returns every attempt of an intent, and what the outside has accepted.
func (j Journal) attempts(e *receipt.Entry) (out []Attempt, accepted *Accepted, err error) {
	out = []Attempt{}
	if e.Started == 0 {
		return out, nil, nil
	}
	for rec, err := range j.OfIntent(e) {
		if err != nil {
			return nil, nil, err
		}
		_, n := rec.Intent()
		if rec.Kind == journal.KindStarted {
			out = append(out, Attempt{Attempt: n, Started: rec.ID})
			continue
		}
		if rec.Kind == journal.KindCancelled && accepted != nil {
			accepted.Wanted = false
		}
		if n == 0 || n > uint64(len(out)) {
			continue // it tells of no attempt
		}
		r, err := out[n-1].add(rec)
		if err != nil {
			return nil, nil, err
		}
		if r != nil {
			accepted = accepted.accepts(rec.ID, r)
		}
	}
	return out, accepted, nil
}

// add takes what a record says of an attempt, and returns its receipt if it has one.
func (x *Attempt) add(rec *Entry) (*receipt.Receipt, error) {
	a := Answer{Late: rec.Kind == journal.KindLate}
	var err error
	switch b := rec.Body.(type) {
	case *journal.Expired:
		x.Expired, x.Reason = rec.ID, b.Reason
		return nil, nil
	case *journal.Rests:
		x.Charged = &b.Charged
		return nil, nil
	case *journal.Finished:
		err = a.readReceipt(b.Receipt)
	case *journal.Late:
		err = a.readReceipt(b.Receipt)
	default:
		return nil, nil
	}
	x.Receipt, x.Late, x.Status, x.Outcome, x.Cost, x.Unsent = rec.ID, a.Late, a.Status, a.Ended, a.Cost, a.Unsent
	return &a.Receipt, err
}

// IntentLine returns an intent as lists have it.
func (j Journal) IntentLine(e *receipt.Entry) (IntentLine, error) {
	return (&IntentLines{Journal: j}).Line(*e)
}

// IntentLines joins what the ledger knows of intents with the records that tell of
// them.
type IntentLines struct {
	Journal
	doubts map[receipt.Key]string // why some intents are in doubt

	waits   map[receipt.Key]world.Wait // why some are not attempted; nil: nobody has asked yet
	budgets []world.BudgetView
	queued  receipt.Queued // nil: likewise

	inPlace map[receipt.StepID]*receipt.Entry // what is asked for in the place of some; nil: nobody has asked yet
}

// IntentLines returns what makes lines of some entries of the ledger. It reads the
// journal once for all that are in doubt.
func (j Journal) IntentLines(entries []receipt.Entry) (*IntentLines, error) {
	r := &IntentLines{Journal: j, doubts: make(map[receipt.Key]string)}
	var from uint64
	for i := range entries {
		if e := &entries[i]; e.State == receipt.StateInDoubt && (from == 0 || e.Emitted < from) {
			from = e.Emitted
		}
	}
	if from == 0 {
		return r, nil
	}
	for e, err := range j.Scan(journal.Seq(from), journal.KindInDoubt) {
		if err != nil {
			return nil, err
		}
		if b, ok := e.Body.(*journal.InDoubt); ok {
			r.doubts[b.Key] = b.Reason
		}
	}
	return r, nil
}

// Line returns what is known of an intent.
func (r *IntentLines) Line(e receipt.Entry) (IntentLine, error) {
	entry, err := r.Entry(journal.Seq(e.Emitted))
	if err != nil {
		return IntentLine{}, err
	}
	line := IntentLine{
		Key: e.Intent.Key, Cell: e.Intent.Cell, Kind: e.Intent.Kind, Attempt: e.Attempt, Cancelled: r.cancelled(&e, 0),
		StepID: e.Intent.Step, ExternalKey: e.Intent.Key.External(r.Local.Keys().World()), Cap: e.Intent.Cap,
	}
	if line.State, err = r.StateOf(&e); err != nil {
		return line, err
	}
	made, _ := entry.Decision() // none: it was redacted
	line.Params, line.Decision, line.Rules = made.Params, made.Decision, made.Rules
	err = r.explain(&line, &e, made.Reason)
	line.Reason = notWanted(&line, &e)
	return line, err
}

// doubt returns why an intent is in doubt.
func (r *IntentLines) doubt(e *receipt.Entry) (why string, err error) {
	if why, ok := r.doubts[e.Intent.Key]; ok {
		return why, nil
	}
	for rec, err := range r.OfIntent(e) {
		if err != nil {
			return why, err
		}
		if b, ok := rec.Body.(*journal.InDoubt); ok {
			why = b.Reason
		}
	}
	return why, nil
}

// explain says why an intent stands where it does, and which verb decides. why is what its
// last decision says of that.
func (r *IntentLines) explain(line *IntentLine, e *receipt.Entry, why string) error {
	switch wanted := WantedOf(e); {
	case wanted == WantsResolve:
		why, err := r.doubt(e)
		if line.Reason = why + "; decide with intent resolve or intent retry"; e.Waiting {
			line.Reason = why + "; its verifier cannot tell yet: run asks it again, or intent resolve"
		}
		return err
	case wanted == WantsAnswer:
		asked, err := question(e)
		line.Reason = "asks " + asked + "; intent answer or intent deny"
		return err
	case wanted == WantsRepeat:
		line.Reason = fmt.Sprintf("a rollback left the same behind, %s; %s: intent approve, intent approve --reuse or intent deny",
			e.Repeats.String()[:12], r.decideBefore(e))
	case wanted == WantsApprove:
		line.Reason = r.decideBefore(e) + ": intent approve, intent edit or intent deny"
		if why != "" {
			line.Reason = why + "; " + line.Reason
		}
	case wanted == WantsConfirm:
		line.Reason = "the outside is not what its receipt says; decide with intent confirm or intent deny"
	case !e.Ended() && e.Accepted() != "":
		line.Reason = asksOn(e)
	case e.State == receipt.StateOpen && e.Waiting:
		line.Reason = fmt.Sprintf("waits after attempt %d for the next", e.Attempt)
	case e.State == receipt.StateOpen:
		line.Reason = r.waitsFor(e.Intent.Key)
	case e.State == receipt.StateInFlight:
		switch why := r.Local.Withheld(e.Intent.Kind); {
		case why != nil:
			line.Reason = "it is not performed here, and waits: " + why.Error()
		case r.notBegun(e):
			line.Reason = "not begun: it waits for a worker, or for who runs the world"
		}
	case e.State == receipt.StateFailed, e.State == receipt.StateDenied:
		return r.explainEnd(line, e)
	}
	return nil
}

// waitsFor says what an open intent waits for; empty: for a slot, or for nothing.
func (r *IntentLines) waitsFor(key receipt.Key) string {
	if r.waits == nil {
		r.Local.View(func(w *world.Moment) { r.waits, r.budgets = w.Waits(), w.Budgets() })
	}
	w, waits := r.waits[key]
	switch {
	case !waits:
		return ""
	case w.Until > 0:
		return "waits for " + r.Tick(w.Until) + ": the rate of its kind lets no more start before"
	case len(w.Short) > 0:
		s := w.Short[0]
		return fmt.Sprintf("waits for %d %s of the budget of %s, which has %d left%s", s.Ask, s.Unit, s.Of, s.Left, r.heldBy(&s))
	default:
		return fmt.Sprintf("waits behind %s, which wants %s of the budget of %s too", Short(w.Ahead[0].Key), w.Ahead[0].Unit, w.Ahead[0].Of)
	}
}

// heldBy names who holds what another one waits for.
func (r *IntentLines) heldBy(s *governance.Shortage) string {
	const most = 3
	text, more := "", 0
	for _, b := range r.budgets {
		for _, e := range b.Holders {
			switch {
			case b.Scope != s.Of.Scope || b.Name != s.Of.Name || *s.Unit.Of(&e.Reserved) == 0:
			case strings.Count(text, "(") == most:
				more++
			default:
				text += fmt.Sprintf(", %s (%s)", Short(e.Intent.Key), e.State)
			}
		}
	}
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "; held by " + strings.TrimPrefix(text, ", ")
}

// deadlineOf returns the tick at which an intent is denied unless a person approves it; 0: at none.
func deadlineOf(e *receipt.Entry) manifest.Tick {
	if e.Deadline == receipt.NoDeadline {
		return 0
	}
	return manifest.Tick(e.Deadline)
}

// decideBefore says until when an intent awaits approval.
func (j Journal) decideBefore(e *receipt.Entry) string {
	if at := deadlineOf(e); at != 0 {
		return "decide before " + j.Tick(at)
	}
	return "decide at any time"
}

// explainEnd says why an intent came to nothing.
func (r *IntentLines) explainEnd(line *IntentLine, e *receipt.Entry) error {
	end, err := r.Entry(journal.Seq(e.Finished))
	if err != nil {
		return err
	}
	switch b := end.Body.(type) {
	case *journal.IntentDenied:
		line.Decision, line.Reason = governance.Deny.String(), WhyDenied(b)
		line.Rules = append([]string{}, b.Rules...) // not those that let it through before
	case *journal.IntentEnded:
		line.Reason = explained(b.Payload)
	case *journal.Finished:
		if line.Reason = failure(b.Receipt); line.Reason == "" {
			line.Reason = string(e.Outcome)
		}
	}
	switch {
	case e.Compensating():
		line.Reason = "its compensation is under way"
	case e.Outcome == receipt.OutcomeCompensated:
		line.Reason = "it was compensated"
	case e.State == receipt.StateFailed:
		if r.inPlace == nil {
			r.inPlace = r.places()
		}
		if in := r.inPlace[e.Intent.Step]; in != nil {
			line.Reason += "; " + Short(in.Intent.Key) + " is asked for in its place"
		}
	}
	return nil
}

func failure(data []byte) string {
	r, err := receipt.Decode(data)
	if err != nil {
		return "" // the kernel took it
	}
	return FailureOf(r)
}

// FailureOf returns what the outside says in a receipt of a failure, if it is a text:
// adapters put it under error, recordings may have nothing else.
func FailureOf(r *receipt.Receipt) string {
	var payload any
	if canon.Unmarshal(r.Payload, &payload) != nil {
		return ""
	}
	if fields, ok := payload.(map[string]any); ok {
		payload = fields["error"]
	}
	text, _ := payload.(string)
	return text
}
