package snapshot

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// next is a snapshot that c can take.
func next(c *Catalog, name string) Snapshot {
	last := c.Last()
	return Snapshot{Name: name, Record: last.Record + 5, At: last.Record + 4, Hash: canon.Sum([]byte(name))}
}

func catalog(names ...string) *Catalog {
	var c Catalog
	for _, name := range names {
		c.Add(next(&c, name))
	}
	return &c
}

func namesOf(c *Catalog) (names []string) {
	for _, s := range c.All() {
		names = append(names, s.Name)
	}
	return names
}

// back decodes what c encodes to.
func back(t require.TestingT, c *Catalog) *Catalog {
	b, err := canon.Marshal(c)
	require.NoError(t, err)
	var got Catalog
	require.NoError(t, canon.Unmarshal(b, &got))
	return &got
}

func TestRetentionLetsTheOldestGoButNeitherPinnedNorLast(t *testing.T) {
	c := catalog("a", "b", "c", "d")
	require.NoError(t, c.Pin("b", true))
	require.Equal(t, []string{"a", "c"}, c.SetMax(2))
	require.Equal(t, []string{"d"}, c.Add(next(c, "e")))
	require.Equal(t, []string{"b", "e"}, namesOf(c))

	require.NoError(t, c.Pin("e", true))
	require.Empty(t, c.Add(next(c, "f")), "all but the last are pinned")
	require.Equal(t, []string{"b", "e", "f"}, namesOf(c))
	require.NoError(t, c.Pin("b", false))
	require.Equal(t, 3, c.Len(), "until the next Add or SetMax")
	require.Equal(t, []string{"b"}, c.SetMax(2))
	require.Empty(t, c.SetMax(0))
	require.Equal(t, uint64(6), c.Made)
}

// TestCatalogKeepsItsRules compares it with a rule that takes one away at a time.
func TestCatalogKeepsItsRules(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var c Catalog
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			before := c.All()
			name := rapid.SampledFrom(append(namesOf(&c), "none")).Draw(rt, "name")
			switch rapid.SampledFrom([]string{"add", "add", "max", "pin", "prune"}).Draw(rt, "op") {
			case "add":
				s := next(&c, c.NextName())
				require.NoError(rt, c.Check(s.Name))
				pruned := c.Add(s)
				require.Equal(rt, retained(rt, append(before, s), c.Max, pruned), c.All())
			case "max":
				pruned := c.SetMax(rapid.Uint64Range(0, 5).Draw(rt, "max"))
				require.Equal(rt, retained(rt, before, c.Max, pruned), c.All())
			case "pin":
				err := c.Pin(name, rapid.Bool().Draw(rt, "pinned"))
				require.Equal(rt, name == "none", err != nil)
			case "prune":
				old, _ := c.Find(name)
				last := c.Last()
				err := c.Prune(name)
				require.Equal(rt, name == "none" || old.Pinned || old == last, err != nil)
				require.Equal(rt, err == nil, c.Len() < len(before))
			}
			require.IsIncreasing(rt, append([]uint64{0}, append(c.Records(), math.MaxUint64)...))
			require.Equal(rt, &c, back(rt, &c))
		}
	})
}

func retained(t require.TestingT, list []Snapshot, limit uint64, pruned []string) []Snapshot {
	for limit > 0 && uint64(len(list)) > limit {
		oldest := -1
		for i := len(list) - 2; i >= 0; i-- {
			if !list[i].Pinned {
				oldest = i
			}
		}
		if oldest < 0 {
			break
		}
		require.NotEmpty(t, pruned)
		require.Equal(t, list[oldest].Name, pruned[0])
		list, pruned = append(list[:oldest], list[oldest+1:]...), pruned[1:]
	}
	require.Empty(t, pruned)
	return list
}

func TestNeitherPinnedNorLastCanBePruned(t *testing.T) {
	c := catalog("a", "b", "c")
	require.NoError(t, c.Pin("a", true))
	require.ErrorIs(t, c.Prune("a"), ErrPinned)
	require.ErrorIs(t, c.Prune("c"), ErrLastSnapshot)
	require.ErrorIs(t, c.Prune("d"), ErrNoSnapshot)
	require.ErrorIs(t, c.Pin("d", true), ErrNoSnapshot)
	require.NoError(t, c.Pin("a", false))
	require.NoError(t, c.Prune("a"))
	require.NoError(t, c.Prune("b"))
	require.ErrorIs(t, c.Prune("c"), ErrLastSnapshot)
	require.Equal(t, []uint64{15}, c.Records())
}

func TestNamesReadAsNothingElse(t *testing.T) {
	c := catalog("s1", "before-harvest", "v1.2_rc")
	for _, good := range []string{"a", "s2", "12ab", "facad", "facade-1", "FACADE", "x.y", "_", strings.Repeat("n", 64)} {
		require.NoError(t, c.Check(good), good)
	}
	for _, bad := range []string{
		"", "-x", ".", "..", ".x", "a b", "a/b", "é", "a\n", "\x00", "1", "123456", "facade", "0123456789abcdef", strings.Repeat("n", 65),
	} {
		require.ErrorIs(t, c.Check(bad), ErrBadName, "%q", bad)
	}
	require.ErrorIs(t, c.Check("s1"), ErrNameTaken)
	require.NoError(t, c.Prune("s1"))
	require.NoError(t, c.Check("s1"), "free again")
}

func TestDefaultNamesAreFreeOnes(t *testing.T) {
	var c Catalog
	require.Equal(t, "s1", c.NextName())
	c.Add(next(&c, "s2"))
	require.Equal(t, "s3", c.NextName(), "s2 is taken")
	c.Add(next(&c, "s3"))
	c.Add(next(&c, "x"))
	c.SetMax(1)
	require.Equal(t, "s4", c.NextName(), "what is gone keeps its number")
}

func TestFindTakesANameOrTheBeginningOfAHash(t *testing.T) {
	var c Catalog
	a, b := next(&c, "a"), Snapshot{Name: "b", Record: 99}
	b.Hash = a.Hash
	b.Hash[31] ^= 1
	c.Add(a)
	c.Add(b)
	for name, want := range map[string]Snapshot{"a": a, "b": b, a.Hash.String(): a, b.Hash.String(): b} {
		got, err := c.Find(name)
		require.NoError(t, err, name)
		require.Equal(t, want, got)
	}
	for name, want := range map[string]error{
		a.Hash.String()[:6]: ErrAmbiguous, a.Hash.String()[:63]: ErrAmbiguous,
		a.Hash.String()[:5]: ErrNoSnapshot, a.Hash.String() + "0": ErrNoSnapshot,
		"": ErrNoSnapshot, "c": ErrNoSnapshot, "000000": ErrNoSnapshot, strings.ToUpper(a.Hash.String()): ErrNoSnapshot,
	} {
		_, err := c.Find(name)
		require.ErrorIs(t, err, want, "%q", name)
	}
}

func TestAllIsACopy(t *testing.T) {
	c := catalog("a", "b")
	c.All()[0].Name = "x"
	require.Equal(t, []string{"a", "b"}, namesOf(c))
	require.Equal(t, "b", c.Last().Name)
	require.Zero(t, new(Catalog).Last())
}

func TestAddingWhatCannotBeThereIsAMistake(t *testing.T) {
	for why, s := range map[string]Snapshot{
		"name taken":      {Name: "a", Record: 9},
		"bad name":        {Name: "7", Record: 9},
		"record before":   {Name: "b", Record: 5},
		"at after record": {Name: "b", Record: 9, At: 9},
	} {
		c := catalog("a")
		require.Panics(t, func() { c.Add(s) }, why)
		require.Equal(t, catalog("a"), c, why)
	}
}

func TestDamagedCatalogsAreRefused(t *testing.T) {
	good := func() catalogForm {
		return catalogForm{Version: 1, Made: 2, Max: 3, List: []Snapshot{{Name: "a", Record: 5}, {Name: "b", Record: 9}}}
	}
	for why, damage := range map[string]func(*catalogForm){
		"":                       func(*catalogForm) {},
		"unknown version":        func(f *catalogForm) { f.Version = 2 },
		"order":                  func(f *catalogForm) { f.List[0], f.List[1] = f.List[1], f.List[0] },
		"a record twice":         func(f *catalogForm) { f.List[0].Record = 9 },
		"a name twice":           func(f *catalogForm) { f.List[0].Name = "b" },
		"bad name":               func(f *catalogForm) { f.List[0].Name = "5" },
		"record 0":               func(f *catalogForm) { f.List[0].Record = 0 },
		"at after record":        func(f *catalogForm) { f.List[0].At = 5 },
		"fewer made than kept":   func(f *catalogForm) { f.Made = 1 },
		"more made than fit":     func(f *catalogForm) { f.Made = 10 },
		"made, but none is left": func(f *catalogForm) { f.List = nil },
	} {
		form := good()
		damage(&form)
		b, err := canon.Marshal(form)
		require.NoError(t, err)
		c := catalog("x")
		if err = canon.Unmarshal(b, c); why == "" {
			require.NoError(t, err)
			require.Equal(t, []string{"a", "b"}, namesOf(c))
			continue
		}
		require.Error(t, err, why)
		require.Equal(t, catalog("x"), c, why)
	}
}

func TestSnapshotPrintsAsTheCommandSays(t *testing.T) {
	b, err := json.Marshal(Snapshot{Name: "a", Record: 9, At: 8, Time: 7, Cells: 6, Label: "l", Pinned: true})
	require.NoError(t, err)
	zero := strconv.Quote(Hash{}.String())
	require.JSONEq(t, `{"name":"a","record":9,"at":8,"time":7,"chain_root":`+zero+`,"state_root":`+zero+
		`,"cells":6,"label":"l","pinned":true,"hash":`+zero+`}`, string(b))
}

func FuzzDecodeCatalog(f *testing.F) {
	full := catalog("a", "b", "s3")
	full.SetMax(3)
	require.NoError(f, full.Pin("a", true))
	for _, c := range []*Catalog{{}, full} {
		b, err := canon.Marshal(c)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Catalog
		if canon.Unmarshal(data, &c) != nil {
			return
		}
		b, err := canon.Marshal(c)
		require.NoError(t, err)
		require.Equal(t, data, b)
		require.NoError(t, c.Check(c.NextName()))
		if last := c.Last(); last.Record < math.MaxUint64 { // it can go on
			c.Add(Snapshot{Name: c.NextName(), Record: last.Record + 1})
			require.Equal(t, &c, back(t, &c))
		}
	})
}
