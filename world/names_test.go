package world_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// TestNoDoorTakesRulesThatNameNothing: a rule with a slip in a name is refused however it comes,
// and one that is in force runs on.
func TestNoDoorTakesRulesThatNameNothing(t *testing.T) {
	m, contents := givenRules(t, cents)
	m = m.WithDefaults()
	candidate := m
	candidate.Version++
	candidate.Policies = append(slices.Clone(m.Policies), manifest.Policy{
		Name: "dear", When: `intent.kind == "pay.crad"`, Decide: manifest.DecideRequireApproval,
	})
	w := allOK(t, m, contents)
	for door, try := range map[string]func() error{
		"propose": func() error { return worldtest.Adopt(t.Context(), w.World, &candidate, contents) },
		"shadow": func() error {
			_, err := w.Rehearse(t.Context(), &candidate, contents, world.ShadowConfig{})
			return err
		},
		"preview": func() error {
			_, err := world.PreviewApply(t.Context(), view(w), &candidate, contents)
			return err
		},
		"fork": func() error {
			_, err := forkOf(t.Context(), t, w, "fork", world.Bounds{}, amendTo(&candidate, contents))
			return err
		},
	} {
		var faults *manifest.FaultsError
		require.ErrorAs(t, try(), &faults, door)
		require.Equal(t, []manifest.Fault{{
			Path: "/policies/1/when", Msg: `1:16: intent.kind is never "pay.crad": did you mean "pay.card"?`,
		}}, faults.Faults, door)
	}

	w = allOK(t, candidate, contents)
	w.Submit("go", map[string]any{"params": map[string]any{"a": 1}})
	w.Run()
	w.RequireReplay()
}
