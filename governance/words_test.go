package governance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
)

// TestFaultsOfExpressionsAreInPlainWords: whoever writes a rule has not read the library's grammar.
func TestFaultsOfExpressionsAreInPlainWords(t *testing.T) {
	for when, want := range map[string]string{
		`intent.kind == "a" &&`:       "1:22: the expression ends in the middle",
		`(intent.kind == "a"`:         "1:20: missing ')'",
		`intent.kind == "a" "b"`:      `1:20: unexpected '"b"'`,
		`intent.kind == 'a`:           "1:16: unexpected ''a'",
		`intent.kind = "a"`:           "1:13: unexpected '=': did you mean ==?",
		`intent.kind === "a"`:         "1:15: unexpected '=': == has two of them",
		`intent.kind == "a" and true`: "1:20: unexpected 'and': did you mean &&?",
		`true or true`:                "1:6: unexpected 'or': did you mean ||?",
		`not true`:                    "1:5: unexpected 'true': did you mean ! for not?",
		`not (true)`:                  "1:5: undeclared reference to 'not': did you mean ! for not?",
		`true && not(false)`:          "1:12: undeclared reference to 'not': did you mean ! for not?",
		`len(intent.kind) > 3`:        "1:4: undeclared reference to 'len': did you mean size?",
		`True`:                        "1:1: undeclared reference to 'True': did you mean true?",
		`intent.tag == None`:          "1:15: undeclared reference to 'None': did you mean null?",
		`intent.kind <> "a"`:          "1:14: unexpected '>': did you mean !=?",
		`intent.kind == a`:            "1:16: undeclared reference to 'a'; a text is in quotes: \"a\"",
		`intent.kind > 1`:             "1:13: > does not take (string, int)",
		`intent.kind[0] == "a"`:       "1:12: [] does not take (string, int)",
		`intent.kind.startsWith(1)`:   "1:23: startsWith does not take string.(int)",
		`!intent.kind`:                "1:1: ! does not take (string)",
		`-intent.kind == "a"`:         "1:1: - does not take (string)",
		`intent.kind in intent.kind`:  "1:13: in does not take (string, string)",
		`intent.kind ? true : false`:  "1:13: ?: does not take (string, bool, bool)",
	} {
		require.EqualError(t, governance.CheckPolicy(when), want, when)
	}
}
