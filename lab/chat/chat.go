// Package chat makes worlds of recorded runs of agents that use tools. It is a part of worldctl, and
// not an API.
//
// A recording is a transcript of Claude Code or Codex, a log of Inspect (JSON or .eval), or a JSON array, or JSON lines, of
// runs, or of requests to OpenAI's Chat Completions or Responses or Anthropic's Messages and their answers. A run holds its
// messages under messages, traj, trajectory or items, in the form of one of these three. Every run
// becomes a cell, every message an event that falls due at the tick of its place,
// every tool call an effect that the recorded answer answers. A call without an
// answer, as runs that broke off have them, is in doubt. The same recording
// gives the same manifest, and with the same local.CreateOptions the same journal.
package chat

import (
	"context"
	"errors"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// Create makes a world of the recording in a directory that is empty or not there:
// either it is there afterwards, with all its events, or nothing has changed.
// report, which may be nil, is told how many messages were submitted. An *Error
// names the message that the world does not take.
func (rec *Recording) Create(ctx context.Context, dir string, b local.CreateOptions, opts local.Options, report func(done uint64)) error {
	files, err := rec.files()
	if err != nil {
		return err
	}
	if report == nil {
		report = func(uint64) {}
	}
	return local.CreateNew(dir, files, b, opts, func(lw *local.World) error { return rec.submit(ctx, lw, report) })
}

// submit sends every message to its run, at its tick.
func (rec *Recording) submit(ctx context.Context, lw *local.World, report func(done uint64)) error {
	var at place
	var done uint64
	_, _, err := lw.SubmitAll(ctx, func(yield func(world.Submission, error) bool) {
		for _, run := range rec.runs {
			for _, m := range run.messages {
				at = run.place.atMessage(m.index)
				report(done)
				done++
				if !yield(world.Submission{Name: "chat.message", Data: m.data, When: world.When{At: manifest.Tick(m.index + 1)}}, nil) {
					return
				}
			}
		}
	})
	if refused, ok := errors.AsType[*world.InputError](err); ok {
		return &Error{at, refused}
	}
	return err
}
