package journal

// row is all that is known of a kind of record. Adding a kind is its constant, its
// row and the struct of its body; then docs/journal-format.md and the second
// verifier's table.
type row struct {
	input bool        // it comes from outside; else it is derived: replay computes and compares it
	body  func() Body // an empty one

	// Versions of the body that it reads, both 1 if 0. Version 1 of a body that begins
	// later is decodeFrequent's.
	first, last uint64

	// Where things stand in the payload: item 0 is the version. 0: it has none.
	cell     int // the cell that it concerns
	cells    int // the list of cells that it concerns
	operator int // the name of an operator, who stands in the place of a cell
	key      int // the intent that it is about
	receipt  int // the receipt of the intent that it is about

	answers []Kind // what asked for it, of the same intent: it names no cause itself
}

// rows has every kind.
var rows = map[Kind]row{ //nolint:gochecknoglobals // a table that nothing changes, looked at for every record
	KindCreated:   {input: true, body: func() Body { return new(Created) }, first: EnginesVersion, last: EnginesVersion},
	KindAdvanced:  {input: true, body: func() Body { return new(Advanced) }},
	KindSubmitted: {input: true, body: func() Body { return new(Submitted) }, cells: 4},
	KindFinished:  {input: true, body: func() Body { return new(Finished) }, receipt: 1, answers: []Kind{KindStarted}},
	KindResumed:   {input: true, body: func() Body { return new(Resumed) }, cell: 1},
	KindOperator:  {input: true, body: func() Body { return new(OperatorEffect) }, operator: 1},
	KindExpired:   {input: true, body: func() Body { return new(Expired) }, key: 1, answers: []Kind{KindStarted}},
	KindDue:       {input: true, body: func() Body { return new(Due) }, key: 1, answers: []Kind{KindWaiting, KindInDoubt}},
	KindLate:      {input: true, body: func() Body { return new(Late) }, receipt: 1, answers: []Kind{KindStarted}},
	KindResolved:  {input: true, body: func() Body { return new(Resolved) }, key: 1, answers: []Kind{KindParked, KindInDoubt, KindConfirmed}},
	KindConfirmed: {input: true, body: func() Body { return new(Confirmed) }, key: 1, answers: []Kind{KindFinished, KindEnded, KindConfirmed}},
	KindRotated:   {input: true, body: func() Body { return new(KeysRotated) }},
	KindSnapshot:  {input: true, body: func() Body { return new(SnapshotCreated) }},
	KindPinned:    {input: true, body: func() Body { return new(SnapshotPinned) }},
	KindPruned:    {input: true, body: func() Body { return new(SnapshotPruned) }},
	KindRetention: {input: true, body: func() Body { return new(SnapshotRetention) }},
	KindRollback:  {input: true, body: func() Body { return new(RolledBack) }, last: RollbackVersion},
	KindForked:    {input: true, body: func() Body { return new(Forked) }},
	KindRedacted:  {input: true, body: func() Body { return new(Redacted) }},
	KindProposed:  {input: true, body: func() Body { return new(ManifestProposed) }},
	KindShadowed:  {input: true, body: func() Body { return new(ManifestShadowed) }},
	KindApproved:  {input: true, body: func() Body { return new(ManifestApproved) }},
	KindRejected:  {input: true, body: func() Body { return new(ManifestRejected) }},
	KindWithdrawn: {input: true, body: func() Body { return new(ManifestWithdrawn) }},
	KindApplied:   {input: true, body: func() Body { return new(Applied) }, first: EnginesVersion, last: EnginesVersion},

	KindStepped:  {body: func() Body { return new(Stepped) }, cell: 1},
	KindFailed:   {body: func() Body { return new(Failed) }, cell: 1},
	KindDeleted:  {body: func() Body { return new(Deleted) }, cell: 1},
	KindMigrated: {body: func() Body { return new(Migrated) }, cell: 1},
	KindEmitted:  {body: func() Body { return new(Emitted) }, cells: 2},
	KindDropped:  {body: func() Body { return new(Dropped) }},
	KindIntent:   {body: func() Body { return new(IntentEmitted) }, key: 1, cell: 3},
	KindDenied:   {body: func() Body { return new(IntentDenied) }, key: 1, cell: 3},
	KindParked:   {body: func() Body { return new(IntentParked) }, key: 1, cell: 3},
	KindInDoubt:  {body: func() Body { return new(InDoubt) }, key: 1, cell: 2},
	KindWaiting:  {body: func() Body { return new(IntentWaiting) }, key: 1, cell: 2},
	KindEnded:    {body: func() Body { return new(IntentEnded) }, key: 1, cell: 2},
	KindStarted:  {body: func() Body { return new(Started) }, key: 1},
	KindTimer:    {body: func() Body { return new(TimerSet) }, cell: 1},
	KindFired:    {body: func() Body { return new(TimerFired) }, cell: 1},
}

// Input reports whether records of kind k come from outside.
func (k Kind) Input() bool { return rows[k].input }

// Known reports whether k is a registered kind.
func (k Kind) Known() bool { return rows[k].body != nil }

// newBody returns an empty payload of a kind, or nil.
func newBody(k Kind) Body {
	if r := rows[k]; r.body != nil {
		return r.body()
	}
	return nil
}

// Answers returns the kinds of records one of which asked for a record of kind k, of the
// same intent, where such a record names no cause itself: an answer of the outside is an
// input, and so is a decision, but someone asked. It is empty where the record says what
// caused it, and not to be written to.
func (k Kind) Answers() []Kind { return rows[k].answers }
