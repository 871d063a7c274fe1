package governance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
)

// TestFaultsOfExpressionsAreInPlainWords: whoever writes a rule has not read the library's grammar.
func TestFaultsOfExpressionsAreInPlainWords(t *testing.T) {
	for when, want := range map[string]string{
		`intent.kind == "a" &&`:      "1:22: the expression ends in the middle",
		`(intent.kind == "a"`:        "1:20: missing ')'",
		`intent.kind == "a" "b"`:     `1:20: unexpected '"b"'`,
		`intent.kind == 'a`:          "1:16: unexpected ''a'",
		`intent.kind = "a"`:          "1:13: unexpected '= '",
		`intent.kind > 1`:            "1:13: > does not take (string, int)",
		`intent.kind[0] == "a"`:      "1:12: [] does not take (string, int)",
		`intent.kind.startsWith(1)`:  "1:23: startsWith does not take string.(int)",
		`!intent.kind`:               "1:1: ! does not take (string)",
		`-intent.kind == "a"`:        "1:1: - does not take (string)",
		`intent.kind in intent.kind`: "1:13: in does not take (string, string)",
		`intent.kind ? true : false`: "1:13: ?: does not take (string, bool, bool)",
	} {
		require.EqualError(t, governance.CheckPolicy(when), want, when)
	}
}
