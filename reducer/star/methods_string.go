package star

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

func (m *meter) beforeString(name, s string, args starlark.Tuple, kwargs []starlark.Tuple) starlark.Tuple {
	m.looked(name, s)
	if strings.HasPrefix(name, "is") { // letters are looked up one by one
		m.spend(uint64(len(s)) / bytesMadePerStep)
		return args
	}
	switch name {
	case "format":
		m.formatSize(s, args, kwargs)
	case "join":
		return m.beforeJoin(s, args)
	case "replace":
		m.beforeReplace(s, args)
	case "split", "rsplit", "splitlines":
		return m.beforeSplit(name, s, args)
	case "strip", "lstrip", "rstrip":
		m.beforeStrip(s, args)
	case "startswith", "endswith":
		if len(args) > 0 {
			m.key(args[0]) // each prefix is read once
		}
	}
	return args
}

// looked charges for looking through the receiver of a method.
func (m *meter) looked(name, s string) {
	switch name {
	case "startswith", "endswith", "removeprefix", "removesuffix":
		m.scan(len(s))
	default:
		m.walk(len(s))
	}
}

func (m *meter) beforeJoin(sep string, args starlark.Tuple) starlark.Tuple {
	list := m.collectOnly(args)
	if list == nil {
		return args
	}
	m.joined(len(list))
	size := uint64(0)
	for i, x := range list {
		if i > 0 {
			size += uint64(len(sep))
		}
		size += uint64(max(starlark.Len(x), 0))
		if size > m.value {
			m.exceed("a string of more than %d bytes, limits.value is %d", m.value, m.value)
		}
	}
	return starlark.Tuple{starlark.Tuple(list)}
}

func (m *meter) beforeReplace(s string, args starlark.Tuple) {
	if len(args) < 2 {
		return
	}
	from, ok := starlark.AsString(args[0])
	to, ok2 := starlark.AsString(args[1])
	if !ok || !ok2 {
		return
	}
	n := strings.Count(s, from)
	if len(args) == 3 {
		var most int
		if err := starlark.AsInt(args[2], &most); err == nil && most >= 0 {
			n = min(n, most)
		}
	}
	m.joined(n)
	// n is at most len(s)+1 and both strings are within limits.value: no overflow.
	if grows := len(to) - len(from); grows > 0 {
		m.fits("string", uint64(len(s)+n*grows))
	}
}

// pieceBytes is what one string of a split takes: its header twice and its
// place in the list.
const pieceBytes = 3 * slotBytes

func (m *meter) beforeSplit(name, s string, args starlark.Tuple) starlark.Tuple {
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
		m.spend(uint64(len(s)) / bytesMadePerStep)
		n = fields(s)
	}
	m.slots("list", n+1)
	m.joined(n)
	m.spend(uint64(n) * (pieceBytes - slotBytes) / bytesMadePerStep)
	if len(args) == 2 && name != "splitlines" { // rsplit would reserve memory for all that it is told
		var most int
		if err := starlark.AsInt(args[1], &most); err == nil && most > len(s) {
			args = starlark.Tuple{args[0], starlark.MakeInt(len(s))}
		}
	}
	return args
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

func (m *meter) beforeStrip(s string, args starlark.Tuple) {
	if len(args) == 0 {
		return
	}
	cutset, ok := starlark.AsString(args[0])
	if !ok {
		return
	}
	m.walk(len(cutset))
	for i := range len(cutset) {
		if cutset[i] >= utf8.RuneSelf { // looked through for every character of s
			m.spend(uint64(len(s)) * uint64(len(cutset)) / bytesWalkedPerStep)
			return
		}
	}
}
