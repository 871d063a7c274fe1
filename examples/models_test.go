package examples_test

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/lab/experiment"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/memory"
)

// What models come to depends on their seeds alone: each test passes or fails for good.

// models are the examples that are simulations.
func models() []string { return []string{"commons", "elfarol", "schelling", "sir", "wealth"} }

// params are those that a test sets, by REDUCER and name.
type params map[string]map[string]any

// model is an example that runs in memory.
type model struct {
	t *testing.T
	*memory.World
}

// begin makes a world of an example with a seed and sends it what its README.md sends.
func begin(t *testing.T, name string, seed uint64, p params) model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, examples.Copy(name, dir))
	loaded, err := local.Load(filepath.Join(dir, local.ManifestFile), local.Options{})
	require.NoError(t, err)
	for name, given := range p {
		r := loaded.Manifest.Reducers[name]
		set := fields(t, r.Params)
		for key, value := range given {
			require.Contains(t, set, key)
			set[key] = value
		}
		text, err := json.Marshal(set)
		require.NoError(t, err)
		r.Params, err = canon.FromJSON(text)
		require.NoError(t, err)
		loaded.Manifest.Reducers[name] = r
	}
	w, err := memory.New(loaded.Manifest, loaded.Contents, memory.Options{Seed: &seed})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	events, err := os.Open(filepath.Join(dir, "events.jsonl"))
	require.NoError(t, err)
	defer events.Close() //nolint:errcheck // only read
	for sc := bufio.NewScanner(events); sc.Scan(); {
		item, err := canon.FromJSON(sc.Bytes())
		require.NoError(t, err)
		var s world.Submission
		require.NoError(t, s.Decode(item))
		_, err = w.Accept(t.Context(), s)
		require.NoError(t, err)
	}
	return model{t, w}
}

// run runs the world to a tick, or to where nothing is left to happen, and has each told of every
// tick that it has come through; nil: nobody.
func (m model) run(to manifest.Tick, each func()) {
	m.t.Helper()
	for {
		p, err := m.Next(m.t.Context())
		require.NoError(m.t, err)
		if p == world.Ticked && each != nil {
			each()
		}
		if p == world.Idle || p == world.Ticked && m.Time() >= to {
			break
		}
	}
	for _, c := range m.Cells() {
		require.False(m.t, c.Halted, c.Cell)
	}
}

// states returns the states of a reducer's cells.
func (m model) states(reducer string) []map[string]any {
	m.t.Helper()
	var out []map[string]any
	for _, c := range m.Cells() {
		if c.Cell.Reducer == reducer {
			out = append(out, fields(m.t, c.State))
		}
	}
	return out
}

// fields returns data as JSON has it.
func fields(t *testing.T, data canon.Raw) map[string]any {
	t.Helper()
	text, err := canon.ToJSON(data)
	require.NoError(t, err)
	var out map[string]any
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

func mean(of []float64) float64 {
	sum := 0.0
	for _, x := range of {
		sum += x
	}
	return sum / float64(len(of))
}

// TestSIR holds the threshold and the final size of Kermack and McKendrick: with R0 above 1
// the share z that is ever infected solves 1 - z = s exp(-R0 z), where s is the share that is
// susceptible at first.
func TestSIR(t *testing.T) {
	const persons, first = 1000, 10
	size := func(transmits float64) float64 {
		var sizes []float64
		for seed := range uint64(5) {
			m := begin(t, "sir", seed, params{"person": {"transmits": transmits}})
			m.run(1000, nil)
			for _, s := range m.states("person") {
				require.Equal(t, "R", s["status"])
			}
			sizes = append(sizes, float64(len(m.states("person")))/persons)
		}
		return mean(sizes)
	}
	require.Less(t, size(0.025), 0.03, "R0 = 0.5: of the ten of the beginning each infects less than one")
	for transmits, r0 := range map[float64]float64{0.075: 1.5, 0.1: 2} {
		z := 0.5
		for range 100 {
			z = 1 - (1-float64(first)/persons)*math.Exp(-r0*z)
		}
		require.InDelta(t, z, size(transmits), 0.05, r0)
	}
}

// TestSchelling holds that a mild preference segregates: who wants three of ten alike ends
// with more than seven.
func TestSchelling(t *testing.T) {
	var first, last []float64
	for seed := range uint64(5) {
		m := begin(t, "schelling", seed, nil)
		m.run(100, func() {
			if len(first) == int(seed) { // not a tick later
				first = append(first, m.states("city")[0]["alike"].(float64))
			}
		})
		city := m.states("city")[0]
		require.Zero(t, city["unhappy"])
		last = append(last, city["alike"].(float64))
		kinds := make(map[any]int)
		for _, home := range city["homes"].([]any) {
			kinds[home]++
		}
		require.Equal(t, map[any]int{0.0: 40, 1.0: 180, 2.0: 180}, kinds, "nobody is lost on the way")
	}
	require.InDelta(t, 0.5, mean(first), 0.03)
	require.Greater(t, mean(last), 0.70)
}

// TestCommons holds that contributions decline, and that they do not where players may punish.
func TestCommons(t *testing.T) {
	play := func(punishing bool) (first, last float64) {
		var begun, ended []float64
		for seed := range uint64(3) {
			m := begin(t, "commons", seed, params{"group": {"punishing": punishing}})
			round := 0.0
			m.run(1000, func() {
				for _, g := range m.states("group") {
					if round++; round <= 5 { // groups
						begun = append(begun, g["mean"].(float64))
					}
				}
			})
			for _, g := range m.states("group") {
				require.EqualValues(t, 10, g["round"])
				ended = append(ended, g["mean"].(float64))
			}
		}
		return mean(begun), mean(ended)
	}
	first, last := play(false)
	require.InDelta(t, 10, first, 2, "half of the coins")
	require.Less(t, last, 4.0)
	again, held := play(true)
	require.InDelta(t, first, again, 0, "before anybody was punished")
	require.Greater(t, held, first)
}

// TestWealth holds Drăgulescu and Yakovenko's exponential distribution: its Gini coefficient is
// 1/2, and of those who have more than some coins the same share has more than so many besides.
func TestWealth(t *testing.T) {
	const persons, coins, seeds = 200, 4, 3
	inequality, more := 0.0, make([]float64, 4) // than so many times what all had at first
	for seed := range uint64(seeds) {
		m := begin(t, "wealth", seed, nil)
		m.run(120, nil)
		var all []float64
		for _, s := range m.states("person") {
			all = append(all, s["coins"].(float64))
			for k := range more {
				if s["coins"].(float64) > float64(k*coins) {
					more[k]++
				}
			}
		}
		require.Len(t, all, persons)
		require.InDelta(t, coins, mean(all), 0, "none is made or lost")
		slices.Sort(all)
		for i, x := range all {
			inequality += float64(2*i+1-persons) * x / (persons * persons * coins * seeds)
		}
	}
	require.InDelta(t, 0.5, inequality, 0.03)
	for k := 1; k < len(more); k++ {
		require.InDelta(t, math.Exp(-1), more[k]/more[k-1], 0.06, "more than %d coins", k*coins)
	}
}

// TestElFarol holds that a bar fills itself to about what is pleasant, and never settles.
func TestElFarol(t *testing.T) {
	weeks := func(seats int) (came []float64) {
		for seed := range uint64(2) {
			m := begin(t, "elfarol", seed, params{"person": {"seats": seats}})
			m.run(60, func() {
				if last := m.states("bar")[0]["last"]; m.Time() > 20 {
					came = append(came, last.(float64))
				}
			})
		}
		return came
	}
	came := weeks(60)
	require.InDelta(t, 60, mean(came), 5)
	require.Less(t, slices.Min(came), 56.0)
	require.Greater(t, slices.Max(came), 62.0)
	require.InDelta(t, 40, mean(weeks(40)), 7)
}

// TestExperimentsOfModelsAreValid reads the experiment that comes with each.
func TestExperimentsOfModelsAreValid(t *testing.T) {
	for _, name := range models() {
		dir := filepath.Join(t.TempDir(), name)
		require.NoError(t, examples.Copy(name, dir))
		spec, err := experiment.Load(filepath.Join(dir, name+".yaml"), experiment.LoadOptions{})
		require.NoError(t, err)
		require.Equal(t, name, spec.Experiment)
		require.GreaterOrEqual(t, spec.Runs(), uint64(20))
	}
}

// TestModelsAreSmall holds what README.md files promise of models: at most 80 lines.
func TestModelsAreSmall(t *testing.T) {
	for _, name := range models() {
		files, err := filepath.Glob(filepath.Join(name, "*.star"))
		require.NoError(t, err)
		lines := 0
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			lines += len(strings.Split(strings.TrimSpace(string(text)), "\n"))
		}
		require.LessOrEqual(t, lines, 80, name)
		require.Positive(t, lines, name)
	}
}
