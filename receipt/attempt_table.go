package receipt

import "time"

// KeptAttempt is an attempt of a live effect as the owners of a world leave it to each other:
// see host.Attempts.
type KeptAttempt struct {
	Key     Key
	Attempt uint64
	Run     [16]byte      // whose it is: one life of a host, by a number that nobody else has
	Worker  string        // in another process, that it was lent to; empty: the host performs it itself
	Lease   time.Duration // for which it still is the worker's, from now on; without one: for which who began it may still perform it
	Receipt []byte        // its result, signed; nil: there is none yet
}

// AttemptChanges are changes of what is kept of attempts, none of which is in them twice.
type AttemptChanges struct {
	Begin  []KeptAttempt // without a Receipt
	End    []KeptAttempt // with one: also of attempts that nobody has begun, which are given back
	Renew  []KeptAttempt // by key and attempt: their Lease
	Forget []KeptAttempt // by key and attempt: the journal has their results
}

// AttemptsChanged is the answer to AttemptChanges.
type AttemptsChanged struct {
	Begun []bool        // of each to begin: whether it is
	Lease time.Duration // for which nobody takes the world over from its owner unless told to, from some moment of the call on; 0 or less: that may be so now
}
