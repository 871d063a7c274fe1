package worldctl

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/file"
)

// target is a file that a verb writes, by the name that a person gave it.
type target struct {
	c     *cli
	force bool // over what is there
}

// savesTo gives a verb --force. The name is what its arguments say; empty or - is stdout.
// The verb does nothing at all where it would write over a file without --force: what was
// saved once is evidence.
func (c *cli) savesTo(cmd *cobra.Command, name func(args []string) string) *target {
	t := &target{c: c}
	cmd.Flags().BoolVar(&t.force, "force", false, "write over the file if it is there")
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if at := name(args); at != "" && at != "-" && !t.force {
			return notVacant(file.Vacant(c.path(at)))
		}
		return nil
	}
	return t
}

// write writes the file, whole or not at all, or stdout for "-".
func (t *target) write(name string, write func(io.Writer) error) error {
	switch {
	case name == "-":
		return write(t.c.document())
	case t.force:
		return file.Replace(t.c.path(name), 0o600, write)
	}
	return notVacant(file.New(t.c.path(name), 0o600, write))
}

// writing is a function as a writer.
type writing func(p []byte) (int, error)

func (w writing) Write(p []byte) (int, error) { return w(p) }

// heeding returns a writer that writes for as long as ctx lets it.
func heeding(ctx context.Context, w io.Writer) io.Writer {
	return writing(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return w.Write(p)
	})
}

// put is write with what is in memory.
func (t *target) put(name string, data []byte) error {
	return t.write(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// notVacant says what to do about a file that is there already.
func notVacant(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return hinted(err, "choose another file, or type --force to write over this one")
	}
	return err
}

// firstOf returns the first argument, if there is one.
func firstOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
