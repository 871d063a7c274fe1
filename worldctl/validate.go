package worldctl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

func newValidateCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "validate [FILE]",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return c.validate(args[0])
			}
			dir := c.world
			if found, err := local.Find("."); dir == "" && err == nil {
				dir = relative(found)
			}
			return c.validate(filepath.Join(dir, local.ManifestFile))
		},
	}
}

// relative shortens a path in or above the working directory.
func relative(path string) string {
	if here, err := filepath.Abs("."); err == nil {
		if rel, err := filepath.Rel(here, path); err == nil {
			return rel
		}
	}
	return path
}

func (c *cli) validate(file string) error {
	loaded, err := c.loadWorld(file)
	var faults *source.Error
	if err != nil && !errors.As(err, &faults) {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = fmt.Errorf("%s: %w", file, at.Err)
		}
		dir := "DIR"
		if at, failed := os.Stat(file); failed == nil && at.IsDir() {
			dir = file
		}
		return hinted(err, "name the file: worldctl validate %s", shellWord(filepath.Join(dir, local.ManifestFile)))
	}
	var m *manifest.Manifest
	var warnings []local.Warning
	if err == nil {
		m, warnings = loaded.Manifest, local.Warnings(file, filepath.Dir(c.path(file)), loaded)
	}
	answer, invalid := view.ValidationOf(m, warnings, faults)
	if invalid != nil {
		return invalid
	}
	if err != nil {
		err = toCorrect(err, file)
	}
	return errors.Join(c.object("validate", answer, func() {
		if answer.OK {
			fmt.Fprintf(c.stdout, "%s is valid: world %s, manifest %s\n", file, answer.World, answer.Hash)
			c.warn(answer.Warnings)
		}
	}), err)
}

// toCorrect names the world file in what to do about its faults.
func toCorrect(err error, file string) error {
	if !correctable(err) {
		return err
	}
	return hinted(err, "correct the file, then: worldctl validate %s", shellWord(file))
}

// correctable reports whether an error is about what a world file says.
func correctable(err error) bool {
	return errors.As(err, new(*source.Error)) && !errors.As(err, new(*manifest.NoAdapterError))
}

// warn tells what is hardly meant.
func (c *cli) warn(warnings []local.Warning) {
	for _, w := range warnings {
		c.note("warning: %s: %s", w.Place(), w.Message)
	}
}

// warnOf tells what a valid world file hardly means for the world in a directory.
func (c *cli) warnOf(file, home string) {
	if loaded, err := c.readWorld(file); err == nil {
		c.warn(local.Warnings(file, home, loaded))
	}
}
