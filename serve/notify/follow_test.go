package notify_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/notify"
	"github.com/worldkernel/worldkernel/world/local"
)

// followed returns what is told of a world in which something is done once it is followed: all
// of it in one look.
func followed(t *testing.T, lw *local.World, do func()) (lines []string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	on := notify.Follow(lw, "begun", func(line string) {
		if lines = append(lines, line); len(lines) == 1 {
			do()
			stop()
		}
	})
	on(ctx)
	return lines
}

func bad() map[string]any { return map[string]any{"effect": "tool.bad", "param": "x"} }

// TestFollowingTellsWhatWaitsHaltsAndIsDenied, each once, and what is hidden in it spelled out.
func TestFollowingTellsWhatWaitsHaltsAndIsDenied(t *testing.T) {
	lw, err := local.Open(create(t), local.Options{})
	require.NoError(t, err)
	lines := followed(t, lw, func() {
		ask(t, lw, "a", wait("\u202e"))
		ask(t, lw, "b", map[string]any{"fail": "as told"})
		ask(t, lw, "c", bad())
	})
	require.Len(t, lines, 4)
	require.Equal(t, "begun", lines[0])
	require.Regexp(t, `^effect waits for approval: tool\.b of bot/a, intent [0-9a-f]{12}  \{.*<U\+202E>`, lines[1])
	require.Equal(t, "cell is halted: bot/b", lines[2])
	require.Regexp(t, `^intent was denied: tool\.bad of bot/c, intent [0-9a-f]{12}: policy_denied: .*"not bad"`, lines[3])
	require.Equal(t, []string{"begun; 1 effect waits for approval, 1 cell is halted"}, followed(t, lw, func() {}), "what waited when it begins is summed up")
	require.NoError(t, lw.Close())
}

// TestFollowingIsBounded: of a thousand denials in a second ten are told, and the rest is summed up.
func TestFollowingIsBounded(t *testing.T) {
	lw, err := local.Open(create(t), local.Options{})
	require.NoError(t, err)
	lines := followed(t, lw, func() {
		ask(t, lw, "a", wait("x"))
		for range 20 {
			many := make([]map[string]any, 50)
			for i := range many {
				many[i] = bad()
			}
			ask(t, lw, "c", many...)
		}
		ask(t, lw, "a", wait("y"))
	})
	require.Len(t, lines, 12)
	require.Contains(t, lines[2], "waits for approval")
	require.Equal(t, "and besides: 992 intents were denied", lines[11])
	require.NoError(t, lw.Close())
}
