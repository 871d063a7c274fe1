package verify

import (
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// words returns that a record has to say one of a few words, and says another. The
// replay would find it out, but not in its gaps, nor in a part of a journal.
func (v *verifier) words(body journal.Body) error {
	switch b := body.(type) {
	case *journal.IntentEmitted:
		if v.part() { // else the ledger says it
			return oneOf("decision", b.Decision, byGate, byLeave, recorded, waits, rejected, reused)
		}
	case *journal.Resolved:
		if v.part() {
			return oneOf("decision", b.How, journal.Approve, journal.Disapprove, journal.Executed, journal.NotExecuted, journal.RetryAnyway, journal.Edit, journal.Answer, journal.Stop, world.Reuse)
		}
	case *journal.Stepped:
		return oneOf("outcome", b.Outcome, receipt.OutcomePure, receipt.OutcomeSuccess)
	case *journal.InDoubt:
		return oneOf("action", b.Action, manifest.InDoubtAsk, manifest.InDoubtVerify, manifest.InDoubtRetry, manifest.InDoubtFail)
	case *journal.IntentWaiting:
		return oneOf("outcome", b.Outcome, receipt.OutcomeRetryableFailure, receipt.OutcomeCompensatable, receipt.OutcomeInputRequired, receipt.OutcomeAccepted)
	case *journal.Confirmed:
		if err := oneOf("mode", b.Mode, manifest.VerifyStrict, manifest.VerifyWarn, manifest.VerifyHuman, byPerson); err != nil {
			return err
		}
		return oneOf("verdict", b.Verdict, receipt.Happened, receipt.NotHappened)
	case *journal.Forked:
		return oneOf("effects", b.Effects, journal.ForkHold, journal.ForkLive, journal.ForkRecorded)
	case *journal.RolledBack:
		for _, x := range b.Abandoned {
			if err := oneOf("disposition", x.Disposition, journal.Kept, journal.Compensated, journal.Acknowledged, journal.Cancelled, journal.MadeUpFor); err != nil {
				return err
			}
			if err := oneOf("state", x.State, receipt.StateCommitted, receipt.StateFailed, receipt.StateDenied, receipt.StateOpen, receipt.StateInFlight, receipt.StateInDoubt, receipt.StateAwaitingApproval, receipt.StateAwaitingAnswer, receipt.StateAwaitingConfirmation); err != nil {
				return err
			}
		}
	}
	return nil
}

func oneOf[W ~string](what string, word W, words ...W) error {
	if slices.Contains(words, word) {
		return nil
	}
	return fmt.Errorf("its %s is none: %q", what, string(word))
}
