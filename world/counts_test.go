package world

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
)

// counting is a kernel of which nothing but counts is used, and what they have to be.
type counting struct {
	*kernel
	images journal.Images
	cell   *cell
	now    map[byte]uint64
	then   map[string]map[byte]uint64 // at snapshots
}

// A count is what it was in the history that goes on, whatever is rolled back, let go or left
// to images.
func TestCountsAreThoseOfTheHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := &counting{
			kernel: newKernel(nil, false), now: map[byte]uint64{},
			then: map[string]map[byte]uint64{},
		}
		c.last = 1
		c.cell = newCell(reducer.Cell{Reducer: "bot", Key: "a"}, journal.Hash{})
		if rapid.Bool().Draw(rt, "larger than memory") {
			c.store.images = &c.images
		}
		rt.Repeat(map[string]func(*rapid.T){
			"ask": func(rt *rapid.T) {
				what := rapid.ByteRange(0, 3).Draw(rt, "what")
				c.last++
				require.Equal(rt, c.now[what], c.counts.add(c.cell, "e", journal.Data{what}))
				c.now[what]++
				c.last += journal.Seq(rapid.IntRange(0, 1).Draw(rt, "records"))
			},
			"snapshot": func(*rapid.T) { c.makeSnapshot() },
			"prune": func(rt *rapid.T) {
				if n := c.catalog.Len(); n > 1 {
					require.NoError(rt, c.catalog.Prune(rapid.SampledFrom(c.catalog.All()[:n-1]).Draw(rt, "snapshot").Name))
				}
			},
			"rollback": func(rt *rapid.T) {
				if c.catalog.Len() > 0 {
					c.back(rapid.SampledFrom(c.catalog.All()).Draw(rt, "snapshot"))
				}
			},
			"image":  func(*rapid.T) { c.imaged() },
			"reopen": func(rt *rapid.T) { c.reopen(rt) },
			"": func(rt *rapid.T) {
				for what := range byte(4) {
					key := journal.CountKey{Cell: c.cell.name, What: askedFor("e", journal.Data{what})}
					is := c.counts.get(key)
					require.Equal(rt, c.now[what], c.counts.inNow(&is.counted), "%d", what)
				}
				require.NoError(rt, c.store.err)
			},
		})
	})
}

func (c *counting) makeSnapshot() {
	c.last += 2
	s := snapshot.Snapshot{Name: fmt.Sprint("s", c.last), Record: uint64(c.last), At: uint64(c.last - 1)}
	c.catalog.SetMax(100)
	c.catalog.Add(s)
	c.then[s.Name] = maps.Clone(c.now)
	c.imaged()
}

// imaged makes an image, and leaves to it what can be.
func (c *counting) imaged() {
	c.last++
	c.images.Add(&journal.Image{Head: journal.Head{ID: c.last}, Counts: c.counts.image()})
	if c.store.images != nil {
		c.counts.drop(0)
	}
}

func (c *counting) back(to snapshot.Snapshot) {
	c.last++
	c.rollbacks = append(c.rollbacks, turning{Record: c.last, To: journal.Seq(to.Record)})
	c.now = maps.Clone(c.then[to.Name])
}

// reopen has another process go on: with all of the last image, or with none of its counts.
func (c *counting) reopen(t require.TestingT) {
	c.imaged()
	all := uint64(c.counts.len())
	img, err := c.images.Image(journal.Last)
	require.NoError(t, err)
	if c.store.images != nil {
		img, err = c.images.Core(journal.Last)
		require.NoError(t, err)
	}
	c.counts = occurrences{ground: &c.ground, here: make(map[journal.CountKey]count), store: c.store}
	require.NoError(t, c.counts.restore(img, all))
}

// A count has what it was for the snapshots that there are, and not for those that were.
func TestCountsForgetWhatNoRollbackReturnsTo(t *testing.T) {
	c := &counting{kernel: newKernel(nil, false), then: map[string]map[byte]uint64{}}
	c.cell = newCell(reducer.Cell{Reducer: "bot", Key: "a"}, journal.Hash{})
	for n := range 50 {
		c.last++
		require.EqualValues(t, 2*n, c.counts.add(c.cell, "e", nil))
		require.EqualValues(t, 2*n+1, c.counts.add(c.cell, "e", nil))
		c.makeSnapshot()
		c.catalog.SetMax(5)
	}
	is := c.counts.get(journal.CountKey{Cell: "bot/a", What: askedFor("e", nil)})
	n := 0
	for x := is.before; x != nil; x = x.before {
		n++
	}
	require.LessOrEqual(t, n, 5)
	require.Greater(t, n, 2)
}

// What was asked for and dropped comes back with one look, and what never was with none.
func TestCountsThatNeverWereAreNotLookedFor(t *testing.T) {
	k := newKernel(nil, false)
	looks := new(looking)
	k.store.images = looks
	c := newCell(reducer.Cell{Reducer: "bot", Key: "a"}, journal.Hash{})
	for n := range 1000 {
		k.counts.add(c, "e", canon.AppendUint(nil, uint64(n)))
		if n%100 == 99 {
			k.last += 100
			looks.Add(&journal.Image{Head: journal.Head{ID: k.last}, Counts: k.counts.image()})
			k.counts.drop(0)
		}
	}
	require.Less(t, looks.n, 20)
	require.Empty(t, k.counts.here)
	require.Equal(t, 1000, k.counts.len())
	looks.n = 0
	for range 3 {
		require.NotZero(t, k.counts.add(c, "e", canon.AppendUint(nil, 7)))
	}
	require.Equal(t, 1, looks.n)
}

// looking counts how often a count is looked for.
type looking struct {
	journal.Images
	n int
}

func (l *looking) CountVersion(key journal.CountKey, at journal.Seq) (*journal.CountVersion, error) {
	l.n++
	return l.Images.CountVersion(key, at)
}

// What is used again and again stays in memory, and what is not goes first.
func TestCountsThatAreUsedLeaveLast(t *testing.T) {
	k := newKernel(nil, false)
	k.store.images = new(journal.Images)
	c := newCell(reducer.Cell{Reducer: "bot", Key: "a"}, journal.Hash{})
	ask := func(n int) { k.counts.add(c, "e", canon.AppendUint(nil, uint64(n))) }
	for n := range 100 {
		ask(n)
	}
	k.counts.image()
	k.counts.drop(99 * countBytes) // all were used since: one goes, and the others are used no more
	ask(5)
	k.counts.image()
	k.counts.drop(countBytes)
	require.Len(t, k.counts.here, 1)
	require.Contains(t, k.counts.here, journal.CountKey{Cell: "bot/a", What: askedFor("e", canon.AppendUint(nil, 5))})
}

func FuzzDecodeCount(f *testing.F) {
	f.Add((&count{counted: counted{n: 1, at: 2, before: &counted{n: 3, at: 4}}}).append(nil))
	f.Add([]byte{0x80})
	f.Add([]byte{0x81, 1})
	f.Add([]byte{0x82, 1, 2})
	f.Add([]byte{0x83, 1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decodeCount(&journal.CountVersion{Bytes: data})
		if err == nil {
			require.Equal(t, data, c.append(nil))
		}
	})
}
