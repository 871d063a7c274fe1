package star_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

const reduces = "def reduce(ctx, state, event):\n    return state\n"

// migrate runs migrate of a program on the state {"n": 7}.
func migrate(t *testing.T, source string, limits func(*reducer.Input)) (string, error) {
	t.Helper()
	m, ok := instance(t, source+reduces).(reducer.Migrator)
	require.True(t, ok)
	in := input(t, `{"n": 7}`, "null")
	if limits != nil {
		limits(in)
	}
	var out reducer.Output
	if err := m.Migrate(in, &out); err != nil {
		return "", err
	}
	require.NotZero(t, out.Gas)
	text, err := canon.ToJSON(out.State)
	require.NoError(t, err)
	return string(text), nil
}

func TestMigrateMakesTheStateToGoOnWith(t *testing.T) {
	got, err := migrate(t, "def migrate(state):\n    return {\"count\": state[\"n\"], \"version\": 2}\n", nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"count": 7, "version": 2}`, got)
}

func TestProgramWithoutMigrateDoesNotMigrate(t *testing.T) {
	_, ok := instance(t, reduces).(reducer.Migrator)
	require.False(t, ok)
}

func TestMigrateFailsWithItsPlace(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"fail": {"def migrate(state):\n    fail(\"not this one\")\n", "test.star:2:9: not this one"},
		"none": {"def migrate(state):\n    return None\n", "migrate returned None"},
		"data": {"def migrate(state):\n    return {\"f\": len}\n", "state.f"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := migrate(t, c.source, nil)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestMigrateHasTheLimitsOfAStep(t *testing.T) {
	_, err := migrate(t, "def migrate(state):\n    while True:\n        pass\n", func(in *reducer.Input) { in.Limits.Gas = 1000 })
	require.ErrorIs(t, err, reducer.ErrLimit)
	_, err = migrate(t, "def migrate(state):\n    return \"x\" * 2000\n", func(in *reducer.Input) { in.Limits.State = 1000 })
	require.ErrorIs(t, err, reducer.ErrLimit)
}

func TestMigrateTakesOneParameter(t *testing.T) {
	_, err := star.Compile(star.Version, "test.star", []byte("def migrate(ctx, state):\n    return state\n"+reduces))
	require.ErrorContains(t, err, "test.star:1:5: migrate takes the parameter (state)")
}
