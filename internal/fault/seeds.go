package fault

import (
	"os"
	"strconv"
	"testing"

	"github.com/worldkernel/worldkernel/internal/testrace"
)

// Seeds returns the first seed of a simulation and how many runs it has: few, as testrace.Cases counts, or many
// where the environment's SEED says where to begin. SIM_RUNS says how many otherwise.
func Seeds(t testing.TB, few, many int) (first uint64, runs int) {
	t.Helper()
	first, runs = 1, testrace.Cases(few)
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if first, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
		runs = many
	}
	if text := os.Getenv("SIM_RUNS"); text != "" {
		var err error
		if runs, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return first, runs
}
