package star

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

func (m *meter) beforeString(name, s string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, error) {
	if err := m.looked(name, s); err != nil {
		return nil, err
	}
	if strings.HasPrefix(name, "is") { // letters are looked up one by one
		return args, m.spend(uint64(len(s)) / bytesMadePerStep)
	}
	switch name {
	case "format":
		return args, m.formatSize(s, args, kwargs)
	case "join":
		return m.beforeJoin(s, args)
	case "replace":
		return args, m.beforeReplace(s, args)
	case "split", "rsplit", "splitlines":
		return m.beforeSplit(name, s, args)
	case "strip", "lstrip", "rstrip":
		return args, m.beforeStrip(s, args)
	case "startswith", "endswith":
		if len(args) > 0 {
			return args, m.key(args[0]) // each prefix is read once
		}
	}
	return args, nil
}

// looked charges for looking through the receiver of a method.
func (m *meter) looked(name, s string) error {
	switch name {
	case "startswith", "endswith", "removeprefix", "removesuffix":
		return m.scan(len(s))
	}
	return m.walk(len(s))
}

func (m *meter) beforeJoin(sep string, args starlark.Tuple) (starlark.Tuple, error) {
	list, err := m.collectOnly(args)
	if list == nil || err != nil {
		return args, err
	}
	if err := m.joined(len(list)); err != nil {
		return nil, err
	}
	size := uint64(0)
	for i, x := range list {
		if i > 0 {
			size += uint64(len(sep))
		}
		size += uint64(max(starlark.Len(x), 0))
		if size > m.value {
			return nil, m.exceed("a string of more than %d bytes, limits.value is %d", m.value, m.value)
		}
	}
	return starlark.Tuple{starlark.Tuple(list)}, nil
}

func (m *meter) beforeReplace(s string, args starlark.Tuple) error {
	if len(args) < 2 {
		return nil
	}
	from, ok := starlark.AsString(args[0])
	to, ok2 := starlark.AsString(args[1])
	if !ok || !ok2 {
		return nil
	}
	n := strings.Count(s, from)
	if len(args) == 3 {
		var most int
		if err := starlark.AsInt(args[2], &most); err == nil && most >= 0 {
			n = min(n, most)
		}
	}
	if err := m.joined(n); err != nil {
		return err
	}
	// n is at most len(s)+1 and both strings are within limits.value: no overflow.
	if grows := len(to) - len(from); grows > 0 {
		return m.fits("string", uint64(len(s)+n*grows))
	}
	return nil
}

// pieceBytes is what one string of a split takes: its header twice and its
// place in the list.
const pieceBytes = 3 * slotBytes

func (m *meter) beforeSplit(name, s string, args starlark.Tuple) (starlark.Tuple, error) {
	n := 0
	sep, ok := "", false
	if len(args) > 0 {
		sep, ok = starlark.AsString(args[0])
	}
	switch {
	case name == "splitlines":
		n = strings.Count(s, "\n")
	case ok && sep != "":
		n = strings.Count(s, sep)
	case !ok:
		if err := m.spend(uint64(len(s)) / bytesMadePerStep); err != nil {
			return nil, err
		}
		n = fields(s)
	}
	if err := m.slots("list", n+1); err != nil {
		return nil, err
	}
	if err := m.joined(n); err != nil {
		return nil, err
	}
	if err := m.spend(uint64(n) * (pieceBytes - slotBytes) / bytesMadePerStep); err != nil {
		return nil, err
	}
	if len(args) == 2 && name != "splitlines" { // rsplit would reserve memory for all that it is told
		var most int
		if err := starlark.AsInt(args[1], &most); err == nil && most > len(s) {
			args = starlark.Tuple{args[0], starlark.MakeInt(len(s))}
		}
	}
	return args, nil
}

func fields(s string) int {
	n, inside := 0, false
	for _, r := range s {
		space := unicode.IsSpace(r)
		if !space && !inside {
			n++
		}
		inside = !space
	}
	return n
}

func (m *meter) beforeStrip(s string, args starlark.Tuple) error {
	if len(args) == 0 {
		return nil
	}
	cutset, ok := starlark.AsString(args[0])
	if !ok {
		return nil
	}
	if err := m.walk(len(cutset)); err != nil {
		return err
	}
	for i := range len(cutset) {
		if cutset[i] >= utf8.RuneSelf { // looked through for every character of s
			return m.spend(uint64(len(s)) * uint64(len(cutset)) / bytesWalkedPerStep)
		}
	}
	return nil
}
