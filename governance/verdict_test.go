package governance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
)

func TestVerdictIsJournaledAsItsText(t *testing.T) {
	for v, text := range map[Verdict]string{Allow: "allow", Deny: "deny"} {
		b, err := canon.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, canon.AppendText(nil, text), b)
		var back Verdict
		require.NoError(t, canon.Unmarshal(b, &back))
		require.Equal(t, v, back)
		require.Equal(t, text, v.String())
	}
}

func TestUnknownVerdictIsRefused(t *testing.T) {
	var v Verdict
	require.Error(t, v.UnmarshalText([]byte("perhaps")))
	require.Error(t, canon.Unmarshal(canon.AppendText(nil, "ALLOW"), &v))
	require.Error(t, canon.Unmarshal(canon.AppendUint(nil, 1), &v))
	_, err := canon.Marshal(Verdict(9))
	require.Error(t, err)
	require.Equal(t, Deny, v, "the zero value allows nothing")
}
