package view

import (
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Selects reports whether a kind is one, or stands for a family of them, such as
// intent.*.
func Selects(kind journal.Kind) bool {
	family, whole := strings.CutSuffix(string(kind), ".*")
	return kind.Known() || whole && slices.Contains(journal.Families(), family)
}

// Among reports whether a kind is one of some, of which one may stand for a family
// such as intent.*, or whether there are none.
func Among(kinds []journal.Kind, kind journal.Kind) bool {
	return len(kinds) == 0 || slices.ContainsFunc(kinds, func(k journal.Kind) bool { return manifest.Match(string(k), string(kind)) })
}

// Intent returns the intent and the attempt in a record; zero: the record has no such reference, or
// was redacted.
func (e *Entry) Intent() (receipt.Key, uint64) {
	key, _, _ := journal.IntentOf(e.Kind, e.Payload)
	return receipt.Key{Hash: key}, journal.AttemptOf(e.Kind, e.Payload)
}
