package worldctl

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// momentForms says how a person names a moment.
const momentForms = "a moment is a record (120 or #120), the end of a tick (t5), a time of the world's calendar " +
	"(2026-01-01T00:05:00Z), head, records before it (-10), or a snapshot by its name or 6 digits of its hash or more"

// takesMoments marks a command whose arguments are moments, so that -10 is one
// and no flag.
const takesMoments = "takes moments"

// momentArgs makes records before the head, which look like flags, arguments of
// the commands that take moments.
func momentArgs(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil || cmd.Annotations[takesMoments] == "" {
		return args
	}
	out := make([]string, len(args))
	for i, arg := range args {
		if out[i] = arg; strings.HasPrefix(arg, "-") && view.IsBack(arg) {
			out[i] = view.HeadName + arg
		}
	}
	return out
}

// addAt adds the flag that says when, and what is looked at then.
func addAt(cmd *cobra.Command, at *string, what string) {
	cmd.Flags().StringVar(at, "at", "", what+" `MOMENT`: a record (120), t5, a time, -10, head or a snapshot")
}

// addRange adds the flags that say which part of the journal is meant.
func addRange(cmd *cobra.Command, from, to *string) {
	cmd.Flags().StringVar(from, "from", "", "only from this `MOMENT` on: a record (120), t5, a time, -10, head or a snapshot")
	cmd.Flags().StringVar(to, "to", "", "only up to this `MOMENT`, with all of it")
}

// addLimit adds the flag that bounds a list, which is complete without it.
func addLimit(cmd *cobra.Command, limit *uint64, of string) {
	cmd.Flags().Uint64Var(limit, "limit", *limit, "only the first `N` "+of+"; 0: all")
}

// useMoment calls use with the world as it was at a moment, or as it is where none
// is named.
func useMoment(lw *local.World, at string, use func(*world.Moment) error) (err error) {
	if at == "" {
		lw.View(func(w *world.Moment) { err = use(w) })
		return err
	}
	m, err := recordsOf(lw).World(at)
	if err != nil {
		return err
	}
	return use(m)
}

// recordsOf reads the records of a world one by one.
func recordsOf(lw *local.World) view.Journal { return view.Journal{Local: lw} }
