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

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

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
