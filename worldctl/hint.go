package worldctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/serve/gateway"
	"github.com/worldkernel/worldkernel/serve/owner"
	"github.com/worldkernel/worldkernel/show/measure"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// hintOf returns what to do about an error; empty: nothing comes to mind.
func hintOf(err error) string {
	if errors.Is(err, context.Canceled) {
		return "what was done is durable; type the same again for the rest"
	}
	if file.NoDescriptor(err) {
		return "nothing is damaged: raise ulimit -n, and type the same again"
	}
	if moved := (*local.MovedError)(nil); errors.As(err, &moved) {
		return hintOfMoved(moved)
	}
	if hint := cmp.Or(hintOfMeasure(err), hintOfType(err)); hint != "" {
		return hint
	}
	if errors.As(err, new(*pglog.DamageError)) {
		return hintDamaged
	}
	proposal := "PROPOSAL"
	if about, ok := errors.AsType[*proposalError](err); ok {
		if proposal = view.ProposalName(about.n); errors.Is(err, world.ErrNoReason) {
			return "say why: -m TEXT"
		}
	}
	text := firstHint(err, hintsOfWorlds(), hintsOfRules(), hintsOfEffects(), hintsOfSnapshots(), hintsOfStore())
	if damage := (*store.DamageError)(nil); text == "" && errors.As(err, &damage) {
		const back = "bring back .world from a copy, or worldctl import journal an export"
		if damage.Whole() {
			return back
		}
		return "worldctl verify lists what is damaged; " + back
	}
	return strings.ReplaceAll(cmp.Or(text, firstHint(err, hintsOfDisk())), "PROPOSAL", proposal)
}

// hintOfMeasure is hintOf for a measure that failed of a cell.
func hintOfMeasure(err error) string {
	var failed *measure.Error
	if !errors.As(err, &failed) || failed.Cell == "" {
		return ""
	}
	return fmt.Sprintf("worldctl cell show %s --at t%d shows its state; where: has(state.FIELD) leaves out cells without a field", shellWord(failed.Cell), failed.Tick)
}

// firstHint returns the text of the first hint in some tables that is about an error.
func firstHint(err error, tables ...[]hint) string {
	for _, h := range slices.Concat(tables...) {
		if slices.ContainsFunc(h.of, func(of error) bool { return errors.Is(err, of) }) {
			return h.text
		}
	}
	return ""
}

// hintOfMiss says how an effect that a recording does not answer gets its answer.
func hintOfMiss(miss *host.MissError) string {
	switch {
	case miss.Recorded && local.IsPast(miss.File):
		return hintOfPast(miss)
	case miss.Unanswered:
		return "let the world in " + miss.File + " go on until that is answered, or decide about it there, then run this one again: what may have been done there is not done here"
	case miss.Recorded:
		return "worldctl run performs it; or let the world in " + miss.File + " go on until it has asked for the same. Nothing was done outside"
	}
	return "add the answer to " + miss.File + " and make the world again: the effect waits, and nothing was lost"
}

// hintOfType is hintOf for errors that know something themselves.
func hintOfType(err error) string {
	var diverged *world.Divergence
	var miss *host.MissError
	var script *host.ScriptError
	var keyring *local.KeyringError
	var left *world.SideEffectsError
	var same *governance.SameError
	var away *journal.ArchivedError
	var adapter *manifest.NoAdapterError
	var bound *world.BoundError
	var refused *pglog.RefusedError
	switch {
	case errors.As(err, &refused):
		return refused.Next()
	case errors.As(err, &bound):
		return hintOfBound(bound)
	case errors.As(err, new(*local.TimeError)):
		return "--max-time DURATION gives it more"
	case errors.As(err, new(*local.SizeError)):
		return "--max-size SIZE takes more"
	case errors.As(err, new(*store.LockedError)):
		return "a world has one owner at a time: wait until that process has ended, then type this again"
	case errors.As(err, &diverged):
		return fmt.Sprintf("worldctl why %d", diverged.Record)
	case errors.As(err, &miss):
		return hintOfMiss(miss)
	case errors.As(err, &script):
		return "correct " + script.File + " and make the world again: the effect waits, and nothing was lost"
	case errors.As(err, new(*reducer.MissingError)):
		return hintReducers
	case errors.As(err, &adapter) && manifest.Nearest(adapter.Name, adapter.Known) != "":
		return "correct that in " + local.ManifestFile
	case errors.As(err, &adapter):
		return "a program that has it runs the world: worldctl init DIR --template go writes one; this one can only read"
	case errors.As(err, new(*view.MomentError)):
		return momentForms
	case errors.As(err, &keyring):
		return hintOfKeyring(keyring)
	case errors.As(err, &left) && left.Back() == len(left.Effects):
		return "--ack says that you know it: the cells count on what is done no more"
	case errors.As(err, &left):
		return "--compensate asks for their compensations, where their kind declares one; --ack says that the others stay, and that you know it"
	case errors.As(err, &same):
		is := view.ProposalName(same.N)
		return fmt.Sprintf("go on with that one: worldctl shadow %[1]s, worldctl approve %[1]s --key FILE; worldctl proposal show %[1]s says what is missing", is)
	case errors.As(err, new(*local.AdaptersError)):
		return "correct that, then worldctl propose it again"
	case errors.As(err, &away):
		return fmt.Sprintf("put the file back as %s, or into the directory of the world, or a link to it; the world runs without it, and snapshots after #%d can be read", away.File, away.To)
	}
	return ""
}

// hintOfPast is about an effect that a fork's parent has no answer to as it was when the fork was
// made. That copy must not go on: the parent does.
func hintOfPast(miss *host.MissError) string {
	if miss.Unanswered {
		return "make another fork when that is answered in its parent: what may have been done there is not done here"
	}
	return "worldctl run performs it; or make another fork when its parent has asked for the same. Nothing was done outside"
}

func hintOfMoved(err *local.MovedError) string {
	if err.Here {
		return "worldctl move out, as it was typed, goes on; nothing else opens the directory"
	}
	return "a directory is named with -w DIR, a world in a store with --store URL -w ID; worldctl store status tells the id of a store"
}

// hintOfBound names the flag that raises a bound.
func hintOfBound(e *world.BoundError) string {
	flag := "--max-gas GAS"
	if e.Name == "memory" {
		flag = "--max-memory SIZE"
	}
	return flag + " allows more, of the verbs verify, import journal, shadow, what-if, dev, policy eval and serve"
}

func hintOfKeyring(err *local.KeyringError) string {
	switch {
	case slices.ContainsFunc(passphraseErrors(), func(of error) bool { return errors.Is(err, of) }):
		return hintPassphrase
	case errors.Is(err, local.ErrNotSealed):
		return "worldctl keys seal seals it"
	case errors.Is(err, local.ErrExposedKeys):
		return "chmod 600 " + err.Path
	case errors.Is(err, fs.ErrPermission):
		return "only its owner can use it: " + err.Path
	}
	return "bring it back from your copy: without it this world is neither run nor verified; an export of it can still be imported, to be read"
}

// hintOwned says what to do about what another process has open.
const hintOwned = "wait until that process has ended, then type this again"

// hintReducers says what opens a world with Go reducers.
const hintReducers = "a program that has it runs and replays the world: worldctl init DIR --template go writes one; this one can only read"

// hintDamaged says what is done about a database that lacks what it acknowledged, or has other bytes.
const hintDamaged = "nothing here mends a database: restore it, or bring this world back from a backup of its own; docs/postgres.md, What fails, says how"

// hintPassphrase says how a sealed keyring is opened.
const hintPassphrase = "give its passphrase with --passphrase-file FILE, in " + passphraseEnv + ", or on the terminal"

func passphraseErrors() []error {
	return []error{local.ErrSealed, receipt.ErrPassphrase, errNoPassphrase, errEmptyPassphrase, errOtherPassphrase}
}

// hint says what to do about some errors. PROPOSAL stands for the one that the verb is
// about.
type hint struct {
	of   []error
	text string
}

func hintsOfWorlds() []hint {
	return []hint{
		{[]error{local.ErrNoWorld}, "worldctl init"},
		{[]error{local.ErrStrangersWorld}, "look at its world.yaml and programs; then name it: -w DIR"},
		{[]error{world.ErrRealClock}, "worldctl run, which goes on until Ctrl-C; worldctl run --until-idle ends when nothing is left to wait for"},
		{[]error{local.ErrExists}, "worldctl status shows that world; another one needs another directory"},
		{[]error{local.ErrBadID}, "choose another --id, or none: then it is a random one"},
		{passphraseErrors(), hintPassphrase},
		{[]error{local.ErrOtherHistory}, "nothing was signed: worldctl verify says what is another; bring back .world from a copy"},
		{[]error{receipt.ErrNoEpoch}, "worldctl keys list shows the epochs"},
		{[]error{local.ErrNoKeys}, "worldctl import journal FILE --keyring KEYRING makes a world that can run"},
		{[]error{view.ErrOrder}, "--from is where the range begins, and --to where it ends"},
		{
			[]error{view.ErrKind},
			"kinds are such as cell.stepped, event.emitted, intent.denied, invocation.finished; all of a family are " +
				strings.Join(journal.Families(), ".*, ") + ".*",
		},
		{[]error{world.ErrNoCell}, "worldctl cell list"},
		{[]error{errBesides}, "wait until that process has ended, or end it, then type this again"},
		{[]error{gateway.ErrHalted}, "worldctl cell show recorder/NAME tells why; worldctl cell skip recorder/NAME lets it go on without the event that failed"},
		{[]error{owner.ErrVersion}, "use the program that runs the world: worldctl version tells which one this is"},
		{[]error{owner.ErrStranger}, "type it as the user who runs the world; if that is you, remove the socket and start the world again"},
		{[]error{owner.ErrRefuses}, "type it again in a moment"},
		{[]error{owner.ErrGone}, "worldctl status tells where the world stands, and worldctl tail whether this was still done"},
	}
}

func hintsOfRules() []hint {
	return []hint{
		{[]error{governance.ErrNoProposal}, "worldctl proposal list --all shows those that there are"},
		{[]error{governance.ErrNoChange}, "worldctl manifest show is what is in force: change something first"},
		{[]error{governance.ErrTooMany}, "worldctl proposal list shows them"},
		{[]error{governance.ErrClosed}, "worldctl proposal show PROPOSAL says how it ended; propose again what is still wanted: worldctl propose"},
		{[]error{governance.ErrStale}, "make the change again on the manifest in force, which worldctl manifest show tells, and worldctl propose it; worldctl withdraw PROPOSAL takes this one back"},
		{[]error{governance.ErrOldReport}, "worldctl shadow PROPOSAL makes a new report, for new approvals"},
		{[]error{governance.ErrNotShadowed}, "worldctl shadow PROPOSAL says what it would have done"},
		{[]error{governance.ErrNotApproved}, "worldctl approve PROPOSAL --key FILE; worldctl proposal show PROPOSAL says who may"},
		{
			[]error{governance.ErrNotListed, governance.ErrRepeated, governance.ErrOwnProposal},
			"worldctl proposal show PROPOSAL says whose approvals count: worldctl approve PROPOSAL --key FILE with another one's",
		},
		{
			[]error{governance.ErrSignature, governance.ErrOtherTerms},
			"sign what worldctl proposal show PROPOSAL shows: worldctl approve PROPOSAL --key FILE",
		},
		{[]error{world.ErrClock}, "propose the clock as it is; or clock.mode simulated first, after which time goes on where something happens"},
		{[]error{world.ErrSeed}, "leave the seed as it is; a world of the same past with another one is a fork: worldctl fork DIR --seed N"},
		{[]error{world.ErrUnderWay}, "worldctl intent show KEY tells what it waits for, and worldctl run lets it end; or propose a change that keeps the kind"},
		{[]error{world.ErrMigration}, "nothing has changed: correct migrate in the reducer's code, and worldctl propose that"},
	}
}

func hintsOfEffects() []hint {
	return []hint{
		{[]error{errNotApproved}, "worldctl intent list --state awaiting_approval"},
		{[]error{errUndecided}, "worldctl intent list --state in_doubt"},
		{[]error{view.ErrPrefix, receipt.ErrUnknownIntent}, "worldctl intent list"},
		{[]error{view.ErrKeys}, "type more of its digits"},
		{[]error{view.ErrState}, view.StateNames()},
		{[]error{world.ErrConfirmationRequired}, "worldctl intent list --state awaiting_confirmation"},
		{[]error{world.ErrUnconfirmed}, "nothing has changed: type it again when the outside answers, or without --confirm"},
		{[]error{world.ErrNoRepeat}, "worldctl intent show KEY tells what it repeats; without that, intent approve or intent deny"},
		{[]error{world.ErrMayBeDone}, "look at the outside: worldctl intent resolve KEY --not-executed --reason TEXT says that it did not happen, and asks for it again"},
		{[]error{world.ErrNoReason}, "say why: --reason TEXT"},
		{[]error{errHalted}, "worldctl cell show CELL tells why; then worldctl cell resume CELL or worldctl cell skip CELL"},
	}
}

func hintsOfSnapshots() []hint {
	return []hint{
		{[]error{world.ErrOtherState}, "nothing has changed: worldctl verify says what is damaged; another snapshot may be whole: worldctl snapshot list"},
		{[]error{world.ErrRetention}, "type --max 1 or more"},
		{[]error{local.ErrNotSaved}, "worldctl snapshot save writes such files; one that was changed since is worth nothing"},
		{[]error{local.ErrSavedOther}, "type -w with the directory of that world"},
		{[]error{snapshot.ErrBadName}, "a name has up to 64 letters, digits, '-', '_' and '.', and reads neither as a record nor as a hash"},
		{[]error{snapshot.ErrNameTaken}, "choose another name; worldctl snapshot list shows those that are taken"},
		{[]error{snapshot.ErrNoSnapshot}, "worldctl snapshot list shows those that are kept"},
		{[]error{snapshot.ErrAmbiguous}, "type more of its digits, or its name: worldctl snapshot list"},
		{[]error{snapshot.ErrPinned}, "worldctl snapshot pin NAME --off lets it go"},
		{[]error{snapshot.ErrLastSnapshot}, "worldctl snapshot create makes another one first"},
	}
}

func hintsOfStore() []hint {
	return []hint{
		{[]error{local.ErrBytesLeft}, "check the disk and the room on it, and worldctl verify whether anything is damaged; then worldctl status opens the world, and so ends the redaction"},
		{[]error{store.ErrNothingToArchive}, "worldctl snapshot list shows later snapshots; worldctl snapshot create makes one"},
		{[]error{store.ErrNeededToOpen}, "worldctl snapshot create makes a later one"},
		{[]error{local.ErrOfManifest, local.ErrInline}, "payloads of records are redacted, nothing else"},
		{[]error{local.ErrNoPayload, local.ErrSeveral}, "name the record instead, as #123: worldctl tail shows it"},
		{[]error{world.ErrStillNeeded}, "worldctl snapshot create, then snapshot prune of those before, or run the world until the result is handled"},
		{[]error{journal.ErrRedacted}, "nobody can compute what follows from it: begin with a later snapshot (worldctl snapshot list); worldctl verify names the gap"},
		{[]error{store.ErrBehindAnchor}, "bring back all of .world from a copy: the store alone is older than what was acknowledged"},
		{[]error{store.ErrOffAnchor}, "bring back all of .world from a copy: store and anchor are not of one history"},
		{[]error{store.ErrNoAnchor}, "bring back .world/anchor from a copy: without it nobody knows what was acknowledged"},
		{[]error{store.ErrBadAnchor}, "bring back .world/anchor, and the keyring made with it, from a copy"},
		{[]error{store.ErrNotWorld}, "bring back all of .world from a copy: a part of it is gone"},
		{[]error{store.ErrNewerFormat, world.ErrEngine}, "worldctl version shows what this program can open; use the one that made the world"},
		{[]error{journal.ErrFenced}, "another process has taken this world over; what was acknowledged is safe"},
		{[]error{journal.ErrRewound}, "the database has lost what it had acknowledged: look whether it was restored, or a standby was promoted that was behind; docs/postgres.md, A world that is halted, says how to go on"},
		{[]error{journal.ErrUnknown}, "when the server answers again, worldctl status tells whether it was done"},
	}
}

func hintsOfDisk() []hint {
	return []hint{
		{[]error{syscall.ENOSPC}, "make room on the disk: what was acknowledged is safe, and worldctl status shows where the journal ends"},
		{[]error{syscall.ENOLCK}, "this file system gives no locks, as NFS without its lock service does: move the world to a local disk, or its journal to a store (docs/postgres.md)"},
		{[]error{fs.ErrPermission, syscall.EROFS}, "worldctl writes to the world's directory: check who may, or choose another one"},
		{[]error{fs.ErrNotExist, os.ErrClosed}, "check the path"},
		{[]error{syscall.ENOTDIR}, "check the path: a file is where it has a directory"},
		{[]error{syscall.ENAMETOOLONG}, "choose a shorter path"},
		{[]error{file.ErrIrregular}, "put the file itself in its place: no link and no pipe is followed there"},
	}
}
