package star_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// printing runs one step of a body, heard or not.
func printing(t *testing.T, body string, hear bool) (heard []reducer.Print, out reducer.Output, err error) {
	t.Helper()
	p, err := star.Compile(star.Version, "test.star", []byte("def reduce(ctx, state, event):\n"+body))
	require.NoError(t, err)
	r, err := p.Reducer()
	require.NoError(t, err)
	in := input(t, "", "{}")
	if hear {
		in.OnPrint = func(p reducer.Print) { heard = append(heard, p) }
	}
	err = r.Reduce(in, &out)
	return heard, out, err
}

func TestWhatAStepPrintsIsHeard(t *testing.T) {
	heard, _, err := printing(t, `    print("a", 1, [None, "b"], {"c": 1.5}, b"\xff")
    print()
    print(1, 2, sep="\n")
    sorted([3], key=print)
    return 1
`, true)
	require.NoError(t, err)
	require.Equal(t, []reducer.Print{
		{Place: "test.star:2:10", Text: `a 1 [None, "b"] {"c": 1.5} ` + "\uFFFD"},
		{Place: "test.star:3:10"},
		{Place: "test.star:4:10", Text: "1\n2"},
		{Place: "test.star:5:11", Text: "3"},
	}, heard)
	heard, _, err = printing(t, "    print('before')\n    fail('no')\n", true)
	require.Error(t, err)
	require.Equal(t, []reducer.Print{{Place: "test.star:2:10", Text: "before"}}, heard)
}

func TestPrintCostsWhatItDoesWhetherItIsHeardOrNot(t *testing.T) {
	gas := func(body string) uint64 {
		_, deaf, errDeaf := printing(t, body, false)
		_, out, err := printing(t, body, true)
		require.Equal(t, errDeaf, err)
		require.Equal(t, deaf, out)
		return out.Gas
	}
	const text = "    x = 'a' * 100000\n    "
	require.Greater(t, gas(text+"print(x)\n"), gas(text+"abs(1)\n")+100000/16)
	for _, body := range []string{
		"    while True:\n        print('x' * 1000)\n",
		"    while True:\n        print()\n",
		"    x = []\n    x.append(x)\n    print(x)\n",
		"    x = []\n    for _ in range(60):\n        x = [x, x]\n    print(x)\n",
		"    print(sep='x' * 1000000, *[1] * 10000)\n",
		"    print(1, end='')\n",
	} {
		gas(body)
		_, _, err := printing(t, body, true)
		require.Error(t, err, body)
	}
}

func TestWhatIsHeardOfAStepIsBounded(t *testing.T) {
	for _, text := range []string{"''", "'é' * 999", "'x' * 500000"} {
		heard, _, err := printing(t, "    for _ in range(5000):\n        print("+text+")\n", true)
		if err != nil {
			require.ErrorIs(t, err, reducer.ErrLimit)
		}
		sum := 0
		for _, p := range heard {
			sum += len(p.Text) + 32
		}
		require.LessOrEqual(t, sum, star.MaxPrintBytes+100)
		require.Contains(t, heard[len(heard)-1].Text, "… (a step's print is shown up to 65536 bytes)")
		require.NotContains(t, strings.Join([]string{heard[0].Text, heard[len(heard)-1].Text}, ""), "\uFFFD")
	}
}
