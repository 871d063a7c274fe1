package worldctl

import (
	"fmt"

	"github.com/worldkernel/worldkernel/internal/sshkey"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/view"
)

// tellHistory says what a record records that is about the world as a whole.
func (t describer) tellHistory(e *view.Entry) string {
	switch b := e.Body.(type) {
	case *journal.SnapshotPinned:
		if b.Pinned {
			return "snapshot " + b.Name + " is pinned" + madeBy(b.Actor)
		}
		return "snapshot " + b.Name + " is no longer pinned" + madeBy(b.Actor)
	case *journal.RolledBack:
		text := fmt.Sprintf("rolled back to snapshot %s of #%d, leaving %d side effects", b.Snapshot, b.SnapshotLen, b.Count(journal.Kept, journal.Acknowledged, journal.Compensated))
		if b.Fresh {
			text += ", with fresh effects"
		}
		return text + madeBy(b.Actor) + ": " + b.Reason
	case *journal.Redacted:
		return fmt.Sprintf("payload %s is destroyed", b.Blob) + madeBy(b.Actor) + ": " + b.Reason
	}
	return t.tellChange(e)
}

// tellChange is tellHistory for what is about a change of the rules.
func (t describer) tellChange(e *view.Entry) string {
	switch b := e.Body.(type) {
	case *journal.ManifestProposed:
		text := fmt.Sprintf("%s: manifest %s is proposed in the place of %s", t.proposedBy(e.ID), b.Candidate.String()[:12], b.Base.String()[:12])
		if b.Signature != nil {
			text += ", signed with " + sshkey.Fingerprint(b.Signature.Key[:])
		}
		return text + madeBy(b.Actor) + because(b.Reason)
	case *journal.ManifestApproved:
		return fmt.Sprintf("p%d is approved for report %s, signed with %s", b.Proposal, b.Report.String()[:12], sshkey.Fingerprint(b.Signature.Key[:])) +
			madeBy(b.Actor) + because(b.Reason)
	}
	return t.fill(e.Kind.Words(), e.Body)
}

// proposedBy names the proposal that a record made: the record does not say it.
func (t describer) proposedBy(record journal.Seq) string {
	name := "a proposal"
	t.Local.View(func(w *world.Moment) {
		proposals, _ := w.Proposals()
		for _, p := range proposals {
			if journal.Seq(p.Record) == record {
				name = view.ProposalName(p.N)
			}
		}
	})
	return name
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + visible(reason, "")
}

// madeBy names who did something; nobody where the world did it by itself.
func madeBy(actor string) string {
	if actor == "" {
		return ""
	}
	return ", says " + actor
}
