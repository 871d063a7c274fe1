package receipt

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// leftBehind returns a ledger with n equal intents of one cell that were done and left
// behind.
func leftBehind(n int) *Ledger {
	l := new(Ledger)
	for i := range n {
		e := l.Emit(equal(i), uint64(i+1))
		l.End(e, OutcomeSideEffectCommitted, uint64(i+1))
		l.Abandon(e)
	}
	return l
}

func equal(i int) Intent {
	return Intent{Key: NewKey("w", StepID(fmt.Sprint(i)), "pay", nil), Cell: "bot/a", Kind: "pay"}
}

// TestEveryRepeatLooksAtWhatIsLeftOnce counts the intents that Left passes by: as many
// as there are, however many repeats ask.
func TestEveryRepeatLooksAtWhatIsLeftOnce(t *testing.T) {
	const n = 500
	l := leftBehind(n)
	passed := 0
	for i := range n {
		in := equal(n + i)
		before := slices.Clone(l.left[likenessOf(&Entry{Intent: in, Params: l.Entry(equal(0).Key).Params})])
		left := l.Left(&in, func(*Entry) bool { return false })
		require.Equal(t, equal(i).Key, left.Intent.Key, "the first for which no other stands")
		passed += slices.Index(before, left)
		e := l.Emit(in, uint64(n+i+1))
		l.Repeat(e, left)
		l.Reuse(e, OutcomeSideEffectCommitted, uint64(n+i+1))
	}
	require.LessOrEqual(t, passed, n)
	in := equal(2 * n)
	require.Nil(t, l.Left(&in, func(*Entry) bool { return false }))
	l.Abandon(l.Entry(equal(n + 7).Key)) // who stands for it is left behind itself
	require.Equal(t, equal(7).Key, l.Left(&in, func(*Entry) bool { return false }).Intent.Key)
}

// TestWhatIsWaivedIsLookedAtOnce until a rollback has it considered again.
func TestWhatIsWaivedIsLookedAtOnce(t *testing.T) {
	const n = 500
	l := leftBehind(n)
	asked, waives := 0, true
	waived := func(*Entry) bool { asked++; return waives }
	for i := range n {
		in := equal(n + i)
		require.Nil(t, l.Left(&in, waived))
	}
	require.Equal(t, n, asked)
	waives = false
	l.Reconsider()
	in := equal(n)
	require.Equal(t, equal(0).Key, l.Left(&in, waived).Intent.Key)
}
