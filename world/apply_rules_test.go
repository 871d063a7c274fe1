package world_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// versions is how many versions there are of the reducers tale (Go) and note
// (Starlark). Each writes into a cell's state which it is; those that three
// divides take over states, and write that, too.
const versions = 12

func takesOver(version int) bool { return version%3 == 0 }

// tale is one version of the reducer.
func tale(version int) reducer.Factory {
	f := reducer.Typed(1, func(_ *reducer.Context, lines []string, e reducer.Event) ([]string, error) {
		o, err := reducer.Decode[order](e.Data)
		return append(lines, fmt.Sprint(version, " ", o.Say)), err
	})
	if !takesOver(version) {
		return f
	}
	return reducer.Migrating(f, func(state reducer.Data) ([]string, error) {
		var lines []string
		err := canon.Unmarshal(state, &lines)
		return append(lines, fmt.Sprint(version, " takes over")), err
	})
}

func taleRegistry() reducer.Registry {
	r := reducer.Registry{}
	for v := range versions {
		r["tale@"+strconv.Itoa(v+1)] = tale(v + 1)
	}
	return r
}

// note is the source of one version of the reducer.
func note(version int) []byte {
	source := fmt.Appendf(nil, "def reduce(ctx, state, event):\n    return (state or []) + [\"%d \" + event.data[\"say\"]]\n", version)
	if takesOver(version) {
		source = fmt.Appendf(source, "\ndef migrate(state):\n    return state + [\"%d takes over\"]\n", version)
	}
	return source
}

// ruled is the manifest with a version of each reducer, and what it names.
func ruled(taleVersion, noteVersion int) (*manifest.Manifest, map[manifest.Hash][]byte) {
	source := note(noteVersion)
	m := manifest.Manifest{
		World: "tales", Version: 1, Seed: 3,
		Reducers: map[string]manifest.Reducer{
			"tale": {Engine: manifest.EngineGo, Name: "tale", Version: strconv.Itoa(taleVersion)},
			"note": {Engine: manifest.EngineStarlark, File: "note.star", Source: canon.Sum(source)},
		},
		Events:  map[string]manifest.Event{"tell": {}},
		Routing: []manifest.Route{{Event: "tell", Reducer: "tale", Key: "event.data.to"}, {Event: "tell", Reducer: "note", Key: "event.data.to"}},
	}.WithDefaults()
	return &m, map[manifest.Hash][]byte{canon.Sum(source): source}
}

// chronicle is a world whose rules change, beside plain notes of what its cells
// should hold.
type chronicle struct {
	*worldtest.World
	t     *testing.T
	rng   *rand.Rand
	now   page
	kept  map[string]page      // of snapshots
	pages map[journal.Seq]page // of moments
	told  int
}

// page is what cells hold, and which code is in force.
type page struct {
	lines map[string][]string
	code  map[string]int
}

func (p page) clone() page {
	out := page{lines: make(map[string][]string), code: maps.Clone(p.code)}
	for cell, lines := range p.lines {
		out.lines[cell] = slices.Clone(lines)
	}
	return out
}

// takeOver is what other code makes of the cells of a reducer that it has not left.
func (p page) takeOver(name string, left, code int) {
	for _, key := range keys {
		cell := name + "/" + key
		if lines := p.lines[cell]; lines != nil && left != code && takesOver(code) {
			p.lines[cell] = append(lines, fmt.Sprint(code, " takes over"))
		}
	}
}

var keys = []string{"a", "b", "c"}

func newChronicle(t *testing.T, seed uint64) *chronicle {
	c := &chronicle{
		t: t, rng: rand.New(rand.NewPCG(seed, 5)), kept: make(map[string]page), pages: make(map[journal.Seq]page),
		now: page{lines: make(map[string][]string), code: map[string]int{"tale": 1, "note": 1}},
	}
	m, contents := ruled(1, 1)
	c.World = worldtest.New(t, *m, contents, worldtest.Options{
		Reducers: taleRegistry(), BatchRecords: 1 + c.rng.IntN(5), CheckpointRecords: journal.Seq(5 + c.rng.IntN(40)),
	})
	return c
}

// tell has a few events handled, under the rules in force.
func (c *chronicle) tell() {
	for range 1 + c.rng.IntN(3) {
		c.told++
		key, say := keys[c.rng.IntN(len(keys))], fmt.Sprint("event ", c.told)
		c.Submit("tell", order{To: key, Say: say})
		for name, code := range c.now.code {
			c.now.lines[name+"/"+key] = append(c.now.lines[name+"/"+key], fmt.Sprint(code, " ", say))
		}
	}
	c.Run()
}

// change puts other rules in force; versions may return.
func (c *chronicle) change() {
	next := map[string]int{"tale": 1 + c.rng.IntN(versions), "note": c.now.code["note"]}
	if c.rng.IntN(3) > 0 || next["tale"] == c.now.code["tale"] {
		next["note"] = 1 + (c.now.code["note"]+c.rng.IntN(versions-1))%versions
	}
	m, contents := ruled(next["tale"], next["note"])
	before, base := c.Status().Head.ID, c.Status().Manifest
	require.NoError(c.t, worldtest.Adopt(c.t.Context(), c.World.World, m, contents))
	for name, code := range next {
		c.now.takeOver(name, c.now.code[name], code)
	}
	c.now.code = next
	then, err := world.At(c.t.Context(), c.Journal, before+3, taleRegistry())
	require.NoError(c.t, err)
	require.Equal(c.t, base, then.Status().Manifest, "proposed, shadowed and approved, and not in force")
	then, err = world.At(c.t.Context(), c.Journal, before+4, taleRegistry())
	require.NoError(c.t, err)
	require.Equal(c.t, m.Reducers, then.Manifest().Reducers)
}

func (c *chronicle) snapshot() {
	s, err := c.Snapshot(c.t.Context(), "", "", "ada")
	require.NoError(c.t, err)
	c.kept[s.Name] = c.now.clone()
}

// rollback returns cells, and not the rules.
func (c *chronicle) rollback() bool {
	all := c.Snapshots()
	if len(all) == 0 {
		return false
	}
	to := all[c.rng.IntN(len(all))].Name
	inForce, earlier := c.Status().Manifest, c.kept[to].code
	_, _, err := c.Rollback(c.t.Context(), journal.RolledBack{Snapshot: to, Actor: "ada", Reason: "a try"})
	require.NoError(c.t, err)
	require.Equal(c.t, inForce, c.Status().Manifest)
	code := c.now.code
	c.now = c.kept[to].clone()
	c.now.code = code
	for name := range code {
		c.now.takeOver(name, earlier[name], code[name])
	}
	return !maps.Equal(earlier, code)
}

// states returns what cells hold.
func states(t *testing.T, m *world.Moment) map[string][]string {
	t.Helper()
	out := make(map[string][]string)
	for _, view := range m.Cells() {
		var lines []string
		require.NoError(t, canon.Unmarshal(view.State, &lines))
		out[view.Cell.String()] = lines
	}
	return out
}

func (c *chronicle) check() {
	c.t.Helper()
	require.Equal(c.t, c.now.lines, states(c.t, &c.Moment))
	c.pages[c.Status().Head.ID] = c.now.clone()
}

// Rules change ten times and more, code with them, and cells go back meanwhile: at
// every record the code of then is at work, now and in every replay.
func TestEveryRecordIsReplayedUnderItsRules(t *testing.T) {
	across, stride := 0, fault.Stride(3)
	for seed := fault.From(t, stride); seed < 12; seed += stride {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
			c := newChronicle(t, uint64(seed))
			c.tell()
			for range 12 {
				for range 1 + c.rng.IntN(3) {
					switch c.rng.IntN(6) {
					case 0, 1, 2:
						c.tell()
					case 3:
						c.snapshot()
					case 4:
						if c.rollback() {
							across++
						}
					default:
						c.Crash()
					}
					c.check()
				}
				c.change()
				c.check()
			}
			c.RequireReplay()
			c.RequireMoments(c.rng)
			for at, want := range c.pages {
				then, err := world.At(t.Context(), c.Journal, at, taleRegistry())
				require.NoError(t, err)
				require.Equal(t, want.lines, states(t, then), "at #%d", at)
				require.Equal(t, want.code["tale"], version(t, then))
			}
			c.Crash()
			require.Equal(t, c.now.lines, states(t, &c.Moment))
		})
	}
	require.NotZero(t, across, "rollbacks to before a change")
}

func version(t *testing.T, m *world.Moment) int {
	t.Helper()
	v, err := strconv.Atoi(m.Manifest().Reducers["tale"].Version)
	require.NoError(t, err)
	return v
}
