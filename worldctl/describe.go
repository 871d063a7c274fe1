package worldctl

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/view"
)

// describer puts records into words.
type describer struct {
	records
	self string // the cell whose story it is; its name goes without saying
	full bool   // data is not shortened
}

func (t describer) data(d canon.Raw) string {
	text, err := d.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	if t.full {
		return string(text)
	}
	return view.Brief(string(text))
}

// tell says what a record records, in one line.
func (t describer) describe(e *view.Entry) (string, error) {
	switch b := e.Body.(type) {
	case nil:
		return fmt.Sprintf("redacted: a payload of %d bytes, %s", e.BlobSize, e.Blob), nil
	case *journal.Submitted:
		due := ""
		if b.Due > e.Time {
			due = fmt.Sprintf(" due at tick %d", b.Due)
		}
		return t.event("event", b.Name, b.To, b.Data) + due, nil
	case *journal.Emitted:
		return t.event("emitted", b.Name, b.To, b.Data), nil
	case *journal.Resumed:
		if b.Skip {
			return t.of(b.Cell) + "resumed, without the event that failed", nil
		}
		return t.of(b.Cell) + "resumed, with the event that failed", nil
	case *journal.Stepped:
		on, err := t.cause(e)
		return fmt.Sprintf("%sstep %d on %s: %s", t.of(b.Cell), b.N, on, b.Outcome), err
	case *journal.Failed:
		on, err := t.cause(e)
		return fmt.Sprintf("%sstep %d on %s failed%s: %s", t.of(b.Cell), b.N, on, parked(b.Parked), b.Error), err
	}
	return t.describeIntent(e)
}

// describeIntent is describe for the records of effects.
func (t describer) describeIntent(e *view.Entry) (string, error) {
	switch b := e.Body.(type) {
	case *journal.Finished:
		r, err := receipt.Decode(b.Receipt)
		if err != nil {
			return "", fmt.Errorf("record #%d: %w", e.ID, err)
		}
		return t.answered("receipt", r), nil
	case *journal.Late:
		r, err := receipt.Decode(b.Receipt)
		if err != nil {
			return "", fmt.Errorf("record #%d: %w", e.ID, err)
		}
		return t.answered("late, so it changes nothing: receipt", r), nil
	}
	return t.describeDecision(e), nil
}

// describeDecision is describe for what people, verifiers and the kernel say about
// intents.
func (t describer) describeDecision(e *view.Entry) string {
	switch b := e.Body.(type) {
	case *journal.OperatorEffect:
		return fmt.Sprintf("%sasks for %s under %s: %s  %s", t.of(operator(b.Actor)), b.Kind, b.Cap, b.Reason, t.data(b.Params))
	case *journal.IntentParked:
		until := ""
		if b.Deadline != receipt.NoDeadline {
			until = fmt.Sprintf(" until tick %d", b.Deadline)
		}
		return fmt.Sprintf("%sintent %s %s parked%s%s  %s", t.of(b.Cell), short(b.Key), b.Kind, by(b.Rules), until, t.data(b.Params))
	case *journal.IntentWaiting:
		next := "for its next attempt"
		if b.Outcome == receipt.OutcomeCompensatable {
			next = "for its compensation"
		}
		return fmt.Sprintf("%sintent %s waits %s: attempt %d was a %s", t.of(b.Cell), short(b.Key), next, b.Attempt, b.Outcome)
	case *journal.Resolved:
		return fmt.Sprintf("%s %s %s: %s", b.Actor, resolution(b.How), short(b.Key), b.Reason)
	case *journal.Confirmed:
		verb := "confirms the result of"
		if b.Verdict != receipt.Happened {
			verb = "does not confirm (" + b.Mode + ") the result of"
		}
		return fmt.Sprintf("%s %s %s: %s", b.Actor, verb, short(b.Key), b.Reason)
	}
	return t.tellHistory(e)
}

// resolution puts a decision about an intent into words.
func resolution(how journal.Resolution) string {
	switch how {
	case journal.Approve:
		return "approves"
	case journal.Disapprove:
		return "denies"
	case journal.Executed:
		return "says that it happened:"
	case journal.NotExecuted:
		return "says that it did not happen:"
	case journal.RetryAnyway:
		return "lets it be attempted again:"
	default:
		return string(how)
	}
}

func (t describer) answered(what string, r *receipt.Receipt) string {
	attempt := ""
	if r.Attempt > 1 {
		attempt = fmt.Sprintf(" attempt %d", r.Attempt)
	}
	return fmt.Sprintf("%s %s%s %s %s  %s", what, short(r.Key), attempt, r.Kind, r.Status, t.data(r.Payload))
}

// fill puts the fields of a body into the words of its kind: see the rows of journal.
func (t describer) fill(words string, body journal.Body) string {
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
func (t describer) field(body journal.Body, name string) string {
	b := reflect.ValueOf(body).Elem()
	for i := range b.NumField() {
		if b.Type().Field(i).Tag.Get("json") != name {
			continue
		}
		switch v := b.Field(i).Interface().(type) {
		case canon.Raw:
			return t.data(v)
		case receipt.Key:
			return short(v)
		case journal.Hash:
			return v.String()[:12]
		case []string:
			return visible(strings.Join(v, ", "), "")
		case string:
			if name == "cell" {
				return t.of(v)
			}
			return visible(v, "")
		default:
			return fmt.Sprint(v)
		}
	}
	return ""
}

// event tells of an event and whom it reaches.
func (t describer) event(verb, name string, to []string, data canon.Raw) string {
	if t.self != "" && verb == "event" || slices.Contains(to, t.self) && t.self != "" {
		return fmt.Sprintf("received %s  %s", name, t.data(data))
	}
	whom := strings.Join(to, ", ")
	if whom == "" {
		whom = "nobody"
	}
	return fmt.Sprintf("%s %s → %s  %s", verb, name, whom, t.data(data))
}

func (t describer) of(cell string) string {
	if cell == t.self {
		return ""
	}
	return cell + " "
}

// cause names the event that a step handled.
func (t describer) cause(step *view.Entry) (string, error) {
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

func parked(is bool) string {
	if is {
		return ", parked"
	}
	return ""
}

func by(rules []string) string {
	if len(rules) == 0 {
		return ""
	}
	return " by " + strings.Join(rules, ", ")
}

// short is an intent's key as people read it; any prefix of at least
// minPrefix digits finds it again.
func short(k receipt.Key) string { return k.String()[:12] }
