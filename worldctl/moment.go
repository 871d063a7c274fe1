package worldctl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// momentForms says how a person names a moment.
const momentForms = "a moment is a record (120 or #120), the end of a tick (t5), head, records before it (-10), " +
	"or a snapshot by its name or 6 digits of its hash or more"

// takesMoments marks a command whose arguments are moments, so that -10 is one
// and no flag.
const takesMoments = "takes moments"

// headName is the last record, and begins what is counted from there.
const headName = "head"

// readsAsMoment reports whether a name is a moment without being that of a
// snapshot.
func readsAsMoment(name string) bool { return name == headName || isBack(name) || isTick(name) }

// isBack reports whether a name counts records back: -10 or head-10.
func isBack(name string) bool { return numberAfter("-", strings.TrimPrefix(name, headName)) }

// isTick reports whether a name is a tick: t5.
func isTick(name string) bool { return numberAfter("t", name) }

func numberAfter(sign, name string) bool {
	number, found := strings.CutPrefix(name, sign)
	return found && number != "" && strings.Trim(number, "0123456789") == ""
}

// momentArgs makes records before the head, which look like flags, arguments of
// the commands that take moments.
func momentArgs(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil || cmd.Annotations[takesMoments] == "" {
		return args
	}
	out := make([]string, len(args))
	for i, arg := range args {
		if out[i] = arg; strings.HasPrefix(arg, "-") && isBack(arg) {
			out[i] = headName + arg
		}
	}
	return out
}

// moment returns the record that a person named as a moment: the last that is
// part of it.
func (j records) moment(name string) (journal.Seq, error) {
	end := j.End()
	switch {
	case name == headName:
		return end, nil
	case isBack(name):
		return j.recordsBack(name, end)
	case isTick(name):
		return j.endOf(name, end)
	}
	if id, err := strconv.ParseUint(strings.TrimPrefix(name, "#"), 10, 64); err == nil {
		if id == 0 || id > uint64(end) {
			return 0, noMoment("there is no record #%d: the journal ends at #%d", id, end)
		}
		return journal.Seq(id), nil
	}
	s, err := findSnapshot(j.Local, name)
	if err != nil {
		return 0, usagef(momentForms, "%q is no moment of this world: %w", name, err)
	}
	return journal.Seq(s.Record), nil
}

func noMoment(format string, args ...any) error {
	return hinted(fmt.Errorf(format, args...), "%s", momentForms)
}

// recordsBack returns the record so many before the last.
func (j records) recordsBack(name string, end journal.Seq) (journal.Seq, error) {
	back, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimPrefix(name, headName), "-"), 10, 64)
	if err != nil || back >= uint64(end) {
		return 0, noMoment("%s is before record #1: the journal ends at #%d", name, end)
	}
	return end - journal.Seq(back), nil
}

// endOf returns the last record of a tick or, where nothing happened in it, the
// last before.
func (j records) endOf(name string, end journal.Seq) (journal.Seq, error) {
	now, err := j.timeOf(end)
	if err != nil {
		return 0, err
	}
	tick, err := strconv.ParseUint(name[len("t"):], 10, 64)
	if err != nil || manifest.Tick(tick) > now {
		return 0, noMoment("tick %s is still to come: the world is at tick %d", name[len("t"):], now)
	}
	beyond, err := firstAt(end, manifest.Tick(tick)+1, j.timeOf)
	return beyond - 1, err
}

// findSnapshot returns the snapshot that a person named.
func findSnapshot(lw *local.World, name string) (snapshot.Snapshot, error) {
	var s snapshot.Snapshot
	var err error
	lw.View(func(w *world.Moment) { s, err = w.FindSnapshot(name) })
	return s, err
}

// look lets use look at the world as it was at a moment, or as it is where none
// is named.
func look(lw *local.World, at string, use func(*world.Moment) error) (err error) {
	if at == "" {
		lw.View(func(w *world.Moment) { err = use(w) })
		return err
	}
	m, err := momentAt(lw, at)
	if err != nil {
		return err
	}
	return use(m)
}

// momentAt returns the world as it was at a moment that a person named.
func momentAt(lw *local.World, name string) (*world.Moment, error) {
	id, err := recordsOf(lw).moment(name)
	if err != nil {
		return nil, err
	}
	m, err := lw.At(id)
	if err != nil {
		return nil, fmt.Errorf("the world at #%d: %w", id, err)
	}
	return m, nil
}

// cellThen returns a cell as it was at a moment that a person named, if it was
// there, and the record of that.
func cellThen(lw *local.World, cell reducer.Cell, name string) (v world.CellView, at journal.Seq, found bool, err error) {
	if at, err = recordsOf(lw).moment(name); err != nil {
		return v, 0, false, err
	}
	v, found, err = lw.CellAt(cell, at)
	return v, at, found, err
}
