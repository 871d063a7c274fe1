package api

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"

	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// Problem is the answer to a request that failed: application/problem+json
// (RFC 9457).
type Problem struct {
	Type   string `json:"type"` // problemURN and a name that stays
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	Field string `json:"field,omitempty"` // of the input, that is wrong
	Rule  string `json:"rule,omitempty"`  // that it breaks
	Limit string `json:"limit,omitempty"` // that is reached; see Limits.Named

	// Of many events at once: the line that was refused, and what was accepted of
	// those before it; see Bulk.
	Line uint64 `json:"line,omitempty"`
	Bulk *Bulk  `json:"accepted,omitempty"`
}

// problemURN begins the types of problems.
const problemURN = "urn:worldkernel:problem:"

// problemType is the media type of a Problem.
const problemType = "application/problem+json"

// failure is an error that says itself what problem it is.
type failure struct {
	Problem
	header http.Header // sent with it
}

func (f *failure) Error() string { return f.Detail }

// failed makes a failure.
func failed(status int, name, detail string) *failure {
	return &failure{
		Problem: Problem{Type: problemURN + name, Title: http.StatusText(status), Status: status, Detail: detail},
		header:  make(http.Header),
	}
}

// badRequest is a failure of who asks: something is not what it has to be.
func badRequest(field, detail string) *failure {
	f := failed(http.StatusBadRequest, "malformed", detail)
	f.Field = field
	return f
}

func notFound(detail string) *failure { return failed(http.StatusNotFound, "not-found", detail) }

// busy is a failure that goes away by itself.
func busy(name, detail string) *failure {
	const afterSeconds = 1
	f := failed(http.StatusServiceUnavailable, name, detail)
	f.header.Set("Retry-After", strconv.Itoa(afterSeconds))
	return f
}

// failureOf makes a failure of any error; nil where it is the server's own fault,
// whose text is for its log only. What an error comes to is in the table of package
// view.
func failureOf(err error) *failure {
	if known, ok := errors.AsType[*failure](err); ok {
		return known
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return failed(http.StatusRequestEntityTooLarge, "too-large", "the body is larger than "+strconv.FormatInt(large.Limit, 10)+" bytes")
	}
	if moment := (*view.MomentError)(nil); errors.As(err, &moment) && moment.Rule != "" {
		return notFound(err.Error()) // it has not come, or is gone
	}
	is := view.FaultOf(err)
	if is.Code == "" {
		return nil
	}
	f := failed(is.Status, is.Code, cmp.Or(is.Text, err.Error()))
	if is.Status == http.StatusTooManyRequests || is.Code == "deadline" || is.Code == "no-descriptors" {
		f.header.Set("Retry-After", "1")
	}
	f.place(err)
	return f
}

// place takes what an error tells of where it is.
func (f *failure) place(err error) {
	var input *world.InputError
	var damage *store.DamageError
	var adapters *local.AdaptersError
	var faults *manifest.FaultsError
	switch {
	case errors.As(err, &input):
		f.Field, f.Rule = input.Field, input.Rule
	case errors.As(err, &faults):
		f.Field = faults.Faults[0].Path
	case errors.As(err, &adapters):
		f.Field = adapters.Faults[0].Path
	case errors.As(err, &damage):
		f.Detail += ": " + damage.What
	}
}
