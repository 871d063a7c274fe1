package local_test

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/world/local"
)

// goOn lets a world have one more event.
func goOn(t *testing.T, dir string, opts local.Options, what string) {
	t.Helper()
	w := openPaying(t, dir, opts)
	pay(t, w, "eve", what)
	require.NoError(t, w.Run(t.Context()))
	require.NoError(t, w.Close())
}

// TestOnlyWhatGoesOnMovesBack into a log that a world was moved out of: no copy from before, no other
// history of it, and no directory that it had left.
func TestOnlyWhatGoesOnMovesBack(t *testing.T) {
	p, s := new(till), new(logtest.Server)
	opts, place := p.options(), placeOf(s.Log, plainly)
	inLog := opts
	inLog.Log = func([]byte) (journal.Log, error) { return s.Log(), nil }
	left := movingShop(t, p)
	before, rest := duplicateOf(t, left), besides(t, left)
	out := func() (dir string) {
		dir = filepath.Join(t.TempDir(), "out")
		_, err := local.MoveOut(t.Context(), "shop", rest, dir, inLog, place)
		require.NoError(t, err)
		return dir
	}
	_, err := local.MoveInto(t.Context(), left, opts, place)
	require.NoError(t, err)
	goOn(t, rest, inLog, "milk")
	home := out()
	otherwise := duplicateOf(t, home)
	_, err = local.MoveInto(t.Context(), home, opts, place)
	require.NoError(t, err)
	goOn(t, rest, inLog, "tea")
	home = out()
	goOn(t, otherwise, opts, "bread")
	goOn(t, otherwise, opts, "butter")

	remembered := standing(t, s.Log())
	require.Equal(t, journal.Moved, remembered.State)
	require.Contains(t, remembered.Left.To, home)
	for dir, why := range map[string]string{before: "this ends at #", otherwise: "is another", left: "had moved there before"} {
		_, err := local.MoveInto(t.Context(), dir, opts, place)
		require.ErrorIs(t, err, local.ErrStale)
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, err, home)
		require.Equal(t, remembered, standing(t, s.Log()))
	}
	require.False(t, livesIn(left))
	goOn(t, home, opts, "salt")
	_, err = local.MoveInto(t.Context(), home, opts, place)
	require.NoError(t, err)
	require.Equal(t, journal.Live, standing(t, s.Log()).State)
}

// TestOnlyTheCopyThatWasMovedOutMovesBack, and none that ends at the same record, or goes on from there: but
// where somebody says which one is lost.
func TestOnlyTheCopyThatWasMovedOutMovesBack(t *testing.T) {
	p, s := new(till), new(logtest.Server)
	opts, place := p.options(), placeOf(s.Log, plainly)
	dir := movingShop(t, p)
	backup, rest := duplicateOf(t, dir), besides(t, dir)
	_, err := local.MoveInto(t.Context(), dir, opts, place)
	require.NoError(t, err)
	home := filepath.Join(t.TempDir(), "out")
	_, err = local.MoveOut(t.Context(), "shop", rest, home, opts, place)
	require.NoError(t, err)
	remembered := standing(t, s.Log())
	refused := func(dir string, place local.OtherStore) *local.StaleError {
		_, err := local.MoveInto(t.Context(), dir, opts, place)
		var stale *local.StaleError
		require.ErrorAs(t, err, &stale)
		require.Equal(t, remembered, standing(t, s.Log()))
		return stale
	}
	stale := refused(backup, place)
	require.ErrorContains(t, stale, "another copy")
	require.ErrorContains(t, stale, home)
	goOn(t, backup, opts, "bread")
	require.ErrorContains(t, refused(backup, place), "another copy")
	made := filepath.Join(t.TempDir(), "backup")
	w := openPaying(t, home, opts)
	_, err = w.Backup(made)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.ErrorContains(t, refused(made, place), "another copy")
	place.Lost = "01234567"
	require.ErrorContains(t, refused(made, place), "not 01234567")
	place.Lost = stale.Copy()
	_, err = local.MoveInto(t.Context(), made, opts, place)
	require.NoError(t, err)
	place.Lost = ""
	_, err = local.MoveInto(t.Context(), home, opts, place)
	require.ErrorIs(t, err, local.ErrExists, "the one that was thought to be lost")
}

// TestAWorldComesBackByWayOfAnotherStore, and to that by way of the first.
func TestAWorldComesBackByWayOfAnotherStore(t *testing.T) {
	p := new(till)
	opts := p.options()
	dir := movingShop(t, p)
	rest := besides(t, dir)
	logs := []*logtest.Server{new(logtest.Server), new(logtest.Server)}
	for n := range 3 {
		s := logs[n%2]
		place := placeOf(s.Log, plainly)
		place.Where += strings.Repeat("2", n%2)
		_, err := local.MoveInto(t.Context(), dir, opts, place)
		require.NoError(t, err, n)
		dir = filepath.Join(t.TempDir(), "out")
		_, err = local.MoveOut(t.Context(), "shop", duplicateOf(t, rest), dir, opts, place)
		require.NoError(t, err, n)
	}
}

// TestWhatWasMovedAwayIsRememberedUntilTheMoveBackIsDone: whatever that is cut off at, nothing else takes its
// place, and the same again brings it to its end.
func TestWhatWasMovedAwayIsRememberedUntilTheMoveBackIsDone(t *testing.T) {
	p, s := new(till), new(logtest.Server)
	opts, place := p.options(), placeOf(s.Log, plainly)
	dir := movingShop(t, p)
	backup, rest, model := duplicateOf(t, dir), besides(t, dir), filepath.Join(t.TempDir(), "out")
	_, err := local.MoveInto(t.Context(), dir, opts, place)
	require.NoError(t, err)
	_, err = local.MoveOut(t.Context(), "shop", rest, model, opts, place)
	require.NoError(t, err)
	into := func(dir string, s *logtest.Server) func(func(movable) journal.Movable) error {
		return func(wrap func(movable) journal.Movable) error {
			_, err := local.MoveInto(t.Context(), dir, opts, placeOf(s.Log, wrap))
			return err
		}
	}
	publish := callsOf(t, into(duplicateOf(t, model), s.Backup()))
	for _, call := range []int{2, 3, publish / 2, publish - 1, publish} {
		s, home := s.Backup(), duplicateOf(t, model)
		cutOff(t, into(home, s), call)
		require.NotEmpty(t, standing(t, s.Log()).Left, call)
		require.ErrorIs(t, into(backup, s)(plainly), local.ErrStale, call)
		require.Error(t, s.Log().(journal.Movable).Make(t.Context(), journal.Making{}), "another of the id")
		require.Equal(t, journal.Moved, standing(t, s.Log()).State)
		require.NoError(t, into(home, s)(plainly), call)
		require.Equal(t, journal.Standing{State: journal.Live, Head: standing(t, s.Log()).Head, Copies: standing(t, s.Log()).Copies}, standing(t, s.Log()))
		require.False(t, livesIn(home))
	}
}

// cutOff moves a world into a log until one call, which does not happen.
func cutOff(t *testing.T, move func(wrap func(movable) journal.Movable) error, call int) {
	t.Helper()
	calls := new(atomic.Int64)
	err := move(func(l movable) journal.Movable {
		return striking{l, calls, call, false, func() {}, func() error { return errStruck }}
	})
	require.ErrorIs(t, err, errStruck)
}

// callsOf counts the calls that a move has made when it is done, but for the last, which releases.
func callsOf(t *testing.T, move func(wrap func(movable) journal.Movable) error) int {
	t.Helper()
	calls := new(atomic.Int64)
	require.NoError(t, move(func(l movable) journal.Movable {
		return striking{l, calls, 1 << 30, false, func() {}, func() error { return errStruck }}
	}))
	return int(calls.Load()) - 1
}

// TestInterruptedMoveFindsAnotherWorldThere, and takes it for neither its own nor for none.
func TestInterruptedMoveFindsAnotherWorldThere(t *testing.T) {
	p := new(till)
	dir := movingShop(t, p)
	into := func(dir string, s *logtest.Server) func(func(movable) journal.Movable) error {
		return func(wrap func(movable) journal.Movable) error {
			_, err := local.MoveInto(t.Context(), dir, p.options(), placeOf(s.Log, wrap))
			return err
		}
	}
	publish := callsOf(t, into(duplicateOf(t, dir), new(logtest.Server)))
	s := new(logtest.Server)
	cutOff(t, into(dir, s), publish)
	require.False(t, livesIn(dir))
	require.Equal(t, journal.Made, standing(t, s.Log()).State)
	another := movingShop(t, p)
	require.NoError(t, into(another, s)(plainly))
	require.ErrorIs(t, into(dir, s)(plainly), local.ErrExists)
	require.Equal(t, journal.Live, standing(t, s.Log()).State)
}

// TestCopyThatNeverLivedStaysSo, when another had the world in its place.
func TestCopyThatNeverLivedStaysSo(t *testing.T) {
	p, s := new(till), new(logtest.Server)
	dir := movingShop(t, p)
	rest := besides(t, dir)
	_, err := local.MoveInto(t.Context(), dir, p.options(), placeOf(s.Log, plainly))
	require.NoError(t, err)
	out := func(to string, s *logtest.Server) func(func(movable) journal.Movable) error {
		return func(wrap func(movable) journal.Movable) error {
			_, err := local.MoveOut(t.Context(), "shop", duplicateOf(t, rest), to, p.options(), placeOf(s.Log, wrap))
			return err
		}
	}
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	away := callsOf(t, out(filepath.Join(t.TempDir(), "tried"), s.Backup()))
	cutOff(t, out(first, s), away)
	require.NoError(t, out(second, s)(plainly))
	var moved *local.MovedError
	require.ErrorAs(t, out(first, s)(plainly), &moved)
	require.Contains(t, moved.Where, second)
	require.False(t, livesIn(first))
	require.NoError(t, out(second, s)(plainly), "it is there already")
	require.True(t, livesIn(second))

	require.Error(t, out(first, new(logtest.Server))(plainly), "a log that knows nothing of the world")
	require.DirExists(t, first, "it may be all that there is")
}
