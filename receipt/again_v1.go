package receipt

// What a rollback left behind as it was told before rollback.applied had its
// version 2: journals from then replay under these rules. There an intent that one
// like it was let through for was never again something to repeat, whatever became
// of that one.

// Match notes that an intent like an abandoned one was let through.
func (l *Ledger) Match(e *Entry) {
	e.Matched = true
	l.touch(e)
}

// LeftV1 is Left by these rules.
func (l *Ledger) LeftV1(in *Intent) *Entry {
	return l.firstLeft(in, func(e *Entry) bool { return e.HappensV1() && !e.Matched })
}

// HappensV1 is Happens by these rules: an attempt that was given back counts as
// one that was made, and one that a fork stopped as none.
func (e *Entry) HappensV1() bool {
	switch e.State {
	case StateOpen:
		return e.Attempt > 0
	case StateParked:
		return e.Deadline == 0
	default:
		return e.Happens()
	}
}

// UntouchedV1 is Untouched by these rules.
func (e *Entry) UntouchedV1() bool { return e.Untouched() && e.Attempt == 0 }
