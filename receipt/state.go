package receipt

// State is where an intent stands in the ledger.
type State string

// The states of an intent. New ones are only appended.
const (
	StateOpen                 State = "open"                  // allowed; waits for a slot or for the next attempt
	StateInFlight             State = "in_flight"             // a permit is granted, no receipt yet
	StateInDoubt              State = "in_doubt"              // a permit was granted, and nobody can tell what came of it
	StateAwaitingApproval     State = "awaiting_approval"     // a person approves or denies it, until its deadline
	StateAwaitingAnswer       State = "awaiting_answer"       // its last attempt asks a person something
	StateAwaitingConfirmation State = "awaiting_confirmation" // it is committed, and a person confirms that before its cell is told
	StateCommitted            State = "committed"             // the side effect happened
	StateFailed               State = "failed"                // it never will happen, or was made up for
	StateDenied               State = "denied"                // the gate or a person said no
)

// StateCancelled is how Count and what is shown tell those denied intents apart that were
// cancelled before anything of them was attempted. To the ledger they are denied: they may be
// asked for anew.
const StateCancelled State = "cancelled"

// States returns all states of the ledger, in the order in which an intent can take them.
func States() []State {
	return []State{
		StateOpen, StateInFlight, StateInDoubt, StateAwaitingApproval, StateAwaitingAnswer, StateAwaitingConfirmation,
		StateCommitted, StateFailed, StateDenied,
	}
}

// AwaitsPerson reports whether intents in a state wait for a person's decision.
func (s State) AwaitsPerson() bool {
	return s == StateAwaitingApproval || s == StateAwaitingAnswer || s == StateAwaitingConfirmation
}

// stuck reports whether intents in a state wait for a person, or for whoever knows more.
func (s State) stuck() bool { return s.AwaitsPerson() || s == StateInDoubt }

// ended reports whether intents in a state wait for nothing any more, as Entry.Ended has it.
func (s State) ended() bool { return s == StateCommitted || s == StateFailed || s == StateDenied }
