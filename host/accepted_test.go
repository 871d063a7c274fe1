package host_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
)

func requireGivenBack(t *testing.T, a receipt.Answer) {
	t.Helper()
	require.Empty(t, a.Lost)
	r, err := receipt.Decode(a.Receipt)
	require.NoError(t, err)
	require.True(t, r.GivenBack())
}

// A process that dies asking what came of something that the outside has accepted
// leaves nothing that nobody knows of.
func TestAskingOfAProcessBeforeIsGivenBack(t *testing.T) {
	owner := newOwner(t, storeAt(t)).open(t)
	p := nth(t, 1)
	p.Accepted = "job-1"
	owner.Start([]receipt.Task{{Work: receipt.Recover, Permit: p}})
	requireGivenBack(t, next(t, owner))
}

func TestAskingOfAWorkerThatIsGoneIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := newOwner(t, storeAt(t)).open(t)
		p := nth(t, 1)
		p.Accepted = "job-1"
		start(owner, p)
		offers := acquire(t, owner, "w-1", 1)
		require.Equal(t, "job-1", offers[0].Permit.Accepted)
		requireGivenBack(t, next(t, owner))
		none(t, owner)
	})
}
