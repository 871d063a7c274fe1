package worldctl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// defaultTemplate is what a directory without a world.yaml gets.
const defaultTemplate = "counter"

// eventsFile is where an example keeps the events that it begins with.
const eventsFile = "events.jsonl"

// founding is what init was asked for.
type founding struct {
	dir      string
	template string // "": none was named
	from     string // a directory that a world in a store is made of
	creationFlags
}

// creationFlags are the flags that say what a new world gets.
type creationFlags struct {
	id      string
	seed    uint64
	keyring string
}

type initAnswer struct {
	World    string       `json:"world"`
	WorldID  string       `json:"world_id"`
	Dir      string       `json:"dir"`
	Template string       `json:"template"` // "" where the directory had a world.yaml
	Head     journal.Head `json:"head"`
}

type templateLine struct {
	Name string `json:"name"`
	What string `json:"what"`
}

func newInitCommand(c *cli) *cobra.Command {
	var f founding
	var listed bool
	cmd := &cobra.Command{
		Use: "init [DIR|ID]",
		RunE: func(cmd *cobra.Command, args []string) error {
			if listed {
				return c.listTemplates()
			}
			birth, err := f.birth(cmd)
			if err != nil {
				return err
			}
			if c.storeURL() != "" {
				return c.initStored(cmd.Context(), cmp.Or(strings.Join(args, ""), c.world), &f, birth)
			}
			switch {
			case f.from != "":
				return usagef("worldctl init "+shellWord(f.from), "--from is for a world in a store")
			case len(args) == 1 && c.world != "" && filepath.Clean(args[0]) != filepath.Clean(c.world):
				return usagef("name the directory once", "init was given two directories: %s and %s", args[0], c.world)
			case len(args) == 1:
				f.dir = args[0]
			default:
				f.dir = cmp.Or(c.world, ".")
			}
			return c.init(&f, birth)
		},
	}
	cmd.Flags().StringVar(&f.template, "template", "", "begin with the files of this `NAME`")
	cmd.Flags().StringVar(&f.from, "from", "", "make a world in a store of the world.yaml in this `DIR`")
	cmd.Flags().BoolVar(&listed, "list", false, "list the templates, and make nothing")
	f.add(cmd)
	return cmd
}

func (b *creationFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&b.id, "id", "", "the world's `ID`; a random one if not given")
	cmd.Flags().Uint64Var(&b.seed, "seed", 0, "the `N` that randomness comes from; the one in world.yaml if not given")
	cmd.Flags().StringVar(&b.keyring, "keyring", "", "a keyring `FILE` made for the same id; a new one if not given")
}

func (b *creationFlags) birth(cmd *cobra.Command) (local.CreateOptions, error) {
	birth := local.CreateOptions{ID: b.id}
	if cmd.Flags().Changed("seed") {
		birth.Seed = &b.seed
	}
	if b.keyring != "" {
		var err error
		if birth.Keyring, err = os.ReadFile(b.keyring); err != nil {
			return birth, err
		}
	}
	return birth, nil
}

func (c *cli) listTemplates() error {
	templates := each(examples.Names(), func(name string) (templateLine, error) {
		return templateLine{Name: name, What: examples.Describe(name)}, nil
	})
	return list(c, "templates", "templates", templates, columns[templateLine]{
		header: table.Row{"template", "what it is"},
		row:    func(t templateLine) table.Row { return table.Row{t.Name, t.What} },
	})
}

func (c *cli) init(f *founding, birth local.CreateOptions) error {
	answer := initAnswer{Dir: f.dir}
	if c.world = f.dir; filepath.Clean(f.dir) == "." {
		c.world = ""
	}
	var err error
	answer.Template, err = f.files(func() error {
		if f.template == goTemplate {
			return writeGoMod(f.dir)
		}
		return local.Create(f.dir, birth, c.options())
	})
	if err != nil {
		return toCorrect(err, filepath.Join(f.dir, local.ManifestFile))
	}
	if answer.Template == goTemplate {
		return c.object("init", answer, func() {
			fmt.Fprintf(c.stdout, "a program for a world is in %s\n", f.dir)
			c.note("next (if worldctl comes from a checkout, go.mod wants its directory first):\n  cd %s\n  go mod tidy\n  go test ./...\n  go run . init\nREADME.md says what else", f.dir)
		})
	}
	return c.with(func(lw *local.World) error {
		s := lw.Status()
		answer.World, answer.WorldID, answer.Head = s.World, s.ID, s.Head
		return c.object("init", answer, func() {
			fmt.Fprintf(c.stdout, "world %s is in %s, id %s\n", s.World, f.dir, s.ID)
			c.warnOf(filepath.Join(f.dir, local.ManifestFile), f.dir)
			template := answer.Template
			if isGateway(lw) {
				template = gatewayTemplate
			}
			c.next(f.dir, template)
		})
	})
}

// next says what to type in a new world.
func (c *cli) next(dir, template string) {
	c.flush()
	c.note("next:")
	if template == gatewayTemplate {
		c.note("  worldctl agent run -- COMMAND     an agent of yours, as claude -p \"fix the failing test\"")
		c.note("  worldctl agent calls\n  worldctl verify")
		return
	}
	events := filepath.Join(dir, eventsFile)
	if _, err := os.Stat(events); err == nil {
		c.note("  worldctl send - < %s", events)
	} else if event := examples.Event(template); event != "" {
		c.note("  worldctl send %s", event)
	} else {
		c.note("  worldctl send NAME '{...}'     an event of %s", filepath.Join(dir, local.ManifestFile))
	}
	c.note("  worldctl run\n  worldctl cell list\n  worldctl verify")
	experiment := filepath.Join(dir, template+".yaml") // as templates that have one name it
	if _, err := os.Stat(experiment); template != "" && err == nil {
		c.note("  worldctl sweep %s     many runs of it, and what they come to", shellWord(experiment))
	}
	if lines := examples.Live(template); lines != nil {
		c.note("These three lines of %s make it live, each in the place of the one with its number:", filepath.Join(dir, local.ManifestFile))
		for _, line := range lines {
			c.note("%s", line)
		}
	}
}

// noTemplate says that there is no such template, and which was probably meant.
func noTemplate(name string) error {
	hint := "worldctl init --list"
	if like := manifest.Nearest(name, examples.Names()); like != "" {
		hint = "did you mean --template " + like + "?"
	}
	return usagef(hint, "there is no template %q", name)
}

// files puts a template's files into the directory, unless it has a world.yaml, and
// has them used. It returns the template's name.
func (f *founding) files(use func() error) (string, error) {
	yaml := filepath.Join(f.dir, local.ManifestFile)
	_, err := os.Lstat(yaml)
	switch {
	case err == nil && f.template == "":
		return "", use()
	case err == nil:
		return "", &fault{
			err: fmt.Errorf("%s: %w", yaml, fs.ErrExist), code: exitConflict,
			hint: "a template needs another directory; worldctl init " + f.dir + " makes a world of this one, if it is none yet",
		}
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	name := cmp.Or(f.template, defaultTemplate)
	made := false
	err = examples.CopyFor(name, f.dir, func() error {
		made = true
		return use()
	})
	switch {
	case made && !errors.Is(err, fs.ErrExist):
		return name, err
	case errors.Is(err, examples.ErrUnknown):
		return "", noTemplate(name)
	case errors.Is(err, fs.ErrExist):
		return "", &fault{err: err, code: exitConflict, hint: "a template needs a directory without such files: worldctl init OTHER"}
	}
	return name, err
}

// initStored makes a world in a store, of a directory's world.yaml or of a template.
func (c *cli) initStored(ctx context.Context, id string, f *founding, birth local.CreateOptions) error {
	switch {
	case id == "":
		return usagef("worldctl init ID --template town", "a world in a store needs an id")
	case birth.ID != "" && birth.ID != id:
		return usagef("name the id once", "init was given two ids: %s and %s", id, birth.ID)
	case f.from != "" && f.template != "":
		return usagef("leave one of them out", "--from and --template both say what the world is made of")
	case f.template == goTemplate:
		return usagef("worldctl init DIR --template go, without --store", "the template go is a program, and no world")
	}
	if _, err := c.place(id); err != nil {
		return err
	}
	c.world = id
	name, event := "", ""
	made := func(dir string) error {
		file := filepath.Join(dir, local.ManifestFile)
		loaded, err := c.loadWorld(file)
		if err != nil {
			return notOfBackup(dir, toCorrect(err, file))
		}
		event = cmp.Or(examples.Event(name), firstEvent(filepath.Join(dir, eventsFile)), "NAME '{...}'")
		return c.createStored(ctx, id, loaded, birth)
	}
	var err error
	if f.from != "" {
		err = made(c.path(f.from))
	} else {
		name = cmp.Or(f.template, defaultTemplate)
		err = c.ofTemplate(name, made)
	}
	if err != nil {
		return err
	}
	c.reads = true
	return c.with(func(lw *local.World) error {
		s := lw.Status()
		a := initAnswer{World: s.World, WorldID: s.ID, Dir: lw.Dir(), Template: name, Head: s.Head}
		return c.object("init", a, func() {
			fmt.Fprintf(c.stdout, "world %s is in the store, id %s\n", s.World, s.ID)
			c.note("next:\n  worldctl send %s\n  worldctl run\n  worldctl cell list\n  worldctl verify", event)
		})
	})
}

// firstEvent is the first event of a file, as send takes it: the file itself may be gone by then.
// Empty: there is none.
func firstEvent(name string) string {
	data, err := file.ReadRegular(name, maxFileBytes)
	line, _, _ := bytes.Cut(data, []byte("\n"))
	var e struct {
		Event string          `json:"event"`
		Data  json.RawMessage `json:"data"`
	}
	if err != nil || json.Unmarshal(line, &e) != nil || e.Event == "" {
		return ""
	}
	return shellWord(e.Event) + " " + shellWord(string(e.Data))
}

// notOfBackup says what a directory without a world.yaml is, if it is the backup of a world.
func notOfBackup(dir string, err error) error {
	if _, found := os.Stat(filepath.Join(dir, ".world")); found == nil && errors.Is(err, fs.ErrNotExist) {
		return hinted(err, "init makes a new world of a world.yaml: the one of a backup is brought back with worldctl restore %s -w DIR, then worldctl move in DIR", shellWord(dir))
	}
	return err
}

func (c *cli) createStored(ctx context.Context, id string, loaded *source.Loaded, birth local.CreateOptions) error {
	s, err := c.openStore()
	if err != nil {
		return err
	}
	opts := c.options()
	opts.Passphrase = c.askNew
	err = s.Create(ctx, id, loaded, birth, opts)
	if errors.Is(err, errNoPassphrase) || errors.Is(err, errEmptyPassphrase) {
		return usagef("type --passphrase-file FILE, or put a passphrase into "+passphraseEnv,
			"the keyring of a world in a store is sealed, and never there otherwise: %w", err)
	}
	return err
}

// ofTemplate has a template's files used, in a directory that goes again.
func (c *cli) ofTemplate(name string, use func(dir string) error) error {
	dir, remove, err := c.opts.interrupts.temporary("worldctl-init-")
	if err != nil {
		return err
	}
	err = examples.CopyFor(name, dir, func() error { return use(dir) })
	if errors.Is(err, examples.ErrUnknown) {
		err = noTemplate(name)
	}
	return errors.Join(err, remove())
}

// goTemplate is a program of one's own: that makes its world, because it has the
// reducers.
const goTemplate = "go"

const modulePath = "github.com/worldkernel/worldkernel"

// writeGoMod writes the go.mod of a new program.
func writeGoMod(dir string) error {
	info, _ := debug.ReadBuildInfo()
	return file.WriteNew(filepath.Join(dir, "go.mod"), []byte(goMod(info)), 0o666)
}

// goMod requires the version of this program, or what a program of one's own was built
// with. One that was built from a checkout has none.
func goMod(info *debug.BuildInfo) string {
	self := &debug.Module{}
	if info != nil {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == modulePath {
				self = m
			}
		}
	}
	const head = "module desk\n\ngo 1.26.0\n\n"
	switch at := self.Replace; {
	case at != nil:
		return head + "require " + modulePath + " v0.0.0\n\nreplace " + modulePath + " => " + strings.TrimSpace(at.Path+" "+at.Version) + "\n"
	case !strings.HasPrefix(self.Version, "v") || strings.Contains(self.Version, "+dirty"):
		return head + "// worldctl was built from a checkout: go mod edit -replace " + modulePath + "=ITS_DIRECTORY\nrequire " + modulePath + " v0.0.0\n"
	}
	return head + "require " + modulePath + " " + self.Version + "\n"
}
