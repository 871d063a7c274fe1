package schema

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

const (
	// lineEnds are what the dot of ECMA-262 is not.
	lineEnds = "\\n\\r\u2028\u2029"
	// moreSpaces are what its \s has beside that of RE2.
	moreSpaces = "\\v\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
	// notSpaces are all the others.
	notSpaces = `\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
	anything  = `\x00-\x{10ffff}`
)

// condition is a pattern that a text matches, or does not.
type condition struct {
	pattern string
	not     bool
}

var (
	errAround = errors.New("it looks ahead or behind where RE2 cannot: only at its beginning after ^, or before $ at its end")
	errGroup  = errors.New("a group begins as no group of ECMA-262 does")
)

// fromECMA returns a regular expression of ECMA-262, with Unicode, as one of RE2 and conditions
// beside it: a text matches the one where it fulfills all of the other. What looks ahead at the
// beginning, after ^, and what looks behind at the end, before $, is such a condition.
func fromECMA(pattern string) (re string, beside []condition, err error) {
	t := ecma{rest: []rune(pattern)}
	if t.takeText("^") {
		t.out.WriteByte('^')
		for t.looks("(?=") || t.looks("(?!") {
			not := t.rest[2] == '!'
			inner, err := t.around(3)
			if err != nil {
				return "", nil, err
			}
			beside = append(beside, condition{"^(?:" + inner + ")", not})
		}
		if len(beside) > 0 && len(t.rest) > 0 && strings.ContainsRune("*+?{", t.rest[0]) {
			return "", nil, errAround
		}
	}
	for len(t.rest) > 0 {
		if t.depth == 0 && (t.looks("(?<=") || t.looks("(?<!")) {
			not := t.rest[3] == '!'
			inner, err := t.around(4)
			if err != nil || string(t.rest) != "$" {
				return "", nil, errors.Join(err, errAround)
			}
			beside = append(beside, condition{"(?:" + inner + ")$", not})
			continue
		}
		if err := t.next(); err != nil {
			return "", nil, err
		}
	}
	if len(beside) > 0 && t.choice {
		return "", nil, errAround
	}
	_, err = syntax.Parse(t.out.String(), syntax.Perl)
	return t.out.String(), beside, err
}

// ecma reads a regular expression of ECMA-262 and writes RE2.
type ecma struct {
	rest   []rune
	out    strings.Builder
	depth  int  // of groups
	choice bool // a | is in none
}

func (t *ecma) looks(text string) bool {
	return strings.HasPrefix(string(t.rest[:min(len(text), len(t.rest))]), text)
}

func (t *ecma) takeText(text string) bool {
	found := t.looks(text)
	if found {
		t.rest = t.rest[len(text):]
	}
	return found
}

// around takes what stands in a group whose beginning has so many characters.
func (t *ecma) around(begin int) (string, error) {
	inner := ecma{rest: t.rest[begin:]}
	for inner.depth > 0 || !inner.looks(")") {
		if len(inner.rest) == 0 {
			return "", errGroup
		}
		if err := inner.next(); err != nil {
			return "", err
		}
	}
	t.rest = inner.rest[1:]
	_, err := syntax.Parse(inner.out.String(), syntax.Perl)
	return inner.out.String(), err
}

// next takes what comes next outside of classes.
func (t *ecma) next() error {
	c := t.rest[0]
	switch c {
	case '(':
		return t.group()
	case '[':
		return t.class()
	case '\\':
		text, _, err := t.escape(false)
		t.out.WriteString(text)
		return err
	case '{':
		return t.count()
	}
	t.rest = t.rest[1:]
	switch c {
	case ')':
		t.depth--
	case '|':
		t.choice = t.choice || t.depth == 0
	case '.':
		t.out.WriteString("[^" + lineEnds + "]")
		return nil
	case ']', '}':
		t.out.WriteByte('\\')
	}
	t.out.WriteRune(c)
	return nil
}

// group takes the beginning of a group.
func (t *ecma) group() error {
	t.depth++
	switch {
	case t.takeText("(?:"):
		t.out.WriteString("(?:")
	case t.looks("(?="), t.looks("(?!"), t.looks("(?<="), t.looks("(?<!"):
		return errAround
	case t.takeText("(?<"), t.takeText("(?P<"): // the latter is of no other meaning where it is written
		for len(t.rest) > 0 && t.rest[0] != '>' {
			t.rest = t.rest[1:]
		}
		if !t.takeText(">") {
			return errGroup
		}
		t.out.WriteByte('(')
	case t.looks("(?"):
		return errGroup
	default:
		t.takeText("(")
		t.out.WriteByte('(')
	}
	return nil
}

// count takes how often something comes, or a brace.
func (t *ecma) count() error {
	end := 1
	for end < len(t.rest) && (unicode.IsDigit(t.rest[end]) || end > 1 && t.rest[end] == ',') {
		end++
	}
	if end == 1 || end == len(t.rest) || t.rest[end] != '}' {
		t.rest = t.rest[1:]
		t.out.WriteString(`\{`)
		return nil
	}
	t.out.WriteString(string(t.rest[:end+1]))
	t.rest = t.rest[end+1:]
	return nil
}

// class takes a class of characters.
func (t *ecma) class() error {
	t.takeText("[")
	not := t.takeText("^")
	var items strings.Builder
	for !t.takeText("]") {
		text, single, err := t.item()
		if err != nil {
			return err
		}
		if single && t.looks("-") && !t.looks("-]") {
			t.takeText("-")
			to, single, err := t.item()
			switch {
			case err != nil:
				return err
			case single:
				text += "-" + to
			default:
				text += `\-` + to
			}
		}
		items.WriteString(text)
	}
	if items.Len() == 0 { // [] is nothing, and [^] anything
		not = !not
		items.WriteString(anything)
	}
	t.out.WriteByte('[')
	if not {
		t.out.WriteByte('^')
	}
	t.out.WriteString(items.String() + "]")
	return nil
}

// item takes one of a class; single: it is a character.
func (t *ecma) item() (text string, single bool, err error) {
	if len(t.rest) == 0 {
		return "", false, errors.New("a class has no end")
	}
	c := t.rest[0]
	if c == '\\' {
		return t.escape(true)
	}
	t.rest = t.rest[1:]
	return literal(c, true), true, nil
}

// literal spells a character.
func literal(c rune, inClass bool) string {
	special := `\.+*?()|[]{}^$`
	if inClass {
		special = `\[]^-`
	}
	switch {
	case c < ' ' || c == 0x7f:
		return fmt.Sprintf(`\x%02x`, c)
	case strings.ContainsRune(special, c):
		return `\` + string(c)
	}
	return string(c)
}

// controls are the characters that have letters.
const controls = "t\tn\nv\vf\fr\r"

// escape takes what begins with a backslash.
func (t *ecma) escape(inClass bool) (text string, single bool, err error) {
	if len(t.rest) < 2 {
		return "", false, errors.New(`it ends with a \`)
	}
	c := t.rest[1]
	t.rest = t.rest[2:]
	switch {
	case strings.ContainsRune("dDwW", c):
		return `\` + string(c), false, nil
	case c == 's' && inClass:
		return `\s` + moreSpaces, false, nil
	case c == 's':
		return `[\s` + moreSpaces + "]", false, nil
	case c == 'S' && inClass:
		return notSpaces, false, nil
	case c == 'S':
		return `[^\s` + moreSpaces + "]", false, nil
	case c == 'b' && inClass:
		return `\x08`, true, nil
	case (c == 'b' || c == 'B') && !inClass:
		return `\` + string(c), false, nil
	case c == 'p' || c == 'P':
		return t.property(c)
	case unicode.IsDigit(c) && c != '0' || c == 'k':
		return "", false, errors.New("it refers back to a group")
	}
	r, err := t.escaped(c)
	return literal(r, inClass), true, err
}

// escaped takes the character that stands behind a backslash as c and what comes then.
func (t *ecma) escaped(c rune) (rune, error) {
	switch {
	case c == '0' && (len(t.rest) == 0 || !unicode.IsDigit(t.rest[0])):
		return 0, nil
	case c == 'c' && len(t.rest) > 0 && t.rest[0] < unicode.MaxASCII && unicode.IsLetter(t.rest[0]):
		r := t.rest[0] % 32
		t.rest = t.rest[1:]
		return r, nil
	case c == 'x':
		return t.hex(2)
	case c == 'u' && t.takeText("{"):
		end := strings.IndexByte(string(t.rest), '}')
		if end < 0 || end > 8 {
			return 0, errors.New(`\u{ has no end`)
		}
		r, err := t.hex(end)
		t.takeText("}")
		return r, err
	case c == 'u':
		r, err := t.hex(4)
		if err == nil && utf16.IsSurrogate(r) {
			if !t.takeText(`\u`) {
				return 0, errors.New("half a surrogate pair")
			}
			low, err := t.hex(4)
			if r = utf16.DecodeRune(r, low); err != nil || r == unicode.ReplacementChar {
				return 0, errors.New("half a surrogate pair")
			}
		}
		return r, err
	case unicode.IsLetter(c) || unicode.IsDigit(c):
		if i := strings.IndexRune(controls, c); i >= 0 {
			return rune(controls[i+1]), nil
		}
		return 0, fmt.Errorf(`\%c is nothing in ECMA-262`, c)
	}
	return c, nil
}

// hex takes a character of so many digits.
func (t *ecma) hex(digits int) (rune, error) {
	if len(t.rest) < digits {
		return 0, errors.New("a character has too few digits")
	}
	n, err := strconv.ParseUint(string(t.rest[:digits]), 16, 32)
	if err != nil || n > unicode.MaxRune {
		return 0, fmt.Errorf("%q is no character", string(t.rest[:digits]))
	}
	t.rest = t.rest[digits:]
	return rune(n), nil
}

// property takes the name of one behind \p or \P.
func (t *ecma) property(c rune) (text string, single bool, err error) {
	name, rest, found := strings.Cut(string(t.rest), "}")
	if !found || !strings.HasPrefix(name, "{") {
		return "", false, fmt.Errorf(`\%c without a name`, c)
	}
	name = name[1:]
	if kind, value, found := strings.Cut(name, "="); found {
		if kind != "Script" && kind != "sc" && kind != "General_Category" && kind != "gc" {
			return "", false, fmt.Errorf(`RE2 has no \%c{%s}`, c, name)
		}
		name = value
	}
	t.rest = []rune(rest)
	return fmt.Sprintf(`\%c{%s}`, c, name), false, nil
}
