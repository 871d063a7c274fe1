package manifest

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNameBytes is the greatest length of a name in a manifest.
const MaxNameBytes = 128

// checkIdentifier reports why s cannot name a reducer or a capability.
func checkIdentifier(s string) error {
	if err := checkLength(s); err != nil {
		return err
	}
	if !isWord(s) || !isLetter(s[0]) {
		return fmt.Errorf("the name %q is not a lower-case letter followed by lower-case letters, digits, _ and -", s)
	}
	return nil
}

// checkName reports why s cannot name an event or a kind of effect.
func checkName(s string) error {
	if err := checkLength(s); err != nil {
		return err
	}
	for word := range strings.SplitSeq(s, ".") {
		if !isWord(word) {
			return fmt.Errorf("the name %q is not lower-case words (letters, digits, _ and -) joined by dots", s)
		}
	}
	if !isLetter(s[0]) {
		return fmt.Errorf("the name %q does not begin with a lower-case letter", s)
	}
	return nil
}

// checkPattern reports why s is not a pattern over such names.
func checkPattern(s string) error {
	if s == "*" {
		return nil
	}
	if prefix, ok := strings.CutSuffix(s, ".*"); ok && checkName(prefix) == nil {
		return nil
	}
	if err := checkLength(s); err != nil {
		return err
	}
	if checkName(s) != nil {
		return fmt.Errorf(`the pattern %q is none of a name such as tool.lookup, a prefix such as tool.*, and *`, s)
	}
	return nil
}

// checkText reports why s cannot be a name that people read: it must have 1 to
// MaxNameBytes bytes of UTF-8 without control characters.
func checkText(s string) error {
	if s == "" {
		return errors.New("a name is not empty")
	}
	if err := checkLength(s); err != nil {
		return err
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("the name %q holds a control character or is not UTF-8", s)
	}
	return nil
}

func checkLength(s string) error {
	if len(s) > MaxNameBytes {
		return fmt.Errorf("the name %.16q… has %d bytes, at most %d are allowed", s, len(s), MaxNameBytes)
	}
	return nil
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' }

func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return s != ""
}
