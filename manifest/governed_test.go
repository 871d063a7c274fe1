package manifest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
)

func TestGovernedBySaysWhatMayBeDoneAndNothingElse(t *testing.T) {
	m := &manifest.Manifest{
		World: "w", Version: 3,
		Reducers: map[string]manifest.Reducer{
			"both": {Engine: manifest.EngineGo, Name: "both", Version: "1", Grants: []string{"old"}},
			"only": {Engine: manifest.EngineGo, Name: "only", Version: "1", Grants: []string{"old", "kept"}},
		},
		Effects: map[string]manifest.Effect{"pay": {Adapter: "stub", Class: "soft"}, "own": {Adapter: "stub", Class: "own"}},
		Caps:    map[string]manifest.Cap{"old": {Type: "any"}, "kept": {Type: "any"}},
	}
	before, err := m.Encode()
	require.NoError(t, err)
	by := &manifest.Manifest{
		World: "other", Version: 9, Budget: manifest.Budget{Calls: 7},
		Reducers: map[string]manifest.Reducer{"both": {Name: "another", Version: "2", Grants: []string{"kept"}, Budget: manifest.Budget{Calls: 5}}},
		Effects:  map[string]manifest.Effect{"pay": {Adapter: "http", Class: "hard", MaxCost: manifest.MaxCost{Micros: new(uint64(4))}}, "new": {}},
		Caps:     map[string]manifest.Cap{"kept": {Type: "any", Budget: manifest.Budget{Calls: 1}}},
		Policies: []manifest.Policy{{Name: "all", When: "true", Decide: manifest.DecideAllow}},
	}
	next, err := m.GovernedBy(by)
	require.NoError(t, err)
	require.Equal(t, by.Policies, next.Policies)
	require.Equal(t, by.Caps, next.Caps)
	require.Equal(t, by.Budget, next.Budget)
	require.Equal(t, "w", next.World)
	require.EqualValues(t, 3, next.Version)
	require.Equal(t, manifest.Reducer{Engine: manifest.EngineGo, Name: "both", Version: "1", Grants: []string{"kept"}, Budget: manifest.Budget{Calls: 5}}, next.Reducers["both"])
	require.Equal(t, []string{"kept"}, next.Reducers["only"].Grants, "of what there is no more")
	require.Len(t, next.Reducers, 2)
	require.Equal(t, manifest.Effect{Adapter: "stub", Class: "hard", MaxCost: manifest.MaxCost{Micros: new(uint64(4))}}, next.Effects["pay"])
	require.Equal(t, "own", next.Effects["own"].Class)
	require.Len(t, next.Effects, 2)
	after, err := m.Encode()
	require.NoError(t, err)
	require.Equal(t, before, after, "it is another manifest")
}
