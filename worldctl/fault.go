package worldctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/worldkernel/worldkernel/serve/owner"
	"github.com/worldkernel/worldkernel/show/view"
)

// The exit codes of cli.md.
const (
	exitOK          = view.ExitOK
	exitFailed      = view.ExitFailed
	exitUsage       = view.ExitUsage
	exitVerify      = view.ExitVerify
	exitDenied      = view.ExitDenied
	exitConflict    = view.ExitConflict
	exitUndecided   = view.ExitUndecided
	exitInterrupted = view.ExitInterrupted
)

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

// advice says what to do about an error of a verb.
type advice struct {
	of   error
	code int // 0: its own
	hint string
}

// advised gives an error the first advice that is about it.
func advised(err error, all ...advice) error {
	for _, a := range all {
		if errors.Is(err, a.of) {
			return &fault{err: err, code: a.code, hint: a.hint}
		}
	}
	return err
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
		c.marked("error:", text.FgRed, line)
	}
	if hint != "" {
		c.marked("hint:", text.FgCyan, c.inWorld(hint))
	}
	return code
}

// marked prints a line behind a word of this program's own, which may have a color.
func (c *cli) marked(word string, color text.Color, line string) {
	fmt.Fprint(c.rawErr, c.paint(word, color))
	fmt.Fprintln(c.stderr, "", line)
}

// inWorld puts the name of this program, and -w and --store, where they were given, into the
// commands that a text tells a person to type, so that they work as they stand.
func (c *cli) inWorld(text string) string { return c.typed(c.world).Replace(text) }

// typed makes commands of worldctl those of this program about a world; empty: about none
// in particular.
func (c *cli) typed(world string) *strings.Replacer {
	name, store := cmp.Or(c.origin.Program, ownName), c.storeTyped()
	if world == "" && store == "" && name == ownName {
		return strings.NewReplacer()
	}
	inDirectories := storeEnv + "= " + ownName + " " // of no store, whichever was typed
	pairs := []string{ownName + " -w ", name + " -w ", inDirectories, storeEnv + "= " + name + " "}
	for _, verb := range newRootCommand(&cli{}).Commands() {
		about := ""
		if !ofDirectories(verb.Name()) {
			about = store
		}
		if world != "" && !worldless(verb.Name()) {
			about += " -w " + shellWord(world)
		}
		pairs = append(pairs, ownName+" "+verb.Name(), name+about+" "+verb.Name())
	}
	return strings.NewReplacer(pairs...)
}

// shellWord is a text as a shell takes it for one word.
func shellWord(text string) string {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@%+,=", r)
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// worldless reports whether a verb is about no world, or names its worlds itself.
func worldless(verb string) bool {
	switch verb {
	case "init", "validate", "sweep", "restore", "move", "import", "serve", "worker", "token", "store", "node", "version", "help", "completion":
		return true
	}
	return false
}

// packagesThatSpeak are the packages whose errors begin with their names.
func packagesThatSpeak() []string {
	return []string{
		"anchor", "api", "bundle", "canon", "checkpoint", "columns", "experiment", "fault", "gateway", "governance", "host", "journal", "llm", "local", "manifest",
		"mcp", "measure", "memory", "node", "notify", "outside", "pglog", "receipt", "relay", "reducer", "snapshot", "source", "sshkey", "store", "ui", "verify", "worker", "world",
	}
}

// inPlain leaves the names of packages out of what an error says in a line.
func inPlain(line string) string { return speaking().ReplaceAllString(line, "$1$2") }

// speaking finds the names of packages. What stands behind a line and a column of a file is a
// field of it that is missing.
var speaking = sync.OnceValue(func() *regexp.Regexp { //nolint:gochecknoglobals // a constant
	return regexp.MustCompile(`(:[0-9]+:[0-9]+: [a-z]+:)|(^|: )(?:(?:` + strings.Join(packagesThatSpeak(), "|") + `): )+`)
})

// maxLines is how many lines of an error are printed: nobody reads more.
const maxLines = 200

// lines returns what an error says to who does not know the packages of this program, each
// line once.
func lines(err error) []string {
	var out []string
	there := make(map[string]bool)
	text := strings.ReplaceAll(view.Bounded(err.Error()), context.Canceled.Error(), "interrupted")
	for line := range strings.SplitSeq(text, "\n") {
		line = inPlain(line)
		if line = visible(strings.TrimSpace(line), "\t"); line == "" || there[line] {
			continue
		}
		if there[line] = true; len(there) <= maxLines {
			out = append(out, line)
		}
	}
	if more := len(there) - maxLines; more > 0 {
		out = append(out, fmt.Sprintf("and %d more lines", more))
	}
	return out
}

func (c *cli) paint(s string, color text.Color) string {
	if !c.origin.Console || c.plain() {
		return s
	}
	return color.Sprint(s)
}

// judge returns the exit code of an error, by the table of package view, and its hint.
func judge(err error) (code int, hint string) {
	code, hint = exitOf(err), hintOf(err)
	if f, ok := errors.AsType[*fault](err); ok {
		if f.code != 0 {
			code = f.code
		}
		if f.hint != "" {
			hint = f.hint
		}
	}
	return code, hint
}

func exitOf(err error) int {
	code := view.FaultOf(err).Exit
	switch {
	case code != exitFailed:
		return code
	case errors.Is(err, errInvalid):
		return exitVerify
	case errors.Is(err, errDenied), errors.Is(err, errNotApproved), errors.Is(err, errNotYet):
		return exitDenied
	case errors.Is(err, errUndecided):
		return exitUndecided
	case errors.Is(err, errBesides), errors.Is(err, owner.ErrVersion), errors.Is(err, owner.ErrRefuses):
		return exitConflict
	}
	return exitFailed
}
