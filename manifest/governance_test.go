package manifest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

func TestOneApprovalIsNeededWhereNothingIsSaid(t *testing.T) {
	require.Equal(t, uint64(1), manifest.Governance{}.Needed())
	require.Equal(t, uint64(2), manifest.Governance{Approvals: 2}.Needed())
}

func TestApproversAreFoundByTheirKeys(t *testing.T) {
	g := good().Governance
	bob, ok := g.Approver(publicKey("bob"))
	require.True(t, ok)
	require.Equal(t, g.Approvers[1], bob)
	_, ok = g.Approver(publicKey("carol"))
	require.False(t, ok)
	_, ok = manifest.Governance{}.Approver(manifest.PublicKey{})
	require.False(t, ok)
}

func TestPublicKeysAreHexAsTextAndBytesInManifests(t *testing.T) {
	key := publicKey("alice")
	text, err := json.Marshal(key)
	require.NoError(t, err)
	require.Equal(t, `"`+key.String()+`"`, string(text))
	var parsed manifest.PublicKey
	require.NoError(t, json.Unmarshal(text, &parsed))
	require.Equal(t, key, parsed)
	encoded, err := canon.Marshal(key)
	require.NoError(t, err)
	require.Equal(t, append([]byte{0x58, 32}, key[:]...), encoded)
}

func TestOtherThanKeysAreRefused(t *testing.T) {
	zero := strings.Repeat("00", 32)
	var k manifest.PublicKey
	for _, text := range []string{"", "00", strings.Repeat("zz", 32), zero + "00"} {
		require.Error(t, k.UnmarshalText([]byte(text)), text)
	}
	for _, encoded := range []string{"", "40", "581f" + zero[2:], "5821" + zero + "00", "60", "5820" + zero + "00"} {
		require.Error(t, k.UnmarshalCBOR(data(encoded)), encoded)
	}
	require.True(t, k.IsZero())
}
