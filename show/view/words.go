package view

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/worldkernel/worldkernel/receipt"
)

// Visible shows what could make a terminal hide the rest, but for the controls
// that may stay: whoever wrote a manifest, or answered an effect, does not say what
// its reader sees.
func Visible(s, controls string) string {
	var out strings.Builder
	for _, r := range s {
		if Prints(r) || strings.ContainsRune(controls, r) {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, "<%U>", r)
		}
	}
	return out.String()
}

// Prints reports whether a terminal shows a character to its reader. It does not where
// that controls it, turns around what stands beside it, or takes no room: such are
// variation selectors, which hold any hidden text, and fillers, which Unicode has among
// marks and letters.
func Prints(r rune) bool {
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Bounds of Bounded.
const (
	maxQuoted = 200   // bytes of what is quoted
	maxFault  = 4_000 // of a line
)

// Bounded shortens what an error quotes, which may be all that somebody sent, and its
// lines; who reads it sees how long these were. The beginning and the end of a line stay.
func Bounded(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	quoted := regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)
	text = quoted.ReplaceAllStringFunc(text, func(s string) string {
		if len(s) <= maxQuoted+2 {
			return s
		}
		return strings.TrimRight(strings.ToValidUTF8(s[:maxQuoted], ""), `\`) + fmt.Sprintf(`…" (%d bytes)`, len(s)-2)
	})
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if len(line) > maxFault {
			const end = maxFault / 8
			lines[i] = fmt.Sprintf("%s… (%d bytes) …%s", strings.ToValidUTF8(line[:maxFault-end], ""), len(line), strings.ToValidUTF8(line[len(line)-end:], ""))
		}
	}
	return strings.Join(lines, "\n")
}

// Cost puts what an effect used up into words.
func Cost(n receipt.Cost) string {
	var out []string
	for _, u := range []struct {
		n    uint64
		name string
	}{{n.Calls, "call"}, {n.Tokens, "token"}, {n.Bytes, "byte"}, {n.Micros, "micro"}} {
		if u.n > 0 {
			out = append(out, Number(u.n, u.name))
		}
	}
	if len(out) == 0 {
		return "no calls"
	}
	return strings.Join(out, ", ")
}

// Number prints how many there are of something: 0 calls, 1 call, 2 calls.
func Number[N int | uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Arrow prints a value before and after a change, or an unchanged value once.
func Arrow[T comparable](a, b T) string {
	if a == b {
		return fmt.Sprint(a)
	}
	return fmt.Sprintf("%v -> %v", a, b)
}
