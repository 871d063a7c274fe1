package manifest

import (
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
	all := paramsOf(is)
	for i, p := range paramsOf(was) {
		if p.list {
			r.set(path+p.name, name, p.name, p.values, all[i].values, p.covers)
		}
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
	all := is.allLimits()
	for i, l := range was.allLimits() {
		r.bound(path+"/"+l.name, name, "budget of "+l.name, *l.have, *all[i].have)
	}
	switch {
	case was.Per == is.Per:
	case is.Per == 0:
		r.add(Loses, path+"/per", name, "its budget does not renew, and did every %d ticks", was.Per)
	case was.Per == 0 || is.Per < was.Per:
		r.add(Gains, path+"/per", name, "its budget renews every %d ticks", is.Per)
	default:
		r.add(Loses, path+"/per", name, "its budget renews every %d ticks, not %d", is.Per, was.Per)
	}
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
	for i, l := range is {
		r.limit(path+"/"+l.name, name, l.name, was[i].value(), l.value())
	}
}

func (r *risks) limit(path, name, what string, was, is uint64) {
	switch {
	case is > was:
		r.add(Gains, path, name, "limit of %s: %d, not %d", what, is, was)
	case is < was:
		r.add(Loses, path, name, "limit of %s: %d, not %d", what, is, was)
	}
}
