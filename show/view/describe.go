package view

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/sshkey"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/world"
)

// Describer puts the records of a journal into words.
type Describer struct {
	Journal
	Self string // the cell whose story it is; its name goes without saying
	Full bool   // data is not shortened
}

// Data returns data as JSON, shortened to what fits into a line if it is to be: then that of an agent's session as people speak.
func (t Describer) Data(d canon.Raw) string {
	if !t.Full {
		if said := recorder.Spoken(d); said != "" {
			return Brief(Visible(said, ""))
		}
	}
	text, err := d.MarshalJSON()
	switch {
	case err != nil:
		return err.Error()
	case t.Full:
		return string(text)
	}
	return Brief(string(text))
}

// ParamsOf returns the params of an intent as Data does; empty where they cannot be read.
func (t Describer) ParamsOf(key receipt.Key) string {
	params := t.Params(key)
	if params == nil {
		return ""
	}
	return t.Data(params)
}

// Describe returns a record in one line: in the words of its kind, or in a sentence of its own if the line
// depends on more than the fields.
func (t Describer) Describe(e *Entry) (string, error) {
	switch b := e.Body.(type) {
	case nil:
		return fmt.Sprintf("redacted: a payload of %d bytes, %s", e.BlobSize, e.Blob), nil
	case *journal.Submitted:
		text := t.event("event", b.Name, b.To, b.Data)
		if b.Due > e.Time {
			text += " due at " + t.when(b.Due)
		}
		return text, nil
	case *journal.Emitted:
		return t.event("emitted", b.Name, b.To, b.Data), nil
	case *journal.Stepped:
		on, err := t.cause(e)
		return t.fill("{cell}step {n} on ", b) + on + t.fill(": {outcome}", b), err
	case *journal.Failed:
		on, err := t.cause(e)
		halted := ""
		if b.Halted {
			halted = ", halted"
		}
		return t.fill("{cell}step {n} on ", b) + on + " failed" + halted + ": " + b.Error, err
	case *journal.Finished:
		return t.answered("receipt", e, b.Receipt)
	case *journal.Late:
		return t.answered("late, so it changes nothing: receipt", e, b.Receipt)
	case *journal.OperatorEffect:
		who := reducer.Cell{Reducer: reducer.Operator, Key: b.Actor}
		return t.prefixCell(who.String()) + t.fill("asks for {kind} under {cap}: {reason}  {params}", b), nil
	case *journal.ManifestProposed:
		return t.proposed(e.ID, b), nil
	}
	return t.fill(words(e), e.Body), nil
}

// Line is a record in words.
type Line struct {
	Time   manifest.Tick `json:"time"`
	Record journal.Seq   `json:"record"`
	Kind   journal.Kind  `json:"kind"`
	What   string        `json:"what"`
}

// Lines puts records into words.
func (t Describer) Lines(records iter.Seq2[*Entry, error]) iter.Seq2[Line, error] {
	return each(records, func(e *Entry) (Line, bool, error) {
		what, err := t.Describe(e)
		return Line{Time: e.Time, Record: e.ID, Kind: e.Kind, What: what}, true, err
	})
}

// words returns what a record says in one line, with the fields of its body to fill in:
// the words of its kind, if these are always the same.
func words(e *Entry) string {
	switch b := e.Body.(type) {
	case *journal.Resumed:
		if b.Skip {
			return "{cell}resumed, without the event that failed[, says {actor}][: {reason}]"
		}
		return "{cell}resumed, with the event that failed[, says {actor}][: {reason}]"
	case *journal.IntentAwaitingApproval:
		if b.Deadline == receipt.NoDeadline {
			return "{cell}intent {key} {kind} awaits approval[, by {rules}][: {reason}]  {params}"
		}
		return "{cell}intent {key} {kind} awaits approval until {deadline}[, by {rules}][: {reason}]  {params}"
	case *journal.IntentDenied:
		if leavesOutCap(b) {
			return strings.Replace(e.Kind.Words(), "{reason}", "{reason} (capability {cap})", 1)
		}
	case *journal.IntentWaiting:
		return wordsOfWait(b.Outcome)
	case *journal.Resolved:
		verb := map[journal.Resolution]string{
			journal.Approve: "approves", journal.Disapprove: "denies", journal.Executed: "says that it happened:",
			journal.NotExecuted: "says that it did not happen:", journal.RetryAnyway: "lets it be attempted again:",
			journal.Edit:   "has other params asked for in its place:",
			journal.Answer: "answers", journal.Stop: "stops",
		}[b.How]
		if verb == "" {
			verb = "{how}"
		}
		return "{actor} " + verb + " {key}: {reason}"
	case *journal.Confirmed:
		if b.Verdict == receipt.Happened {
			return "{actor} confirms the result of {key}: {reason}"
		}
		return "{actor} does not confirm ({mode}) the result of {key}: {reason}"
	case *journal.SnapshotPinned:
		if b.Pinned {
			return "snapshot {name} is pinned[, says {actor}]"
		}
		return "snapshot {name} is no longer pinned[, says {actor}]"
	case *journal.RolledBack:
		text := "rolled back to snapshot {snapshot} of #{snapshot_journal_len}, leaving " +
			fmt.Sprintf("%d side effects", b.Count(journal.Kept, journal.Acknowledged, journal.Compensated))
		if b.Fresh {
			text += ", with fresh effects"
		}
		return text + "[, says {actor}]: {reason}"
	case *journal.Redacted:
		return "payload " + b.Blob.String() + " is destroyed[, says {actor}]: {reason}"
	case *journal.ManifestApproved:
		return "p{proposal} is approved for report {report_hash}, signed with " + sshkey.Fingerprint(b.Signature.Key[:]) + "[, says {actor}][: {reason}]"
	}
	return e.Kind.Words()
}

// proposed names the proposal that a record made, which the record does not say.
func (t Describer) proposed(record journal.Seq, b *journal.ManifestProposed) string {
	name, signed := "a proposal", ""
	t.Local.View(func(w *world.Moment) {
		proposals, _ := w.Proposals()
		for _, p := range proposals {
			if journal.Seq(p.Record) == record {
				name = ProposalName(p.N)
			}
		}
	})
	if b.Signature != nil {
		signed = ", signed with " + sshkey.Fingerprint(b.Signature.Key[:])
	}
	return name + t.fill(": manifest {candidate} is proposed in the place of {base}"+signed+"[, says {actor}][: {reason}]", b)
}

// answered tells of a receipt: of one that leaves its intent waiting what that waits for.
func (t Describer) answered(what string, e *Entry, encoded []byte) (string, error) {
	r, err := receipt.Decode(encoded)
	if err != nil {
		return "", fmt.Errorf("record #%d: %w", e.ID, err)
	}
	attempt := ""
	if r.Attempt > 1 {
		attempt = fmt.Sprintf(" attempt %d", r.Attempt)
	}
	how, said := string(r.Status), " "+t.Data(r.Payload)
	if a, err := receipt.DecodeAccepted(r.Payload); err == nil && r.Outcome() == receipt.OutcomeAccepted {
		how, said = "accepted", fmt.Sprintf("as %q: %s", Brief(a.ID), Visible(Brief(a.Message), ""))
	}
	if q, err := receipt.DecodeQuestion(r.Payload); err == nil && r.Outcome() == receipt.OutcomeInputRequired {
		how, said = "asks", asking(q)
	}
	if of, ok := t.LedgerEntry(r.Key); ok && !r.GivenBack() && t.cancelled(&of, e.ID) {
		how += " (its cell had cancelled it)"
	}
	return fmt.Sprintf("%s %s%s %s %s %s", what, Short(r.Key), attempt, r.Kind, how, said), nil
}

// fill puts the fields of a body into the words of its kind: see the rows of journal.
func (t Describer) fill(words string, body journal.Body) string {
	var out strings.Builder
	for {
		at := strings.IndexAny(words, "{[")
		if at < 0 {
			return out.String() + words
		}
		out.WriteString(words[:at])
		inside, rest, _ := strings.Cut(words[at+1:], string(words[at]+2)) // '}' or ']'
		if words[at] == '{' {
			out.WriteString(t.field(body, inside))
		} else if _, name, _ := strings.Cut(strings.TrimSuffix(inside, "}"), "{"); t.field(body, name) != "" {
			out.WriteString(t.fill(inside, body))
		}
		words = rest
	}
}

// field is a field of a body as people read it.
func (t Describer) field(body journal.Body, name string) string {
	b := reflect.ValueOf(body).Elem()
	for i := range b.NumField() {
		if tag, _, _ := strings.Cut(b.Type().Field(i).Tag.Get("json"), ","); tag != name {
			continue
		}
		switch v := b.Field(i).Interface().(type) {
		case canon.Raw:
			return t.Data(v)
		case receipt.Key:
			return Short(v)
		case journal.Hash:
			return v.String()[:12]
		case journal.Seq:
			if v == 0 {
				return ""
			}
			return fmt.Sprint(v)
		case []journal.Seq:
			var ids []string
			for _, id := range v {
				ids = append(ids, fmt.Sprintf("#%d", id))
			}
			return strings.Join(ids, ", ")
		case manifest.Tick:
			return t.when(v)
		case []string:
			return Visible(strings.Join(v, ", "), "")
		case *uint64:
			if v == nil {
				return ""
			}
			return strconv.FormatUint(*v, 10)
		case uint64:
			if name == "deadline" {
				return t.when(manifest.Tick(v))
			}
			return strconv.FormatUint(v, 10)
		case string:
			if name == "cell" {
				return t.prefixCell(v)
			}
			return Visible(v, "")
		default:
			return fmt.Sprint(v)
		}
	}
	return ""
}

// when names a tick: by its time where that is the wall clock's.
func (t Describer) when(at manifest.Tick) string {
	if t.Local != nil {
		if m, _ := t.Local.InForce(); m.Clock.Real() {
			return Date(m.Clock, at)
		}
	}
	return fmt.Sprintf("tick %d", at)
}

// event tells of an event and whom it reaches.
func (t Describer) event(verb, name string, to []string, data canon.Raw) string {
	if t.Self != "" && (verb == "event" || slices.Contains(to, t.Self)) {
		return fmt.Sprintf("received %s  %s", name, t.Data(data))
	}
	each := slices.Clone(to)
	for i, cell := range each {
		if reducer, all := strings.CutSuffix(cell, "/"); all { // no key is empty
			each[i] = "each " + reducer
		}
	}
	whom := strings.Join(each, ", ")
	if whom == "" {
		whom = "nobody"
	}
	return fmt.Sprintf("%s %s → %s  %s", verb, name, whom, t.Data(data))
}

func (t Describer) prefixCell(cell string) string {
	if cell == t.Self {
		return ""
	}
	return cell + " "
}

// cause names the event that a step handled.
func (t Describer) cause(step *Entry) (string, error) {
	e, err := t.Entry(step.CausedBy)
	if err != nil {
		return "", err
	}
	name := string(e.Kind)
	switch b := e.Body.(type) {
	case *journal.Submitted:
		name = b.Name
	case *journal.Emitted:
		name = b.Name
	case *journal.TimerFired:
		name = "timer " + b.Name
	case *journal.IntentDenied:
		name = "denial of " + b.Kind
	case *journal.Finished, *journal.IntentEnded, *journal.Confirmed, *journal.IntentEmitted, *journal.RolledBack:
		name = "receipt"
	}
	return fmt.Sprintf("%s (#%d)", name, e.ID), nil
}

// Short is an intent's key as people read it; see FindIntent.
func Short(k receipt.Key) string { return k.String()[:12] }

// wordsOfWait tells what an intent waits for after an attempt.
func wordsOfWait(after receipt.Outcome) string {
	next := "its next attempt"
	switch after {
	case receipt.OutcomeCompensatable:
		next = "its compensation"
	case receipt.OutcomeInputRequired:
		return "{cell}intent {key} waits for a person: attempt {attempt} asks"
	case receipt.OutcomeAccepted:
		return "{cell}intent {key} waits for the outside: attempt {attempt} found it at work"
	default:
	}
	return "{cell}intent {key} waits for " + next + ": attempt {attempt} was a {outcome}"
}
