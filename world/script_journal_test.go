package world_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// journal: the records since the last listing: id, tick, kind, cause, content
func (s *stage) journal(t *testing.T, _ *datadriven.TestData) (string, error) {
	var out strings.Builder
	for _, stored := range s.w.Journal.Records()[s.listed:] {
		s.listed++
		rec, err := journal.DecodeRecord(stored.Bytes)
		require.NoError(t, err)
		require.NoError(t, rec.Load(s.w.Journal))
		body, err := rec.Body()
		require.NoError(t, err)
		cause := ""
		if rec.CausedBy > 0 {
			cause = fmt.Sprintf("by #%d", rec.CausedBy)
		}
		line := fmt.Sprintf("#%-3d t%d %-20s %-7s %s", rec.ID, rec.Time, rec.Kind, cause, s.short(t, body))
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String(), nil
}

// short says the payload of a record in a few words.
func (s *stage) short(t *testing.T, body journal.Body) string {
	switch b := body.(type) {
	case *journal.Submitted:
		text := b.Name + " -> " + strings.Join(b.To, ", ")
		if b.Due > 0 {
			text += fmt.Sprintf(" at t%d", b.Due)
		}
		return text
	case *journal.Stepped:
		return fmt.Sprintf("%s@%d %s", b.Cell, b.N, b.Outcome)
	case *journal.Failed:
		if b.Parked {
			return fmt.Sprintf("%s@%d parked: %s", b.Cell, b.N, b.Error)
		}
		return fmt.Sprintf("%s@%d skipped: %s", b.Cell, b.N, b.Error)
	case *journal.Deleted:
		return fmt.Sprintf("%s@%d", b.Cell, b.N)
	case *journal.Emitted:
		return b.Name + " -> " + strings.Join(b.To, ", ")
	case *journal.Dropped:
		return b.Name + ": " + b.Reason
	case *journal.TimerSet:
		return fmt.Sprintf("%s of %s at t%d", b.Name, b.Cell, b.Deadline)
	case *journal.TimerFired:
		return b.Name + " of " + b.Cell
	case *journal.Resumed:
		if b.Skip {
			return b.Cell + " without the event"
		}
		return b.Cell
	default:
		return s.shortEffect(t, body)
	}
}

// shortEffect says what happened to an effect, which goes by its tag.
func (s *stage) shortEffect(t *testing.T, body journal.Body) string {
	switch b := body.(type) {
	case *journal.IntentEmitted:
		s.tags[b.Key] = b.Tag
		return fmt.Sprintf("%s %q of %s: %s by %s", b.Kind, b.Tag, b.Cell, b.Decision, strings.Join(b.Rules, ", "))
	case *journal.IntentDenied:
		return fmt.Sprintf("%s %q of %s: %s %s", b.Kind, b.Tag, b.Cell, b.Code, strings.Join(b.Rules, ", "))
	case *journal.Started:
		return fmt.Sprintf("%q in slot %d", s.tags[b.Key], b.Owner)
	case *journal.Finished:
		r, err := receipt.Decode(b.Receipt)
		require.NoError(t, err)
		payload, err := canon.ToJSON(r.Payload)
		require.NoError(t, err)
		return fmt.Sprintf("%q %s %s", s.tags[r.Key], r.Status, payload)
	case *journal.IntentParked:
		s.tags[b.Key] = b.Tag
		return fmt.Sprintf("%s %q of %s: parked by %s", b.Kind, b.Tag, b.Cell, strings.Join(b.Rules, ", "))
	case *journal.IntentEnded:
		return fmt.Sprintf("%q %s: %s", s.tags[b.Key], b.Status, b.Outcome)
	case *journal.Resolved:
		return fmt.Sprintf("%q %s", s.tags[b.Key], b.How)
	case *journal.SnapshotCreated:
		return b.Name
	case *journal.RolledBack:
		return fmt.Sprintf("to %s at #%d, %d side effects", b.Snapshot, b.SnapshotLen, len(b.Abandoned))
	}
	return ""
}
