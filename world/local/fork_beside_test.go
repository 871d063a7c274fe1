package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// shopInStore is a store on PostgreSQL with the world shop in it, and how its worlds are opened.
func shopInStore(t *testing.T, p *till) (url string, opts func(id string) local.Options) {
	t.Helper()
	url = pgtest.URL(t)
	require.NoError(t, pglog.Init(t.Context(), url))
	s, err := pglog.Open(t.Context(), url, pglog.Options{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	opts = func(id string) local.Options {
		o := p.options()
		o.Passphrase = func() ([]byte, error) { return []byte("open sesame"), nil }
		o.Log = func(key []byte) (journal.Log, error) { return s.World(id, pglog.Claim{Key: key, Take: true}), nil }
		return o
	}
	dir := movingShop(t, p)
	require.NoError(t, local.Seal(dir, local.InDirectory(opts("shop"))))
	require.NoError(t, movement{URL: url, Dir: dir}.move(t, plainly))
	return url, opts
}

// TestForkBesideIsTheForkInADirectory: of any moment, by the parent's copy or without one, and it
// opens without one, runs and is verified. What was redacted is so there, and the parent stays as it was.
func TestForkBesideIsTheForkInADirectory(t *testing.T) {
	p := new(till)
	_, opts := shopInStore(t, p)
	parent := exportedFrom(t, t.TempDir(), opts("shop"))
	paid := len(p.paid)
	for i, at := range []journal.Seq{0, 1, 8, 40} {
		id, place := fmt.Sprint("fork", i), filepath.Join(t.TempDir(), "fork")
		w := openPaying(t, t.TempDir(), opts("shop"))
		there, err := w.Fork(t.Context(), place, local.ForkOptions{ID: id, At: at})
		here, failed := w.ForkBeside(t.Context(), local.ForkOptions{ID: id, At: at})
		if at == 40 { // what happened up to there took what was redacted later
			require.ErrorIs(t, err, journal.ErrRedacted)
			require.ErrorIs(t, failed, journal.ErrRedacted)
			require.NoError(t, w.Close())
			continue
		}
		require.NoError(t, err)
		require.NoError(t, failed)
		require.Empty(t, here.Dir)
		there.Dir, there.Linked = "", false
		require.Equal(t, there, here)
		require.NoError(t, w.Close())

		rest := t.TempDir()
		require.True(t, bytes.Equal(exportedFrom(t, place, local.InDirectory(opts(id))), exportedFrom(t, rest, opts(id))))
		f := openPaying(t, rest, opts(id))
		pay(t, f, "eve", "milk")
		require.NoError(t, f.Run(t.Context()))
		require.NoError(t, f.Close())
		v, err := local.Verify(t.Context(), t.TempDir(), opts(id), local.Verification{})
		require.NoError(t, err)
		require.Empty(t, v.Faults)
	}
	require.Len(t, p.paid, paid, "forks wait for persons")
	require.True(t, bytes.HasPrefix(exportedFrom(t, t.TempDir(), opts("shop")), parent))
}

// TestForkBesideStruckAnywhere has the connection of the fork's world go at each call, before it takes effect
// and after: no fork lives, unless it is whole, and the same again makes it.
func TestForkBesideStruckAnywhere(t *testing.T) {
	p := new(till)
	parent := &logtest.Server{}
	opts := p.options()
	opts.Log = func([]byte) (journal.Log, error) { return parent.Log(), nil }
	dir := t.TempDir()
	for name, text := range map[string]string{
		local.ManifestFile: worldtest.Caller("shop", "outside.pay: {adapter: till, on_in_doubt: ask}"), "caller.star": payer,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "shop"}, opts))
	w := openPaying(t, dir, opts)
	defer func() { require.NoError(t, w.Close()) }()
	pay(t, w, "ada", "tea")
	require.NoError(t, w.Run(t.Context()))
	fork := func(child *logtest.Server, wrap func(movable) journal.Movable) error {
		parent.Beside = func(string) journal.Movable { return wrap(child.Log().(movable)) }
		_, err := w.ForkBeside(t.Context(), local.ForkOptions{ID: "fork"})
		return err
	}
	calls := callsOf(t, func(wrap func(movable) journal.Movable) error { return fork(&logtest.Server{}, wrap) })
	require.Greater(t, calls, 4)
	for at := 1; at <= calls; at++ {
		for _, after := range []bool{false, true} {
			child, n, published := &logtest.Server{}, new(atomic.Int64), false
			err := fork(child, func(l movable) journal.Movable {
				return publishing{striking{l, n, at, after, func() {}, func() error { return errStruck }}, &published}
			})
			state := standing(t, child.Log()).State
			require.Equal(t, state == journal.Live && at > 1, published, "call %d, %t", at, after)
			if err == nil || published {
				continue
			}
			require.NotErrorIs(t, err, errors.ErrUnsupported)
			require.NoError(t, fork(child, plainly), "call %d, %t", at, after)
			require.Equal(t, journal.Live, standing(t, child.Log()).State)
		}
	}
}

// publishing notes whether a world was made public.
type publishing struct {
	striking

	done *bool
}

func (p publishing) Publish(ctx context.Context) error {
	return p.call(func() error {
		err := p.movable.Publish(ctx)
		*p.done = *p.done || err == nil
		return err
	})
}
