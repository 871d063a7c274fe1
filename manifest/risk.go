package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Change is one difference between two manifests, as a person weighs it.
type Change struct {
	Path string `json:"path"` // a JSON pointer: into the second manifest, or the first where only that has it
	Name string `json:"name"` // of what changes, as in "capability web"
	Risk Risk   `json:"risk"`
	Text string `json:"text"` // what changes about it
}

// Risk says what a change does to the rights of a world's agents.
type Risk string

// Risks, as Changes sorts them.
const (
	Gains   Risk = "gains"   // more is allowed, or may be: it cannot be told which
	Loses   Risk = "loses"   // less is allowed
	Neutral Risk = "neutral" // rights stay as they are
)

// Changes returns how b, without faults, differs from a, likewise: what gains
// rights first, then what loses them, then the rest, each in the order of
// Manifest's fields, names sorted.
//
// Rights are what a world's agents can do to the outside without a person. Where
// rules and not lists change, such as the expression of a policy or the config of
// an adapter, they count as gained: only who reads them can tell. widens tells of the
// expressions of policies: 1 where one holds wherever it did, -1 where only there, 0 where
// nobody knows. Rights are won, too, where it takes less to change the rules: fewer
// approvals, or more persons who can give them.
func Changes(a, b *Manifest, widens func(was, is string) int) []Change {
	r := risks{widens: widens}
	r.noteNeutral("/world", "world", "is named %q, not %q", b.World, a.World)
	r.noteNeutral("/version", "version", "%d, not %d", b.Version, a.Version)
	r.noteNeutral("/seed", "seed", "%d, not %d", b.Seed, a.Seed)
	r.noteNeutral("/clock/epoch", "clock", "its epoch is %d ns after 1970, not %d ns", b.Clock.Epoch, a.Clock.Epoch)
	r.noteNeutral("/clock/mode", "clock", "it is %s, not %s", cmp.Or(b.Clock.Mode, ClockSimulated), cmp.Or(a.Clock.Mode, ClockSimulated))
	r.noteNeutral("/clock/tick", "clock", "a tick is %s, not %s", time.Duration(b.Clock.Tick), time.Duration(a.Clock.Tick))
	section("/reducers", "reducer", a.Reducers, b.Reducers, r.reducer)
	section("/events", "event", a.Events, b.Events, r.event)
	section("/effects", "effect", a.Effects, b.Effects, r.effect)
	section("/caps", "capability", a.Caps, b.Caps, r.capability)
	r.policies(a.Policies, b.Policies)
	r.routing(a.Routing, b.Routing)
	r.budget("/budget", "world", a.Budget, b.Budget)
	r.noteNeutral("/defaults/approval_ttl", "defaults", "what waits for approval is denied after %d ticks, not %d", b.Defaults.ApprovalTTL, a.Defaults.ApprovalTTL)
	r.noteNeutral("/defaults/snapshot_every", "defaults", "a snapshot every %d records, not %d", b.Defaults.SnapshotEvery, a.Defaults.SnapshotEvery)
	if a.Defaults.CheckpointEvery != b.Defaults.CheckpointEvery {
		r.add(Neutral, "/defaults/checkpoint_every", "defaults", "a signed checkpoint every %d records, not %d",
			cmp.Or(b.Defaults.CheckpointEvery, DefaultCheckpointEvery), cmp.Or(a.Defaults.CheckpointEvery, DefaultCheckpointEvery))
	}
	r.noteNeutral("/defaults/retention/max_snapshots", "defaults", "at most %d snapshots are kept, not %d",
		b.Defaults.Retention.MaxSnapshots, a.Defaults.Retention.MaxSnapshots)
	r.limits("/limits", "world", a.Limits.allLimits(), b.Limits.allLimits())
	r.governance("/governance", a.Governance, b.Governance)
	r.engines("/engines", a.Engines, b.Engines)
	slices.SortStableFunc(r.changes, func(a, b Change) int { return a.Risk.rank() - b.Risk.rank() })
	return r.changes
}

func (r Risk) rank() int { return slices.Index([]Risk{Gains, Loses, Neutral}, r) }

// risks gathers changes.
type risks struct {
	changes []Change
	widens  func(was, is string) int
}

func (r *risks) add(risk Risk, path, name, format string, args ...any) {
	r.changes = append(r.changes, Change{Path: path, Name: name, Risk: risk, Text: fmt.Sprintf(format, args...)})
}

// noteNeutral adds a neutral change where is, which the text names first, is not was.
func (r *risks) noteNeutral(path, name, format string, is, was any) {
	if is != was {
		r.add(Neutral, path, name, format, is, was)
	}
}

// unclear adds a change of rules where they differ.
func (r *risks) unclear(path, name, text string, differ bool) {
	if differ {
		r.add(Gains, path, name, "changes, and may allow more: %s", text)
	}
}

// choice adds a change from one choice to another. free are the choices, the one
// that leaves the least to agents first; those in one string, with a space
// between, weigh the same.
func (r *risks) choice(path, name, what, was, is string, free ...string) {
	if was == is {
		return
	}
	weight := func(choice string) int {
		return slices.IndexFunc(free, func(s string) bool { return slices.Contains(strings.Fields(s), choice) })
	}
	risk := Neutral
	switch w, i := weight(was), weight(is); {
	case i > w:
		risk = Gains
	case i < w:
		risk = Loses
	}
	r.add(risk, path, name, "%s is %s, not %s", what, is, was)
}

// section compares the entries of one section with entry, in the order of their
// names; one that there is not is the zero T.
func section[T any](path, kind string, a, b map[string]T, entry func(path, name string, was, is *T)) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b)) // order cannot show: sorted below
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		var was, is *T
		if value, ok := a[name]; ok {
			was = &value
		}
		if value, ok := b[name]; ok {
			is = &value
		}
		entry(path+"/"+escape(name), kind+" "+name, was, is)
	}
}

// entered adds that an entry is new or gone. It reports whether it is neither.
func entered[T any](r *risks, path, name string, was, is *T, fresh, gone Risk) bool {
	switch {
	case was == nil:
		r.add(fresh, path, name, "is new")
	case is == nil:
		r.add(gone, path, name, "is gone")
	}
	return was != nil && is != nil
}

func (r *risks) reducer(path, name string, was, is *Reducer) {
	if !entered(r, path, name, was, is, Neutral, Neutral) {
		if was == nil {
			was = &Reducer{}
		} else {
			is = &Reducer{}
		}
		r.set(path+"/grants", name, "capability", was.Grants, is.Grants, nil)
		return
	}
	r.noteNeutral(path+"/engine", name, "engine %s, not %s", is.Engine, was.Engine)
	r.noteNeutral(path+"/file", name, "its source is %q, not %q", is.File, was.File)
	r.noteNeutral(path+"/source", name, "other code: %s, not %s", is.Source, was.Source)
	r.modules(path+"/modules", name, was.Modules, is.Modules)
	if !bytes.Equal(was.Params, is.Params) {
		r.add(Neutral, path+"/params", name, "is given other params")
	}
	r.noteNeutral(path+"/name", name, "is registered as %q, not %q", is.Name, was.Name)
	r.noteNeutral(path+"/version", name, "other code: version %q, not %q", is.Version, was.Version)
	r.set(path+"/grants", name, "capability", was.Grants, is.Grants, nil)
	r.choice(path+"/on_error", name, "on_error", was.OnError, is.OnError, OnErrorHalt, OnErrorSkip)
	r.budget(path+"/budget", name, was.Budget, is.Budget)
	r.limits(path+"/limits", name, was.Limits.allLimits(), is.Limits.allLimits())
}

func (r *risks) modules(path, name string, a, b map[string]Hash) {
	section(path, name+" module", a, b, func(path, name string, was, is *Hash) {
		if entered(r, path, name, was, is, Neutral, Neutral) {
			r.noteNeutral(path, name, "other code: %s, not %s", *is, *was)
		}
	})
}

func (r *risks) event(path, name string, was, is *Event) {
	if entered(r, path, name, was, is, Neutral, Neutral) {
		r.noteNeutral(path+"/file", name, "its schema is %q, not %q", is.File, was.File)
		r.noteNeutral(path+"/schema", name, "another schema: %s, not %s", is.Schema, was.Schema)
	}
}

// routing compares routes without regard to where they stand, and then their
// order.
func (r *risks) routing(a, b []Route) {
	left := slices.Clone(a)
	fresh := false
	for i, route := range b {
		if k := slices.Index(left, route); k >= 0 {
			left = slices.Delete(left, k, k+1)
			continue
		}
		fresh = true
		r.add(Neutral, "/routing/"+strconv.Itoa(i), "routing", "%s goes to %s", route.Event, route.To())
	}
	for _, route := range left {
		r.add(Neutral, "/routing/"+strconv.Itoa(slices.Index(a, route)), "routing",
			"%s does not go to %s any more", route.Event, route.To())
	}
	if !fresh && len(left) == 0 && !slices.Equal(a, b) {
		r.add(Neutral, "/routing", "routing", "the routes are in another order")
	}
}

// equalFiles reports whether adapters get the same configuration.
func equalFiles(a, b Data, files, others map[string]Hash) bool {
	return bytes.Equal(a, b) && maps.Equal(files, others)
}
