package manifest

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
)

func (r *risks) capability(path, name string, was, is *Cap) {
	if was == nil {
		r.add(Gains, path, name, "is new: type %s", is.Type)
		r.paramLists(path+"/params/", name, &CapParams{}, &is.Params)
		return
	}
	if !entered(r, path, name, was, is, Gains, Loses) {
		return
	}
	r.unclear(path+"/type", name, "type "+is.Type+", not "+was.Type, was.Type != is.Type)
	r.paramLists(path+"/params/", name, &was.Params, &is.Params)
	r.bound(path+"/params/max_tokens", name, "max_tokens", was.Params.MaxTokens, is.Params.MaxTokens)
	r.bound(path+"/params/max_bytes", name, "max_bytes", was.Params.MaxBytes, is.Params.MaxBytes)
	r.budget(path+"/budget", name, was.Budget, is.Budget)
	r.bound(path+"/expires", name, "expires", uint64(was.Expires), uint64(is.Expires))
}

// paramLists compares what a capability lists, and its root.
func (r *risks) paramLists(path, name string, was, is *CapParams) {
	for _, p := range []struct {
		name    string
		was, is []string
		covers  func(wide, narrow string) bool
	}{
		{"kinds", was.Kinds, is.Kinds, Match},
		{"schemes", was.Schemes, is.Schemes, nil},
		{"hosts", was.Hosts, is.Hosts, nil}, // a host's own name opens more than a pattern does: private addresses
		{"ports", numbers(was.Ports), numbers(is.Ports), nil},
		{"methods", was.Methods, is.Methods, nil},
		{"paths", was.Paths, is.Paths, isBelow},
		{"providers", was.Providers, is.Providers, nil},
		{"models", was.Models, is.Models, Match},
		{"servers", was.Servers, is.Servers, nil},
		{"tools", was.Tools, is.Tools, Match},
		{"access", was.Access, is.Access, nil},
		{"programs", was.Programs, is.Programs, nil},
		{"args", was.Args, is.Args, nil},
	} {
		r.set(path+p.name, name, p.name, p.was, p.is, p.covers)
	}
	r.root(path+"root", name, was.Root, is.Root)
}

// root compares directories of files: one above opens more.
func (r *risks) root(at, name, was, is string) {
	switch {
	case was == is:
	case was == "":
		r.add(Gains, at, name, "root: %s", is)
	case is == "", isBelow(path.Clean(was), path.Clean(is)):
		r.add(Loses, at, name, "root: %s, not %s", quoted(is), was)
	default:
		r.add(Gains, at, name, "root: %s, not %s", is, was)
	}
}

// isBelow reports whether a path is dir or below it.
func isBelow(dir, at string) bool {
	dir = strings.TrimSuffix(dir, "/")
	return at == dir || strings.HasPrefix(at, dir+"/")
}

// set compares what two lists allow. What one item of a list covers needs no
// item of its own. nil covers nothing else.
func (r *risks) set(path, name, what string, was, is []string, covers func(wide, narrow string) bool) {
	lacks := func(list []string, item string) bool {
		return !slices.ContainsFunc(list, func(s string) bool { return s == item || covers != nil && covers(s, item) })
	}
	more, less := missing(is, was, lacks), missing(was, is, lacks)
	if len(more) > 0 {
		r.add(Gains, path, name, "%s: more: %s", what, strings.Join(more, ", "))
	}
	if len(less) > 0 {
		r.add(Loses, path, name, "%s: less: %s", what, strings.Join(less, ", "))
	}
	if len(more)+len(less) == 0 && !slices.Equal(was, is) {
		r.add(Neutral, path, name, "%s: the same in other words, or in another order: %s", what, strings.Join(is, ", "))
	}
}

// missing returns the items that a list lacks, as text that can be read.
func missing(items, list []string, lacks func(list []string, item string) bool) []string {
	var out []string
	for _, item := range items {
		if lacks(list, item) {
			out = append(out, strconv.Quote(item))
		}
	}
	return out
}

func numbers(list []uint64) []string {
	var out []string
	for _, n := range list {
		out = append(out, strconv.FormatUint(n, 10))
	}
	return out
}

func (r *risks) budget(path, name string, was, is Budget) {
	r.bound(path+"/calls", name, "budget of calls", was.Calls, is.Calls)
	r.bound(path+"/tokens", name, "budget of tokens", was.Tokens, is.Tokens)
	r.bound(path+"/bytes", name, "budget of bytes", was.Bytes, is.Bytes)
	r.bound(path+"/micros", name, "budget of micros", was.Micros, is.Micros)
}

// bound compares numbers that bound, but for 0, which does not.
func (r *risks) bound(path, name, what string, was, is uint64) {
	if was == is {
		return
	}
	risk := Loses
	if is == 0 || was != 0 && is > was {
		risk = Gains
	}
	r.add(risk, path, name, "%s: %s, not %s", what, bounding(is), bounding(was))
}

func bounding(n uint64) string {
	if n == 0 {
		return "without bound"
	}
	return strconv.FormatUint(n, 10)
}

// limits compares limits, which always bound.
func (r *risks) limits(path, name string, was, is []limit) {
	for i := range was {
		risk := Loses
		switch {
		case was[i].have == is[i].have:
			continue
		case is[i].have > was[i].have:
			risk = Gains
		}
		r.add(risk, path+"/"+is[i].name, name, "limit of %s: %d, not %d", is[i].name, is[i].have, was[i].have)
	}
}

func limitsOf(l Limits) []limit {
	return []limit{
		{name: "events_per_tick", have: l.EventsPerTick},
		{name: "in_flight", have: l.InFlight},
		{name: "mailbox", have: l.Mailbox},
		{name: "alarms", have: l.Alarms},
		{name: "payload", have: l.Payload},
		{name: "receipt", have: l.Receipt},
	}
}

func reducerLimitsOf(l ReducerLimits) []limit {
	return []limit{
		{name: "gas", have: l.Gas},
		{name: "state", have: l.State},
		{name: "events", have: l.Events},
		{name: "effects", have: l.Effects},
		{name: "timers", have: l.Timers},
		{name: "value", have: l.Value},
		{name: "memory", have: cmp.Or(l.Memory, DefaultMemory)},
	}
}
