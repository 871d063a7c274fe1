package view

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// TestEveryKindIsToldInWords: a kind has words in its row, or its own sentence here.
func TestEveryKindIsToldInWords(t *testing.T) {
	own := map[journal.Kind]journal.Body{
		journal.KindSubmitted: &journal.Submitted{}, journal.KindEmitted: &journal.Emitted{}, journal.KindResumed: &journal.Resumed{},
		journal.KindOperator: &journal.OperatorEffect{}, journal.KindAwaitingApproval: &journal.IntentAwaitingApproval{}, journal.KindWaiting: &journal.IntentWaiting{},
		journal.KindResolved: &journal.Resolved{}, journal.KindConfirmed: &journal.Confirmed{}, journal.KindPinned: &journal.SnapshotPinned{},
		journal.KindRollback: &journal.RolledBack{}, journal.KindRedacted: &journal.Redacted{}, journal.KindApproved: &journal.ManifestApproved{},
	}
	ofOthers := []journal.Kind{ // whose sentences read other records, or a receipt: TestScripts has them
		journal.KindStepped, journal.KindFailed, journal.KindFinished, journal.KindLate, journal.KindProposed,
	}
	for _, kind := range journal.Kinds() {
		if body := own[kind]; body != nil {
			text, err := Describer{}.Describe(&Entry{Record: journal.Record{Kind: kind}, Body: body})
			require.NoError(t, err)
			require.NotEmpty(t, text, kind)
		} else if kind.Words() == "" {
			require.Contains(t, ofOthers, kind)
		}
	}
}

func TestWordsTakeTheFieldsOfTheBody(t *testing.T) {
	denied := &journal.IntentDenied{Cell: "a/b", Kind: "pay", Rules: []string{"one", "two"}, Code: "no", Reason: "{kind}\x1b[2J", Params: journal.Data{0x01}}
	byCap := func(reason string) *journal.IntentDenied {
		return &journal.IntentDenied{Cell: "a/b", Kind: "pay", Cap: "till", Code: "no", Reason: reason, Params: journal.Data{0x01}}
	}
	for _, c := range []struct {
		d    Describer
		body journal.Body
		kind journal.Kind
		want string
	}{
		{Describer{}, denied, journal.KindDenied, "a/b intent 000000000000 pay denied by one, two: no: {kind}<U+001B>[2J  1"},
		{Describer{}, byCap("room is left for 3"), journal.KindDenied, "a/b intent 000000000000 pay denied: no: room is left for 3 (capability till)  1"},
		{Describer{}, byCap(`no kind of "till"`), journal.KindDenied, `a/b intent 000000000000 pay denied: no: no kind of "till"  1`},
		{Describer{Self: "a/b"}, &journal.IntentEmitted{Cell: "a/b", Kind: "pay", Decision: "allow", Params: journal.Data{0x01}}, journal.KindIntent, "intent 000000000000 pay allow  1"},
		{Describer{}, &journal.ManifestRejected{Proposal: 2, Actor: "ann"}, journal.KindRejected, "p2 is rejected, says ann"},
		{Describer{}, &journal.IntentEnded{Cell: "a/b", Status: receipt.StatusOK, Outcome: receipt.OutcomePure, Payload: journal.Data{0x01}}, journal.KindEnded, "a/b intent 000000000000 ended ok: pure  1"},
	} {
		got, err := c.d.Describe(&Entry{Record: journal.Record{Kind: c.kind}, Body: c.body})
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}
