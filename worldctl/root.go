package worldctl

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/serve/node"
	"github.com/worldkernel/worldkernel/serve/owner"
	"github.com/worldkernel/worldkernel/serve/shared"
	"github.com/worldkernel/worldkernel/world/local"
)

// cli is one run of the program: its streams and its global flags.
type cli struct {
	opts   Options
	args   []string
	stdin  io.Reader
	stdout *bufio.Writer
	stderr io.Writer
	rawOut *bufio.Writer // behind the door of stdout: for documents, and what this program paints
	rawErr io.Writer     // likewise of stderr
	origin owner.Origin

	life context.Context // of what is lived again of a past, and of worlds that are thrown away: it ends at the first signal

	brief     bool // what is long is shown in part
	ofRecords bool // the verb answers from the records themselves, or about a moment that was named

	owned  *local.World // is open in this process, and stays so; nil: the command line was typed here
	prompt prompter     // asks whoever typed it; nil: the terminal of this process

	by      string // who acts, of verbs with --as
	world   string
	output  string
	noColor bool
	quiet   bool
	verbose bool

	paranoid bool   // of step and run
	confirm  bool   // likewise
	workers  int    // of run
	memory   uint64 // of a world, before what is not used is left to its store; 0: the default
	effects  string
	bounds   local.Bounds // of rules that nobody here has put in force

	passphrase passphrase

	storeFlags
	stored *shared.Store // that they lead to; nil: not open yet
	nodes  *node.Nodes   // likewise of several, whose node this process is; nil: it is none
	placed *shared.World // in it, that is meant; nil: none
	reads  bool          // the verb changes nothing: of a world in a store it owns nothing
}

// execute carries out the command line, or has the owner of the world do it.
func (c *cli) execute(ctx context.Context) int {
	c.opts, c.life = c.opts.complete(), ctx
	closeDoors := c.doors()
	defer c.closeStore()
	root := newRootCommand(c)
	root.SetArgs(momentArgs(root, c.args))
	root.SetIn(c.stdin)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	err := root.ExecuteContext(ctx)
	if elsewhere, ok := errors.AsType[*ownedError](err); ok && c.owned == nil {
		code, answered, failed := c.askOwner(ctx, elsewhere.dir)
		if answered && failed == nil {
			return code
		}
		if answered {
			err = failed
		}
	}
	if flushed := closeDoors(); err == nil {
		err = flushed
	}
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), owner.ErrEnding) {
		err = fmt.Errorf("%w: %w", owner.ErrEnding, err)
	}
	if err == nil {
		return exitOK
	}
	return c.report(err)
}

func newRootCommand(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:           cmp.Or(c.origin.Program, ownName),
		Version:       version().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			c.ofRecords, c.reads = ofRecords(cmd), reads(cmd)
			err := errors.Join(c.checkOutput(cmd), checkTexts(cmd), c.besideOwner(cmd), c.besideStore(cmd))
			if err != nil {
				return err
			}
			return c.setActor(cmd)
		},
	}
	flags := root.PersistentFlags()
	flags.StringVarP(&c.world, "world", "w", "", "the world's `DIR`, the nearest one upwards if not given; in a store its ID")
	flags.StringVarP(&c.output, "output", "o", formTable, "`FORM` of the answer: table, json or jsonl")
	flags.BoolVar(&c.noColor, "no-color", false, "no colors; NO_COLOR does the same")
	flags.StringVar(&c.passphrase.file, "passphrase-file", "", "`FILE` with the passphrase of a sealed keyring; "+passphraseEnv+" does the same")
	flags.BoolVarP(&c.quiet, "quiet", "q", false, "nothing on stderr but errors, and that an answer is not up to date")
	flags.BoolVarP(&c.verbose, "verbose", "v", false, "data in full, and a line for every tick")
	c.addStore(flags)
	root.SetFlagErrorFunc(flagError)
	for _, g := range c.groups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.id + ": " + g.about})
		for _, verb := range g.verbs {
			verb.GroupID = g.id
			root.AddCommand(verb)
		}
	}
	root.AddCommand(newVersionCommand(c))
	group(root)
	complete(root, verbTexts())
	if root.Use != ownName {
		c.rename(root)
	}
	shortHelp(root)
	return root
}

// ownName is how texts call the program, whatever it is called.
const ownName = "worldctl"

// rename has the help of all verbs name this program.
func (c *cli) rename(root *cobra.Command) {
	typed := c.typed("")
	for _, cmd := range append(allVerbs(root), root) {
		cmd.Long, cmd.Example = typed.Replace(cmd.Long), typed.Replace(cmd.Example)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage = typed.Replace(f.Usage) })
	}
}

// verbs are those that are for one purpose.
type verbs struct {
	id, about string
	verbs     []*cobra.Command
}

// groups returns all verbs as --help and docs/cli.md show them.
func (c *cli) groups() []verbs {
	return []verbs{
		{"world", "make one, send it events, run it", []*cobra.Command{
			newInitCommand(c), newValidateCommand(c), newTestCommand(c), newDevCommand(c), newSendCommand(c), newStepCommand(c), newRunCommand(c),
		}},
		{"agents", "your own agents, with their model calls and tools through a world", []*cobra.Command{
			newAgentCommand(c), newMCPCommand(c), newHookCommand(c),
		}},
		{"look", "where it stands, what happened, and why", []*cobra.Command{
			newStatusCommand(c), newTailCommand(c), newAuditCommand(c), newCellCommand(c), newTimelineCommand(c), newWhyCommand(c), newGraphCommand(c),
		}},
		{"past", "snapshots, ways back, and what would have been", []*cobra.Command{
			newDiffCommand(c), newMeasureCommand(c), newSnapshotCommand(c), newRollbackCommand(c), newForkCommand(c), newWhatIfCommand(c),
		}},
		{"experiments", "one world many times, and what comes out", []*cobra.Command{
			newSweepCommand(c),
		}},
		{"outside", "effects, what answered them, and what a person has to decide", []*cobra.Command{
			newEffectCommand(c), newIntentCommand(c), newReceiptCommand(c), newBudgetCommand(c), newImportCommand(c),
		}},
		{"rules", "look at the manifest, and change it with approval", []*cobra.Command{
			newManifestCommand(c), newPolicyCommand(c), newProposeCommand(c), newProposalCommand(c), newShadowCommand(c),
			newApproveCommand(c), newRejectCommand(c), newWithdrawCommand(c), newApplyCommand(c),
		}},
		{"proof", "for whoever was not there", []*cobra.Command{
			newVerifyCommand(c), newReplayCommand(c), newProveCommand(c), newCheckpointCommand(c),
		}},
		{"serve", "worlds over HTTP, and workers elsewhere", []*cobra.Command{
			newServeCommand(c), newUICommand(c), newTokenCommand(c), newWorkerCommand(c),
		}},
		{"keep", "copies, exports, keys, and what may go", []*cobra.Command{
			newBackupCommand(c), newRestoreCommand(c), newExportCommand(c), newArchiveCommand(c), newRedactCommand(c), newGCCommand(c), newKeysCommand(c), newStoreCommand(c), newNodeCommand(c), newMoveCommand(c),
		}},
	}
}

// group makes a command that only has verbs answer a verb that it does not
// have.
func group(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(verbs...)
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 0:
			return unknownVerb(cmd, args[0])
		case cmd.HasParent():
			return usagef("type "+cmd.CommandPath()+" --help", "%s needs a verb: %s", cmd.CommandPath(), verbsOf(cmd))
		}
		return cmd.Help()
	}
	return cmd
}

func verbsOf(cmd *cobra.Command) string {
	var names []string
	for _, verb := range cmd.Commands() {
		if verb.IsAvailableCommand() {
			names = append(names, verb.Name())
		}
	}
	return strings.Join(names, ", ")
}

// complete gives a verb and those below it their texts, and how many arguments it takes where only these say it.
func complete(cmd *cobra.Command, texts map[string]verbText) {
	t := texts[ownName+strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name())]
	cmd.Short, cmd.Long, cmd.Example = t.short, t.long, t.example
	if cmd.Args == nil {
		cmd.Args = argsOf(cmd.Use)
	}
	for _, below := range cmd.Commands() {
		complete(below, texts)
	}
}

// argsOf bounds the number of a verb's arguments by how its help shows them: NAME, [NAME] and NAME...
func argsOf(use string) cobra.PositionalArgs {
	least, most := 0, 0
	for _, word := range strings.Fields(use)[1:] {
		if strings.HasPrefix(strings.TrimPrefix(word, "["), "-") {
			break
		}
		if most++; strings.Contains(word, "...") {
			most = math.MaxInt
		}
		if !strings.HasPrefix(word, "[") {
			least++
		}
	}
	return args(least, most)
}

// args bounds the number of a verb's arguments.
func args(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if least <= len(args) && len(args) <= most {
			return nil
		}
		_, takes, _ := strings.Cut(cmd.Use, " ")
		text := fmt.Sprintf("%s takes %s, and ", cmd.CommandPath(), cmp.Or(takes, "no argument"))
		switch {
		case len(args) == 0:
			text += "there is none"
		case len(args) < least:
			text += fmt.Sprintf("there is only %q", args[len(args)-1])
		default:
			text += fmt.Sprintf("%q is one too many", args[most])
		}
		if most == 0 && cmd.Flags().Lookup("ticks") != nil {
			if _, err := strconv.ParseUint(args[0], 10, 64); err == nil {
				return usagef("type "+cmd.CommandPath()+" --ticks "+args[0], "%s", text)
			}
		}
		example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
		if most == 0 || example == "" {
			return usagef("type "+cmd.CommandPath()+" --help", "%s", text)
		}
		return usagef("such as "+example, "%s", text)
	}
}

// dir returns the directory of the world that is meant: of one in a store that of its copy.
func (c *cli) dir() (string, error) {
	if c.owned != nil && c.origin.Stored {
		return c.owned.Dir(), nil // whoever asks has found it there
	}
	if c.storeURL() != "" {
		return c.place(c.world)
	}
	if c.world != "" {
		return c.path(c.world), nil
	}
	return local.Find(c.path("."))
}

// with opens the world for use and gives it up again. Where that is open in this
// process already, it stays so. What falls due outside meanwhile is begun by who runs the
// world: most verbs end sooner than an effect does.
func (c *cli) with(use func(lw *local.World) error) error {
	opts := c.options()
	opts.Still, opts.Missed = true, nil
	return c.using(opts, use)
}

// using is with for verbs that say how the world is opened.
func (c *cli) using(opts local.Options, use func(lw *local.World) error) error {
	dir, err := c.dir()
	if err != nil {
		return err
	}
	if c.owns(dir) {
		return use(c.owned)
	}
	open := local.Open
	if c.placed != nil && c.reads {
		open = local.OpenReadOnly
	}
	lw, err := c.opened(dir, c.in(dir, opts), open)
	if err != nil {
		return ownedIn(dir, err)
	}
	if at, end := lw.Status().Head.ID, lw.Head().ID; lw.Lacks() != nil && at < end && !c.ofRecords {
		// --quiet leaves it: nothing else in a list says that it is an old one.
		fmt.Fprintf(c.stderr, "note: %v: cells and intents are shown as of #%d of %d\n", lw.Lacks(), at, end)
	}
	err = use(lw)
	if closed := lw.Close(); err == nil {
		err = closed
	}
	return c.leaving(lw, err)
}

// inDir lets use work in the directory of the world that is meant, which it opens itself.
func (c *cli) inDir(use func(dir string, opts local.Options) error) error {
	dir, err := c.dir()
	if err != nil {
		return err
	}
	return notOpened(dir, use(dir, c.in(dir, c.options())))
}

// onWorld makes a verb of what is done with the world that is meant; see with.
func (c *cli) onWorld(do func(ctx context.Context, lw *local.World, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return c.with(func(lw *local.World) error { return do(cmd.Context(), lw, args) })
	}
}

func (c *cli) options() local.Options {
	return local.Options{
		Reducers: c.opts.Reducers, Adapters: c.opts.Adapters, Verifiers: c.opts.Verifiers,
		Paranoid: c.paranoid, Workers: c.workers, Memory: int(c.memory), Effects: c.effects, Passphrase: c.askPassphrase, Bounds: c.bounds,
		Missed: c.noteMissed, UnderWay: c.opts.interrupts.underWay, Temporary: c.opts.interrupts.temporary,
		Fatal: func(err error) { os.Exit(c.report(err)) }, //nolint:forbidigo // Pebble cannot go on
	}
}

// throwaway are the options of worlds that are only read or tried: they end at the first signal.
func (c *cli) throwaway() local.Options {
	opts := c.options()
	opts.Life = c.life
	return opts
}

// noteEdited says, without making it an error, that world.yaml is not what the
// world runs.
func (c *cli) noteEdited(lw *local.World) {
	if c.quiet {
		return
	}
	if text := otherSource(lw); text != "" {
		c.note("note: %s", text)
	}
}

// otherSource says that world.yaml is not what the world runs; empty: it is, or there
// is none. Nobody knows which of the two came later.
func otherSource(lw *local.World) string {
	switch err := lw.CheckSource(); {
	case errors.Is(err, local.ErrEdited):
		return fmt.Sprintf("%s is not the manifest in force: worldctl diff head %s tells the difference, and worldctl propose would propose what the file says",
			local.ManifestFile, shellWord(filepath.Join(lw.Dir(), local.ManifestFile)))
	case err != nil:
		return fmt.Sprintf("%s is broken (%s), but the world runs the manifest in force: worldctl propose asks for a change, once it is corrected",
			local.ManifestFile, lines(err)[0])
	}
	return ""
}

// ownedIn is notOpened for what the owner of the world can do instead, if it has
// one.
func ownedIn(dir string, err error) error {
	err = notOpened(dir, err)
	if locked := (*store.LockedError)(nil); errors.As(err, &locked) {
		return &ownedError{dir, err}
	}
	return err
}

// notOpened names the directory in what to do about a world that was not
// opened.
func notOpened(dir string, err error) error {
	if errors.Is(err, local.ErrNoRecording) {
		return hinted(err, "bring it back to where it was, or write where it is into %s", filepath.Join(dir, ".world", "recorded"))
	}
	if errors.Is(err, local.ErrNoWorld) {
		return hinted(err, "worldctl init %s", shellWord(dir))
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return hinted(err, "-w names the directory of a world: -w %s", shellWord(filepath.Dir(dir)))
	}
	return err
}
