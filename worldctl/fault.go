package worldctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// The exit codes of cli.md.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitVerify      = 3
	exitDenied      = 4
	exitConflict    = 5
	exitUndecided   = 6
	exitInterrupted = 130
)

// hintReducers says what opens a world with Go reducers.
const hintReducers = "a program that has it runs and replays the world: worldctl init DIR --template go writes one; this one can only read"

// fault is an error with what only a verb knows about it.
type fault struct {
	err  error
	code int    // 0: what the error itself asks for
	hint string // "": likewise
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

func usagef(hint, format string, args ...any) error {
	return &fault{err: fmt.Errorf(format, args...), code: exitUsage, hint: hint}
}

func hinted(err error, format string, args ...any) error {
	return &fault{err: err, hint: fmt.Sprintf(format, args...)}
}

// errInvalid says that something was verified and does not hold. What does not
// hold has been printed.
var errInvalid = errors.New("verification failed")

// errDifferent has no text: the answer has said what differs.
var errDifferent = errors.New("")

// What became of effects, where that is an error to who asked.
var (
	errDenied      = errors.New("the effect is denied")
	errNotApproved = errors.New("the effect waits for approval")
	errUndecided   = errors.New("effects in doubt need a decision")
)

// report prints an error and its hint, and returns the exit code.
func (c *cli) report(err error) int {
	code, hint := judge(err)
	for _, line := range lines(err) {
		fmt.Fprintln(c.stderr, c.paint("error:", text.FgRed), line)
	}
	if hint != "" {
		fmt.Fprintln(c.stderr, c.paint("hint:", text.FgCyan), c.inWorld(hint))
	}
	return code
}

// inWorld puts -w, where it was given, into the commands that a text tells a
// person to type, so that they work as they stand.
func (c *cli) inWorld(text string) string {
	if c.world == "" {
		return text
	}
	var pairs []string
	for _, verb := range newRootCommand(&cli{}).Commands() {
		if !worldless(verb.Name()) {
			pairs = append(pairs, "worldctl "+verb.Name(), "worldctl -w "+c.world+" "+verb.Name())
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// worldless reports whether a verb is about no world, or names its worlds itself.
func worldless(verb string) bool {
	switch verb {
	case "init", "validate", "restore", "import", "serve", "worker", "token", "version", "help", "completion":
		return true
	}
	return false
}

// lines returns what an error says, each line once.
func lines(err error) []string {
	var out []string
	text := strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted")
	for line := range strings.SplitSeq(text, "\n") {
		if line = visible(strings.TrimSpace(line), "\t"); line != "" && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

func (c *cli) paint(s string, color text.Color) string {
	if !c.origin.Console || c.plain() {
		return s
	}
	return color.Sprint(s)
}

func judge(err error) (code int, hint string) {
	code, hint = known(err)
	var f *fault
	if errors.As(err, &f) {
		if f.code != 0 {
			code = f.code
		}
		if f.hint != "" {
			hint = f.hint
		}
	}
	return code, hint
}

// known says what the errors of the packages below come to.
func known(err error) (code int, hint string) {
	var locked *store.LockedError
	var diverged *world.Divergence
	var miss *host.MissError
	var keyring *local.KeyringError
	var missing *reducer.MissingError
	switch {
	case errors.Is(err, context.Canceled):
		return exitInterrupted, "what was done is durable; worldctl run goes on from there"
	case errors.As(err, &locked):
		return exitConflict, "a world has one owner at a time: wait until that process has ended, then type this again"
	case errors.As(err, &diverged):
		return exitVerify, fmt.Sprintf("worldctl why %d", diverged.Record)
	case errors.As(err, &miss):
		if miss.Recorded {
			return exitFailed, "worldctl run performs it; or let the world in " + miss.File + " go on until it has asked for the same. Nothing was done outside"
		}
		return exitFailed, "add the answer to " + miss.File + " and make the world again: the effect waits, and nothing was lost"
	case errors.Is(err, local.ErrNoWorld):
		return exitFailed, "worldctl init"
	case errors.Is(err, local.ErrExists):
		return exitConflict, "worldctl status shows that world; another one needs another directory"
	case errors.Is(err, local.ErrBadID):
		return exitUsage, "choose another --id, or none: then it is a random one"
	case errors.As(err, &keyring):
		return ofKeyring(keyring)
	case isPassphrase(err):
		return exitFailed, hintPassphrase
	case errors.Is(err, local.ErrOtherHistory):
		return exitVerify, "nothing was signed: worldctl verify says what is another; bring back .world from a copy"
	case errors.Is(err, receipt.ErrNoEpoch):
		return exitUsage, "worldctl keys list shows the epochs"
	case errors.As(err, &missing):
		return exitFailed, hintReducers
	case errors.Is(err, local.ErrNoKeys):
		return exitFailed, "worldctl import journal FILE --keyring KEYRING makes a world that can run"
	case errors.Is(err, errInvalid):
		return exitVerify, ""
	}
	if code, hint = knownOfMoments(err); hint != "" {
		return code, hint
	}
	if code, hint = knownOfOwner(err); hint != "" {
		return code, hint
	}
	if code, hint = knownOfSnapshots(err); code != exitFailed || hint != "" {
		return code, hint
	}
	if code, hint = knownOfProposals(err); code != exitFailed || hint != "" {
		return code, hint
	}
	if code, hint = knownOfIntents(err); code != exitFailed || hint != "" {
		return code, hint
	}
	if code, hint = knownOfGrowth(err); hint != "" {
		return code, hint
	}
	return knownOfStore(err)
}

// knownOfMoments says what a look at the past, or at a part of it, comes to.
func knownOfMoments(err error) (code int, hint string) {
	var moment *view.MomentError
	switch {
	case errors.As(err, &moment) && errors.Is(err, journal.ErrNotFound):
		return exitFailed, momentForms
	case errors.As(err, &moment):
		return exitUsage, momentForms
	case errors.Is(err, view.ErrOrder):
		return exitUsage, "--from is where the range begins, and --to where it ends"
	case errors.Is(err, view.ErrKind):
		return exitUsage, "kinds are such as cell.stepped, event.emitted, intent.denied, invocation.finished; all of a family are " +
			strings.Join(journal.Families(), ".*, ") + ".*"
	case errors.Is(err, world.ErrNoCell):
		return exitFailed, "worldctl cell list"
	}
	return exitFailed, ""
}

// knownOfSnapshots says what snapshots, and rollbacks to them, come to.
func knownOfSnapshots(err error) (code int, hint string) {
	var left *world.SideEffectsError
	switch {
	case errors.As(err, &left) && left.Back() == len(left.Effects):
		return exitDenied, "--ack says that you know it: the cells count on what is done no more"
	case errors.As(err, &left):
		return exitDenied, "--compensate asks for their compensations, where their kind declares one; --ack says that the others stay, and that you know it"
	case errors.Is(err, world.ErrOtherState):
		return exitVerify, "nothing has changed: worldctl verify says what is damaged; another snapshot may be whole: worldctl snapshot list"
	case errors.Is(err, world.ErrRetention):
		return exitUsage, "type --max 1 or more"
	case errors.Is(err, local.ErrNotSaved):
		return exitVerify, "worldctl snapshot save writes such files; one that was changed since is worth nothing"
	case errors.Is(err, local.ErrSavedOther):
		return exitFailed, "type -w with the directory of that world"
	case errors.Is(err, snapshot.ErrBadName):
		return exitUsage, "a name has up to 64 letters, digits, '-', '_' and '.', and reads neither as a record nor as a hash"
	case errors.Is(err, snapshot.ErrNameTaken):
		return exitConflict, "choose another name; worldctl snapshot list shows those that are taken"
	case errors.Is(err, snapshot.ErrNoSnapshot):
		return exitFailed, "worldctl snapshot list shows those that are kept"
	case errors.Is(err, snapshot.ErrAmbiguous):
		return exitUsage, "type more of its digits, or its name: worldctl snapshot list"
	case errors.Is(err, snapshot.ErrPinned):
		return exitConflict, "worldctl snapshot pin NAME --off lets it go"
	case errors.Is(err, snapshot.ErrLastSnapshot):
		return exitConflict, "worldctl snapshot create makes another one first"
	}
	return exitFailed, ""
}

// knownOfProposals says what changes of the rules come to.
func knownOfProposals(err error) (code int, hint string) {
	name := "PROPOSAL"
	var about *proposalError
	if errors.As(err, &about) {
		name = view.ProposalName(about.n)
	}
	var adapters *local.AdaptersError
	var same *governance.SameError
	switch {
	case errors.As(err, &same):
		is := view.ProposalName(same.N)
		return exitConflict, fmt.Sprintf("go on with that one: worldctl shadow %[1]s, worldctl approve %[1]s --key FILE; worldctl proposal show %[1]s says what is missing", is)
	case errors.Is(err, governance.ErrNoProposal):
		return exitUsage, "worldctl proposal list --all shows those that there are"
	case errors.Is(err, governance.ErrNoChange):
		return exitUsage, "worldctl manifest show is what is in force: change something first"
	case errors.As(err, &adapters):
		return exitUsage, "correct that, then worldctl propose it again"
	case errors.Is(err, governance.ErrTooMany):
		return exitConflict, "worldctl proposal list shows them"
	case errors.Is(err, governance.ErrClosed):
		return exitConflict, "worldctl proposal show " + name + " says how it ended; propose again what is still wanted: worldctl propose"
	case errors.Is(err, governance.ErrStale):
		return exitConflict, "make the change again on the manifest in force, which worldctl manifest show tells, and worldctl propose it; worldctl withdraw " + name + " takes this one back"
	case errors.Is(err, governance.ErrOldReport):
		return exitConflict, "worldctl shadow " + name + " makes a new report, for new approvals"
	case errors.Is(err, governance.ErrNotShadowed):
		return exitDenied, "worldctl shadow " + name + " says what it would have done"
	case errors.Is(err, governance.ErrNotApproved):
		return exitDenied, "worldctl approve " + name + " --key FILE; worldctl proposal show " + name + " says who may"
	case errors.Is(err, governance.ErrNotListed), errors.Is(err, governance.ErrRepeated), errors.Is(err, governance.ErrOwnProposal):
		return exitDenied, "worldctl proposal show " + name + " says whose approvals count: worldctl approve " + name + " --key FILE with another one's"
	case errors.Is(err, governance.ErrSignature), errors.Is(err, governance.ErrOtherTerms):
		return exitDenied, "sign what worldctl proposal show " + name + " shows: worldctl approve " + name + " --key FILE"
	case errors.Is(err, world.ErrUnderWay):
		return exitConflict, "worldctl intent list shows what is under way, and worldctl run lets it end; or propose a change that keeps the kind"
	case errors.Is(err, world.ErrMigration):
		return exitConflict, "nothing has changed: correct migrate in the reducer's code, and worldctl propose that"
	case about != nil && errors.Is(err, world.ErrNoReason):
		return exitUsage, "say why: -m TEXT"
	}
	return exitFailed, ""
}

// knownOfIntents says what effects, and decisions about them, come to.
func knownOfIntents(err error) (code int, hint string) {
	switch {
	case errors.Is(err, errDenied), errors.Is(err, world.ErrNoBudget):
		return exitDenied, ""
	case errors.Is(err, errNotApproved):
		return exitDenied, "worldctl intent list --state parked"
	case errors.Is(err, errUndecided):
		return exitUndecided, "worldctl intent list --state in_doubt"
	case errors.Is(err, world.ErrConfirmationRequired):
		return exitUndecided, "worldctl intent list --state parked"
	case errors.Is(err, world.ErrUnconfirmed):
		return exitFailed, "nothing has changed: type it again when the outside answers, or without --confirm"
	case errors.Is(err, world.ErrNoRepeat):
		return exitFailed, "worldctl intent show KEY tells what it repeats; without that, intent approve or intent deny"
	case errors.Is(err, world.ErrOtherParams):
		return exitConflict, ""
	case errors.Is(err, world.ErrNoReason):
		return exitUsage, "say why: --reason TEXT"
	}
	return exitFailed, ""
}

// hintPassphrase says how a sealed keyring is opened.
const hintPassphrase = "give its passphrase with --passphrase-file FILE, in " + passphraseEnv + ", or on the terminal"

func isPassphrase(err error) bool {
	return errors.Is(err, local.ErrSealed) || errors.Is(err, receipt.ErrPassphrase) ||
		errors.Is(err, errNoPassphrase) || errors.Is(err, errEmptyPassphrase) || errors.Is(err, errOtherPassphrase)
}

func ofKeyring(err *local.KeyringError) (code int, hint string) {
	switch {
	case isPassphrase(err):
		return exitFailed, hintPassphrase
	case errors.Is(err, local.ErrNotSealed):
		return exitConflict, "worldctl keys seal seals it"
	case errors.Is(err, local.ErrExposedKeys):
		return exitFailed, "chmod 600 " + err.Path
	case errors.Is(err, fs.ErrPermission):
		return exitFailed, "only its owner can use it: " + err.Path
	}
	return exitFailed, "bring it back from your copy: without it this world is neither run nor verified; an export of it can still be imported, to be read"
}

func knownOfStore(err error) (code int, hint string) {
	var damage *store.DamageError
	switch {
	case errors.Is(err, store.ErrBehindAnchor):
		return exitVerify, "bring back all of .world from a copy: the store alone is older than what was acknowledged"
	case errors.Is(err, store.ErrOffAnchor):
		return exitVerify, "bring back all of .world from a copy: store and anchor are not of one history"
	case errors.Is(err, store.ErrNoAnchor):
		return exitVerify, "bring back .world/anchor from a copy: without it nobody knows what was acknowledged"
	case errors.Is(err, store.ErrBadAnchor):
		return exitVerify, "bring back .world/anchor, and the keyring made with it, from a copy"
	case errors.Is(err, store.ErrNotWorld):
		return exitVerify, "bring back all of .world from a copy: a part of it is gone"
	case errors.As(err, &damage):
		return exitVerify, "worldctl verify lists what is damaged; bring back .world from a copy, or worldctl import journal an export"
	case errors.Is(err, store.ErrNewerFormat), errors.Is(err, world.ErrEngine):
		return exitFailed, "worldctl version shows what this program can open; use the one that made the world"
	case errors.Is(err, journal.ErrFenced):
		return exitConflict, "another process has taken this world over; what was acknowledged is safe"
	case errors.Is(err, syscall.ENOSPC):
		return exitFailed, "make room on the disk: what was acknowledged is safe, and worldctl status shows where the journal ends"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return exitFailed, "worldctl writes to the world's directory: check who may, or choose another one"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, os.ErrClosed):
		return exitFailed, "check the path"
	}
	return exitFailed, ""
}
