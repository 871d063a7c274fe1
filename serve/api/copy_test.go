package api_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// copied returns the answers of a copy of a world, by their paths.
func copied(t *testing.T, lw *local.World) (map[string]string, *api.Copy) {
	t.Helper()
	c, err := api.NewCopy(t.Context(), lw)
	require.NoError(t, err)
	out := make(map[string]string)
	require.NoError(t, c.Each(t.Context(), func(path string, answer []byte) error {
		require.Empty(t, out[path], path)
		require.True(t, json.Valid(answer), path)
		out[path] = string(answer)
		return nil
	}))
	require.NoError(t, c.Close())
	return out, c
}

// thenIn returns how a cell stood at a record, by a copy, as page/copy.js does; empty: it
// was not there.
func thenIn(t *testing.T, moments string, at journal.Seq) string {
	t.Helper()
	var all [][]any
	require.NoError(t, json.Unmarshal([]byte(moments), &all))
	is := ""
	for _, m := range all {
		if journal.Seq(m[0].(float64)) > at {
			break
		}
		next := ""
		for edit := range slices.Chunk(m[1:], 3) {
			keep, drop := int(edit[0].(float64)), int(edit[1].(float64))
			next += is[:keep] + edit[2].(string)
			is = is[keep+drop:]
		}
		is = next + is
	}
	return strings.Replace(is, `"at":0}`, fmt.Sprintf(`"at":%d}`, at), 1)
}

// A copy tells of each cell at each record what the API does: what was asked of it, fell
// due for it and was undone, too.
func TestCopyTellsWhatTheAPITells(t *testing.T) {
	all := worlds(t, "w")
	s := serve(t, api.Config{Worlds: all})
	for i := range 3 {
		s.post("/api/worlds/w/events", act(fmt.Sprint("é", i), map[string]any{"timer": 3}, map[string]any{"timer": 2}))
		ok[api.Submitted](s.post("/api/worlds/w/events", map[string]any{"event": "ping", "to": "bot/é1", "at": 5 + i}))
		s.post("/api/worlds/w/step", map[string]any{"ticks": 1})
		if i == 1 {
			s.post("/api/worlds/w/snapshots", map[string]any{"name": "kept"})
		}
	}
	s.post("/api/worlds/w/step", map[string]any{"ticks": 9})
	require.NoError(t, all[0].Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Rollback(t.Context(), journal.RolledBack{Snapshot: "kept", Reason: "again", Actor: "ada", Ack: true}))
	}))
	s.post("/api/worlds/w/step", map[string]any{"ticks": 2})
	patch := map[string]any{"base_manifest_hash": ok[view.Status](s.get("/api/worlds/w")).Manifest.Hash, "ops": []any{}, "new_version": 2}
	ok[proposal](s.post("/api/worlds/w/proposals", map[string]any{"patch": patch, "reason": "a new number"}))

	answers, c := copied(t, all[0])
	again, _ := copied(t, all[0])
	require.Equal(t, answers, again, "the same world has the same copy")
	require.True(t, c.Verified.OK())
	require.Equal(t, all[0].Head().ID, c.Whole())
	cells := 0
	for path, moments := range answers { // order cannot show: each is looked at alone
		name, isCell := strings.CutPrefix(path, "/api/worlds/w/cell?cell=")
		if !isCell {
			continue
		}
		cells++
		for at := journal.Seq(1); at <= all[0].Head().ID; at++ {
			res := s.get(fmt.Sprintf("/api/worlds/w/cell?cell=%s&at=%d", name, at))
			then := thenIn(t, moments, at)
			if res.Status != http.StatusOK {
				require.Empty(t, then, "%s at #%d", path, at)
				continue
			}
			require.JSONEq(t, string(res.Body), then, "%s at #%d", path, at)
		}
	}
	require.Equal(t, 3, cells)
	for id := journal.Seq(1); id <= all[0].Head().ID; id++ {
		path := fmt.Sprintf("/api/worlds/w/records/%d", id)
		require.JSONEq(t, string(s.get(path+"?raw=false").Body), answers[path])
	}
	for _, path := range []string{"/api/worlds/w", "/api/worlds/w/proposals/p1"} { // as the page asks for them
		require.JSONEq(t, string(s.get(path).Body), answers[path], path)
	}
	require.Contains(t, answers[regexp.MustCompile(`/api/worlds/w/contents/[0-9a-f]{64}`).FindString(strings.Join(slices.Collect(maps.Keys(answers)), " "))], `"required"`, "the schema of an event")
	require.Contains(t, answers["/api/worlds/w/verify"], all[0].Head().Root.String())
}

// What a copy holds of a list is all of it.
func TestCopyHasAllPagesOfAList(t *testing.T) {
	all := worlds(t, "w")
	_, _, err := all[0].SubmitAll(t.Context(), pings(1010, 1010))
	require.NoError(t, err)
	require.NoError(t, all[0].Step(t.Context()))
	answers, _ := copied(t, all[0])
	require.Len(t, regexp.MustCompile(`"state_hash"`).FindAllString(answers["/api/worlds/w/cells"], -1), 1010)
	require.Contains(t, answers["/api/worlds/w/cells"], `"next":null`)
	require.Contains(t, answers, "/api/worlds/w/cell?cell="+url.QueryEscape("bot/c1009"))
}

func TestCopyOfALargeWorldIsRefused(t *testing.T) {
	all := worlds(t, "w")
	_, _, err := all[0].SubmitAll(t.Context(), pings(api.MaxCopyRecords, 1))
	require.NoError(t, err)
	_, err = api.NewCopy(t.Context(), all[0])
	require.ErrorIs(t, err, api.ErrLargeCopy)
	require.ErrorContains(t, err, "50000 records")
}

// pings are events for some cells.
func pings(n, cells int) iter.Seq2[world.Submission, error] {
	return func(yield func(world.Submission, error) bool) {
		for i := range n {
			data, err := canon.Marshal(map[string]any{"to": fmt.Sprint("c", i%cells)})
			if !yield(world.Submission{Name: "ping", Data: data}, err) {
				return
			}
		}
	}
}
