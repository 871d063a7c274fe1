package world_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// journal: the records since the last listing: id, tick, kind, cause, content
func (s *stage) journal(t *testing.T, _ *datadriven.TestData) (string, error) {
	var out strings.Builder
	for _, stored := range s.w.Journal.Records()[s.listed:] {
		s.listed++
		rec, err := world.DecodeRecord(stored.Bytes)
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
func (s *stage) short(t *testing.T, body world.Body) string {
	switch b := body.(type) {
	case *world.Submitted:
		text := b.Name + " -> " + strings.Join(b.To, ", ")
		if b.Due > 0 {
			text += fmt.Sprintf(" at t%d", b.Due)
		}
		return text
	case *world.Stepped:
		return fmt.Sprintf("%s@%d %s", b.Cell, b.N, b.Outcome)
	case *world.Failed:
		if b.Parked {
			return fmt.Sprintf("%s@%d parked: %s", b.Cell, b.N, b.Error)
		}
		return fmt.Sprintf("%s@%d skipped: %s", b.Cell, b.N, b.Error)
	case *world.Deleted:
		return fmt.Sprintf("%s@%d", b.Cell, b.N)
	case *world.Emitted:
		return b.Name + " -> " + strings.Join(b.To, ", ")
	case *world.Dropped:
		return b.Name + ": " + b.Reason
	case *world.TimerSet:
		return fmt.Sprintf("%s of %s at t%d", b.Name, b.Cell, b.Deadline)
	case *world.TimerFired:
		return b.Name + " of " + b.Cell
	case *world.Resumed:
		if b.Skip {
			return b.Cell + " without the event"
		}
		return b.Cell
	default:
		return s.shortEffect(t, body)
	}
}

// shortEffect says what happened to an effect, which goes by its tag.
func (s *stage) shortEffect(t *testing.T, body world.Body) string {
	switch b := body.(type) {
	case *world.IntentEmitted:
		s.tags[b.Key] = b.Tag
		return fmt.Sprintf("%s %q of %s: %s by %s", b.Kind, b.Tag, b.Cell, b.Decision, strings.Join(b.Rules, ", "))
	case *world.IntentDenied:
		return fmt.Sprintf("%s %q of %s: %s %s", b.Kind, b.Tag, b.Cell, b.Code, strings.Join(b.Rules, ", "))
	case *world.Started:
		return fmt.Sprintf("%q in slot %d", s.tags[b.Key], b.Owner)
	case *world.Finished:
		r, err := receipt.Decode(b.Receipt)
		require.NoError(t, err)
		payload, err := canon.ToJSON(r.Payload)
		require.NoError(t, err)
		return fmt.Sprintf("%q %s %s", s.tags[r.Key], r.Status, payload)
	case *world.IntentParked:
		s.tags[b.Key] = b.Tag
		return fmt.Sprintf("%s %q of %s: parked by %s", b.Kind, b.Tag, b.Cell, strings.Join(b.Rules, ", "))
	case *world.IntentEnded:
		return fmt.Sprintf("%q %s: %s", s.tags[b.Key], b.Status, b.Outcome)
	case *world.Resolved:
		return fmt.Sprintf("%q %s", s.tags[b.Key], b.How)
	case *world.SnapshotCreated:
		return b.Name
	case *world.RolledBack:
		return fmt.Sprintf("to %s at #%d, %d side effects", b.Snapshot, b.SnapshotLen, len(b.Abandoned))
	}
	return ""
}
