package governance

import (
	"regexp"
	"strings"

	"cel.dev/cel-go/common/operators"
)

// What the library says of an expression that does not read, and of operands that do not go
// together.
var (
	unread = regexp.MustCompile(`(?s)^Syntax error: (?:mismatched input|extraneous input|no viable alternative at input|token recognition error at:) (.*)$`)
	absent = regexp.MustCompile(`^Syntax error: (missing .*) at `)
	unfit  = regexp.MustCompile(`^found no matching overload for '(.*?)' applied to '(.*)'$`)
)

// plainly says what the library says of an expression, without the names of its grammar.
func plainly(msg string) string {
	if m := unread.FindStringSubmatch(msg); m != nil {
		at, _, _ := strings.Cut(m[1], " expecting ")
		if at == "'<EOF>'" {
			return "the expression ends in the middle"
		}
		return "unexpected " + strings.Replace(at, " '", "'", 1)
	}
	if m := absent.FindStringSubmatch(msg); m != nil {
		return m[1]
	}
	if m := unfit.FindStringSubmatch(msg); m != nil {
		return spelled(m[1]) + " does not take " + m[2]
	}
	return msg
}

// slipOf says what was probably meant where an expression stops to be read, or just before: an
// operator of another language. Empty: nobody knows. line is from 1, column from 0, in characters.
func slipOf(expr string, line, column int) string {
	lines := strings.Split(expr, "\n")
	text := []rune(lines[min(max(line, 1), len(lines))-1])
	at := min(max(column, 0), len(text))
	before, after := strings.TrimRight(string(text[:at]), " "), string(text[at:])
	word, _, _ := strings.Cut(after, " ")
	switch {
	case strings.HasPrefix(after, "=") && strings.HasSuffix(before, "=="):
		return ": == has two of them"
	case strings.HasPrefix(after, "="):
		return ": did you mean ==?"
	case strings.HasPrefix(after, ">") && strings.HasSuffix(before, "<"):
		return ": did you mean !=?"
	case strings.EqualFold(word, "and"), strings.HasPrefix(after, "&"):
		return ": did you mean &&?"
	case strings.EqualFold(word, "or"), strings.HasPrefix(after, "|"):
		return ": did you mean ||?"
	case strings.HasSuffix(strings.ToLower(" "+before), " not"), strings.HasSuffix(strings.ToLower(before), "(not"):
		return ": did you mean ! for not?"
	}
	return ""
}

// wordOf says what was meant by a word of another language; empty: nobody knows.
func wordOf(name string) string {
	switch name {
	case "not", "NOT", "Not":
		return "! for not"
	case "and", "AND", "And":
		return "&&"
	case "or", "OR", "Or":
		return "||"
	case "len", "length", "count":
		return "size"
	case "True", "TRUE", "False", "FALSE":
		return strings.ToLower(name)
	case "None", "nil", "NULL", "Null", "undefined":
		return "null"
	}
	return ""
}

// spelled returns a function as an expression has it.
func spelled(name string) string {
	switch op, isOperator := operators.FindReverse(name); {
	case !isOperator:
		return name
	case op != "":
		return op
	}
	return strings.ReplaceAll(name, "_", "") // [] and ?:
}
