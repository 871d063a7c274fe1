package pglog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAStoreIsCalledByServersAndDatabase, each once, and by nothing secret, before it has answered.
func TestAStoreIsCalledByServersAndDatabase(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://kernel:secret@db1/worlds":                                          "db1/worlds",
		"postgres://kernel@db1:5433,db2/worlds?target_session_attrs=read-write":        "db1:5433,db2/worlds",
		"postgres:///worlds?host=/run/postgresql&user=kernel&password=secret":          "/run/postgresql/worlds",
		"postgres://kernel@[::1]:5433/worlds?sslmode=prefer&sslpassword=secret":        "[::1]:5433/worlds",
		"host=db1 port=5432 dbname=worlds user=kernel password=secret sslmode=disable": "db1/worlds",
	} {
		got, err := Where(url)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := Where("postgres://kernel:secret@db1:no/worlds")
	require.True(t, isRefused(err, BadURL), err)
	require.NotContains(t, err.Error(), "secret")
}
