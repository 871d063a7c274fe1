package manifest

import (
	"fmt"
	"strconv"
	"strings"
)

// Match reports whether pattern, an exact name, "prefix.*" or "*", covers name.
func Match(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// KeyExpr tells which cell of a reducer an event goes to. It is the part of
// CEL that needs no evaluation: either a string literal ("lobby", with its
// quotes), which is one cell for all events, or a path event.data.a.b into the
// event's data, which must hold a string or an integer.
type KeyExpr struct {
	Literal string   // where Path is empty
	Path    []string // field names below event.data
}

// ParseKeyExpr parses the key of a route.
func ParseKeyExpr(s string) (KeyExpr, error) {
	if strings.HasPrefix(s, `"`) {
		lit, err := strconv.Unquote(s)
		if err != nil {
			return KeyExpr{}, fmt.Errorf("%s is not a string literal", s)
		}
		return KeyExpr{Literal: lit}, CheckKey(lit)
	}
	if lit, ok := strings.CutPrefix(s, "'"); ok {
		lit, ok := strings.CutSuffix(lit, "'")
		if !ok || strings.ContainsAny(lit, `'\`) {
			return KeyExpr{}, fmt.Errorf("%s is not a string literal", s)
		}
		return KeyExpr{Literal: lit}, CheckKey(lit)
	}
	path, ok := strings.CutPrefix(s, "event.data.")
	fields := strings.Split(path, ".")
	for _, f := range fields {
		ok = ok && isIdent(f)
	}
	if !ok {
		return KeyExpr{}, fmt.Errorf(`%q is neither a path such as event.data.customer nor a string literal such as "lobby"`, s)
	}
	return KeyExpr{Path: fields}, nil
}

func isIdent(s string) bool {
	for i, c := range s {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// MaxKeyBytes is the greatest length of a cell's key.
const MaxKeyBytes = 256

// CheckKey reports why key cannot be the key of a cell: it must have 1 to
// MaxKeyBytes bytes of UTF-8 without control characters.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("a cell's key is not empty")
	case len(key) > MaxKeyBytes:
		return fmt.Errorf("a cell's key has at most %d bytes, not %d", MaxKeyBytes, len(key))
	}
	for _, c := range key {
		if c < ' ' || c >= 0x7f && c < 0xa0 || c == '\uFFFD' {
			return fmt.Errorf("a cell's key %q holds a control character or is not UTF-8", key)
		}
	}
	return nil
}
