package worldctl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// question is what a what-if asks.
type question struct {
	at        string
	send      string // a file of JSON lines; -: stdin
	patch     string // a file: a patch or a world file
	keep      string // the fork's directory; empty: a temporary one
	only      bool
	decisions string        // recorded, or none
	live      manifest.Live // the kinds that are performed where nothing recorded answers
	seed      *uint64       // nil: the world's
	untilIdle bool
	ticks     uint64 // 0: no bound
	limit     uint64 // of the cells that are told of
}

const whatIfLong = `Fork the world at a moment of its past, change something, run the fork, and show how
it differs from what really was. The world does not change, and nothing outside is
touched: what was recorded answers the fork's effects. One that nothing recorded
answers is left open, and all else runs on: the cell that asks for it and whoever
hangs on that are unknown, which is said with the reason, and left out of what is
compared.

An answer that was recorded while the rules had another adapter, config or schema for that
kind answers nothing: how many there are is said, and what asks for the same is unknown.

--live KIND has effects of that kind performed, for real, where nothing recorded answers
them: by the adapters of the fork, in its directory, with the world's secrets. No other kind
is, whatever the effects are that follow from it. model.* names all that begin so, but for
those of class destructive, which are named exactly. Which kinds that can be is said before,
and how many it were after. What the world has asked for under the same rules is never
performed: not what it waits for, either. --keep says where the record of what was done
stays.

--send takes JSON lines as worldctl send - does. --patch takes a patch of the manifest
in force at that moment, as JSON, or a whole world.yaml to put in its place; cells keep
their states. --seed has randomness come from another number. The events that the world got after the moment are sent again, in the
ticks in which they came, unless --only says that they are not.

What a person decided about an intent that awaited approval is decided again where the same cell asks for
the same, and a person is asked about it under the same policies, capability and effect.
--decisions none leaves it to wait. What persons decided besides is not repeated.

The fork runs until it is idle if the world is, else up to the tick at which the world
is. --keep leaves it in a directory of your choice.

`

func newWhatIfCommand(c *cli) *cobra.Command {
	var q question
	var seed uint64
	cmd := &cobra.Command{
		Use:   "what-if --at MOMENT [--send FILE] [--patch FILE] [--seed N]",
		Short: "Fork, change, run with recorded effects, and show what comes of it",
		Long:  whatIfLong + diffCodes,
		Example: `  worldctl what-if --at t5 --send refund.jsonl
  worldctl what-if --at before-lunch --patch stricter.yaml
  echo '{"event": "ticket.opened", "data": {"customer": "ada", "amount": 9}}' |
      worldctl what-if --at -20 --send - --only --keep ../fork`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := c.timed(cmd.Context())
			defer cancel()
			if cmd.Flags().Changed("seed") {
				q.seed = &seed
			}
			if err := checkDecisions(q.decisions); err != nil {
				return err
			}
			err := c.whatIf(ctx, q)
			if errors.Is(err, context.Canceled) {
				err = hinted(err, "the world has not changed")
			}
			return trouble(err)
		},
	}
	addAt(cmd, &q.at, "fork at this")
	cmd.Flags().StringVar(&q.send, "send", "", "send the events in this `FILE` of JSON lines; - is stdin")
	addPatch(cmd, &q.patch)
	addSeed(cmd, &seed)
	addLive(cmd, &q.live)
	addDecisions(cmd, &q.decisions)
	cmd.Flags().BoolVar(&q.only, "only", false, "do not send what the world got after the moment")
	cmd.Flags().StringVar(&q.keep, "keep", "", "make the fork in this `DIR` and leave it there")
	cmd.Flags().BoolVar(&q.untilIdle, "until-idle", false, "run on until the fork is idle, also where the world is not")
	cmd.Flags().Uint64Var(&q.ticks, "ticks", 0, "compare the two `N` ticks after the moment; 0 is no bound")
	addLimit(cmd, &q.limit, "cells")
	c.addBounds(cmd)
	c.addTime(cmd)
	return cmd
}

// check refuses a question that is none.
func (q *question) check() error {
	switch {
	case q.at == "":
		return usagef("worldctl what-if --at t5 --send FILE", "it is not said when: --at MOMENT")
	case q.send == "" && q.patch == "" && q.seed == nil && !q.only:
		return usagef("--send FILE, --patch FILE, --seed N, or --only, without what came after the moment", "it is not said what would be different")
	case len(q.live) > 0 && q.keep == "":
		return usagef("--keep DIR says where", "what is performed has to stay on record")
	case q.untilIdle && q.ticks > 0:
		return usagef("type one of them", "--until-idle and --ticks do not go together")
	}
	return nil
}

// addLive adds the flag of verbs that perform effects where a world is only tried.
func addLive(cmd *cobra.Command, live *manifest.Live) {
	cmd.Flags().StringSliceVar((*[]string)(live), "live", nil, "perform effects of this `KIND`, for real; several, or a pattern such as model.*, which covers none of class destructive")
}

// decisionsNone says that nothing is decided as a person did; decisionsRecorded, that it is.
const (
	decisionsNone     = "none"
	decisionsRecorded = "recorded"
)

// addDecisions adds the flag of verbs that live a past again.
func addDecisions(cmd *cobra.Command, decisions *string) {
	cmd.Flags().StringVar(decisions, "decisions", decisionsRecorded, "`WHO` decides about what awaits approval: recorded, as a person did about the same, or none")
}

func checkDecisions(decisions string) error {
	if decisions != decisionsNone && decisions != decisionsRecorded {
		return usagef("type --decisions recorded or --decisions none", "%q does not say who decides", decisions)
	}
	return nil
}

// addPatch adds the flag of verbs that fork under other rules.
func addPatch(cmd *cobra.Command, patch *string) {
	cmd.Flags().StringVar(patch, "patch", "", "put the manifest in force that this `FILE` makes: a patch as JSON, or a world.yaml")
}

// addSeed adds the flag of verbs that fork with another seed.
func addSeed(cmd *cobra.Command, seed *uint64) {
	cmd.Flags().Uint64Var(seed, "seed", 0, "the `N` that randomness comes from; the world's if not given")
}

// unmade says what to do about a fork under other rules that names what nobody has.
func unmade(err error, amend world.Amendment) error {
	switch {
	case amend == nil:
		return err
	case errors.Is(err, journal.ErrNotFound):
		return hinted(err, "a patch names contents that the world has; --patch world.yaml brings its own along")
	}
	return noEngine(err)
}

// readAmendment reads a patch or a world file; without one nothing is amended.
func (c *cli) readAmendment(file string) (world.Amendment, error) {
	switch filepath.Ext(file) {
	case "":
		if file == "" {
			return nil, nil
		}
	case ".yaml", ".yml":
		loaded, err := c.readWorld(file)
		if err != nil {
			return nil, toCorrect(err, file)
		}
		return loaded.Amend, nil
	}
	data, err := c.readContent(file)
	if err != nil {
		return nil, err
	}
	patch, err := manifest.ParsePatchJSON(data)
	if err != nil {
		return nil, hinted(fmt.Errorf("%s: %w", file, err), `a patch is {"base_manifest_hash": ..., "ops": [{"op": "set", "path": "/...", "value": ...}]}; a world file ends in .yaml`)
	}
	return func(base *manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
		next, err := patch.Apply(base)
		switch {
		case errors.Is(err, manifest.ErrOtherBase):
			err = hinted(fmt.Errorf("%s: %w", file, err), "make it for the manifest in force at that moment: worldctl status --at MOMENT shows its hash")
		case err != nil:
			err = hinted(fmt.Errorf("%s: %w", file, err), "correct the file")
		}
		return next, nil, err
	}, nil
}
