package api_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
)

// TestServeWarnsWhereNobodyIsAnApprover and tokens are good for all that puts rules in force.
func TestServeWarnsWhereNobodyIsAnApprover(t *testing.T) {
	w := create(t, "w")
	require.NoError(t, w.Close())
	for scopes, warned := range map[string]bool{"read,approve,admin": true, "read,submit,approve": false, "read,admin,work": false} {
		_, hash := api.NewToken()
		tokens, err := api.ParseTokens([]byte("ada " + scopes + " " + hash + " *\nbob read,approve,admin " + hash[1:] + "0 other\n"))
		require.NoError(t, err)
		var said bytes.Buffer
		v := &api.Service{Config: api.Config{Tokens: tokens}, Events: slog.New(slog.NewTextHandler(&said, nil))}
		require.NoError(t, v.Open(t.Context(), w.Dir()))
		require.NoError(t, v.Close())
		if !warned {
			require.NotContains(t, said.String(), "approver")
			continue
		}
		require.Contains(t, said.String(), "nobody is named as an approver")
		require.Contains(t, said.String(), "world=w admin=[ada] approve=[ada]")
	}
}
