package worldctl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

type importChatAnswer struct {
	World   string `json:"world"`
	WorldID string `json:"world_id"`
	Dir     string `json:"dir"`
	chatSums
}

func newImportChatCommand(c *cli) *cobra.Command {
	var flags birthFlags
	cmd := &cobra.Command{
		Use:   "chat FILE",
		Short: "Make a world of recorded runs of agents that use tools",
		Long: `Make a world of recorded runs of agents that use tools.

FILE is a JSON array, or JSON lines, of runs. A run holds its messages under
messages, traj or trajectory, in the shape of OpenAI's chat API. Every run
becomes a cell, every message an event, every tool call an effect that the
recorded answer answers.

With the same --id, --seed and --keyring the same recording gives the same
journal.`,
		Example: `  worldctl import chat runs.json -w airline
  worldctl -w airline run --until-idle`,
		Args: args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.world == "" {
				return usagef("worldctl import chat "+args[0]+" -w DIR", "import chat needs the directory of the new world")
			}
			birth, err := flags.birth(cmd)
			if err != nil {
				return err
			}
			a, err := c.importChat(cmd.Context(), args[0], birth)
			if errors.Is(err, errNotEmpty) {
				return hinted(err, "choose another directory: one that does not exist is made")
			}
			if err != nil {
				return err
			}
			return c.object("import-chat", a, func() {
				c.facts(
					[2]any{"world", a.World}, [2]any{"id", a.WorldID}, [2]any{"runs", a.Runs},
					[2]any{"messages", a.Messages}, [2]any{"tool calls", fmt.Sprintf("%d, %d failed", a.Calls, a.Failed)},
				)
				c.note("\nNext:\n  worldctl -w %s run --until-idle\n  worldctl -w %s cell list", a.Dir, a.Dir)
			})
		},
	}
	flags.add(cmd)
	return cmd
}

// importChat makes a world of a recording. Either it is there afterwards, with
// all its events, or nothing has changed.
func (c *cli) importChat(ctx context.Context, file string, birth local.Birth) (*importChatAnswer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	rec, err := readChat(file, data)
	if err != nil {
		return nil, err
	}
	a := &importChatAnswer{Dir: c.world, chatSums: rec.sums()}
	err = inNewDir(a.Dir, func(making string) error {
		if err := errors.Join(rec.writeFiles(making), syncTree(making)); err != nil {
			return err
		}
		if err := local.Create(making, birth, c.options()); err != nil {
			return err
		}
		lw, err := local.Open(making, c.options())
		if err != nil {
			return err
		}
		s := lw.Status()
		a.World, a.WorldID = s.World, s.ID
		report, stop := c.progress("import "+filepath.Base(file), uint64(a.Messages))
		err = rec.submit(ctx, lw, report)
		stop()
		return errors.Join(err, lw.Close())
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// submit sends every message to its run, at its tick.
func (rec *chatRecording) submit(ctx context.Context, lw *local.World, report func(done uint64)) error {
	var at chatPlace
	var done uint64
	events := func(yield func(world.Submission, error) bool) {
		for _, run := range rec.runs {
			for _, m := range run.messages {
				at = run.place.at(m.index)
				report(done)
				done++
				if !yield(world.Submission{Name: "chat.message", Data: m.data, At: manifest.Tick(m.index + 1)}, nil) {
					return
				}
			}
		}
	}
	_, err := lw.SubmitAll(ctx, iter.Seq2[world.Submission, error](events))
	var refused *world.InputError
	if errors.As(err, &refused) {
		return &chatError{at, refused}
	}
	return err
}
