package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/mcp"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

// asking serves a world whose cell a asks for what an adapter does as its effect
// declares, and returns the path of that intent.
func asking(t *testing.T, effect string, adapters map[string]host.Factory) (s *served, path string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"world.yaml": `
world: desk
reducers: {a: {engine: starlark, source: a.star, grants: [tools]}}
events: {go: }
effects: {tool.call: ` + effect + `}
caps: {tools: {type: any, params: {kinds: [tool.call]}}}
policies: [{name: all, when: 'true', decide: allow}]
routing: [{event: go, reducer: a, key: '"x"'}]
`,
		"a.star": `
def reduce(ctx, state, event):
    if event.name == "receipt":
        return event.data
    if event.data.get("cancel"):
        ctx.cancel("it")
    else:
        ctx.effect("tool.call", {"arguments": {"n": 1}}, tag = "it")
    return state
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	opts := local.Options{Adapters: adapters}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "w"}, opts))
	lw, err := local.Open(dir, opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = lw.Close() })
	s = serve(t, api.Config{Worlds: []*local.World{lw}})
	ok[api.Submitted](s.post("/api/worlds/w/events", map[string]any{"event": "go", "data": map[string]any{}}))
	ok[view.Course](s.post("/api/worlds/w/step", nil))
	all := ok[intents](s.get("/api/worlds/w/intents")).Intents
	require.Len(t, all, 1)
	return s, "/api/worlds/w/intents/" + all[0].Key
}

// A tool of a server of MCP asks a person, who answers over the API.
func TestToolThatAsksIsAnsweredOverTheAPI(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "desk", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "drop", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if said, _ := r.Params.InputResponses["confirm"].(*sdk.ElicitResult); said != nil {
			return &sdk.CallToolResult{StructuredContent: said.Content}, nil
		}
		schema := json.RawMessage(`{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}`)
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"confirm": &sdk.ElicitParams{Mode: "form", Message: "Drop users?", RequestedSchema: schema}}}, nil
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(web.Close)
	s, path := asking(t, `{adapter: mcp, config: {url: "`+web.URL+`", tool: drop}}`, map[string]host.Factory{"mcp": mcp.New})

	type asks struct {
		Asks []struct {
			Requests []struct{ Name, Message string }
			Answer   any
		}
	}
	require.EqualValues(t, "awaiting_answer", ok[intent](s.get(path)).State)
	asked := ok[asks](s.get(path)).Asks
	require.Len(t, asked, 1)
	require.Equal(t, "Drop users?", asked[0].Requests[0].Message)
	require.Nil(t, asked[0].Answer)

	s.post(path+"/approve", map[string]any{"reason": "so"}).problem(http.StatusConflict, "not-waiting")
	s.post(path+"/answer", map[string]any{"reason": "so"}).problem(http.StatusUnprocessableEntity, "bad-data")
	s.post(path+"/answer", map[string]any{"reason": "so", "data": map[string]any{"sure": 1}}).problem(http.StatusUnprocessableEntity, "bad-data")
	s.do(s.as("reader", s.request("POST", path+"/answer", map[string]any{"data": map[string]any{"sure": true}}))).problem(http.StatusForbidden, "scope")
	d := ok[view.Decided](s.post(path+"/answer", map[string]any{"reason": "ada said so", "data": map[string]any{"sure": true}}))
	require.EqualValues(t, "open", d.State)
	require.Equal(t, "ada", d.Actor)
	s.post(path+"/answer", map[string]any{"reason": "again", "data": map[string]any{"sure": false}}).problem(http.StatusConflict, "not-waiting")
	ok[view.Course](s.post("/api/worlds/w/step", nil))
	require.EqualValues(t, "committed", ok[intent](s.get(path)).State)
	require.Equal(t, map[string]any{"sure": true}, ok[asks](s.get(path)).Asks[0].Answer)
	payload := ok[map[string]any](s.get("/api/worlds/w/receipts/" + d.Key.String()))["payload"].(map[string]any)
	require.Equal(t, map[string]any{"sure": true}, payload["structured"])
	require.Empty(t, ok[map[string]any](s.get("/api/worlds/w/verify"))["faults"])
}

// longWork is an adapter whose outside never ends what it has accepted.
type longWork struct{}

func (longWork) Perform(context.Context, host.Call) (host.Result, error) {
	payload, err := (&receipt.Accepted{ID: "job-1", Message: "half of it", Until: 7e18}).Encode()
	return host.Result{Status: receipt.StatusError, Class: receipt.OutcomeAccepted, Payload: payload}, err
}

// Ask says that a person has to look, where nobody wants it.
func (l longWork) Ask(ctx context.Context, call host.Call) (host.Result, error) {
	if call.Permit.Unwanted {
		return host.Result{Status: receipt.StatusError, Payload: canon.Raw(canon.Null)}, nil
	}
	return l.Perform(ctx, call)
}

// What the outside calls its work, and what it has said of it last, an intent tells also
// when it has ended.
func TestIntentTellsWhatTheOutsideHasAccepted(t *testing.T) {
	factory := func(host.Setup) (host.Adapter, error) { return longWork{}, nil }
	s, path := asking(t, `{adapter: long, retry: {attempts: 1, backoff: 1h}}`, map[string]host.Factory{"long": factory})
	type accepts struct {
		Reason   string
		Accepted *view.Accepted
	}
	at := ok[accepts](s.get(path))
	require.Contains(t, at.Reason, `"job-1"`)
	require.NotZero(t, at.Accepted.Record)
	require.Equal(t, view.Accepted{ID: "job-1", Message: "half of it", Record: at.Accepted.Record, Until: 7e18, Wanted: true}, *at.Accepted)

	ok[api.Submitted](s.post("/api/worlds/w/events", map[string]any{"event": "go", "data": map[string]any{"cancel": true}}))
	ok[view.Course](s.post("/api/worlds/w/step", nil))
	ok[view.Course](s.post("/api/worlds/w/step", nil))
	require.EqualValues(t, "failed", ok[intent](s.get(path)).State, "nobody has waited for an hour")
	after := ok[accepts](s.get(path)).Accepted
	require.Equal(t, "job-1", after.ID)
	require.False(t, after.Wanted)
}
