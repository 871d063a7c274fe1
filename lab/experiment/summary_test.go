package experiment

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStudentIsThatOfTables in all ways in which it is computed.
func TestStudentIsThatOfTables(t *testing.T) {
	for nu, want := range map[int]float64{
		1: 12.7062047361747, 2: 4.30265272974946, 3: 3.18244630528371, 4: 2.77644510519779, 5: 2.57058183563631,
		10: 2.22813885198627, 30: 2.04227245630124, 200: 1.9718962236339, 201: 1.9718365067779, 1000: 1.96233908082641,
		1 << 50: 1.95996398454005,
	} {
		require.InEpsilon(t, want, student(nu), 1e-12, "%d degrees of freedom", nu)
	}
}

// TestMoments: by hand, with 3.182446, the quantile of 97.5% of Student's t with 3 degrees of
// freedom, from a table.
func TestMoments(t *testing.T) {
	m := sampleOf([]any{1.0, 2.0, 4.0, 8.0}).moments()
	require.InDelta(t, 3.75, *m.Mean, 1e-12)
	require.InDelta(t, 3.095695937, *m.SD, 1e-9)
	require.InDelta(t, -1.175943, *m.Low, 1e-5)
	require.InDelta(t, 8.675943, *m.High, 1e-5)
	require.False(t, m.Apart())
	require.InDelta(t, 3, *sampleOf([]any{8.0, 1.0, 4.0, 2.0}).median(), 0)
	require.InDelta(t, 4, *sampleOf([]any{8.0, 1.0, 4.0}).median(), 0)
	one := sampleOf([]any{7.0}).moments()
	require.InDelta(t, 7, *one.Mean, 0)
	require.Nil(t, one.Low)
	require.Zero(t, sample{}.moments().N)
	require.True(t, func() bool { m := sampleOf([]any{1.0, 1.1, 0.9}).moments(); return m.Apart() }())
}

// TestWhatNoFloatHoldsIsLeftOut: the rest is told.
func TestWhatNoFloatHoldsIsLeftOut(t *testing.T) {
	m := sampleOf([]any{1e308, 1e308, 1e308}).moments()
	require.InEpsilon(t, 1e308, *m.Mean, 1e-15)
	require.Zero(t, *m.SD)
	require.InEpsilon(t, 1e308, *m.High, 1e-15)
	require.InDelta(t, 1e308, *sampleOf([]any{1e308, 1e308}).median(), 0)
	m = sampleOf([]any{1e307, 2e307, 4e307, 8e307}).moments()
	require.InEpsilon(t, 3.75e307, *m.Mean, 1e-12)
	require.InEpsilon(t, 3.095695937e307, *m.SD, 1e-9)
	m = sampleOf([]any{1.7e308, -1.7e308, 1e308}).moments()
	require.NotNil(t, m.Mean)
	require.Nil(t, m.Low, "an interval has two ends")
	require.Nil(t, m.High)
	p := &Plan{Variants: []string{"a", "b"}, Points: [][]any{{}}, Seeds: []uint64{1, 2}, Columns: []Column{{Name: "x", Type: Float}}}
	x := &ends{plan: p, values: [][][][]any{{{{-1.7e308, -1.7e308}}}, {{{1.7e308, 1.7e308}}}}, groups: [][]Ended{{{Done: 2}}, {{Done: 2}}}}
	s := x.summary()
	require.Nil(t, s.Pairs[0].Mean)
	require.Equal(t, "it is beyond what a float holds", s.Pairs[0].None)
	l := reportLine{Ticks: []uint64{1}}
	l.draw([][]any{{1e308, -1e308, 1e308}})
	require.NoError(t, (&Report{Summary: *s, Ends: x.drawn(), Lines: []reportLine{l}}).write(io.Discard))
}

// TestPairsAreOfEqualSeeds: where a run has no value, its pair does not count.
func TestPairsAreOfEqualSeeds(t *testing.T) {
	p := &Plan{Variants: []string{"a", "b"}, Points: [][]any{{}}, Seeds: []uint64{1, 2, 3}, Columns: []Column{{Name: "x", Type: Float}}}
	x := &ends{plan: p, values: [][][][]any{{{{1.0, 2.0, nil}}}, {{{11.0, 13.0, 100.0}}}}, groups: [][]Ended{{{Done: 3}}, {{Done: 3}}}}
	s := x.summary()
	require.Len(t, s.Pairs, 1)
	require.Equal(t, 2, s.Pairs[0].N)
	require.InDelta(t, 10.5, *s.Pairs[0].Mean, 0)
	require.Equal(t, 3, s.Statistics[1].N)
}

// TestWhyThereIsNoIntervalIsSaid: of no pairs nobody can tell whether they are without 0.
func TestWhyThereIsNoIntervalIsSaid(t *testing.T) {
	p := &Plan{Variants: []string{"a", "b"}, Points: [][]any{{}}, Seeds: []uint64{1, 2}, Columns: []Column{{Name: "x", Type: Float}}}
	for _, x := range []struct {
		a, b         []any
		doneA, doneB Ended
		want         string
	}{
		{[]any{1.0, 2.0}, []any{3.0, 5.0}, Ended{Done: 2}, Ended{Done: 2}, ""},
		{[]any{1.0, nil}, []any{3.0, 5.0}, Ended{Done: 1}, Ended{Done: 2}, "one pair has no interval"},
		{[]any{1.0, 2.0}, []any{nil, nil}, Ended{Done: 2}, Ended{}, "no run of b has ended"},
		{[]any{1.0, 2.0}, []any{nil, nil}, Ended{Done: 2}, Ended{Done: 2, Failed: 2}, "all runs of b have failed"},
		{[]any{nil, nil}, []any{1.0, 2.0}, Ended{Done: 1, Failed: 1}, Ended{Done: 2}, "all runs of a have failed"},
		{[]any{1.0, 2.0}, []any{nil, nil}, Ended{Done: 2}, Ended{Done: 2, Failed: 1}, "no run of b has a value"},
		{[]any{1.0, nil}, []any{nil, 2.0}, Ended{Done: 2}, Ended{Done: 2}, "no seed has a value in both"},
	} {
		e := &ends{plan: p, values: [][][][]any{{{x.a}}, {{x.b}}}, groups: [][]Ended{{x.doneA}, {x.doneB}}}
		pair := e.summary().Pairs[0]
		require.Equal(t, x.want, pair.None)
		require.Equal(t, x.want == "", pair.Low != nil)
	}
}

// TestIntegersBeyondFloatsKeepWhatTheyDifferBy: their sums and squares as floats would not.
func TestIntegersBeyondFloatsKeepWhatTheyDifferBy(t *testing.T) {
	const far = 1<<53 + 1
	p := &Plan{Variants: []string{"a", "b"}, Points: [][]any{{}}, Seeds: []uint64{1, 2, 3, 4}, Columns: []Column{{Name: "x", Type: Int}}}
	a := []any{int64(far), int64(far + 1), int64(far + 3), int64(far + 7)}
	b := []any{int64(far + 1), int64(far + 2), int64(far + 4), int64(far + 8)}
	x := &ends{plan: p, values: [][][][]any{{{a}}, {{b}}}, groups: [][]Ended{{{Done: 4}}, {{Done: 4}}}}
	s := x.summary()
	require.Equal(t, sampleOf([]any{1.0, 1.0, 1.0, 1.0}).moments(), s.Pairs[0].Moments)
	require.True(t, s.Pairs[0].Apart())
	require.InDelta(t, *sampleOf([]any{0.0, 1.0, 3.0, 7.0}).moments().SD, *s.Statistics[0].SD, 0)
	require.InDelta(t, float64(far+3), *s.Statistics[0].Mean, 0, "2.75 more")
	require.InDelta(t, float64(far+2), *s.Statistics[0].Median, 0)
	for _, x := range []struct {
		a, b any
		less float64
	}{
		{int64(math.MaxInt64), int64(math.MinInt64), 0x1p64},
		{int64(math.MinInt64), int64(math.MaxInt64), -0x1p64},
		{int64(0), int64(math.MinInt64), 0x1p63},
		{int64(far), int64(far - 1), 1},
		{int64(-5), int64(-5), 0},
		{2.5, int64(1), 1.5},
		{true, false, 1},
	} {
		got := differences([]any{x.a}, []any{x.b})
		require.InDelta(t, x.less, *finite(got[0]), 0)
	}
}

// TestVendoredFilesAreWhatVendorWrote holds page/vendor to vendor.sum.
func TestVendoredFilesAreWhatVendorWrote(t *testing.T) {
	sums, err := os.ReadFile("vendor.sum")
	require.NoError(t, err)
	want := make(map[string]string)
	for lines := bufio.NewScanner(bytes.NewReader(sums)); lines.Scan(); {
		sum, name, _ := strings.Cut(lines.Text(), "  ")
		want[name] = sum
	}
	entries, err := fs.ReadDir(page, "page/vendor")
	require.NoError(t, err)
	require.Len(t, entries, len(want))
	for _, e := range entries {
		data, err := page.ReadFile("page/vendor/" + e.Name())
		require.NoError(t, err)
		sum := sha256.Sum256(data)
		require.Equal(t, want[e.Name()], hex.EncodeToString(sum[:]), e.Name())
	}
}

// TestWhatOfARunIsNotWhatItWasIsSaid holds that all that is kept of a run is compared.
func TestWhatOfARunIsNotWhatItWasIsSaid(t *testing.T) {
	p := &Plan{Columns: []Column{{Name: "x", Type: Float}, {Name: "s", Type: Text}}}
	result := func() *Result {
		return &Result{Planned: Planned{ID: 3}, Tick: 9, Stopped: StoppedIdle, Last: []any{2.5, "a"}, Rows: []Row{{4, []any{nil, "b"}}, {9, []any{2.5, "a"}}}}
	}
	require.NoError(t, p.same(result(), result()))
	for want, change := range map[string]func(*Result){
		`error was "no", and is ""`:                        func(r *Result) { r.Error = "no" },
		`stopped was "when", and is "idle"`:                func(r *Result) { r.Stopped = StoppedWhen },
		"ticks was 8, and is 9":                            func(r *Result) { r.Tick = 8 },
		"halted was 1, and is 0":                           func(r *Result) { r.Halted = 1 },
		"in_doubt was 1, and is 0":                         func(r *Result) { r.InDoubt = 1 },
		"sent was 1, and is 0":                             func(r *Result) { r.Sent = 1 },
		"skipped was 1, and is 0":                          func(r *Result) { r.Skipped = 1 },
		"failed_effects was 1, and is 0":                   func(r *Result) { r.FailedEffects = 1 },
		`first_failure was "a at tick 2: no", and is null`: func(r *Result) { r.First = &StepFailure{"a", 2, "no"} },
		"x at its end was 2.6, and is 2.5":                 func(r *Result) { r.Last[0] = 2.6 },
		`s at its end was null, and is "a"`:                func(r *Result) { r.Last[1] = nil },
		"x at tick 4 was 1.5, and is null":                 func(r *Result) { r.Rows[0].Values[0] = 1.5 },
		"tick of row 1 was 3, and is 4":                    func(r *Result) { r.Rows[0].Tick = 3 },
		"number of rows was 1, and is 2":                   func(r *Result) { r.Rows = r.Rows[:1] },
		"execution_hash was 01" + strings.Repeat("0", 62):  func(r *Result) { r.ExecutionHash[0] = 1 },
		"state_root was 01" + strings.Repeat("0", 62):      func(r *Result) { r.StateRoot[0] = 1 },
	} {
		was := result()
		change(was)
		err := p.same(was, result())
		require.ErrorIs(t, err, ErrOtherRun, want)
		require.Contains(t, err.Error(), "run 3: the run is not what it was: "+want)
	}
	was := result()
	was.Tick, was.Halted, was.InDoubt, was.Last[0], was.Stopped, was.Rows, was.Error = 1, 1, 1, 1.5, "", nil, "no"
	require.ErrorContains(t, p.same(was, result()), "; and 2 more")
}

// FuzzResult: what is read of a log is what would be written.
func FuzzResult(f *testing.F) {
	p := &Plan{Variants: []string{"a", "b"}, Points: [][]any{{}}, Seeds: []uint64{1, 2, 3}, Columns: []Column{
		{Name: "i", Type: Int}, {Name: "x", Type: Float}, {Name: "b", Type: Bool}, {Name: "s", Type: Text},
	}}
	r := &Result{Planned: p.Planned(4), Tick: 9, Stopped: StoppedIdle, Last: []any{int64(1), 2.5, true, "é<"}, Rows: []Row{{3, []any{nil, nil, nil, nil}}}}
	text, err := p.encodeResult(r)
	require.NoError(f, err)
	f.Add(text[:len(text)-sumSize])
	f.Fuzz(func(t *testing.T, open []byte) {
		_, err := p.decodeResult(open)
		require.Error(t, err, "it has no sum")
		r, err := p.decodeResult(withSum(p.ofResults(), open))
		if err != nil {
			return
		}
		again, err := p.encodeResult(r)
		require.NoError(t, err)
		same, err := p.decodeResult(again)
		require.NoError(t, err)
		require.Equal(t, r, same)
	})
}

// TestWhatAPageShowsIsEscaped in every cell, and numbers are in four figures.
func TestWhatAPageShowsIsEscaped(t *testing.T) {
	bad := `<b onclick="x">'&` // as it may stand in the name of a variant, of a param, or in a reason
	f := 1234.5678
	m := Moments{N: 3, Mean: &f, SD: &f, Low: &f, High: &f}
	group := Group{Variant: bad, Point: []any{bad, 0.1}}
	var page strings.Builder
	require.NoError(t, (&Report{Variants: []string{bad}, Summary: Summary{
		Experiment: bad, Hash: bad, Begin: bad, Done: 3, Failed: 1, Params: []string{bad, bad},
		Failures:   []Reason{{Runs: 1, Run: 2, Reason: bad}},
		ByVariant:  []Ended{{Variant: bad, Failed: 1, Tally: Tally{Halted: Count{All: 5, Runs: 2}, First: &Example{StepFailure: StepFailure{Error: bad}}}}},
		Statistics: []Statistic{{Group: group, Measure: bad, Moments: m, Median: &f}},
		Pairs:      []Pair{{Group: group, Less: bad, Measure: bad, Moments: m}, {Group: group, None: bad}},
	}}).write(&page))
	require.NotContains(t, page.String(), "<b onclick")
	escaped := "&lt;b onclick=&#34;x&#34;&gt;&#39;&amp;"
	require.Contains(t, page.String(), "<td>"+escaped+" − "+escaped+"</td><td>"+escaped+`</td><td>0.1</td><td class="n">3</td><td class="n">1235</td>`)
	require.Contains(t, page.String(), `<td class="n apart">1235 … 1235</td>`)
	require.Contains(t, page.String(), `<td class="n">`+escaped+"</td></tr>")
	require.Contains(t, page.String(), `<td class="n">5 in 2 runs</td>`)
}
