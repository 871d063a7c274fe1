// Package inlog is how tests have worlds lie in a log whose options name none: so those that are there
// run on PostgreSQL as they are. Package testlog does it. It is a part of worldctl, and not an API.
package inlog

import "github.com/worldkernel/worldkernel/journal"

// Of returns, where tests set it, the log of the world in a hidden directory, or of the one that is
// being made there; nil: that has the journal, too.
var Of func(hidden string, making bool) func(key []byte) (journal.Log, error) //nolint:gochecknoglobals // no option leads from a test to where the program opens a world
