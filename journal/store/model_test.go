package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
)

// model is a journal as a slice, and an image as maps.
type model struct {
	records []journal.Stored
	cells   [][]string // by record
	heads   []journal.Head
	image   journal.Head
	core    string
	states  map[string]string
	intents map[journal.Hash]string
}

func TestStoreEqualsAPlainModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		mem := memFS(t)
		s := create(t, mem)
		w := &writer{}
		m := &model{heads: []journal.Head{{}}, states: map[string]string{}, intents: map[journal.Hash]string{}}
		cell := rapid.SampledFrom([]string{"a/1", "a/11", "a/2", "b/1"})
		r.Repeat(map[string]func(*rapid.T){
			"append": func(r *rapid.T) {
				b := journal.Batch{After: w.head, Head: w.head}
				for range rapid.IntRange(0, 4).Draw(r, "records") {
					named := rapid.SliceOfN(cell, 0, 3).Draw(r, "cells")
					filler := strings.Repeat(" ", rapid.IntRange(0, 150).Draw(r, "filler"))
					w.add(&b, strings.Join(named, " ")+filler)
					m.cells = append(m.cells, named)
				}
				p, err := s.Append(b)
				require.NoError(r, err)
				require.NoError(r, p.Wait())
				m.records = append(m.records, b.Records...)
				m.heads = append(m.heads, w.head)
			},
			"checkpoint": func(r *rapid.T) {
				dirty := rapid.MapOf(cell, rapid.StringN(0, 5, -1)).Draw(r, "dirty")
				img := &journal.Image{Head: w.head, Core: []byte(rapid.String().Draw(r, "core"))}
				for _, name := range slices.Sorted(maps.Keys(dirty)) {
					img.Cells = append(img.Cells, journal.CellVersion{Cell: name, Bytes: []byte(dirty[name])})
				}
				key := journal.Hash{rapid.Byte().Draw(r, "intent")}
				img.Intents = []journal.IntentVersion{{Key: key, Bytes: img.Core}}
				require.NoError(r, s.Checkpoint(img))
				m.image, m.core = img.Head, string(img.Core)
				maps.Copy(m.states, dirty)
				maps.DeleteFunc(m.states, func(_, state string) bool { return state == "" })
				m.intents[key] = m.core
			},
			"reopen": func(r *rapid.T) {
				require.NoError(r, s.Close())
				if rapid.Bool().Draw(r, "crash") {
					mem = mem.CrashClone(vfs.CrashCloneCfg{})
				}
				s = reopen(t, mem)
			},
			"": func(r *rapid.T) { m.compare(r, s, cell) },
		})
		require.Empty(r, damageOf(s))
		require.NoError(r, s.Close())
	})
}

func (m *model) compare(r *rapid.T, s *Store, cell *rapid.Generator[string]) {
	require.Equal(r, m.heads[len(m.heads)-1], s.Head())
	after := rapid.SampledFrom(m.heads).Draw(r, "after")
	next := after.ID
	for got, err := range s.Scan(after.ID) {
		require.NoError(r, err)
		require.Equal(r, scanned(m.records[next]), got)
		next++
	}
	require.Len(r, m.records, int(next))
	next = after.ID
	for got, err := range s.ScanChain(after) {
		require.NoError(r, err)
		want := scanned(m.records[next])
		want.Root = m.records[next].Root
		require.Equal(r, want, got)
		next++
	}
	require.Len(r, m.records, int(next))

	named := cell.Draw(r, "of cell")
	var want []journal.Seq
	for i, cells := range m.cells {
		if slices.Contains(cells, named) {
			want = append(want, journal.Seq(i+1))
		}
	}
	var got []journal.Seq
	for id, err := range s.CellRecords(named, 0) {
		require.NoError(r, err)
		got = append(got, id)
	}
	require.Equal(r, want, got)

	img, err := s.Image(journal.Last)
	require.NoError(r, err)
	if img == nil {
		require.Empty(r, m.intents)
		return
	}
	require.Equal(r, m.image, img.Head)
	require.Equal(r, m.core, string(img.Core))
	states, intents := map[string]string{}, map[journal.Hash]string{}
	for _, c := range img.Cells {
		states[c.Cell] = string(c.Bytes)
	}
	for _, in := range img.Intents {
		intents[in.Key] = string(in.Bytes)
	}
	require.Equal(r, m.states, states, fmt.Sprint(img.Cells))
	require.Equal(r, m.intents, intents)
}
