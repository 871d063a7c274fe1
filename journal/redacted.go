package journal

import "fmt"

// ErrRedacted says that a payload was destroyed: a blob.redacted names it. It is
// an ErrNotFound.
var ErrRedacted = fmt.Errorf("%w: it was redacted", ErrNotFound)
