package worldctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// lookEvery is how often the sources are looked at.
const lookEvery = 300 * time.Millisecond

func newDevCommand(c *cli) *cobra.Command {
	var decisions string
	var live manifest.Live
	var limit uint64
	cmd := &cobra.Command{
		Use: "dev [FILE]",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkDecisions(decisions); err != nil {
				return err
			}
			d, err := c.newDev(strings.Join(args, ""), live, limit)
			if err != nil {
				return err
			}
			d.undecided = decisions == decisionsNone
			looks := time.NewTicker(lookEvery)
			defer looks.Stop()
			return d.watch(cmd.Context(), looks.C)
		},
	}
	addLive(cmd, &live)
	addDecisions(cmd, &decisions)
	addLimit(cmd, &limit, "cells")
	c.addBounds(cmd)
	c.addTime(cmd)
	return cmd
}

// dev makes a world anew, round after round.
type dev struct {
	*cli
	dir       string // of the world
	file      string // the world file
	actor     string
	live      manifest.Live // kinds
	limit     uint64        // of the cells that are told of
	undecided bool          // what a person decided is not repeated
	files     sources
	round     uint64 // that is on; 1: the first

	printed map[string]int // how often, in the round before
}

func (c *cli) newDev(file string, live manifest.Live, limit uint64) (*dev, error) {
	d := &dev{cli: c, live: live, limit: limit, printed: make(map[string]int)}
	c.brief = !c.verbose
	var err error
	if d.dir, err = c.dir(); err != nil {
		return nil, hinted(err, "worldctl init DIR makes a world to try edits on; worldctl test plays scenarios without one")
	}
	if d.file = c.path(file); file == "" {
		d.file = filepath.Join(d.dir, local.ManifestFile)
	}
	info, err := os.Stat(d.file)
	if err == nil && info.IsDir() {
		d.file = filepath.Join(d.file, local.ManifestFile)
		_, err = os.Stat(d.file)
	}
	if err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok { // the system's word, without the name of the call
			err = fmt.Errorf("%s: %w", relative(d.file), at.Err)
		}
		return nil, hinted(err, "name the file: worldctl dev DIR/%s", local.ManifestFile)
	}
	d.file = relative(d.file)
	d.files.file = d.file
	d.actor, err = c.actor("")
	return d, err
}

// watch makes the world anew at first and after each change, until ctx ends. It looks at
// the sources when looks says so. What goes wrong in a round is shown, and the next may
// mend it; but for a world that cannot be copied at first.
func (d *dev) watch(ctx context.Context, looks <-chan time.Time) error {
	temporary, remove, err := d.opts.interrupts.temporary("worldctl-dev-")
	if err != nil {
		return err
	}
	if len(d.live) > 0 { // unless a round stays, with the record of what was performed
		d.opts.interrupts.keep(temporary)
		remove = func() error { return os.Remove(temporary) }
	}
	defer func() { _ = remove() }()
	if len(d.live) > 0 {
		d.note("note: what the world has not asked for is performed, for real, in each round: %s", strings.Join(d.live, ", "))
	}
	changed := []string{}
	for ctx.Err() == nil {
		d.round++
		d.head(changed)
		err := d.again(ctx, filepath.Join(temporary, strconv.FormatUint(d.round, 10)), changed)
		var copying *notCopiedError
		switch {
		case ctx.Err() != nil:
			return nil
		case d.round == 1 && errors.As(err, &copying):
			return copying.err
		case err != nil:
			d.report(err)
		}
		if err := d.stdout.Flush(); err != nil {
			return err
		}
		if changed, err = d.files.changed(ctx, looks); err != nil {
			return nil // it is over
		}
	}
	return nil
}

// head begins what is shown of a round.
func (d *dev) head(changed []string) {
	if d.output != formTable {
		return
	}
	at := ""
	if d.origin.Width > 0 {
		at = time.Now().Format(time.TimeOnly) + " "
	}
	what := d.file
	if len(changed) > 0 {
		what = strings.Join(changed, ", ")
	}
	fmt.Fprintf(d.stdout, "%sround %d: %s\n", at, d.round, what)
}

// again is one round, in a directory that is not there yet and mostly is gone afterwards.
func (d *dev) again(ctx context.Context, dir string, changed []string) (err error) {
	ctx, cancel := d.timed(ctx)
	defer cancel()
	var rules *source.Loaded
	d.files.readSources(func(opened source.Option) { rules, err = d.readWorld(d.file, opened) })
	if correctable(err) {
		return hinted(err, "correct the file and save it: the next round begins then")
	}
	if err != nil {
		return err
	}
	d.warn(local.Warnings(d.file, filepath.Dir(d.path(d.file)), rules))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	performed := len(d.live) > 0 // until it is known that nothing was
	defer func() {
		if performed {
			d.note("what was performed is on record in %s", dir)
		} else {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	a := local.DryRunOptions{
		World: d.dir, Copy: filepath.Join(dir, "past"), Dir: dir, Rules: rules, Live: d.live, Undecided: d.undecided, Actor: d.actor,
	}
	if err := d.copyWorld(ctx, a.Copy); err != nil {
		performed = false
		return &notCopiedError{err}
	}
	made, err := local.DryRun(ctx, a, d.options())
	if err != nil {
		return noEngine(err)
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	performed = made.Is.Performed > 0
	answer, err := view.AnewOf(ctx, made, d.limit)
	if err != nil {
		return err
	}
	answer.Round, answer.Changed = d.round, changed
	answer.Difference.A.Dir, answer.Difference.B.Dir = "", ""
	return d.object("dev", answer, func() { d.show(answer, made.Is) })
}

func (d *dev) show(a *view.DryRun, x *local.Supposed) {
	d.showUnknown(a.WhatIf)
	if len(x.Unanswered) > 0 {
		switch miss := x.Unanswered[0]; {
		case !miss.Recorded:
			d.note("%s has no answer: add it", miss.File)
		case miss.Unanswered:
			d.note("the world has asked for it, and has no answer yet")
		default:
			d.note("--live %s performs it, for real; the adapter stub answers without", miss.Kind)
		}
	}
	fmt.Fprintln(d.stdout, d.same(a))
	if !a.Difference.Same {
		d.showCells(a.Difference)
		d.showIntents(&a.Difference.Intents)
	}
	for _, f := range a.Failed {
		fmt.Fprintf(d.stdout, "a step of %s fails: %s\n", f.Cell, f.Error)
	}
	d.showPrinted(a)
	if n := a.UnknownInForce; n > 0 {
		d.note("note: under the rules in force, too, %s unknown, and left out: they ask for what the world did not ask for", cellsAre(n))
	}
	if a.Apart != (view.Apart{}) {
		d.note("note: under the rules in force, too, it is not what the world is: %d cells and %d intents differ", a.Apart.Cells, a.Apart.Intents)
	}
	fmt.Fprintf(d.stdout, "events sent again: %d; effects answered by what was recorded: %d, by stubs: %d, performed: %d, without an answer: %d\n",
		a.Again.Events, a.Answered, a.Stubbed, a.Performed, a.Unanswered)
	d.noteOtherwise(a.Otherwise)
	d.noteAgain(&a.Again)
	if !a.Difference.Same && len(a.Failed) == 0 {
		d.hintNext("worldctl propose %s, where that is as it should be", shellWord(d.file))
	}
	if a.Again.Events == 0 && a.Again.Refused == 0 {
		d.note("note: the world has got no event yet; worldctl send sends it some")
	}
}

// same is the summary of a difference, and says of what it is where the world differs from
// both. What nobody knows is not called the same.
func (d *dev) same(a *view.DryRun) string {
	unknown := max(len(a.Unknown)+a.UnknownMore, a.UnknownInForce)
	if a.Difference.Same && unknown == 0 && a.Apart != (view.Apart{}) {
		return "the same under both rules: cells, intents, timers and scheduled events"
	}
	return summary(a.Difference, unknown)
}

// showPrinted shows what steps print that did not in the round before, under the name of
// who steps.
func (d *dev) showPrinted(a *view.DryRun) {
	was := d.printed
	d.printed = make(map[string]int)
	for _, p := range a.Printed {
		d.printed[printedKey(&p)]++
	}
	fresh := slices.DeleteFunc(slices.Clone(a.Printed), func(p world.Printed) bool {
		was[printedKey(&p)]--
		return was[printedKey(&p)] >= 0
	})
	if a.Before > 0 && len(fresh) > 0 {
		fmt.Fprintf(d.stdout, "steps print %d times before:\n", a.Before)
	}
	if n := len(a.Printed) - len(fresh); n > 0 {
		fmt.Fprintf(d.stdout, "printed as in the round before: %d\n", n)
	}
	by := ""
	for _, p := range fresh {
		if p.Cell != by {
			by = p.Cell
			fmt.Fprintf(d.stdout, "%s prints:\n", by)
		}
		for _, line := range view.PrintedLines(p.Print) {
			fmt.Fprintf(d.stdout, "  %s\n", line)
		}
	}
}

// printedKey tells what one call of print printed apart, wherever its step came in the
// journal.
func printedKey(p *world.Printed) string {
	return fmt.Sprintf("%s %d %s", p.Cell, p.N, strings.Join(view.PrintedLines(p.Print), "\n"))
}

// notCopiedError says that the world could not be copied.
type notCopiedError struct{ err error }

func (e *notCopiedError) Error() string { return e.err.Error() }
func (e *notCopiedError) Unwrap() error { return e.err }

// copyWorld makes a backup of the world as it is now, or has the process make it that owns
// it: dev leaves the world to others.
func (d *dev) copyWorld(ctx context.Context, to string) error {
	err := d.with(func(lw *local.World) error {
		_, err := lw.Backup(to)
		return err
	})
	var elsewhere *ownedError
	if !errors.As(err, &elsewhere) {
		return err
	}
	code, answered, failed := d.askFor(ctx, elsewhere.dir, "backup", to)
	switch {
	case !answered:
		return elsewhere.err
	case failed != nil:
		return failed
	case code != exitOK:
		return fmt.Errorf("%s: the process that owns the world has made no copy of it", d.dir)
	}
	return nil
}

// sources are a world file and the files that it names, there or not, as they were when
// they were read.
//
// They are looked at again and again. They are a handful, so that costs next to nothing,
// and it works wherever files do: over network mounts, and with editors that put another
// file in the place of one. Being told of changes by the system needs a dependency, a way
// for each system, and an eye on all their directories.
type sources struct {
	file  string            // the world file
	known map[string]string // by path: what is there, see stamp
}

// readSources lets load read them, and notes which they are.
func (s *sources) readSources(load func(opened source.Option)) {
	before := s.now()
	names := []string{s.file}
	load(source.WithOpened(func(name string) {
		names = append(names, filepath.Join(filepath.Dir(s.file), filepath.FromSlash(name)))
	}))
	s.known = make(map[string]string)
	for _, name := range names {
		was, ok := before[name] // what changes from here on may not have been read
		if !ok {
			was = stamp(name)
		}
		s.known[name] = was
	}
}

// now returns what there is at the paths that are known.
func (s *sources) now() map[string]string {
	now := map[string]string{s.file: stamp(s.file)}
	for name := range s.known {
		now[name] = stamp(name)
	}
	return now
}

// changed waits until something is there that was not read, and has stayed for one look:
// editors save in steps. It returns the paths that have changed, in order, or the error of
// ctx.
func (s *sources) changed(ctx context.Context, looks <-chan time.Time) ([]string, error) {
	last := s.known
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-looks:
		}
		now := s.now()
		if maps.Equal(now, last) && !maps.Equal(now, s.known) {
			var changed []string
			for _, name := range slices.Sorted(maps.Keys(now)) {
				if now[name] != s.known[name] {
					changed = append(changed, relative(name))
				}
			}
			return changed, nil
		}
		last = now
	}
}

// stampedBytes is up to where a file's content is looked at each time. A larger one is
// known by its size and the time of its change.
const stampedBytes = 1 << 20

// stamp says what is at a path, so that it can be compared: empty for nothing.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if info.Size() <= stampedBytes && info.Mode().IsRegular() {
		if data, err := os.ReadFile(path); err == nil { //nolint:gosec // the person's own
			return canon.Sum(data).String()
		}
	}
	return strconv.FormatInt(info.Size(), 10) + " " + info.ModTime().UTC().Format(time.RFC3339Nano)
}
