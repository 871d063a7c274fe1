package columns

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// TestTheFirstOfWhatIsFoundAreThoseOfAll however they come, those that begin so first.
func TestTheFirstOfWhatIsFoundAreThoseOfAll(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		list := rapid.SliceOfDistinct(rapid.StringMatching(`[ab/]{0,4}`), rapid.ID[string]).Draw(rt, "names")
		text := rapid.StringMatching(`[ab/]{1,2}`).Draw(rt, "text")
		most := rapid.IntRange(1, 8).Draw(rt, "most")
		var want, within []string
		for _, s := range slices.Sorted(slices.Values(list)) {
			if strings.HasPrefix(s, text) {
				want = append(want, s)
			} else if strings.Contains(s, text) {
				within = append(within, s)
			}
		}
		want = append(want, within...)
		got, more := having(list, text, most)
		require.Equal(rt, len(want) > most, more)
		require.Equal(rt, append([]string{}, want[:min(most, len(want))]...), append([]string{}, got...))
	})
}

// paying is a journal in which every tenth record is a receipt: of one of three kinds that
// cost 1, 2 and 3 tokens, for one of seven cells.
func paying(n int) *source {
	s := stepped(n, func(int) string { return "bot/a" })
	for i := range s.records {
		r := &s.records[i]
		key := journal.Hash{byte(i / 10 % 7), 1}
		switch i % 10 {
		case 8:
			r.Kind = journal.KindIntent
			r.Payload = journal.Append(nil, &journal.IntentEmitted{
				Version: journal.V(1), Key: receipt.Key{Hash: key}, Cell: fmt.Sprint("bot/", i/10%7), Kind: fmt.Sprint("tool.", i/10%7%3), Params: journal.Data{0xf6},
			})
		case 9:
			answer, err := (&receipt.Receipt{Key: receipt.Key{Hash: key}, Payload: receipt.Data{0xf6}, Cost: receipt.Cost{Tokens: uint64(i/10%7%3) + 1, Calls: 1}}).Encode()
			if err != nil {
				panic(err)
			}
			r.Kind, r.Payload = journal.KindFinished, journal.Append(nil, &journal.Finished{Version: journal.V(1), Receipt: journal.Data(answer)})
		}
	}
	return s
}

func TestASeriesHasAllThatAPartOfTheJournalHas(t *testing.T) {
	const n = MaxRecords + 5000
	s := paying(n)
	x := New(s)
	require.NoError(t, x.Extend(t.Context(), n))
	for _, part := range [][2]journal.Seq{{1, n}, {1, 1}, {7, 9}, {2500, 40_000}, {MaxRecords, MaxRecords + 1}, {MaxRecords + 1, n}, {n, n}} {
		for _, stretches := range []int{1, 2, 7, 1000} {
			got, err := x.Series(part[0], part[1], stretches, 2)
			require.NoError(t, err)
			require.LessOrEqual(t, len(got.Ticks), stretches)
			var tokens, cost, records, shares uint64
			kinds := make(map[string]uint64)
			for _, r := range s.records[part[0]-1 : part[1]] {
				tokens += journal.CostOf(r.Kind, r.Payload).Tokens
			}
			last := manifest.Tick(0)
			for i, k := range got.Ticks {
				require.True(t, i == 0 || k.From > last)
				require.LessOrEqual(t, k.From, k.To)
				last, cost = k.To, cost+k.Cost.Tokens
				for what, n := range k.Counts {
					records, kinds[what] = records+n, kinds[what]+n
				}
			}
			require.EqualValues(t, part[1]-part[0]+1, records)
			require.Equal(t, tokens, cost)
			for _, k := range got.Kinds {
				shares += k.Tokens
			}
			require.Equal(t, tokens, shares+got.Rest.Kinds.Tokens)
			require.LessOrEqual(t, len(got.Cells), 2)
		}
	}
	whole, err := x.Series(1, n, 10, 100)
	require.NoError(t, err)
	require.Equal(t, []string{"tool.2", "tool.1", "tool.0"}, []string{whole.Kinds[0].Name, whole.Kinds[1].Name, whole.Kinds[2].Name})
	require.Len(t, whole.Cells, 7)
	none, err := x.Series(2, 1, 10, 100)
	require.NoError(t, err)
	require.Empty(t, none.Ticks)
}

// TestASeriesBeginsWhereAWorldBegan: one with a real clock was made at tick 0, which is the epoch, and
// all that it did is fifty years later.
func TestASeriesBeginsWhereAWorldBegan(t *testing.T) {
	s := paying(100)
	for i := range s.records[1:] {
		s.records[1+i].Time = manifest.Tick(1_800_000_000 + i)
	}
	s.records[0].Time = 0
	x := New(s)
	require.NoError(t, x.Extend(t.Context(), 100))
	got, err := x.Series(1, 100, 10, 10)
	require.NoError(t, err)
	require.LessOrEqual(t, len(got.Ticks), 10)
	require.Greater(t, len(got.Ticks), 5, "what it did is told apart")
	require.Equal(t, []manifest.Tick{0, 0, s.records[1].Time}, []manifest.Tick{got.Ticks[0].From, got.Ticks[0].To, got.Ticks[1].From})
}

func TestIntentsAreFoundByTheBeginningOfTheirKeys(t *testing.T) {
	x := New(paying(100))
	require.NoError(t, x.Extend(t.Context(), 100))
	require.Equal(t, []journal.Hash{{3, 1}}, x.Find("03010000", 10).Keys)
	require.Equal(t, []journal.Hash{{3, 1}}, x.Find("030100000", 10).Keys)
	require.Empty(t, x.Find("030100001", 10).Keys)
	require.Empty(t, x.Find("030100", 10).Keys, "too short")
	require.Empty(t, x.Find("not hex!", 10).Keys)
	require.Equal(t, []string{"tool.1"}, x.Find("l.1", 10).Names)
	found := x.Find("bot/", 3)
	require.True(t, found.More)
	require.Equal(t, []string{"bot/0", "bot/1", "bot/2"}, found.Cells)
}
