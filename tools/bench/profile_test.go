package main

import (
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

// TestInnermostPartCounts: what hashes is of who asked for it, and the longest name decides.
func TestInnermostPartCounts(t *testing.T) {
	const own = "github.com/worldkernel/worldkernel/"
	stack := func(functions ...string) (out []*profile.Location) {
		for _, f := range functions {
			out = append(out, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: f}}}})
		}
		return out
	}
	for want, functions := range map[string][]string{ // order cannot show: each is checked
		"chain":                    {"crypto/sha256.Sum256", own + "internal/canon.(*Chain).Add", own + "world.(*recorder).write"},
		"tree":                     {"crypto/sha256.Sum256", "golang.org/x/mod/sumdb/tlog.NodeHash", own + "journal/store.rootOf"},
		"allocation and collector": {"runtime.memclrNoHeapPointers", "runtime.mallocgc", own + "world.(*kernel).ask"},
		"flush and compaction":     {"syscall.write", "github.com/cockroachdb/pebble/v2/sstable.(*RawColumnWriter).Add", "github.com/cockroachdb/pebble/v2.(*DB).flush1"},
		"kernel":                   {own + "world.(*kernel).turn"},
		otherPart:                  {"main.main"},
	} {
		require.Equal(t, want, partOfStack(stack(functions...)))
	}
}
