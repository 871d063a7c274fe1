package view

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// The exit codes of worldctl. What does not read, or names what is not there (a file, a
// world, a moment, a cell, an intent), is ExitUsage, whichever verb it is typed to.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitVerify      = 3
	ExitDenied      = 4
	ExitConflict    = 5
	ExitUndecided   = 6
	ExitInterrupted = 130
)

// Fault is what an error comes to at the doors.
type Fault struct {
	is     func(error) bool
	Code   string // of the API's problem; empty: the API does not meet it, or tells nobody
	Status int    // of the API's answer; 0 where Code is empty
	Exit   int    // of worldctl
	Text   string // what a problem says instead of the error, whose text is for who has the machine; empty: the error
}

// FaultOf returns the first matching fault of the table; the fallback has ExitFailed and no code. A
// moment that cannot be had is a mistake in the command line, whatever form it has and whatever
// else it is.
func FaultOf(err error) Fault {
	f := inTable(err)
	if as[*MomentError](err) && f.Exit == ExitFailed {
		f.Exit = ExitUsage
	}
	return f
}

func inTable(err error) Fault {
	for _, table := range [][]Fault{faultsOfWorlds(), faultsOfInput(), faultsOfRules(), faultsOfSnapshots(), faultsOfReceipts(), faultsOfDisk()} {
		for _, f := range table {
			if f.is(err) {
				return f
			}
		}
	}
	return Fault{Exit: ExitFailed}
}

// is matches what wraps one of some errors.
func is(all ...error) func(error) bool {
	return func(err error) bool {
		for _, x := range all {
			if errors.Is(err, x) {
				return true
			}
		}
		return false
	}
}

// as matches what wraps an error of a type.
func as[E error](err error) bool {
	return errors.As(err, new(E))
}

// refused matches what a store on PostgreSQL refuses in one of some states.
func refused(states ...pglog.State) func(error) bool {
	return func(err error) bool {
		var r *pglog.RefusedError
		return errors.As(err, &r) && slices.Contains(states, r.State)
	}
}

const (
	unprocessable = http.StatusUnprocessableEntity
	conflict      = http.StatusConflict
	forbidden     = http.StatusForbidden
	missing       = http.StatusNotFound
)

// faultsOfWorlds are about what keeps a world from going on. They come first: whatever
// else is wrong follows from it.
func faultsOfWorlds() []Fault {
	const unavailable = http.StatusServiceUnavailable
	const late, ended = "it was not done in time; what was done is durable", "the world has ended in this process"
	const descriptors = "the process has no file descriptor left: raise what ulimit -n shows where it runs, or lower its limit of connections"
	return []Fault{
		{file.NoDescriptor, "no-descriptors", unavailable, ExitFailed, descriptors},
		{is(context.Canceled), "deadline", unavailable, ExitInterrupted, late},
		{as[*store.LockedError], "", 0, ExitConflict, ""},
		{as[*world.Divergence], "", 0, ExitVerify, ""},
		{as[*host.ScriptError], "no-recording", conflict, ExitFailed, "the script that answers an effect makes no answer"},
		{as[*host.MissError], "no-recording", conflict, ExitFailed, "the recording that answers effects has no answer for one"},
		{is(store.ErrBehindAnchor, store.ErrOffAnchor, store.ErrNoAnchor, store.ErrBadAnchor, store.ErrNotWorld), "", 0, ExitVerify, ""},
		{as[*world.SpillError], "", 0, ExitFailed, ""}, // before damage: it is none of the world's
		{as[*store.DamageError], "unreadable", unavailable, ExitVerify, "the journal cannot be read"},
		{is(journal.ErrFenced), "ended", unavailable, ExitConflict, ended},
		{is(journal.ErrRewound), "ended", unavailable, ExitVerify, ended},
		{is(store.ErrClosed, journal.ErrUnknown, host.ErrClosed), "ended", unavailable, ExitFailed, ended},
		{is(context.DeadlineExceeded), "deadline", unavailable, ExitFailed, late},
		{is(local.ErrNoRecording), "no-recording", conflict, ExitFailed, "the world whose recordings answer the effects is not there"},
		{is(store.ErrInTheLog, store.ErrNoCopy, store.ErrCopy), "", 0, ExitConflict, ""},
		{is(store.ErrLooks, store.ErrOvertaken), "", 0, ExitConflict, ""},
		{refused(pglog.BadURL, pglog.Plaintext, pglog.NoDatabase, pglog.NoStore, pglog.BadWorldID, pglog.NoWorld, pglog.Unsealed), "", 0, ExitUsage, ""},
		{refused(pglog.Owned, pglog.WorldExists, pglog.WorldMade, pglog.WorldMoved), "", 0, ExitConflict, ""},
		{refused(pglog.WrongSeal), "", 0, ExitVerify, ""},
		{as[*pglog.DamageError], "unreadable", unavailable, ExitVerify, "the journal cannot be read"},
		{as[*pglog.RefusedError], "", 0, ExitFailed, ""}, // the server, its settings, or the schema
		{as[*local.MovedError], "", 0, ExitConflict, ""},
		{is(local.ErrStale), "", 0, ExitConflict, ""},
		{is(local.ErrNoWorld), "", 0, ExitUsage, ""},
		{is(local.ErrStrangersWorld), "", 0, ExitUsage, ""},
		{is(local.ErrExists, store.ErrExists), "exists", conflict, ExitConflict, "there is a world of that name already"},
		{is(local.ErrBadID), "bad-id", unprocessable, ExitUsage, ""},
		{is(ErrNoBudget), "", 0, ExitUsage, ""},
		{as[*local.TimeError], "", 0, ExitFailed, ""},
		{as[*local.SizeError], "", 0, ExitFailed, ""},
		{is(local.ErrNotSealed), "", 0, ExitConflict, ""},
		{is(local.ErrOtherHistory), "", 0, ExitVerify, ""},
		{is(receipt.ErrNoEpoch), "", 0, ExitUsage, ""},
		{as[*local.KeyringError], "", 0, ExitFailed, ""},
		{is(local.ErrSealed, local.ErrExposedKeys, receipt.ErrPassphrase, receipt.ErrSeal, receipt.ErrTooManyEpochs), "", 0, ExitFailed, ""},
		{is(local.ErrNoKeys), "no-keys", conflict, ExitFailed, ""},
		{is(local.ErrAlone, local.ErrRecorded, local.ErrRecordedBeside, journal.ErrElsewhere), "", 0, ExitUsage, ""},
		{is(local.ErrNotRemote), "not-remote", conflict, ExitFailed, ""},
	}
}

// states returns the states of intents as they are shown.
func states() []receipt.State { return append(receipt.States(), receipt.StateCancelled) }

// StateNames names the states of intents.
func StateNames() string {
	var names []string
	for _, state := range states() {
		names = append(names, string(state))
	}
	return "states are " + strings.Join(names, ", ") + ", or awaiting, which is all that await a person"
}

// faultsOfInput are about events, cells, effects, and decisions about them.
func faultsOfInput() []Fault {
	const large, many = http.StatusRequestEntityTooLarge, http.StatusTooManyRequests
	return []Fault{
		{is(world.ErrUnknownEvent), "unknown-event", unprocessable, ExitFailed, ""},
		{is(world.ErrSchema), "schema", unprocessable, ExitFailed, ""},
		{is(world.ErrNoRoute), "no-route", unprocessable, ExitFailed, ""},
		{is(world.ErrBadKey), "bad-key", unprocessable, ExitFailed, ""},
		{is(world.ErrBadData, world.ErrBadAnswer), "bad-data", unprocessable, ExitUsage, ""},
		{is(world.ErrNoReason), "no-reason", unprocessable, ExitUsage, ""},
		{as[*world.BoundError], "bound-exceeded", unprocessable, ExitFailed, ""},
		{is(world.ErrTooLarge, world.ErrManifestSize), "too-large", large, ExitFailed, ""},
		{is(world.ErrMailboxFull), "mailbox-full", many, ExitFailed, ""},
		{is(world.ErrAlarms), "too-many-scheduled", many, ExitFailed, ""},
		{is(world.ErrBadSubmitKey), "bad-submit-key", http.StatusBadRequest, ExitUsage, ""},
		{is(world.ErrKeyReused), "key-reused", unprocessable, ExitConflict, ""},
		{is(world.ErrKeyUnderWay), "key-under-way", conflict, ExitConflict, ""},
		{is(world.ErrBadTick), "tick-passed", conflict, ExitFailed, ""},
		{is(world.ErrNoTick), "no-such-tick", unprocessable, ExitFailed, ""},
		{is(world.ErrTooFar), "too-far-ahead", forbidden, ExitDenied, ""},
		{is(world.ErrRealClock), "real-clock", conflict, ExitFailed, ""},
		{is(world.ErrClock), "clock-kept", conflict, ExitFailed, ""},
		{is(world.ErrSeed), "seed-kept", unprocessable, ExitUsage, ""},
		{is(world.ErrNoCell, world.ErrNoIntent), "not-found", missing, ExitUsage, ""},
		{is(world.ErrNotWaiting), "not-waiting", conflict, ExitConflict, ""},
		{is(world.ErrOtherParams), "other-params", conflict, ExitConflict, ""},
		{is(world.ErrSameParams), "no-change", unprocessable, ExitUsage, ""},
		{is(world.ErrNoRepeat), "no-repeat", conflict, ExitFailed, ""},
		{is(world.ErrGate), "denied", forbidden, ExitDenied, ""},
		{is(world.ErrMayBeDone), "may-have-happened", conflict, ExitFailed, ""},
		{is(world.ErrNoBudget), "no-budget", forbidden, ExitDenied, ""},
		{is(ErrState), "malformed", http.StatusBadRequest, ExitUsage, StateNames()},
		{is(ErrNoFilter, ErrStateDecides), "malformed", http.StatusBadRequest, ExitUsage, ""},
		{is(ErrOtherIntents), "other-intents", conflict, ExitConflict, ""},
		{is(ErrOrder, ErrKind, ErrPrefix, ErrKeys), "", 0, ExitUsage, ""},
		{is(world.ErrConfirmationRequired), "", 0, ExitUndecided, ""},
		{is(world.ErrNotHalted), "not-halted", conflict, ExitConflict, ""},
		{is(world.ErrUnconfirmed, world.ErrNoEffect), "", 0, ExitFailed, ""},
	}
}

// faultsOfRules are about proposals and manifests.
func faultsOfRules() []Fault {
	return []Fault{
		{as[*manifest.FaultsError], "bad-manifest", unprocessable, ExitFailed, ""},
		{as[*local.AdaptersError], "adapters", unprocessable, ExitUsage, "an effect of the candidate cannot be performed here"},
		{as[*local.UntrustedError], "not-trusted", forbidden, ExitDenied, ""},
		{is(world.ErrMigration), "migration", conflict, ExitConflict, ""},
		{is(world.ErrUnderWay), "under-way", conflict, ExitConflict, ""},
		{is(governance.ErrSame), "proposed-already", conflict, ExitConflict, ""},
		{is(governance.ErrNoProposal), "not-found", missing, ExitUsage, ""},
		{is(governance.ErrNoChange), "no-change", unprocessable, ExitUsage, ""},
		{is(governance.ErrTooMany), "too-many-proposals", conflict, ExitConflict, ""},
		{is(governance.ErrClosed), "closed", conflict, ExitConflict, ""},
		{is(governance.ErrStale), "stale", conflict, ExitConflict, ""},
		{is(governance.ErrOldReport), "old-report", conflict, ExitConflict, ""},
		{is(governance.ErrNotShadowed), "not-shadowed", forbidden, ExitDenied, ""},
		{is(governance.ErrNotApproved), "not-approved", forbidden, ExitDenied, ""},
		{is(governance.ErrNotListed), "not-listed", forbidden, ExitDenied, ""},
		{is(governance.ErrRepeated), "signed-already", forbidden, ExitDenied, ""},
		{is(governance.ErrOwnProposal), "own-proposal", forbidden, ExitDenied, ""},
		{is(governance.ErrSignature, governance.ErrOtherTerms), "signature", forbidden, ExitDenied, ""},
		{is(manifest.ErrOtherBase), "stale", conflict, ExitFailed, ""},
		{is(manifest.ErrBadPatch, manifest.ErrNoPath, manifest.ErrBadValue), "bad-patch", unprocessable, ExitUsage, ""},
		{is(local.ErrEdited), "", 0, ExitFailed, ""},
		{is(local.ErrOtherReport), "other-report", conflict, ExitFailed, ""},
	}
}

// faultsOfSnapshots are about snapshots, rollbacks and forks.
func faultsOfSnapshots() []Fault {
	return []Fault{
		{as[*world.SideEffectsError], "side-effects", conflict, ExitDenied, ""},
		{is(world.ErrOtherState), "other-state", conflict, ExitVerify, ""},
		{is(local.ErrNotSaved), "", 0, ExitVerify, ""},
		{is(world.ErrRetention), "", 0, ExitUsage, ""},
		{is(world.ErrLeftPart), "left-part", conflict, ExitFailed, ""},
		{is(snapshot.ErrBadName), "bad-name", unprocessable, ExitUsage, ""},
		{is(snapshot.ErrNameTaken), "name-taken", conflict, ExitConflict, ""},
		{is(snapshot.ErrNoSnapshot), "not-found", missing, ExitUsage, ""},
		{is(snapshot.ErrAmbiguous), "ambiguous", conflict, ExitUsage, ""},
		{is(snapshot.ErrPinned, snapshot.ErrLastSnapshot), "snapshot-kept", conflict, ExitConflict, ""},
		{is(local.ErrNotEmpty), "exists", conflict, ExitFailed, "there is something else of that name already"},
		{is(world.ErrSameWorld), "exists", conflict, ExitFailed, ""},
		{is(local.ErrSavedOther), "", 0, ExitFailed, ""},
		{is(world.ErrForkEffects, world.ErrForkLive), "bad-data", unprocessable, ExitUsage, ""},
	}
}

// faultsOfReceipts are about receipts, and those who perform effects elsewhere. But
// for those of 5xx they are final: what was handed in can be forgotten.
func faultsOfReceipts() []Fault {
	return []Fault{
		{is(host.ErrWorkerName), "malformed", http.StatusBadRequest, ExitFailed, ""},
		{is(host.ErrNotHeld), "not-held", conflict, ExitFailed, ""},
		{is(host.ErrOtherResult), "other-result", conflict, ExitFailed, ""},
		{is(host.ErrBadReceipt), "bad-receipt", unprocessable, ExitFailed, ""},
		{is(receipt.ErrDuplicate), "answered", conflict, ExitFailed, ""},
		{is(receipt.ErrWrongAttempt), "wrong-attempt", conflict, ExitFailed, ""},
		{is(receipt.ErrAnswer), "bad-answer", unprocessable, ExitFailed, ""},
		{is(receipt.ErrUnknownIntent), "unknown-intent", unprocessable, ExitUsage, ""},
		{is(
			receipt.ErrNotCanonical, receipt.ErrVersion, receipt.ErrStatus, receipt.ErrClass, receipt.ErrWrongWorld, receipt.ErrWrongIntent,
			receipt.ErrUnknownKey, receipt.ErrRevokedKey, receipt.ErrBadHash, receipt.ErrBadMAC, receipt.ErrOverSize, receipt.ErrQuestion, receipt.ErrAccepted,
		), "bad-receipt", unprocessable, ExitFailed, ""},
		{is(local.ErrNoReceipt), "", 0, ExitFailed, ""},
	}
}

// faultsOfDisk are about what is stored, and what is stored no more.
func faultsOfDisk() []Fault {
	return []Fault{
		{is(world.ErrStillNeeded), "", 0, ExitConflict, ""},
		{is(journal.ErrRedacted), "redacted", http.StatusGone, ExitFailed, ""},
		{as[*journal.ArchivedError], "", 0, ExitFailed, ""},
		{is(journal.ErrArchived, store.ErrNothingToArchive, store.ErrNeededToOpen, store.ErrNewerFormat), "", 0, ExitFailed, ""},
		{is(world.ErrEngine), "no-engine", conflict, ExitFailed, ""},
		{is(local.ErrPart, local.ErrBytesLeft, local.ErrOfManifest, local.ErrInline, local.ErrNoPayload, local.ErrSeveral, local.ErrNoRange), "", 0, ExitFailed, ""},
		{is(world.ErrCandidate), "bad-manifest", unprocessable, ExitUsage, ""}, // whatever is wrong with it that has no row of its own
		{is(journal.ErrNotFound), "", 0, ExitFailed, ""},
		{is(fs.ErrExist), "", 0, ExitConflict, ""},
		{is(fs.ErrNotExist), "", 0, ExitUsage, ""},
	}
}
