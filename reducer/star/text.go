package star

import (
	"strings"

	"go.starlark.net/starlark"
)

// The sizes here are taken before a text is built. They count a string as its
// bytes; quoting can make it up to four times as long, so the text itself is
// checked again once it is there.

// payText charges for a value's text.
func (m *meter) payText(v starlark.Value) {
	s := m.sizer()
	s.text = true
	s.add(v, 0)
	s.pay()
}

// text charges for a value's text, and returns it as str does.
func (m *meter) text(v starlark.Value, quoted bool) starlark.String {
	if s, ok := v.(starlark.String); ok && !quoted {
		return s
	}
	m.payText(v)
	var out string
	if quoted {
		out = v.String()
	} else {
		out = printed(v)
	}
	m.room("string", uint64(len(out)))
	return starlark.String(out)
}

// formatSize refuses a str.format whose result would be too large. It follows
// the library as far as that would get before an error of its own.
func (m *meter) formatSize(format string, args starlark.Tuple, kwargs []starlark.Tuple) {
	s := m.sizer()
	s.text = true
	s.takeBytes(len(format))
	next := 0
	for {
		_, rest, ok := strings.Cut(format, "{")
		if !ok {
			break
		}
		if strings.HasPrefix(rest, "{") {
			format = rest[1:]
			continue
		}
		field, rest, ok := strings.Cut(rest, "}")
		if !ok {
			break
		}
		format = rest
		if i := strings.IndexAny(field, "!:"); i >= 0 {
			field = field[:i]
		}
		s.m.spend(pieceSteps + uint64(len(kwargs))/4)
		if v := operand(field, &next, args, kwargs); v != nil {
			s.add(v, 0)
		}
	}
	s.pay()
}

// operand returns what a replacement field stands for, or nil.
func operand(field string, next *int, args starlark.Tuple, kwargs []starlark.Tuple) starlark.Value {
	i, digits := 0, field != ""
	for _, c := range []byte(field) {
		digits = digits && '0' <= c && c <= '9'
		i = min(i*10+int(c-'0'), 1<<20)
	}
	if field == "" {
		i = *next
		*next++
		digits = true
	}
	if digits {
		if i < len(args) {
			return args[i]
		}
		return nil
	}
	for _, pair := range kwargs {
		if name, _ := starlark.AsString(pair[0]); name == field {
			return pair[1]
		}
	}
	return nil
}

// percentSize is formatSize for the % operator.
func (m *meter) percentSize(format string, arg starlark.Value) {
	s := m.sizer()
	s.text = true
	s.takeBytes(len(format))
	tuple, isTuple := arg.(starlark.Tuple)
	for next := 0; ; {
		_, rest, ok := strings.Cut(format, "%")
		if !ok || rest == "" {
			break
		}
		s.m.joined(1)
		format = rest
		if format[0] == '%' {
			format = format[1:]
			continue
		}
		v := arg
		if format[0] == '(' {
			var key string
			if key, format, ok = strings.Cut(format[1:], ")"); !ok {
				break
			}
			s.m.found(1)
			if v = lookup(arg, key); v == nil {
				break
			}
		} else if isTuple {
			if next >= len(tuple) {
				break
			}
			v = tuple[next]
			next++
		}
		s.conversion(v, format)
		if format != "" {
			format = format[1:]
		}
	}
	s.pay()
}

func lookup(arg starlark.Value, key string) starlark.Value {
	dict, ok := arg.(*starlark.Dict)
	if !ok {
		return nil
	}
	v, found, err := dict.Get(starlark.String(key))
	if err != nil || !found {
		return nil
	}
	return v
}

// floatText is the longest text of a float: 309 digits, a point, six more.
const floatText = 320

// conversion adds what one conversion of v takes, format being the rest from
// its letter on.
func (s *sizer) conversion(v starlark.Value, format string) {
	letter := format[:min(1, len(format))]
	is := func(letters string) bool { return letter != "" && strings.Contains(letters, letter) }
	if _, ok := v.(starlark.Int); ok && !small(v) && is("oxX") {
		s.takeBytes(MaxIntBits / 3)
		return
	}
	if _, ok := v.(starlark.Int); ok && is("eEfFgG") {
		s.takeBytes(floatText)
		return
	}
	if _, ok := v.(starlark.Float); ok && !is("sr") {
		s.takeBytes(floatText)
		return
	}
	s.add(v, 0)
}
