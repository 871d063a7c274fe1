package worldctl

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

type archiveAnswer struct {
	File  string       `json:"file"`
	From  journal.Seq  `json:"from"`
	To    journal.Seq  `json:"to"`
	Root  journal.Hash `json:"chain_root"` // at To
	SHA   journal.Hash `json:"sha256"`     // of the file without its last 40 bytes
	World string       `json:"world"`
}

func newArchiveCommand(c *cli) *cobra.Command {
	var before string
	cmd := &cobra.Command{
		Use:   "archive --before SNAPSHOT FILE",
		Short: "Move old records out of the store into a file",
		Long: `Move the records before a snapshot's into a new FILE and out of the store, but for
record 1 and payloads over 4 KiB. The file is synced and read back first. The world
goes on reading the records from there: keep the file where it is, and a copy of it.`,
		Example: `  worldctl archive --before s12 2026-01.wkarch`,
		Args:    args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if before == "" {
				return usagef("worldctl snapshot list shows the snapshots", "say up to where: --before SNAPSHOT")
			}
			return c.with(func(lw *local.World) error {
				a, err := lw.Archive(before, c.path(args[0]))
				if errors.Is(err, fs.ErrExist) {
					return hinted(err, "choose another file: one that a killed archive has left is not used by this world, and may be removed")
				}
				if err != nil {
					return err
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

// knownOfGrowth says what it comes to that something is not in the store any more.
func knownOfGrowth(err error) (code int, hint string) {
	var away *journal.ArchivedError
	switch {
	case errors.As(err, &away):
		return exitFailed, fmt.Sprintf("put the file back as %s, or into the directory of the world, or a link to it; the world runs without it, and snapshots after #%d can be read", away.File, away.To)
	case errors.Is(err, local.ErrBytesLeft):
		return exitFailed, "check the disk and the room on it; then worldctl status opens the world, and so ends the redaction"
	case errors.Is(err, store.ErrNothingToArchive):
		return exitFailed, "worldctl snapshot list shows later snapshots; worldctl snapshot create makes one"
	case errors.Is(err, store.ErrNeededToOpen):
		return exitFailed, "worldctl snapshot create makes a later one"
	case errors.Is(err, local.ErrOfManifest), errors.Is(err, local.ErrInline):
		return exitFailed, "payloads of records are redacted, nothing else"
	case errors.Is(err, local.ErrNoPayload), errors.Is(err, local.ErrSeveral):
		return exitFailed, "name the record instead, as #123: worldctl tail shows it"
	case errors.Is(err, world.ErrStillNeeded):
		return exitConflict, "worldctl snapshot create, then snapshot prune of those before, or run the world until the result is handled"
	case errors.Is(err, journal.ErrRedacted):
		return exitFailed, "nobody can compute what follows from it: begin with a later snapshot (worldctl snapshot list); worldctl verify names the gap"
	}
	return exitFailed, ""
}
