package view

import (
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Families returns what the names of kinds of records begin with.
func Families() []string {
	return []string{
		"blob", "cell", "clock", "effect", "event", "intent", "invocation", "keys", "manifest", "rollback", "snapshot", "timer", "world",
	}
}

// Selects reports whether a kind is one, or stands for a family of them, such as
// intent.*.
func Selects(kind journal.Kind) bool {
	family, whole := strings.CutSuffix(string(kind), ".*")
	return kind.Known() || whole && slices.Contains(Families(), family)
}

// Among reports whether a kind is one of some, of which one may stand for a family
// such as intent.*, or whether there are none.
func Among(kinds []journal.Kind, kind journal.Kind) bool {
	return len(kinds) == 0 || slices.ContainsFunc(kinds, func(k journal.Kind) bool { return manifest.Match(string(k), string(kind)) })
}

// IntentOf returns the intent that a record is about, and the attempt where it is
// about one; zero where it is about none.
func IntentOf(body journal.Body) (receipt.Key, uint64) {
	switch b := body.(type) {
	case *journal.Finished:
		return answeredBy(b.Receipt)
	case *journal.Late:
		return answeredBy(b.Receipt)
	case *journal.Started:
		return b.Key, b.Attempt
	case *journal.Expired:
		return b.Key, b.Attempt
	case *journal.Due:
		return b.Key, b.Attempt
	case *journal.InDoubt:
		return b.Key, b.Attempt
	case *journal.IntentWaiting:
		return b.Key, b.Attempt
	case *journal.IntentEmitted:
		return b.Key, 0
	case *journal.IntentParked:
		return b.Key, 0
	case *journal.IntentDenied:
		return b.Key, 0
	case *journal.IntentEnded:
		return b.Key, 0
	case *journal.Resolved:
		return b.Key, 0
	case *journal.Confirmed:
		return b.Key, 0
	}
	return receipt.Key{}, 0
}

// answeredBy returns what a receipt answers. The kernel took it, so that it can be
// read.
func answeredBy(data []byte) (receipt.Key, uint64) {
	r, err := receipt.Decode(data)
	if err != nil {
		return receipt.Key{}, 0
	}
	return r.Key, r.Attempt
}
