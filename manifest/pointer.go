package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// escape makes a name a part of a JSON pointer.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// Pointer returns the JSON pointer (RFC 6901) of names, each below the one before.
func Pointer(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("/" + escape(name))
	}
	return b.String()
}

// parsePointer returns the names in a JSON pointer; none is the whole document.
func parsePointer(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	rest, ok := strings.CutPrefix(s, "/")
	if !ok {
		return nil, fmt.Errorf("the path %q does not begin with /", s)
	}
	if n := strings.Count(s, "/"); n > canon.MaxDepth {
		return nil, fmt.Errorf("the path has %d parts, at most %d are allowed", n, canon.MaxDepth)
	}
	path := strings.Split(rest, "/")
	for i, part := range path {
		name := strings.NewReplacer("~0", "~", "~1", "/").Replace(part)
		if escape(name) != part {
			return nil, fmt.Errorf("the path %q has a ~ that is neither ~0 nor ~1", s)
		}
		path[i] = name
	}
	return path, nil
}

// edit returns tree, of map[string]any and []any, after last has changed the
// container of what path, which is not empty, leads to; false where it leads
// nowhere.
func edit(tree any, path []string, last func(container any, name string) (any, bool)) (any, bool) {
	name := path[0]
	if len(path) == 1 {
		return last(tree, name)
	}
	child, ok := childOf(tree, name)
	if !ok {
		return nil, false
	}
	if child, ok = edit(child, path[1:], last); !ok {
		return nil, false
	}
	return set(child)(tree, name)
}

// childOf returns what a map or a list has under a name; false where it has nothing.
func childOf(tree any, name string) (child any, ok bool) {
	switch t := tree.(type) {
	case map[string]any:
		child, ok = t[name]
	case []any:
		var i int
		if i, ok = index(t, name); ok {
			child = t[i]
		}
	}
	return child, ok
}

// set returns what edit needs to put value somewhere.
func set(value any) func(container any, name string) (any, bool) {
	return func(container any, name string) (any, bool) {
		switch c := container.(type) {
		case map[string]any:
			c[name] = value
			return c, true
		case []any:
			if name == "-" {
				return append(c, value), true
			}
			i, ok := index(c, name)
			if ok {
				c[i] = value
			}
			return c, ok
		}
		return nil, false
	}
}

// remove is what edit needs to take something away.
func remove(container any, name string) (any, bool) {
	switch c := container.(type) {
	case map[string]any:
		_, ok := c[name]
		delete(c, name)
		return c, ok
	case []any:
		i, ok := index(c, name)
		if ok {
			c = slices.Delete(c, i, i+1)
		}
		return c, ok
	}
	return nil, false
}

// index returns the index of an item that is there, written in its one way.
func index(list []any, name string) (int, bool) {
	i, err := strconv.Atoi(name)
	return i, err == nil && i >= 0 && i < len(list) && strconv.Itoa(i) == name
}
