package manifest

import (
	"slices"
	"strconv"
	"strings"
)

func (r *risks) governance(path string, was, is Governance) {
	const name = "governance"
	switch w, i := was.Needed(), is.Needed(); {
	case i < w:
		r.add(Gains, path+"/approvals", name, "fewer approvals change the rules: %d, not %d", i, w)
	case i > w:
		r.add(Loses, path+"/approvals", name, "more approvals are needed to change the rules: %d, not %d", i, w)
	default:
		r.noteNeutral(path+"/approvals", name, "the same in other words: approvals is %d, not %d", is.Approvals, was.Approvals)
	}
	r.choice(path+"/four_eyes", name, "four_eyes", strconv.FormatBool(was.FourEyes), strconv.FormatBool(is.FourEyes), "true", "false")
	path += "/approvers"
	switch none := len(is.Approvers) == 0; {
	case none && len(was.Approvers) > 0:
		r.add(Gains, path, name, "any key approves, not only that of %s", holders(was.Approvers))
	case !none && len(was.Approvers) == 0:
		r.add(Loses, path, name, "not any key approves, only that of %s", holders(is.Approvers))
	default:
		r.approvers(path, was.Approvers, is.Approvers)
	}
}

// approvers compares approvers by their names: their order decides nothing.
func (r *risks) approvers(path string, a, b []Approver) {
	for i, is := range b {
		at, name := path+"/"+strconv.Itoa(i), "approver "+is.Name
		k := indexOf(a, is.Name)
		switch {
		case k < 0:
			r.add(Gains, at, name, "is new: key %s", is.Key)
		case a[k].Key != is.Key:
			r.add(Gains, at+"/key", name, "has another key: %s, not %s", is.Key, a[k].Key)
		}
		if k >= 0 {
			r.noteNeutral(at+"/file", name, "its key's file is %q, not %q", is.File, a[k].File)
		}
	}
	moved := len(a) == len(b)
	for i, was := range a {
		k := indexOf(b, was.Name)
		moved = moved && k >= 0
		if k < 0 {
			r.add(Loses, path+"/"+strconv.Itoa(i), "approver "+was.Name, "is gone: key %s", was.Key)
		}
	}
	if moved && !slices.EqualFunc(a, b, func(p, q Approver) bool { return p.Name == q.Name }) {
		r.add(Neutral, path, "approvers", "are in another order")
	}
}

// indexOf returns where an approver stands, or -1.
func indexOf(approvers []Approver, name string) int {
	return slices.IndexFunc(approvers, func(a Approver) bool { return a.Name == name })
}

// holders names approvers with their keys: whose key it is says who proposes it.
func holders(approvers []Approver) string {
	var out []string
	for _, a := range approvers {
		out = append(out, a.Name+" ("+a.Key.String()+")")
	}
	return strings.Join(out, ", ")
}
