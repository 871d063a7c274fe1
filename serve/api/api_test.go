package api_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world/local"
)

// asked has effects of tool.b wait for a person.
var asked = []string{"policies:\n", "policies:\n  - {name: ask, when: 'intent.kind == \"tool.b\"', decide: require_approval}\n"}

// worlds makes worlds of bots.
func worlds(t testing.TB, ids ...string) []*local.World {
	t.Helper()
	var out []*local.World
	for _, id := range ids {
		out = append(out, create(t, id, asked...))
	}
	return out
}

// act is an event for a bot.
func act(to string, acts ...map[string]any) map[string]any {
	return map[string]any{"event": "go", "data": map[string]any{"to": to, "do": append([]map[string]any{}, acts...)}}
}

// records is the answer to a page of records, without payloads that have no form.
type records struct {
	Records []struct {
		ID      journal.Seq     `json:"id"`
		Kind    journal.Kind    `json:"kind"`
		Payload json.RawMessage `json:"payload"`
	} `json:"records"`
	Next *string `json:"next"`
}

// cell is the part of a Cell that can be parsed again.
type cell struct {
	Cell    string          `json:"cell"`
	N       uint64          `json:"n"`
	State   json.RawMessage `json:"state"`
	Mailbox []any           `json:"mailbox"`
	Halted  bool            `json:"halted"`
}

// intent is the part of an Intent that can be parsed again.
type intent struct {
	Key        string        `json:"key"`
	State      receipt.State `json:"state"`
	Decision   string        `json:"decision"`
	Rules      []string      `json:"rules"`
	Reason     string        `json:"reason"`
	ParamsHash string        `json:"params_hash"`
	Attempts   []any         `json:"attempts"`
}

// listed is the answer to a page of a list.
type listed struct {
	Decisions   []view.Decision
	Checkpoints []view.Checkpoint
	Snapshots   []snapshot.Snapshot
	Budgets     []view.Budget
	Next        *string
}

// intents is the answer to a page of intents.
type intents struct {
	Intents []intent `json:"intents"`
}

// lived is a server of one world in which a bit of everything has happened.
func lived(t testing.TB) *served { t.Helper(); return livedWithin(t, api.Limits{}) }

func livedWithin(t testing.TB, limits api.Limits) *served {
	t.Helper()
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: limits})
	live(s)
	return s
}

// live has a bit of everything happen in the world w.
func live(s *served) {
	s.t.Helper()
	s.post("/api/worlds/w/events", act("a", map[string]any{"effect": "tool.a", "param": "x"}, map[string]any{"effect": "tool.bad"},
		map[string]any{"effect": "tool.b", "param": "wait"}, map[string]any{"emit": "ping", "to": "b"}, map[string]any{"timer": 2}))
	s.post("/api/worlds/w/events", act("a", map[string]any{"effect": "tool.a", "param": "error"}))
	s.post("/api/worlds/w/events", act("c/d ?é", map[string]any{"fail": "as told"}))
	ok[view.Course](s.post("/api/worlds/w/step", map[string]any{"ticks": 4}))
}

func TestEventIsDurableAndRouted(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	a := s.post("/api/worlds/w/events", act("a"))
	got := ok[api.Submitted](a)
	require.Equal(t, http.StatusCreated, a.Status)
	require.Equal(t, []string{"bot/a"}, got.To)
	rec := ok[map[string]any](s.get(a.Header.Get("Location")))
	require.Equal(t, "event.submitted", rec["kind"])
	require.EqualValues(t, got.ID, rec["id"])

	later := ok[api.Submitted](s.post("/api/worlds/w/events", map[string]any{"event": "ping", "to": "bot/b", "at": 7}))
	require.EqualValues(t, 7, later.Due)
	require.Equal(t, []string{"bot/b"}, later.To)

	status := ok[view.Status](s.get("/api/worlds/w"))
	require.Equal(t, later.ID, status.Head.ID)
	require.Equal(t, 2, status.EventsPending)
	require.Equal(t, view.Anchor{ID: later.ID, OK: true}, status.Anchor)
	require.False(t, status.Idle)
}

func TestBulkSaysWhatItTook(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	line := func(v any) string {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		return string(b) + "\n"
	}
	good := line(act("a"))
	before := ok[view.Status](s.get("/api/worlds/w")).Head.ID

	p := s.post("/api/worlds/w/events", []byte(good+"\n"+"{\n"+good)).problem(http.StatusBadRequest, "malformed")
	require.EqualValues(t, 3, p.Line)
	require.Equal(t, before, ok[view.Status](s.get("/api/worlds/w")).Head.ID, "a line that cannot be read: nothing is taken")

	got := ok[api.Bulk](s.post("/api/worlds/w/events", []byte(good+good+"\n"+good)))
	require.Equal(t, api.Bulk{Accepted: 3, First: before + 1, Last: before + 3}, got)

	bad := line(map[string]any{"event": "go", "data": map[string]any{}})
	p = s.post("/api/worlds/w/events", []byte(good+good+"\n"+bad+good)).problem(http.StatusUnprocessableEntity, "schema")
	require.EqualValues(t, 4, p.Line)
	require.Equal(t, &api.Bulk{Accepted: 2, First: before + 4, Last: before + 5}, p.Bulk)
	require.NotEmpty(t, p.Field)
	require.NotEmpty(t, p.Rule)

	p = s.post("/api/worlds/w/events", []byte(bad)).problem(http.StatusUnprocessableEntity, "schema")
	require.Equal(t, &api.Bulk{}, p.Bulk)
	require.Equal(t, api.Bulk{}, ok[api.Bulk](s.post("/api/worlds/w/events", []byte("\n"))))
}

func TestEveryListIsCompleteInPages(t *testing.T) {
	s := lived(t)
	for _, i := range []string{"1", "2"} {
		ok[snapshot.Snapshot](s.post("/api/worlds/w/snapshots", map[string]any{"name": "snap" + i}))
	}
	for path, key := range map[string]string{
		"records": "records", "records?kind=cell.*&kind=intent.emitted": "records", "records?cell=bot/a": "records",
		"timeline?cell=bot/a": "records", "cells": "cells", "intents": "intents", "intents?state=committed": "intents",
		"receipts": "receipts", "decisions": "decisions", "snapshots": "snapshots",
	} {
		whole := ok[map[string]any](s.get("/api/worlds/w/" + path))
		want, _ := whole[key].([]any)
		require.NotEmpty(t, want, path)
		require.Nil(t, whole["next"], path)
		var got []any
		sign := "?"
		if strings.Contains(path, "?") {
			sign = "&"
		}
		for next := "/api/worlds/w/" + path + sign + "limit=1"; next != ""; {
			page := ok[map[string]any](s.get(next))
			items, _ := page[key].([]any)
			require.LessOrEqual(t, len(items), 1, path)
			got = append(got, items...)
			next, _ = page["next"].(string)
		}
		require.Equal(t, want, got, path)
	}
}

// TestStoryOfACellGoesOnAnywhere begins to tell it after every record.
func TestStoryOfACellGoesOnAnywhere(t *testing.T) {
	s := lived(t)
	whole := ok[records](s.get("/api/worlds/w/records?cell=bot/a")).Records
	head := ok[view.Status](s.get("/api/worlds/w")).Head.ID
	for after := range head + 1 {
		want := whole
		for len(want) > 0 && want[0].ID <= after {
			want = want[1:]
		}
		got := ok[records](s.get(fmt.Sprintf("/api/worlds/w/records?cell=bot/a&after=%d", after))).Records
		require.Len(t, got, len(want), "after #%d", after)
		for i := range want {
			require.Equal(t, want[i].ID, got[i].ID)
		}
	}
}

func TestPageLooksAtNoMoreThanItMay(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Scan: 2}})
	for range 5 {
		ok[api.Submitted](s.post("/api/worlds/w/events", act("a")))
	}
	page := ok[records](s.get("/api/worlds/w/records?kind=cell.failed"))
	require.Empty(t, page.Records)
	require.NotNil(t, page.Next)
}

func TestCellsAreNamedWhateverTheirKeys(t *testing.T) {
	s := lived(t)
	name := "bot/c/d ?é"
	c := ok[cell](s.get("/api/worlds/w/cell?cell=" + url.QueryEscape(name)))
	require.Equal(t, name, c.Cell)
	require.True(t, c.Halted)
	require.Len(t, c.Mailbox, 1)
	ok[records](s.get("/api/worlds/w/timeline?cell=" + url.QueryEscape(name)))

	ok[snapshot.Snapshot](s.post("/api/worlds/w/snapshots", map[string]any{"name": "here", "label": "for later"}))
	now := ok[cell](s.get("/api/worlds/w/cell?cell=bot/a"))
	then := ok[cell](s.get("/api/worlds/w/cell?cell=bot/a&at=here"))
	require.Equal(t, now.N, then.N)
	require.Equal(t, now.State, then.State)
	s.get("/api/worlds/w/cell?cell=bot/a&at=1").problem(http.StatusNotFound, "not-found")
	s.get("/api/worlds/w/cell?cell=bot/a&at=nowhere").problem(http.StatusNotFound, "not-found")
	s.get("/api/worlds/w/cell?cell=bot/nobody").problem(http.StatusNotFound, "not-found")
	s.get("/api/worlds/w/timeline?cell=bot/nobody").problem(http.StatusNotFound, "not-found")
	s.get("/api/worlds/w/cell?cell=bot").problem(http.StatusBadRequest, "malformed")
}

func TestIntentsAreTold(t *testing.T) {
	s := lived(t)
	list := ok[intents](s.get("/api/worlds/w/intents"))
	require.Len(t, list.Intents, 4)
	for _, line := range list.Intents {
		one := ok[intent](s.get("/api/worlds/w/intents/" + line.Key))
		require.NotEmpty(t, one.ParamsHash)
		path := "/api/worlds/w/receipts/" + line.Key
		switch line.State {
		case "committed", "failed":
			require.Len(t, one.Attempts, 1)
			r := ok[map[string]any](s.get(path))
			require.Equal(t, true, r["signed"])
			require.Equal(t, r, ok[map[string]any](s.get(path+"?attempt=1")))
			s.get(path+"?attempt=2").problem(http.StatusNotFound, "not-found")
		case "denied":
			require.Equal(t, []string{"not bad"}, line.Rules)
			require.Equal(t, "deny", line.Decision)
			require.Equal(t, false, ok[map[string]any](s.get(path))["signed"])
		case "awaiting_approval":
			require.Contains(t, line.Reason, "decide")
			s.get(path).problem(http.StatusNotFound, "not-found")
		}
	}
	decisions := ok[map[string][]map[string]any](only(s.get("/api/worlds/w/decisions"), "decisions"))["decisions"]
	require.Len(t, decisions, 4)
	require.Equal(t, "deny", decisions[1]["decision"])
	require.NotEmpty(t, decisions[1]["code"])
}

// asked returns the path of the intent that awaits approval.
func (s *served) asked() string {
	s.t.Helper()
	list := ok[intents](s.get("/api/worlds/w/intents?state=awaiting_approval"))
	require.NotEmpty(s.t, list.Intents)
	return "/api/worlds/w/intents/" + list.Intents[0].Key
}

func TestDecisionsNameTheTokenAsTheirActor(t *testing.T) {
	s := lived(t)
	at := s.asked()
	hash := ok[intent](s.get(at)).ParamsHash
	s.post(at+"/approve", map[string]any{"params_hash": strings.Repeat("0", 64)}).problem(http.StatusConflict, "other-params")
	s.post(at+"/retry", map[string]any{"reason": "so"}).problem(http.StatusConflict, "not-waiting")
	s.post(at+"/confirm", map[string]any{"reason": "so"}).problem(http.StatusConflict, "not-waiting")
	s.post(at+"/resolve", map[string]any{"reason": "so", "executed": true, "payload": 1}).problem(http.StatusConflict, "not-waiting")
	s.post(at+"/resolve", map[string]any{"reason": "so"}).problem(http.StatusBadRequest, "malformed")
	s.post(at+"/approve", map[string]any{"reuse": true}).problem(http.StatusConflict, "no-repeat")
	d := ok[view.Decided](s.do(s.as("approver", s.request("POST", at+"/approve", map[string]any{"reason": "fine", "params_hash": hash}))))
	require.Equal(t, "approver", d.Actor)
	require.EqualValues(t, "open", d.State)
	rec := ok[records](s.get("/api/worlds/w/records?kind=intent.resolved")).Records
	require.Len(t, rec, 1)
	require.Contains(t, string(rec[0].Payload), `"actor":"approver"`)
	s.post(at+"/deny", nil).problem(http.StatusConflict, "not-waiting")

	ok[api.Submitted](s.post("/api/worlds/w/events", act("z", map[string]any{"effect": "tool.b"})))
	ok[view.Course](s.post("/api/worlds/w/step", nil))
	require.EqualValues(t, "denied", ok[view.Decided](s.post(s.asked()+"/deny", nil)).State)
}

func TestSnapshotsHaveNamesOfTheirOwn(t *testing.T) {
	s := lived(t)
	one := ok[snapshot.Snapshot](s.post("/api/worlds/w/snapshots", map[string]any{"name": "one"}))
	require.Equal(t, "one", one.Name)
	s.post("/api/worlds/w/snapshots", map[string]any{"name": "one"}).problem(http.StatusConflict, "name-taken")
	s.post("/api/worlds/w/snapshots", map[string]any{"name": "-"}).problem(http.StatusUnprocessableEntity, "bad-name")
	s.post("/api/worlds/w/snapshots", map[string]any{"name": "t5"}).problem(http.StatusBadRequest, "malformed")
	require.NotEmpty(t, ok[snapshot.Snapshot](s.post("/api/worlds/w/snapshots", nil)).Name)
	require.Len(t, ok[listed](s.get("/api/worlds/w/snapshots")).Snapshots, 2)
}

// proposal is the part of a Proposal that can be parsed again.
type proposal struct {
	Proposal  string           `json:"proposal"`
	Stage     governance.Stage `json:"stage"`
	Author    string           `json:"author"`
	Base      string           `json:"base"`
	Candidate string           `json:"candidate"`
	Statement *string          `json:"statement"`
	Missing   []string         `json:"missing"`
	Warnings  []string         `json:"warnings"`
	Code      string           `json:"code"`
}

func TestChangeOfTheRulesGoesItsWay(t *testing.T) {
	s := lived(t)
	base := ok[view.Status](s.get("/api/worlds/w")).Manifest
	code := []byte("def reduce(ctx, state, event):\n    return {\"new\": True}\n")
	sum := fmt.Sprintf("%x", sha256.Sum256(code))
	patch := func(base any) map[string]any {
		return map[string]any{"base_manifest_hash": base, "ops": []any{
			map[string]any{"op": "set", "path": "/reducers/bot/source", "value": sum},
		}, "new_version": 2}
	}
	s.post("/api/worlds/w/proposals", map[string]any{}).problem(http.StatusBadRequest, "malformed")
	s.post("/api/worlds/w/proposals", map[string]any{"patch": patch(base.Hash)}).problem(http.StatusUnprocessableEntity, "bad-manifest")
	s.post("/api/worlds/w/proposals", map[string]any{"patch": map[string]any{"base_manifest_hash": base.Hash, "ops": []any{
		map[string]any{"op": "set", "path": "/engines", "value": map[string]any{manifest.EngineStarlark: "starlark/99"}},
	}, "new_version": 2}}).problem(http.StatusConflict, "no-engine")
	s.post("/api/worlds/w/proposals", map[string]any{"patch": patch(strings.Repeat("0", 64))}).problem(http.StatusConflict, "stale")
	contents := map[string]any{sum: code}
	a := s.post("/api/worlds/w/proposals", map[string]any{"patch": patch(base.Hash), "contents": contents, "reason": "simpler"})
	p := ok[proposal](a)
	require.Equal(t, "p1", p.Proposal)
	require.Equal(t, "ada", p.Author)
	require.Contains(t, p.Code, "+    return")
	require.Len(t, p.Missing, 2)
	require.Equal(t, p, ok[proposal](s.get(a.Header.Get("Location"))))
	at := "/api/worlds/w/proposals/p1"

	s.post(at+"/apply", nil).problem(http.StatusForbidden, "not-shadowed")
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	sign := func(statement string) map[string]any {
		return map[string]any{"key": fmt.Sprintf("%x", key.Public()), "signature": ed25519.Sign(key, []byte(statement)), "reason": "read it"}
	}
	s.post(at+"/approve", sign("")).problem(http.StatusForbidden, "not-shadowed")
	ok[map[string]any](s.post(at+"/shadow", map[string]any{"from": "2"}))
	shadow := ok[map[string]any](s.post(at+"/shadow", nil))
	require.Equal(t, "p1", shadow["proposal"])
	s.post(at+"/shadow", map[string]any{"from": "nowhere"}).problem(http.StatusNotFound, "not-found")
	s.post(at+"/shadow", map[string]any{"from": "t99999"}).problem(http.StatusNotFound, "not-found")
	s.post(at+"/apply", nil).problem(http.StatusForbidden, "not-approved")
	s.post(at+"/approve", sign("something else")).problem(http.StatusForbidden, "signature")
	p = ok[proposal](s.get(at))
	require.NotNil(t, p.Statement)
	require.Equal(t, governance.Approved, ok[proposal](s.post(at+"/approve", sign(*p.Statement))).Stage)
	s.post(at+"/approve", sign(*p.Statement)).problem(http.StatusForbidden, "signed-already")
	applied := ok[view.Applied](s.post(at+"/apply", nil))
	require.EqualValues(t, 2, applied.Version)
	require.Equal(t, applied.Manifest, ok[view.Status](s.get("/api/worlds/w")).Manifest.Hash)
	s.post(at+"/withdraw", nil).problem(http.StatusConflict, "closed")
	require.Empty(t, ok[map[string][]any](only(s.get("/api/worlds/w/proposals"), "proposals"))["proposals"])
	require.Len(t, ok[map[string][]any](only(s.get("/api/worlds/w/proposals?all=true"), "proposals"))["proposals"], 1)
	s.get("/api/worlds/w/proposals/9").problem(http.StatusNotFound, "not-found")
}

// What a candidate hardly means is said by this door, too.
func TestProposalSaysWhatItHardlyMeans(t *testing.T) {
	s := lived(t)
	schema := []byte(`{"properties":{"x":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`)
	sum := fmt.Sprintf("%x", sha256.Sum256(schema))
	p := ok[proposal](s.post("/api/worlds/w/proposals", map[string]any{
		"contents": map[string]any{sum: schema},
		"patch": map[string]any{
			"base_manifest_hash": ok[view.Status](s.get("/api/worlds/w")).Manifest.Hash, "new_version": 2, "ops": []any{
				map[string]any{"op": "set", "path": "/events/heavy", "value": map[string]any{"schema": sum}},
			},
		},
	}))
	require.Len(t, p.Warnings, 2)
	require.Contains(t, p.Warnings[0], "/effects/other.x: effect other.x: no capability fits it")
	require.Contains(t, p.Warnings[1], "/events/heavy/schema: the schema of event heavy: it evaluates parts twice")
	require.Equal(t, p.Warnings, ok[proposal](s.get("/api/worlds/w/proposals/"+p.Proposal)).Warnings)
}

func TestProposalsEnd(t *testing.T) {
	s := lived(t)
	base := ok[view.Status](s.get("/api/worlds/w")).Manifest.Hash
	for version, verb := range map[int]string{5: "reject", 6: "withdraw"} {
		p := ok[proposal](s.post("/api/worlds/w/proposals", map[string]any{"patch": map[string]any{
			"base_manifest_hash": base, "ops": []any{}, "new_version": version,
		}}))
		at := "/api/worlds/w/proposals/" + p.Proposal + "/" + verb
		if verb == "reject" {
			s.post(at, nil).problem(http.StatusUnprocessableEntity, "no-reason")
		}
		s.post("/api/worlds/w/proposals", map[string]any{"patch": map[string]any{
			"base_manifest_hash": base, "ops": []any{}, "new_version": version,
		}}).problem(http.StatusConflict, "proposed-already")
		require.NotEqual(t, governance.Proposed, ok[proposal](s.post(at, map[string]any{"reason": "no"})).Stage)
	}
}

// only keeps one field of an answer.
func only(a *answer, name string) *answer {
	v := ok[map[string]json.RawMessage](a)
	body, err := json.Marshal(map[string]json.RawMessage{name: v[name]})
	require.NoError(a.t, err)
	return &answer{a.t, a.Status, a.Header, body}
}

func TestWorldsOfOneServerAreApart(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "two", "one")})
	ok[api.Submitted](s.post("/api/worlds/one/events", act("a")))
	list := ok[api.Worlds](s.get("/api/worlds")).Worlds
	require.Len(t, list, 2)
	require.Equal(t, "one", list[0].ID)
	require.False(t, list[0].Idle)
	require.True(t, list[1].Idle)
	require.EqualValues(t, 1, list[1].Head.ID)

	w := create(t, "same")
	_, err := api.New(api.Config{Worlds: []*local.World{w, w}})
	require.Error(t, err)
}

func TestVerificationHasFourKeys(t *testing.T) {
	s := lived(t)
	a := s.get("/api/worlds/w/verify")
	keys := ok[map[string]json.RawMessage](a)
	require.Len(t, keys, 4)
	v := ok[api.Verification](a)
	require.True(t, v.Ledger.OK)
	require.True(t, v.Replay.OK)
	require.Equal(t, ok[view.Status](s.get("/api/worlds/w")).Head.Root, v.EventChainRootHash)
	s.get("/api/worlds/nowhere/verify").problem(http.StatusNotFound, "not-found")
}

func TestVerificationsTakeTurns(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Verify: 1}}) // a nanosecond to wait
	done := s.api.Verifying("w")
	a := s.get("/api/worlds/w/verify")
	a.problem(http.StatusServiceUnavailable, "verifying")
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	done()
}

func TestVerificationOfWhatCannotBeReadNamesThePlace(t *testing.T) {
	w := create(t, "w")
	s := serve(t, api.Config{Worlds: []*local.World{w}})
	require.True(t, ok[api.Health](s.get("/healthz")).OK)
	require.NoError(t, w.Close())
	s.get("/api/worlds/w/verify").problem(http.StatusServiceUnavailable, "unreadable")
	s.get("/healthz").problem(http.StatusServiceUnavailable, "ended")
	_, err := w.Submit(context.Background(), "ping", nil)
	require.Error(t, err)
}
