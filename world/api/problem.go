package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/snapshot"
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

// refusal says what problem an error of the packages below is. Its text may be
// sent: it names nothing of the machine.
type refusal struct {
	err    error
	status int
	name   string
}

// refusals returns the errors that say what is wrong with a request, or with the
// world for it. They are in the order in which they are looked for.
func refusals() []refusal {
	const unprocessable = http.StatusUnprocessableEntity
	return []refusal{
		{world.ErrUnknownEvent, unprocessable, "unknown-event"},
		{world.ErrSchema, unprocessable, "schema"},
		{world.ErrNoRoute, unprocessable, "no-route"},
		{world.ErrBadKey, unprocessable, "bad-key"},
		{world.ErrBadData, unprocessable, "bad-data"},
		{world.ErrNoReason, unprocessable, "no-reason"},
		{world.ErrTooLarge, http.StatusRequestEntityTooLarge, "too-large"},
		{world.ErrManifestSize, http.StatusRequestEntityTooLarge, "too-large"},
		{world.ErrMailboxFull, http.StatusTooManyRequests, "mailbox-full"},
		{world.ErrAlarms, http.StatusTooManyRequests, "too-many-scheduled"},
		{world.ErrBadTick, http.StatusConflict, "tick-passed"},
		{world.ErrNoCell, http.StatusNotFound, "not-found"},
		{world.ErrNoIntent, http.StatusNotFound, "not-found"},
		{receipt.ErrUnknownIntent, http.StatusNotFound, "not-found"},
		{world.ErrNotWaiting, http.StatusConflict, "not-waiting"},
		{world.ErrOtherParams, http.StatusConflict, "other-params"},
		{world.ErrNoRepeat, http.StatusConflict, "no-repeat"},
		{world.ErrNoBudget, http.StatusForbidden, "no-budget"},
		{world.ErrMigration, http.StatusConflict, "migration"},
		{world.ErrUnderWay, http.StatusConflict, "under-way"},
		{world.ErrLeftPart, http.StatusConflict, "left-part"},
		{journal.ErrRedacted, http.StatusGone, "redacted"},
		{governance.ErrNoProposal, http.StatusNotFound, "not-found"},
		{governance.ErrClosed, http.StatusConflict, "closed"},
		{governance.ErrStale, http.StatusConflict, "stale"},
		{governance.ErrOldReport, http.StatusConflict, "old-report"},
		{governance.ErrNotShadowed, http.StatusForbidden, "not-shadowed"},
		{governance.ErrNotApproved, http.StatusForbidden, "not-approved"},
		{governance.ErrNotListed, http.StatusForbidden, "not-listed"},
		{governance.ErrRepeated, http.StatusForbidden, "signed-already"},
		{governance.ErrOwnProposal, http.StatusForbidden, "own-proposal"},
		{governance.ErrSignature, http.StatusForbidden, "signature"},
		{governance.ErrOtherTerms, http.StatusForbidden, "signature"},
		{governance.ErrTooMany, http.StatusConflict, "too-many-proposals"},
		{governance.ErrNoChange, unprocessable, "no-change"},
		{governance.ErrSame, http.StatusConflict, "proposed-already"},
		{manifest.ErrOtherBase, http.StatusConflict, "stale"},
		{manifest.ErrBadPatch, unprocessable, "bad-patch"},
		{manifest.ErrNoPath, unprocessable, "bad-patch"},
		{manifest.ErrBadValue, unprocessable, "bad-patch"},
		{snapshot.ErrBadName, unprocessable, "bad-name"},
		{snapshot.ErrNameTaken, http.StatusConflict, "name-taken"},
		{snapshot.ErrNoSnapshot, http.StatusNotFound, "not-found"},
		{snapshot.ErrAmbiguous, http.StatusConflict, "ambiguous"},
		{local.ErrNoKeys, http.StatusConflict, "no-keys"},
	}
}

// failureOf makes a failure of any error; nil where it is the server's own fault,
// whose text is for its log only.
func (s *Server) failureOf(err error) *failure {
	var known *failure
	var input *world.InputError
	var tooLarge *http.MaxBytesError
	if errors.As(err, &known) {
		return known
	}
	if errors.As(err, &tooLarge) {
		return failed(http.StatusRequestEntityTooLarge, "too-large", "the body is larger than "+strconv.FormatInt(tooLarge.Limit, 10)+" bytes")
	}
	if f := failureOfWorld(err); f != nil {
		return f
	}
	for _, x := range s.refusals {
		if !errors.Is(err, x.err) {
			continue
		}
		f := failed(x.status, x.name, err.Error())
		if errors.As(err, &input) {
			f.Field, f.Rule = input.Field, input.Rule
		}
		if x.status == http.StatusTooManyRequests {
			f.header.Set("Retry-After", "1")
		}
		return f
	}
	return nil
}

// failureOfWorld is failureOf for what keeps a world from going on, and for the
// errors whose text names what is nobody's business.
func failureOfWorld(err error) *failure {
	var damage *store.DamageError
	var adapters *local.AdaptersError
	var faults *manifest.FaultsError
	var miss *host.MissError
	switch {
	case errors.As(err, &faults):
		f := failed(http.StatusUnprocessableEntity, "bad-manifest", err.Error())
		f.Field = faults.Faults[0].Path
		return f
	case errors.As(err, &adapters):
		f := failed(http.StatusUnprocessableEntity, "adapters", "an effect of the candidate cannot be performed here")
		f.Field = adapters.Faults[0].Path
		return f
	case errors.As(err, &miss):
		return failed(http.StatusConflict, "no-recording", "the recording that answers effects has no answer for one")
	case errors.As(err, &damage):
		return failed(http.StatusServiceUnavailable, "unreadable", "the journal cannot be read: "+damage.What)
	case errors.Is(err, store.ErrClosed), errors.Is(err, journal.ErrFenced), errors.Is(err, journal.ErrUnknown):
		return failed(http.StatusServiceUnavailable, "ended", "the world has ended in this process")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return busy("deadline", "it was not done in time; what was done is durable")
	}
	return nil
}
