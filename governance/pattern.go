package governance

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// What patterns cost. Matching looks at every byte of the text in every place of the
// pattern, in the worst case; a pattern that is not part of the expression is compiled
// for the one match.
const (
	maxPatternBytes     = 1024 // of one that is not part of the expression
	stepsPerPatternByte = 64
	stepsPerFoldedByte  = 8192 // where (?i) may spell out every letter of a range
	stepsPerInstruction = 16
	placesPerStep       = 4
)

// pattern is a compiled regular expression.
type pattern struct {
	*regexp.Regexp
	size int // instructions of its program
}

var errPatternSize = fmt.Errorf("a regular expression has more than %d instructions", MaxRegexSize)

// compilePattern compiles a regular expression whose program has MaxRegexSize
// instructions at most.
func compilePattern(text string) (*pattern, error) {
	size, err := patternSize(text)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{re, size}, nil
}

// patternSize returns about how many instructions a regular expression becomes. It
// counts before repetitions are written out.
func patternSize(text string) (int, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, errors.New("the regular expression " + shortened(err.Error()))
	}
	if n := instructions(parsed); n <= MaxRegexSize {
		return n, nil
	}
	return 0, errPatternSize
}

// instructions is not less than the program of re has, up to MaxRegexSize.
func instructions(re *syntax.Regexp) int {
	n := 2 + len(re.Rune)
	if re.Op != syntax.OpLiteral {
		n = 2
	}
	for _, sub := range re.Sub {
		n = min(n+instructions(sub), MaxRegexSize+1)
	}
	if re.Op == syntax.OpRepeat {
		n = min(n*max(re.Min, re.Max, 1)+1, MaxRegexSize+1)
	}
	return n
}

// matches evaluates a match of args, a text and a pattern.
func (n *call) matches(f *frame, args []ref.Val) ref.Val {
	if len(args) != 2 {
		return noOverload()
	}
	text, isText := args[0].(types.String)
	expr, isExpr := args[1].(types.String)
	if !isText || !isExpr {
		return noOverload()
	}
	p := n.pattern
	if p == nil {
		if len(expr) > maxPatternBytes {
			return types.NewErr("a regular expression that is not part of the rule has %d bytes, more than %d", len(expr), maxPatternBytes)
		}
		perByte := uint64(stepsPerPatternByte)
		if strings.Contains(string(expr), "(?") && strings.Contains(string(expr), "-") {
			perByte = stepsPerFoldedByte
		}
		f.spend(uint64(len(expr)) * perByte)
		size, err := patternSize(string(expr))
		if err != nil {
			return types.WrapErr(err)
		}
		f.spend(uint64(size) * stepsPerInstruction)
		if p, err = compilePattern(string(expr)); err != nil {
			return types.WrapErr(err)
		}
	}
	f.spend(uint64(len(text)+1) * uint64(p.size) / placesPerStep)
	return types.Bool(p.MatchString(string(text)))
}
