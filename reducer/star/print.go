package star

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/worldkernel/worldkernel/reducer"
)

// MaxPrintBytes is how much of what one step prints is heard, with printBytes for each
// call.
const MaxPrintBytes = 64 << 10

// printBytes is what a call of print counts beside its text: there may be many empty ones.
const printBytes = 32

// listener hears what a step prints. What is charged does not depend on it.
type listener struct {
	hear func(reducer.Print) // nil: nobody hears, or has heard enough
	left int                 // bytes of MaxPrintBytes
}

// listen has fn hear what is printed from now on; nil: nobody.
func (m *meter) listen(fn func(reducer.Print)) { m.listener = listener{fn, MaxPrintBytes} }

// print charges for the text of its arguments, and has it heard if anyone listens.
func (m *meter) print(
	thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	sep := " "
	if err := starlark.UnpackArgs("print", nil, kwargs, "sep?", &sep); err != nil {
		return nil, err
	}
	m.walk(len(args) * (len(sep) + slotBytes))
	for _, arg := range args {
		m.payText(arg)
	}
	if m.listener.hear != nil {
		m.listener.pass(caller(thread), sep, args)
	}
	return starlark.None, nil
}

// caller returns the place in the program that has led to a call of a built-in function.
func caller(thread *starlark.Thread) string {
	for depth := 1; depth < thread.CallStackDepth(); depth++ {
		if pos := thread.CallFrame(depth).Pos; pos.Filename() != builtinFile {
			return pos.String()
		}
	}
	return builtinFile
}

// pass passes on what a call prints, or as much of it as is left.
func (l *listener) pass(place, sep string, args starlark.Tuple) {
	var text strings.Builder
	most := l.left - printBytes
	for i, arg := range args {
		if text.Len() > most {
			break
		}
		if i > 0 {
			text.WriteString(sep)
		}
		text.WriteString(printed(arg))
	}
	l.left -= printBytes + text.Len()
	if l.left >= 0 {
		l.hear(reducer.Print{Place: place, Text: strings.ToValidUTF8(text.String(), "\uFFFD")})
		return
	}
	rest := fmt.Sprintf("… (a step's print is shown up to %d bytes)", MaxPrintBytes)
	l.hear(reducer.Print{Place: place, Text: strings.ToValidUTF8(text.String()[:max(0, min(most, text.Len()))], "") + rest})
	l.hear = nil
}

// printed returns a value's text as str does.
func printed(v starlark.Value) string {
	switch v := v.(type) {
	case starlark.String:
		return string(v)
	case starlark.Bytes:
		return string([]rune(string(v))) // each byte that is no text becomes U+FFFD
	default:
		return v.String()
	}
}
