package canon

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxDigits is how many decimal digits an integer from outside may have: making a
// number of them costs more than reading them.
const MaxDigits = 4096

// FromJSON returns the canonical bytes of one JSON value. A number without '.'
// and 'e' is an integer of up to MaxDigits, any other is a float; -0.0 is 0.0.
// Errors name the path of the fault, as in "$.items[3].price: …"; duplicate keys
// text that is not UTF-8, and an escaped surrogate without its other half are faults.
func FromJSON(data []byte) (Raw, error) {
	b, err := fromJSON(data, MaxDigits)
	if at := (*jsonError)(nil); errors.As(err, &at) {
		at.err = PlainJSON(at.err)
	}
	return b, err
}

// FromPrintedJSON is FromJSON without MaxDigits. It is for what [ToJSON] may have
// printed: a reducer can compute longer integers, and worlds from before the limit
// were sent them. Its errors have the words of encoding/json: they are in the journals of
// worlds whose reducers read JSON.
func FromPrintedJSON(data []byte) (Raw, error) { return fromJSON(data, math.MaxInt) }

func fromJSON(data []byte, maxDigits int) (Raw, error) {
	if err := CheckText(data); err != nil {
		return nil, err
	}
	r := newJSONReader(data, maxDigits)
	err := r.value(MaxDepth)
	if r.space(); err == nil && r.at < len(data) {
		err = errNotRead
	}
	if errors.Is(err, errNotRead) {
		if fault := faultOf(data, maxDigits); fault != nil {
			return nil, fault
		}
	}
	if err != nil {
		return nil, below("$", err)
	}
	return bytes.Clone(r.out), nil // without the room that it grew into
}

// CheckText returns an error that names the first byte of a text that is not UTF-8, or
// its byte order mark, which editors add and no reader in here takes.
func CheckText(text []byte) error {
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")),
		len(text) > 1 && (text[0] == 0) != (text[1] == 0): // without a mark
		return &SyntaxError{Reason: "text is UTF-16; save it as UTF-8"}
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return &SyntaxError{Reason: "text begins with a byte order mark; save it as UTF-8 without one"}
	case utf8.Valid(text):
		return nil
	}
	i := 0
	for size := 0; i < len(text); i += size {
		var r rune
		if r, size = utf8.DecodeRune(text[i:]); r == utf8.RuneError && size == 1 {
			break
		}
	}
	return &SyntaxError{Offset: i, Reason: "text is not UTF-8"}
}

func appendNumber(b []byte, s string, maxDigits int) ([]byte, error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("%s has no finite value", s)
		}
		return AppendFloat(b, f)
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return AppendInt(b, n), nil
	}
	digits, negative := strings.CutPrefix(s, "-")
	if len(digits) > maxDigits {
		return nil, fmt.Errorf("an integer of %d digits, more than %d", len(digits), maxDigits)
	}
	n := parseDigits(digits)
	if negative {
		n.Neg(n)
	}
	return AppendBig(b, n), nil
}

// ToJSON returns canonical bytes as JSON on one line: keys in canonical order,
// byte strings in standard base64, integers in full, floats so that they read
// back as floats. Bytes that are not canonical are a *SyntaxError.
func ToJSON(data Raw) ([]byte, error) {
	if err := Valid(data); err != nil {
		return nil, err
	}
	return appendAsJSON(nil, &Reader{data: data}), nil
}

// appendAsJSON appends the next item of r, which is canonical.
func appendAsJSON(b []byte, r *Reader) []byte {
	switch r.Kind() {
	case KindArray:
		b = append(b, '[')
		for i := range r.Array() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendAsJSON(b, r)
		}
		return append(b, ']')
	case KindMap:
		b = append(b, '{')
		for i := range r.Map() {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSONText(b, r.TextBytes()), ':')
			b = appendAsJSON(b, r)
		}
		return append(b, '}')
	case KindText:
		return appendJSONText(b, r.TextBytes())
	case KindBytes:
		b = base64.StdEncoding.AppendEncode(append(b, '"'), r.Bytes())
		return append(b, '"')
	case KindInt:
		n, wide := r.Int()
		if wide != nil {
			return wide.Append(b, 10)
		}
		return strconv.AppendInt(b, n, 10)
	case KindFloat:
		return appendJSONFloat(b, r.Float())
	case KindBool:
		return strconv.AppendBool(b, r.Bool())
	default:
		r.Null()
		return append(b, "null"...)
	}
}

// appendJSONFloat appends f so that it reads back as a float.
func appendJSONFloat(b []byte, f float64) []byte {
	start := len(b)
	b = strconv.AppendFloat(b, f, 'g', -1, 64)
	if !bytes.ContainsAny(b[start:], ".e") {
		b = append(b, ".0"...)
	}
	return b
}

// appendJSONText quotes s without escaping <, > and &, which is for HTML.
func appendJSONText(b, s []byte) []byte {
	if plain(s) {
		return append(append(append(b, '"'), s...), '"')
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(string(s)); err != nil {
		panic(err) // a string always encodes, and a buffer always takes it
	}
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}

// plain reports whether s is its own JSON text, as most are.
func plain(s []byte) bool {
	for _, c := range s {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
