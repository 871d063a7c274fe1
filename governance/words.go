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
		return "unexpected " + at
	}
	if m := absent.FindStringSubmatch(msg); m != nil {
		return m[1]
	}
	if m := unfit.FindStringSubmatch(msg); m != nil {
		return spelled(m[1]) + " does not take " + m[2]
	}
	return msg
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
