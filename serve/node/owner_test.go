package node_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/serve/api"
)

// ask makes a request of a node and returns the status and the answer's body, parsed if it is JSON.
func (r *running) ask(method, path, body string, headers ...string) (int, map[string]any) {
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Error(err)
		return 0, nil
	}
	req.Header.Set("Authorization", "Bearer "+r.secret)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Error(err)
		return 0, nil
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	var answer map[string]any
	_ = json.NewDecoder(res.Body).Decode(&answer) // it may be none
	return res.StatusCode, answer
}

const counting = `{"event": "counter.added", "data": {"name": "tea", "by": 1}}`

// TestAnyNodeAnswersForAllWorlds, also for those that rest, and those whose node is about to give
// them away.
func TestAnyNodeAnswersForAllWorlds(t *testing.T) {
	url := create(t, 6)
	one := run(t, url, "one", time.Hour)
	one.owns(6)
	two := run(t, url, "two", time.Hour)
	for i := range 6 { // while three of them move
		path := fmt.Sprintf("/api/worlds/w%d", i)
		for _, n := range []*running{one, two} {
			status, answer := n.ask("GET", path, "")
			require.Equal(t, http.StatusOK, status, answer)
			require.Equal(t, fmt.Sprintf("w%d", i), answer["world_id"])
			status, answer = n.ask("POST", path+"/events", counting)
			require.Equal(t, http.StatusCreated, status, answer)
		}
	}
	two.owns(3)
	status, _ := two.ask("GET", "/api/worlds/nowhere", "")
	require.Equal(t, http.StatusNotFound, status)
	status, list := two.ask("GET", "/api/worlds?limit=5", "")
	require.Equal(t, http.StatusOK, status)
	require.Len(t, list["worlds"], 5)
	status, list = two.ask("GET", fmt.Sprint(list["next"]), "")
	require.Equal(t, http.StatusOK, status)
	require.Len(t, list["worlds"], 1)
	row := list["worlds"].([]any)[0].(map[string]any)
	require.Contains(t, []any{"one", "two"}, row["owner"])
	require.NotEmpty(t, row["name"])
	require.Greater(t, row["head"].(map[string]any)["id"], 2.0)

	one.end() // its worlds rest
	two.owns(3)
	for i := range 6 {
		status, answer := two.ask("GET", fmt.Sprintf("/api/worlds/w%d/cell?cell=counter/tea", i), "")
		require.Equal(t, http.StatusOK, status, answer)
	}
	two.owns(6)
}

// TestAWorldOfANodeThatNobodyReachesIsNotAnswered, and its caller is told why, and when to come again.
func TestAWorldOfANodeThatNobodyReachesIsNotAnswered(t *testing.T) {
	url := create(t, 1)
	hidden := run(t, url, "", time.Hour)
	hidden.owns(1)
	two := run(t, url, "two", time.Hour, func(v *api.Service) { v.Limits.Moving = time.Millisecond })
	_, err := two.service.Stores.Owner(t.Context(), "w0")
	known := new(api.NotNowError)
	require.ErrorAs(t, err, &known)
	require.Contains(t, known.Why, "--advertise")
	status, _ := two.ask("GET", "/api/worlds/w0", "") // which may have been too short a time to find that out
	require.Equal(t, http.StatusServiceUnavailable, status)
}

// follower follows a world's records at any node, and comes back with the last id that it has.
type follower struct {
	t    *testing.T
	last string
	ids  []journal.Seq
}

// follow reads a stream until it ends, or has a record.
func (f *follower) follow(ctx context.Context, at *running, until journal.Seq) {
	req, err := http.NewRequestWithContext(ctx, "GET", at.url+"/api/worlds/w0/records?after=0", nil)
	require.NoError(f.t, err)
	req.Header.Set("Authorization", "Bearer "+at.secret)
	req.Header.Set("Accept", "text/event-stream")
	if f.last != "" {
		req.Header.Set("Last-Event-ID", f.last)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(f.t, err)
	defer res.Body.Close() //nolint:errcheck // it was only read
	require.Equal(f.t, http.StatusOK, res.StatusCode, "who follows is not sent away while the world moves")
	id, data := "", false
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		switch text := lines.Text(); {
		case strings.HasPrefix(text, "id: "):
			id = strings.TrimPrefix(text, "id: ")
		case strings.HasPrefix(text, "data: "):
			data = true
		case text == "" && data: // one that is cut off is none
			n, err := strconv.ParseUint(id, 10, 64)
			require.NoError(f.t, err)
			f.ids, f.last, data = append(f.ids, journal.Seq(n)), id, false
			if journal.Seq(n) >= until {
				return
			}
		}
	}
}

// TestWhoFollowsAWorldOverHandoversSeesEachRecordOnce, whichever node they are connected to.
func TestWhoFollowsAWorldOverHandoversSeesEachRecordOnce(t *testing.T) {
	url := create(t, 1)
	nodes := []*running{run(t, url, "one", time.Hour)}
	nodes[0].owns(1)
	nodes = append(nodes, run(t, url, "two", time.Hour), run(t, url, "three", time.Hour))
	f := &follower{t: t}
	for i := range 4 {
		to, third := nodes[(i+1)%3], nodes[(i+2)%3]
		for to.holds() == 0 { // events come while it moves
			o, err := to.store.Owner(t.Context(), "w0")
			require.NoError(t, err)
			_, err = to.store.Want(t.Context(), o.Node)
			require.NoError(t, err)
			status, answer := third.ask("POST", "/api/worlds/w0/events", counting)
			require.Equal(t, http.StatusCreated, status, answer)
			end := journal.Seq(answer["id"].(float64))
			f.follow(t.Context(), nodes[len(f.ids)%3], end)
		}
	}
	require.Greater(t, len(f.ids), 8)
	for i, id := range f.ids {
		require.Equal(t, journal.Seq(i+1), id)
	}
}

func (r *running) holds() int { return len(r.worlds()) }
