package journal

import (
	"errors"
	"fmt"
)

// ErrArchived says that records were moved to an archive that cannot be read.
// The error around it is an *ArchivedError.
var ErrArchived = errors.New("archived")

// ArchivedError names the archive that holds records, and why it cannot be read.
type ArchivedError struct {
	File     string
	From, To Seq
	Err      error
}

func (e *ArchivedError) Error() string {
	return fmt.Sprintf("records #%d to #%d are archived in %s, which cannot be read: %v", e.From, e.To, e.File, e.Err)
}

// Unwrap returns ErrArchived and the reason.
func (e *ArchivedError) Unwrap() []error { return []error{ErrArchived, e.Err} }
