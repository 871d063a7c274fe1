package manifest

import (
	"fmt"
	"strings"
)

// Instead returns the end of a message about a name that there is not: which one was
// probably meant, or else which ones there are, of names that are sorted.
func Instead(name string, names []string) string {
	const most = 8
	if like := Nearest(name, names); like != "" {
		return fmt.Sprintf(": did you mean %q?", like)
	}
	switch {
	case len(names) == 0:
		return "; none is declared"
	case len(names) > most:
		return fmt.Sprintf("; there are %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	default:
		return "; declared: " + strings.Join(names, ", ")
	}
}

// Nearest returns the name that s is most likely a slip of, or "".
func Nearest(s string, names []string) string {
	best, least := "", 2+len(s)/4 // so many slips make another word
	for _, name := range names {
		if n := distance(s, name); n < least {
			best, least = name, n
		}
	}
	return best
}

// distance is the Levenshtein distance of a and b in bytes, or at least half of
// it where their lengths are far apart.
func distance(a, b string) int {
	if len(a) > 2*len(b)+2 {
		return len(a) - len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
