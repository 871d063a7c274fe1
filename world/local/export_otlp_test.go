package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// The messages of OTLP's trace service, as its JSON encoding has them.
type (
	otlpRequest struct {
		ResourceSpans []struct {
			Resource struct {
				Attributes []otlpAttribute `json:"attributes"`
			} `json:"resource"`
			ScopeSpans []struct {
				Scope struct {
					Name string `json:"name"`
				} `json:"scope"`
				Spans     []otlpSpan `json:"spans"`
				SchemaURL string     `json:"schemaUrl"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	otlpSpan struct {
		TraceID           string          `json:"traceId"`
		SpanID            string          `json:"spanId"`
		ParentSpanID      *string         `json:"parentSpanId"`
		Name              string          `json:"name"`
		Kind              int             `json:"kind"`
		StartTimeUnixNano string          `json:"startTimeUnixNano"`
		EndTimeUnixNano   string          `json:"endTimeUnixNano"`
		Attributes        []otlpAttribute `json:"attributes"`
		Links             []struct {
			TraceID string `json:"traceId"`
			SpanID  string `json:"spanId"`
		} `json:"links"`
		Status *struct {
			Message string `json:"message"`
			Code    int    `json:"code"`
		} `json:"status"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		StringValue *string `json:"stringValue"`
		BoolValue   *bool   `json:"boolValue"`
		IntValue    *string `json:"intValue"`
		ArrayValue  *struct {
			Values []otlpValue `json:"values"`
		} `json:"arrayValue"`
	}
)

// plain returns a value as Go has it.
func (v otlpValue) plain(t *testing.T) any {
	t.Helper()
	switch {
	case v.StringValue != nil:
		return *v.StringValue
	case v.BoolValue != nil:
		return *v.BoolValue
	case v.IntValue != nil:
		n, err := strconv.ParseInt(*v.IntValue, 10, 64)
		require.NoError(t, err)
		return int(n)
	}
	require.NotNil(t, v.ArrayValue, "a value has one of its forms")
	var out []any
	for _, item := range v.ArrayValue.Values {
		out = append(out, item.plain(t))
	}
	return out
}

// span is a span that was found to be valid.
type span struct {
	otlpSpan
	start, end int64
	attributes map[string]any
	parent     *span
}

// requireSpans requires that a world's spans are valid OTLP and form trees, and
// returns them.
func requireSpans(t *testing.T, w *local.World) []*span {
	t.Helper()
	data := exported(t, w, local.OTLP)
	require.Equal(t, data, exported(t, w, local.OTLP), "two exports are equal")
	hex := regexp.MustCompile("^[0-9a-f]+$")
	byID := make(map[string]*span)
	var all []*span
	for _, request := range decodeLines[otlpRequest](t, data) {
		require.Len(t, request.ResourceSpans, 1)
		require.Equal(t, "service.name", request.ResourceSpans[0].Resource.Attributes[0].Key)
		require.Len(t, request.ResourceSpans[0].ScopeSpans, 1)
		scope := request.ResourceSpans[0].ScopeSpans[0]
		require.Equal(t, "worldkernel", scope.Scope.Name)
		require.Len(t, scope.Spans, 1)
		s := &span{otlpSpan: scope.Spans[0], attributes: make(map[string]any)}
		require.Len(t, s.TraceID, 32)
		require.Len(t, s.SpanID, 16)
		require.Regexp(t, hex, s.TraceID+s.SpanID)
		require.NotContains(t, byID, s.SpanID)
		require.NotEmpty(t, strings.TrimSpace(s.Name))
		require.Contains(t, []int{1, 3, 5}, s.Kind)
		var err error
		s.start, err = strconv.ParseInt(s.StartTimeUnixNano, 10, 64)
		require.NoError(t, err)
		s.end, err = strconv.ParseInt(s.EndTimeUnixNano, 10, 64)
		require.NoError(t, err)
		require.LessOrEqual(t, s.start, s.end)
		for _, a := range s.Attributes {
			require.NotContains(t, s.attributes, a.Key)
			s.attributes[a.Key] = a.Value.plain(t)
		}
		byID[s.SpanID] = s
		all = append(all, s)
	}
	for _, s := range all {
		for i, link := range s.Links {
			if key, ok := s.attributes["worldkernel.key"].(string); ok { // of what the outside recorded
				number, err := strconv.ParseUint(fmt.Sprint(s.attributes["worldkernel.attempt"]), 10, 64)
				require.NoError(t, err)
				is, err := receipt.ParseKey(key)
				require.NoError(t, err)
				require.Zero(t, i)
				require.Equal(t, "00-"+link.TraceID+"-"+link.SpanID+"-01", is.TraceParent(number))
				continue
			}
			require.Contains(t, byID, link.SpanID)
			require.Equal(t, byID[link.SpanID].TraceID, link.TraceID)
		}
		if s.ParentSpanID != nil {
			require.Contains(t, byID, *s.ParentSpanID, s.Name)
			s.parent = byID[*s.ParentSpanID]
			require.Equal(t, s.parent.TraceID, s.TraceID)
			require.Less(t, s.parent.attributes["worldkernel.record"], s.attributes["worldkernel.record"])
		}
	}
	requireCounts(t, w, all)
	return all
}

// requireCounts requires a span for every record that ends something.
func requireCounts(t *testing.T, w *local.World, all []*span) {
	t.Helper()
	want, got := make(map[string]bool), make(map[string]bool)
	for s, err := range w.Scan(0) {
		require.NoError(t, err)
		switch s.Record.Kind {
		case journal.KindSubmitted, journal.KindOperator, journal.KindFired, journal.KindStepped, journal.KindFailed,
			journal.KindFinished, journal.KindLate, journal.KindExpired, journal.KindDenied:
			want[decimal(uint64(s.ID))] = true
		}
	}
	for _, s := range all {
		got[strconv.Itoa(s.attributes["worldkernel.record"].(int))] = true
	}
	require.Equal(t, want, got)
}

// named returns the spans of a name.
func named(all []*span, name string) []*span {
	var out []*span
	for _, s := range all {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

// linked returns the span that another has a link to.
func linked(t *testing.T, all []*span, s *span) *span {
	t.Helper()
	require.Len(t, s.Links, 1)
	for _, other := range all {
		if other.SpanID == s.Links[0].SpanID {
			return other
		}
	}
	require.Fail(t, "no such span")
	return nil
}

func TestSpansFollowWhatCausedWhat(t *testing.T) {
	dir, _ := lived(t)
	w := open(t, dir)
	all := requireSpans(t, w)
	root := named(all, "event go")[0]
	require.Nil(t, root.parent)
	require.Equal(t, 5, root.Kind)
	first := named(all, "reduce bot")[0]
	require.Same(t, root, first.parent)
	require.Equal(t, "bot/a", first.attributes["worldkernel.cell"])

	attempt := named(all, "execute_tool tool.a")[0]
	require.Same(t, first, attempt.parent)
	require.Equal(t, "execute_tool", attempt.attributes["gen_ai.operation.name"])
	require.Equal(t, "tool.a", attempt.attributes["gen_ai.tool.name"])
	require.Equal(t, "allow", attempt.attributes["worldkernel.decision"])
	require.Equal(t, []any{"all"}, attempt.attributes["worldkernel.rules"])
	require.Less(t, attempt.start, attempt.end, "by the world's clock, in the order of the records")
	require.Nil(t, attempt.Status)
	denied := named(all, "deny tool.bad")[0]
	require.Same(t, first, denied.parent)
	require.Equal(t, 2, denied.Status.Code)
	require.NotContains(t, denied.attributes, "gen_ai.operation.name", "it is no call of a tool")

	for _, s := range named(all, "reduce bot")[1:] {
		switch s.attributes["worldkernel.event"] {
		case "ping":
			require.Same(t, first, s.parent, "what a step sends is under it")
		case "receipt":
			require.Same(t, root, s.parent, "an answer leads on beside the step that asked")
			require.Contains(t, []*span{attempt, denied}, linked(t, all, s))
		case "alarm":
			timer := s.parent
			require.Equal(t, "timer alarm", timer.Name)
			require.Nil(t, timer.parent)
			require.NotEqual(t, root.TraceID, timer.TraceID, "a timer begins a trace")
			require.Same(t, first, linked(t, all, timer))
		default:
			require.Fail(t, "no such event")
		}
	}
	require.NoError(t, w.Close())
}

func TestSpansOfLiveEffectsHaveTheirTimesAndErrors(t *testing.T) {
	opts, begun := lines()
	w := alive(t, opts, begun)
	all := requireSpans(t, w)
	attempts := map[string][]*span{}
	for _, s := range append(named(all, "execute_tool tool.a"), named(all, "execute_tool tool.b")...) {
		status := s.attributes["worldkernel.status"].(string)
		attempts[status] = append(attempts[status], s)
		require.Equal(t, true, s.attributes["worldkernel.wall_clock"])
		require.Len(t, s.Links, 1, "to what the outside records of it")
	}
	require.Len(t, attempts["error"], 4, "two attempts of what is busy, two of the operator's")
	for _, s := range attempts["error"] {
		require.Equal(t, 2, s.Status.Code)
		require.Equal(t, "error", s.attributes["error.type"])
		require.Equal(t, "retryable_failure", s.attributes["worldkernel.outcome"])
		require.Equal(t, "ref-7", s.attributes["worldkernel.external_ref"])
	}
	operator := named(all, "operator")[0]
	require.Equal(t, "ada", operator.attributes["worldkernel.actor"])
	require.Same(t, operator, attempts["error"][3].parent)
	decisions := map[any]int{}
	for _, s := range attempts["ok"] {
		decisions[s.attributes["worldkernel.decision"]]++
	}
	require.Equal(t, map[any]int{"allow": 1, "approved": 1}, decisions)
	denied := named(all, "deny tool.b")[0]
	require.Equal(t, "bot/a", denied.parent.attributes["worldkernel.cell"], "under the step that asked, not the person who denied")
	require.NoError(t, w.Close())
}

func TestSpanOfAnAttemptThatWasGivenUpIsAnError(t *testing.T) {
	opts, begun := lines()
	w := alive(t, opts, begun)
	require.NoError(t, w.Close())
	w, err := local.Open(w.Dir(), opts)
	require.NoError(t, err)
	all := requireSpans(t, w)
	attempts := named(all, "execute_tool tool.a")
	last := attempts[len(attempts)-1]
	require.Equal(t, "expired", last.attributes["error.type"])
	require.Equal(t, 2, last.Status.Code)
	require.NotEmpty(t, last.Status.Message)
	require.NotContains(t, last.attributes, "worldkernel.wall_clock")
	require.NoError(t, w.Close())
}

// model is an adapter that answers as package llm does.
type model struct{}

func (model) Perform(_ context.Context, call host.Call) (host.Result, error) {
	answer := `{"message":{"role":"assistant","content":"well"},"finish_reason":"stop","model":"m-1-2026",
		"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}`
	r := host.Result{Status: receipt.StatusOK, Cost: receipt.Cost{Tokens: 18, Micros: 4}, ExternalRef: "chatcmpl-1"}
	if call.Permit.Tag == "full" {
		answer = `{"code":"rate_limited","error":"slow down","status":429}`
		r = host.Result{Status: receipt.StatusError}
	}
	if call.Permit.Tag == "rude" {
		answer = `"` + strings.Repeat("ä", 1000) + `"`
		r = host.Result{Status: receipt.StatusError}
	}
	var err error
	r.Payload, err = canon.FromJSON([]byte(answer))
	return r, err
}

// conversing returns a world in which a model was asked.
func conversing(t *testing.T, ask ...string) *local.World {
	t.Helper()
	w := adapted(t, `{adapter: llm, config: {base_url: "https://api.mistral.ai/v1", model: m-1, max_tokens: 500}}`, "llm", model{})
	var do []any
	for _, param := range ask {
		do = append(do, map[string]any{"effect": "tool.a", "param": param})
	}
	_, err := w.Submit(t.Context(), "go", map[string]any{"to": "a", "do": do})
	require.NoError(t, err)
	require.NoError(t, w.Run(t.Context()))
	return w
}

func TestSpansOfAModelFollowTheConventions(t *testing.T) {
	w := conversing(t, "please", "full")
	all := named(requireSpans(t, w), "chat m-1")
	require.Len(t, all, 2)
	if all[0].Status != nil { // they were asked at once
		all[0], all[1] = all[1], all[0]
	}
	require.Equal(t, 3, all[0].Kind)
	want := map[string]any{
		"gen_ai.operation.name":          "chat",
		"gen_ai.provider.name":           "mistral_ai",
		"gen_ai.request.model":           "m-1",
		"gen_ai.request.max_tokens":      500,
		"gen_ai.response.model":          "m-1-2026",
		"gen_ai.response.id":             "chatcmpl-1",
		"gen_ai.response.finish_reasons": []any{"stop"},
		"gen_ai.usage.input_tokens":      11,
		"gen_ai.usage.output_tokens":     7,
		"server.address":                 "api.mistral.ai",
		"server.port":                    443,
		"worldkernel.cost.tokens":        18,
		"worldkernel.cost.micros":        4,
	}
	for key, value := range want {
		require.Equal(t, value, all[0].attributes[key], key)
	}
	require.Equal(t, "rate_limited", all[1].attributes["error.type"])
	require.Equal(t, "slow down", all[1].Status.Message)
	require.NotContains(t, all[1].attributes, "gen_ai.usage.input_tokens")
	require.NoError(t, w.Close())
}

func TestSpanOfAFailureSaysWhatTheOutsideDid(t *testing.T) {
	w := conversing(t, "rude")
	s := named(requireSpans(t, w), "chat m-1")[0]
	require.Equal(t, strings.Repeat("ä", 512)+"…", s.Status.Message)
	require.Equal(t, "error", s.attributes["error.type"])
	require.NoError(t, w.Close())
}

func TestSpansHoldNeitherParamsNorAnswers(t *testing.T) {
	w := conversing(t, "dF4xQ9pLmZ")
	data := string(exported(t, w, local.OTLP))
	require.Contains(t, data, "chat m-1")
	require.NotContains(t, data, "dF4xQ9pLmZ")
	require.NotContains(t, data, `well`)
	require.NoError(t, w.Close())
}

func TestSpanOfARedactedReceiptSaysWhatIsKnown(t *testing.T) {
	dir := create(t)
	w := open(t, dir)
	_, err := w.Submit(t.Context(), "go", map[string]any{"to": "a", "do": []any{
		map[string]any{"effect": "tool.a", "param": strings.Repeat("z", 5000)},
	}})
	require.NoError(t, err)
	require.NoError(t, w.Run(t.Context()))
	require.NoError(t, w.Close())
	for _, kind := range []journal.Kind{journal.KindFinished, journal.KindIntent, journal.KindSubmitted} {
		_, err = local.Redact(t.Context(), dir, local.Options{}, local.Payload{Record: largeOf(t, dir, kind)}, "asked for", "ada")
		require.NoError(t, err)
	}
	w = open(t, dir)
	all := requireSpans(t, w)
	attempt := named(all, "execute_tool tool.a")[0]
	require.Equal(t, true, attempt.attributes["worldkernel.redacted"])
	require.Equal(t, "bot/a", attempt.attributes["worldkernel.cell"])
	require.NotContains(t, attempt.attributes, "worldkernel.status")
	require.Equal(t, "reduce bot", attempt.parent.Name)
	require.Equal(t, "event", attempt.parent.parent.Name, "its name was redacted, too")
	steps := named(all, "reduce bot")
	require.Same(t, attempt, linked(t, all, steps[len(steps)-1]))
	require.NoError(t, w.Close())
}

func TestSpansOfAForkAreItsParentsUpToWhereItBegins(t *testing.T) {
	dir, _ := lived(t)
	w := open(t, dir)
	_, err := w.Submit(t.Context(), "go", map[string]any{"to": "a", "do": []any{map[string]any{"timer": 9}}})
	require.NoError(t, err)
	require.NoError(t, w.Step(t.Context()))
	head := w.Status().Head
	to := filepath.Join(t.TempDir(), "fork")
	_, err = w.Fork(t.Context(), to, local.ForkOptions{ID: "child", Actor: "ada"})
	require.NoError(t, err)
	fork := open(t, to)
	live(t, fork)
	live(t, w)
	parents, forks := requireSpans(t, w), requireSpans(t, fork)
	ids := make(map[string]bool)
	for _, s := range parents {
		ids[s.SpanID] = true
	}
	crossed := 0
	for _, s := range forks {
		inBoth := s.attributes["worldkernel.record"].(int) <= int(head.ID)
		require.Equal(t, inBoth, ids[s.SpanID])
		if !inBoth && s.Name == "timer alarm" && ids[linked(t, forks, s).SpanID] {
			crossed++
		}
	}
	require.Equal(t, 1, crossed, "a timer of the fork was set in the parent's part")
	require.NoError(t, fork.Close())
	require.NoError(t, w.Close())
}

// TestSpansOfAHistoryThatWasLeft takes a world back to before its effects, which
// it then asks for again and is told from the ledger.
func TestSpansOfAHistoryThatWasLeft(t *testing.T) {
	w := open(t, create(t))
	err := w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Snapshot(t.Context(), "before", "", "ada")) })
	require.NoError(t, err)
	submit := func() {
		_, err := w.Submit(t.Context(), "go", map[string]any{"to": "a", "do": []any{map[string]any{"effect": "tool.a", "param": "x"}}})
		require.NoError(t, err)
		require.NoError(t, w.Run(t.Context()))
	}
	submit()
	err = w.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Rollback(t.Context(), journal.RolledBack{Snapshot: "before", Reason: "so", Actor: "ada", Ack: true}))
	})
	require.NoError(t, err)
	submit()
	all := requireSpans(t, w)
	require.Len(t, named(all, "execute_tool tool.a"), 1, "it was performed once")
	roots := named(all, "event go")
	require.Len(t, roots, 2)
	steps := named(all, "reduce bot")
	require.Len(t, steps, 4)
	require.Same(t, roots[0], steps[1].parent)
	require.Same(t, roots[1], steps[3].parent, "the answer belongs to the step that asked last")
	require.NoError(t, w.Close())
}

func TestOTLPValuesAreWhatTheEncodingAsksFor(t *testing.T) {
	w := conversing(t, "please")
	var line map[string]any
	data := exported(t, w, local.OTLP)
	require.NoError(t, json.Unmarshal(data[:strings.IndexByte(string(data), '\n')], &line))
	s := line["resourceSpans"].([]any)[0].(map[string]any)["scopeSpans"].([]any)[0].(map[string]any)["spans"].([]any)[0].(map[string]any)
	require.IsType(t, "", s["startTimeUnixNano"], "64-bit numbers are text")
	require.IsType(t, 0.0, s["kind"], "enumerations are numbers")
	require.NoError(t, w.Close())
}
