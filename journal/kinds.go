package journal

import (
	"maps"
	"slices"
	"strings"
)

// Kind says what a record records. docs/journal-format.md lists the payloads.
type Kind string

// The kinds of inputs: what comes from outside and is not computed.
const (
	KindCreated   Kind = "world.created"
	KindAdvanced  Kind = "clock.advanced"
	KindSubmitted Kind = "event.submitted"
	KindFinished  Kind = "invocation.finished"
	KindResumed   Kind = "cell.resumed"
	KindOperator  Kind = "effect.submitted"
	KindExpired   Kind = "invocation.expired"
	KindDue       Kind = "invocation.due"
	KindLate      Kind = "invocation.late"
	KindResolved  Kind = "intent.resolved"
	KindConfirmed Kind = "intent.confirmed"
	KindRotated   Kind = "keys.rotated"
	KindSnapshot  Kind = "snapshot.created"
	KindPinned    Kind = "snapshot.pinned"
	KindPruned    Kind = "snapshot.pruned"
	KindRetention Kind = "snapshot.retention"
	KindRollback  Kind = "rollback.applied"
	KindForked    Kind = "world.forked"
	KindRedacted  Kind = "blob.redacted"
	KindProposed  Kind = "manifest.proposed"
	KindShadowed  Kind = "manifest.shadowed"
	KindApproved  Kind = "manifest.approved"
	KindRejected  Kind = "manifest.rejected"
	KindWithdrawn Kind = "manifest.withdrawn"
	KindApplied   Kind = "manifest.applied"
)

// The kinds of derived records: replay computes and compares them.
const (
	KindStepped          Kind = "cell.stepped"
	KindFailed           Kind = "cell.failed"
	KindDeleted          Kind = "cell.deleted"
	KindMigrated         Kind = "cell.migrated"
	KindEmitted          Kind = "event.emitted"
	KindDropped          Kind = "event.dropped"
	KindIntent           Kind = "intent.emitted"
	KindDenied           Kind = "intent.denied"
	KindAwaitingApproval Kind = "intent.awaiting_approval"
	KindInDoubt          Kind = "intent.in_doubt"
	KindWaiting          Kind = "intent.waiting"
	KindEnded            Kind = "intent.ended"
	KindCancelled        Kind = "intent.cancelled"
	KindStarted          Kind = "invocation.started"
	KindTimer            Kind = "timer.set"
	KindFired            Kind = "timer.fired"
	KindTagCancelled     Kind = "cell.cancelled"
	KindRests            Kind = "capability.rests"
)

// row is all that is known of a kind of record. Adding a kind is its constant, its
// row and the struct of its body, and of an input its line in world/fold.go and what
// the kernel makes of it; then docs/journal-format.md and the second verifier's table.
type row struct {
	input bool        // it comes from outside; else it is derived: replay computes and compares it
	body  func() Body // an empty one

	// Where things stand in the payload: item 0 is the version. 0: it has none.
	cell     int // the cell that it concerns
	cells    int // the list of cells that it concerns
	operator int // the name of an operator, who stands in the place of a cell
	key      int // the intent that it is about
	attempt  int // the number of the attempt that it is about
	receipt  int // the receipt of the intent that it is about
	name     int // the name of what it is about: an event, a timer, a snapshot, the kind of an effect
	how      int // the outcome: text, or a boolean

	yes string // the word of HowOf for an outcome of true

	answers []Kind // the records of the same intent that can have asked for it, if it names no cause itself

	// The record in one line; empty where its fields are not enough, and show/view describes it.
	// {field} is the field of that name in JSON. {cell} has a space behind it, and is empty in
	// the cell's own story. A part in [] ends with a field, and is left out if that is empty.
	words string
}

// rows has every kind.
var rows = map[Kind]*row{ //nolint:gochecknoglobals // a table that nothing changes, looked at for every record
	KindCreated:   {input: true, body: func() Body { return new(Created) }, name: 2, words: "world {name} is created, id {world}, seed {seed}"},
	KindAdvanced:  {input: true, body: func() Body { return new(Advanced) }, words: "{to} begins"},
	KindSubmitted: {input: true, body: func() Body { return new(Submitted) }, cells: 4, name: 1},
	KindFinished:  {input: true, body: func() Body { return new(Finished) }, receipt: 1, answers: []Kind{KindStarted}},
	KindResumed:   {input: true, body: func() Body { return new(Resumed) }, cell: 1, how: 2, yes: "skip"},
	KindOperator:  {input: true, body: func() Body { return new(OperatorEffect) }, operator: 1, name: 3},
	KindExpired:   {input: true, body: func() Body { return new(Expired) }, key: 1, attempt: 2, answers: []Kind{KindStarted}, words: "attempt {attempt} of {key} is given up: {reason}"},
	KindDue:       {input: true, body: func() Body { return new(Due) }, key: 1, attempt: 2, answers: []Kind{KindWaiting, KindInDoubt}, words: "the wait after attempt {attempt} of {key} is over"},
	KindLate:      {input: true, body: func() Body { return new(Late) }, receipt: 1, answers: []Kind{KindStarted}},
	KindResolved:  {input: true, body: func() Body { return new(Resolved) }, key: 1, how: 2, answers: []Kind{KindAwaitingApproval, KindInDoubt, KindConfirmed, KindFinished, KindEnded}},
	KindConfirmed: {input: true, body: func() Body { return new(Confirmed) }, key: 1, how: 3, answers: []Kind{KindFinished, KindEnded, KindConfirmed}},
	KindRotated:   {input: true, body: func() Body { return new(KeysRotated) }, name: 1, words: "{key_id} signs receipts from now on, says {actor}[; revoked: {revoked}]"},
	KindSnapshot:  {input: true, body: func() Body { return new(SnapshotCreated) }, name: 1, words: "snapshot {name} of #{at}, {cells} cells, state root {state_root}[: {label}][, says {actor}][; let go: {pruned}]"},
	KindPinned:    {input: true, body: func() Body { return new(SnapshotPinned) }, name: 1, how: 2, yes: "pinned"},
	KindPruned:    {input: true, body: func() Body { return new(SnapshotPruned) }, name: 1, words: "snapshot {name} is let go[, says {actor}]"},
	KindRetention: {input: true, body: func() Body { return new(SnapshotRetention) }, words: "{max} snapshots are kept from now on[, says {actor}][; let go: {pruned}]"},
	KindRollback:  {input: true, body: func() Body { return new(RolledBack) }, name: 1},
	KindForked:    {input: true, body: func() Body { return new(Forked) }, words: "world {world} forks from {parent} at #{at}, effects {effects}[, seed {seed}][, says {actor}]"},
	KindRedacted:  {input: true, body: func() Body { return new(Redacted) }},
	KindProposed:  {input: true, body: func() Body { return new(ManifestProposed) }},
	KindShadowed:  {input: true, body: func() Body { return new(ManifestShadowed) }, words: "p{proposal} is shadowed, report {report_hash}[, says {actor}]"},
	KindApproved:  {input: true, body: func() Body { return new(ManifestApproved) }},
	KindRejected:  {input: true, body: func() Body { return new(ManifestRejected) }, words: "p{proposal} is rejected[, says {actor}][: {reason}]"},
	KindWithdrawn: {input: true, body: func() Body { return new(ManifestWithdrawn) }, words: "p{proposal} is withdrawn[, says {actor}][: {reason}]"},
	KindApplied:   {input: true, body: func() Body { return new(Applied) }, words: "p{proposal} is applied: manifest {manifest} is in force, in the place of {base}[, says {actor}]"},

	KindStepped:          {body: func() Body { return new(Stepped) }, cell: 1, how: 3},
	KindFailed:           {body: func() Body { return new(Failed) }, cell: 1, how: 3, yes: "halted"},
	KindDeleted:          {body: func() Body { return new(Deleted) }, cell: 1, words: "{cell}deleted by step {n}"},
	KindMigrated:         {body: func() Body { return new(Migrated) }, cell: 1, words: "{cell}its state is taken over by other code"},
	KindEmitted:          {body: func() Body { return new(Emitted) }, cells: 2, name: 1},
	KindDropped:          {body: func() Body { return new(Dropped) }, name: 1, words: "dropped {name}: {reason}"},
	KindIntent:           {body: func() Body { return new(IntentEmitted) }, key: 1, cell: 3, name: 4, how: 8, words: "{cell}intent {key} {kind} {decision}[ by {rules}]  {params}"},
	KindDenied:           {body: func() Body { return new(IntentDenied) }, key: 1, cell: 3, name: 4, how: 8, words: "{cell}intent {key} {kind} denied[ by {rules}]: {code}: {reason}  {params}"},
	KindAwaitingApproval: {body: func() Body { return new(IntentAwaitingApproval) }, key: 1, cell: 3, name: 4},
	KindInDoubt:          {body: func() Body { return new(InDoubt) }, key: 1, cell: 2, attempt: 3, how: 4, words: "{cell}intent {key} in doubt after attempt {attempt}, {action}: {reason}"},
	KindWaiting:          {body: func() Body { return new(IntentWaiting) }, key: 1, cell: 2, attempt: 3, how: 4},
	KindEnded:            {body: func() Body { return new(IntentEnded) }, key: 1, cell: 2, how: 4, words: "{cell}intent {key} ended {status}: {outcome}  {payload}"},
	KindCancelled:        {body: func() Body { return new(IntentCancelled) }, key: 1, cell: 2, attempt: 3, words: "{cell}intent {key} cancelled by its cell"},
	KindStarted:          {body: func() Body { return new(Started) }, key: 1, attempt: 2, words: "permit {key} attempt {attempt}"},
	KindTimer:            {body: func() Body { return new(TimerSet) }, cell: 1, name: 2, words: "{cell}timer {name} set for {deadline}[ under {tag}]  {data}"},
	KindFired:            {body: func() Body { return new(TimerFired) }, cell: 1, name: 2, words: "{cell}timer {name} fired"},
	KindTagCancelled:     {body: func() Body { return new(TagCancelled) }, cell: 1, name: 2, words: "{cell}cancelled {tag}[, the timer of #{timer}][, the receipts of {receipts}]"},
	KindRests:            {body: func() Body { return new(Rests) }, key: 1, cell: 2, attempt: 3, words: "{cell}capability {cap} rests: attempt {attempt} of {key} used more than it can have, its receipt says"},
}

// rowOf returns what is known of a kind, an empty row of one that is unknown.
func rowOf(k Kind) *row {
	if r := rows[k]; r != nil {
		return r
	}
	return new(row)
}

// Input reports whether records of kind k come from outside.
func (k Kind) Input() bool { return rowOf(k).input }

// Known reports whether k is a registered kind.
func (k Kind) Known() bool { return rowOf(k).body != nil }

// Words returns the line that describes records of kind k, with the fields to fill in; "" if
// the fields are not enough.
func (k Kind) Words() string { return rowOf(k).words }

// Kinds returns all kinds, by name.
func Kinds() []Kind { return slices.Sorted(maps.Keys(rows)) }

// Families returns what the names of kinds begin with, in order.
func Families() []string {
	var out []string
	for _, k := range Kinds() {
		family, _, _ := strings.Cut(string(k), ".")
		out = append(out, family)
	}
	return slices.Compact(out)
}

// newBody returns an empty payload of a kind; nil if the kind is unknown.
func newBody(k Kind) Body {
	if r := rowOf(k); r.body != nil {
		return r.body()
	}
	return nil
}

// Answers returns the kinds of the record, of the same intent, that asked for a record of kind
// k. Example: invocation.finished is an input without a cause, and answers an
// invocation.started. It is empty if the record names its cause. The caller must not change it.
func (k Kind) Answers() []Kind { return rowOf(k).answers }
