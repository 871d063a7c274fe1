package worldctl

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/local"
)

type archiveAnswer struct {
	File  string       `json:"file"`
	From  journal.Seq  `json:"from"`
	To    journal.Seq  `json:"to"`
	Root  journal.Hash `json:"chain_root"` // at To
	SHA   journal.Hash `json:"sha256"`     // of the file
	World string       `json:"world"`
}

func newArchiveCommand(c *cli) *cobra.Command {
	var before string
	cmd := &cobra.Command{
		Use:  "archive --before SNAPSHOT FILE",
		Args: args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if before == "" {
				return usagef("worldctl snapshot list shows the snapshots", "say up to where: --before SNAPSHOT")
			}
			return c.with(func(lw *local.World) error {
				file := c.path(args[0])
				a, err := lw.Archive(before, file)
				if err != nil {
					return notArchived(err, file)
				}
				answer := archiveAnswer{File: a.File, From: a.First, To: a.Last.ID, Root: a.Last.Root, SHA: a.Sum, World: lw.Keys().World()}
				return c.object("archive", answer, func() {
					fmt.Fprintf(c.stdout, "records #%d to #%d are in %s\n", a.First, a.Last.ID, a.File)
					c.note("keep it there: worldctl verify, timeline and why read them from it")
				})
			})
		},
	}
	cmd.Flags().StringVar(&before, "before", "", "the first `SNAPSHOT` whose record stays, by name or hash prefix")
	return cmd
}

// notArchived says what to do about a file that is in the way.
func notArchived(err error, file string) error {
	at := (*fs.PathError)(nil)
	switch {
	case !errors.As(err, &at) || !errors.Is(err, fs.ErrExist):
		return err
	case filepath.Base(at.Path) != filepath.Base(file):
		return hinted(err, "a killed archive has left that, and no world reads it: rm %s, unless another archive is writing it, then type this again", at.Path)
	}
	return hinted(err, "choose another file: one that a killed archive has left is not used by this world, and may be removed")
}

func newGCCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "gc",
		RunE: func(*cobra.Command, []string) error {
			return c.inDir(func(dir string, opts local.Options) error {
				f, err := local.Collect(dir, opts)
				return answer(c, "gc", func(any) {
					fmt.Fprintf(c.stdout, "%d blobs of %d bytes, %d chunks, %d versions, %d notes, %d leftovers; %d bytes before, %d after\n",
						f.Blobs, f.BlobBytes, f.Chunks, f.Versions, f.Notes, f.Leftovers, f.BytesBefore, f.BytesAfter)
				})(f, err)
			})
		},
	}
}
