package reducer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/reducer"
)

func TestRegistryMakesInstancesOfTheirOwn(t *testing.T) {
	var r reducer.Registry
	r.Register("counter", "1", counter)
	a, err := r.New("counter", "1")
	require.NoError(t, err)
	b, err := r.New("counter", "1")
	require.NoError(t, err)
	require.NotSame(t, a, b)
}

func TestRegistryNamesWhatItHas(t *testing.T) {
	var r reducer.Registry
	r.Register("counter", "1", counter)
	r.Register("agent", "2", counter)
	_, err := r.New("counter", "2")
	require.ErrorContains(t, err, `counter@2`)
	require.ErrorContains(t, err, `["agent@2" "counter@1"]`)
	var none *reducer.Registry
	_, err = none.New("counter", "1")
	require.Error(t, err)
}

func TestRegistryRefusesOneNameTwice(t *testing.T) {
	var r reducer.Registry
	r.Register("counter", "1", counter)
	require.Panics(t, func() { r.Register("counter", "1", counter) })
}
