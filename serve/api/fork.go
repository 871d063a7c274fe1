package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// Amendment asks for other rules: those that a patch makes of the manifest in force.
type Amendment struct {
	Patch    json.RawMessage   `json:"patch"`    // as worldctl diff --patch prints it; none: the rules stay
	Contents map[string][]byte `json:"contents"` // that the patch names and the world does not have: base64 by their SHA-256
}

// ForkRequest asks for another world that shares the past of this one. See worldctl fork.
type ForkRequest struct {
	Amendment
	ID      string              `json:"id"`      // of the fork, and the name of its directory
	At      string              `json:"at"`      // a moment; empty: now
	Effects journal.ForkEffects `json:"effects"` // empty: recorded if kinds are live, else hold
	Live    manifest.Live       `json:"live"`    // the kinds of effects that may be performed, with live and recorded
	Seed    *uint64             `json:"seed"`    // nil: its parent's
}

// WhatIfRequest asks what would have been otherwise since a moment. See worldctl what-if.
type WhatIfRequest struct {
	Amendment
	At        string            `json:"at"`
	Events    []json.RawMessage `json:"events"` // as events are submitted
	Seed      *uint64           `json:"seed"`
	Only      bool              `json:"only"`      // what the world got after the moment does not come
	Undecided bool              `json:"undecided"` // no decision of a person is repeated
	Ticks     uint64            `json:"ticks"`
	UntilIdle bool              `json:"until_idle"`
	Limit     uint64            `json:"limit"` // of the differences that are told of
}

// amend returns what makes the rules that are asked for; nil: they stay.
func (a *Amendment) amend() (world.Amendment, error) {
	if len(a.Patch) == 0 {
		return nil, nil
	}
	patch, err := manifest.ParsePatchJSON(a.Patch)
	if err != nil {
		return nil, err
	}
	contents, err := contentsOf(a.Contents)
	if err != nil {
		return nil, err
	}
	return func(base *manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
		next, err := patch.Apply(base)
		return next, contents, err
	}, nil
}

// forkWorld makes a fork where forks are made. It is not served: who started the server
// says what is.
func forkWorld(c *call, req *ForkRequest) error {
	into := c.server.cfg.Forks
	switch {
	case into == "":
		return failed(http.StatusForbidden, "no-forks", "this server makes no forks: worldctl serve --forks DIR says where they go, and worldctl fork makes them anywhere")
	case req.ID == "" || strings.HasPrefix(req.ID, "."):
		return badRequest("id", "a fork has an id, which is the name of its directory, too, and does not begin with a dot")
	}
	if c.server.worlds.get(req.ID) != nil { // its own parent, too
		return failed(http.StatusConflict, "exists", "a world of that id is served here")
	}
	f := local.ForkOptions{ID: req.ID, Effects: req.Effects, Live: req.Live, Actor: c.actor(), Seed: req.Seed}
	var err error
	if f.Amend, err = req.amend(); err != nil {
		return err
	}
	f.Amend = c.world.Local.AmendTrusted(f.Amend)
	if req.At != "" {
		if f.At, err = c.world.At(req.At); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(c.Context(), c.server.cfg.Limits.Shadow)
	defer cancel()
	done, err := c.world.Local.Fork(ctx, filepath.Join(into, req.ID), f)
	if err != nil {
		return err
	}
	done.Dir = req.ID
	return c.created("", object{"fork", done})
}

// askWhatIf runs a what-if with what was recorded, in directories that are gone
// afterwards. One at a time is enough for a world.
func askWhatIf(c *call, req *WhatIfRequest) error {
	q, err := c.whatIf(req)
	if err != nil {
		return err
	}
	limit := cmp.Or(req.Limit, usualPage)
	if most := uint64(c.server.cfg.Limits.Page); limit > most {
		return badRequest("limit", "it has to be from 1 to "+strconv.FormatUint(most, 10))
	}
	done, err := c.alone()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(c.Context(), c.server.cfg.Limits.Shadow)
	defer cancel()
	var found *view.WhatIf
	err = c.world.Local.Ask(ctx, *q, func(x *local.Supposed) (err error) {
		found, err = view.WhatIfOf(x, c.most(int(limit)))
		return err
	})
	if at, ok := errors.AsType[*local.LineError](err); ok {
		return c.stopped(err, at.Line, nil)
	}
	if err != nil {
		return err
	}
	withoutDirs(found.Difference)
	return c.ok(object{"what-if", found})
}

// whatIf reads a question.
func (c *call) whatIf(req *WhatIfRequest) (*local.WhatIf, error) {
	switch {
	case req.At == "":
		return nil, badRequest("at", "it is not said when")
	case len(req.Events) == 0 && len(req.Patch) == 0 && req.Seed == nil && !req.Only:
		return nil, badRequest("", "it is not said what would be different: events, a patch, a seed, or only, without what came after the moment")
	case req.UntilIdle && req.Ticks > 0:
		return nil, badRequest("ticks", "until_idle and ticks do not go together")
	}
	at, err := c.world.At(req.At)
	if err != nil {
		return nil, err
	}
	q := &local.WhatIf{
		At:    func(*local.World) (journal.Seq, error) { return at, nil },
		Alone: req.Only, Undecided: req.Undecided, Seed: req.Seed, Ticks: req.Ticks, UntilIdle: req.UntilIdle, Actor: c.actor(),
	}
	if q.Amend, err = req.amend(); err != nil || len(req.Events) == 0 {
		return q, err
	}
	var lines bytes.Buffer
	for i, text := range req.Events {
		if _, _, err := readEvent(text); err != nil {
			return nil, c.stopped(err, uint64(i)+1, nil)
		}
		if err := json.Compact(&lines, text); err != nil {
			return nil, badRequest("events", err.Error())
		}
		lines.WriteByte('\n')
	}
	q.Send = func(ctx context.Context, fork *local.World) (uint64, error) {
		return fork.SubmitLines(ctx, &lines, nil, world.When{}, nil)
	}
	return q, nil
}
