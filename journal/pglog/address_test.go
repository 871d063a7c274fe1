package pglog

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// sealed are the options of a node with an address, and with the key of others.
func sealed(name, url string, key byte) Options {
	return Options{Node: name, URL: url, Lease: time.Hour, Key: func(store string) ([]byte, error) {
		return append(bytes.Repeat([]byte{key}, 32), store...), nil
	}}
}

// TestOnlyAnAddressThatANodeHasSealedIsBelieved, whatever else whoever writes to the database writes in its row.
func TestOnlyAnAddressThatANodeHasSealedIsBelieved(t *testing.T) {
	url := newURL(t)
	one, two := open(t, url, sealed("one", "http://one:1", 1)), open(t, url, sealed("two", "http://two:1", 1))
	left(t, one, journal.WakeNever, "w")
	require.NoError(t, one.Enter(t.Context()))
	require.NoError(t, two.Enter(t.Context()))
	_, err := one.World("w", Claim{Key: testKey}).Own(t.Context())
	require.NoError(t, err)
	do := func(statement string) func() {
		return func() { require.NoError(t, two.rows(t.Context(), statement, nil, nil)) }
	}
	seal := func(o Options, run *Store, at time.Time) func() {
		return func() {
			s := open(t, url, o)
			s.run, s.opts.Lease = run.run, 0
			a := s.ownAddress(at)
			require.NoError(t, two.rows(t.Context(), "UPDATE worldkernel.node SET url = $1, url_until = $2, seal = $3 WHERE node = 'one'", []any{a.url, a.until, a.seal}, nil))
		}
	}
	for name, c := range map[string]struct {
		change func()
		bad    string
	}{
		"nothing":                   {func() {}, ""},
		"another URL":               {do("UPDATE worldkernel.node SET url = 'http://evil:1' WHERE node = 'one'"), "sealed"},
		"a longer life":             {do("UPDATE worldkernel.node SET url_until = url_until + 1 WHERE node = 'one'"), "sealed"},
		"no seal":                   {do("UPDATE worldkernel.node SET seal = '' WHERE node = 'one'"), "sealed"},
		"a seal that is too long":   {do("UPDATE worldkernel.node SET seal = seal || seal WHERE node = 'one'"), "sealed"},
		"the address of another":    {do("UPDATE worldkernel.node a SET url = b.url, url_until = b.url_until, seal = b.seal FROM worldkernel.node b WHERE a.node = 'one' AND b.node = 'two'"), "sealed"},
		"another run":               {do("WITH r AS (SELECT gen_random_uuid() AS run), n AS (UPDATE worldkernel.node SET run = r.run FROM r WHERE node = 'one') UPDATE worldkernel.world SET run = r.run FROM r"), "sealed"},
		"another key":               {seal(sealed("one", "http://one:1", 2), one, time.Now()), "sealed"},
		"no key":                    {seal(Options{Node: "one", URL: "http://one:1"}, one, time.Now()), "sealed"},
		"what it sealed just now":   {seal(sealed("one", "http://one:1", 1), one, time.Now().Add(-clocksDiffer/2)), ""},
		"what it sealed long ago":   {seal(sealed("one", "http://one:1", 1), one, time.Now().Add(-2*clocksDiffer)), "run out"},
		"the address of its future": {seal(sealed("one", "http://one:1", 1), one, time.Now().Add(time.Hour)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, one.enter(t.Context(), true))
			do("UPDATE worldkernel.world SET run = (SELECT run FROM worldkernel.node WHERE node = 'one')")()
			c.change()
			o, err := two.Owner(t.Context(), "w")
			require.NoError(t, err)
			require.True(t, o.Live)
			nodes, err := two.Nodes(t.Context())
			require.NoError(t, err)
			require.Equal(t, o.Unproven, nodes[0].Unproven)
			if c.bad == "" {
				require.Empty(t, o.Unproven)
				require.Equal(t, "http://one:1", o.URL)
				return
			}
			require.Contains(t, o.Unproven, c.bad)
			require.Empty(t, o.URL)
		})
	}
	stranger := open(t, url, Options{})
	o, err := stranger.Owner(t.Context(), "w")
	require.NoError(t, err)
	require.Contains(t, o.Unproven, "no passphrase")
}
