package worldctl

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/recording"
)

// otlpLine is what is looked at here of a line of --format otlp; world/local tests
// the rest.
type otlpLine struct {
	ResourceSpans []struct {
		ScopeSpans []struct {
			Spans []struct {
				TraceID      string             `json:"traceId"`
				SpanID       string             `json:"spanId"`
				ParentSpanID string             `json:"parentSpanId"`
				Name         string             `json:"name"`
				Status       struct{ Code int } `json:"status"`
			} `json:"spans"`
		} `json:"scopeSpans"`
	} `json:"resourceSpans"`
}

// requireExports requires that both exports of a world hang together, and returns
// how many of its effects were performed, and failed.
func requireExports(t *testing.T, dir string) (performed, failed int) {
	t.Helper()
	records := jsonLines[any](t, worldctl(t, nil, "-w", dir, "export", "-", "--format", "jsonl"))
	type event struct{ SpecVersion, ID, Source, Type, CausedBy string }
	events := jsonLines[event](t, worldctl(t, nil, "-w", dir, "export", "-", "--format", "cloudevents"))
	require.Len(t, events, len(records))
	known := map[string]bool{"": true}
	for _, e := range events {
		require.Equal(t, "1.0", e.SpecVersion)
		require.True(t, strings.HasPrefix(e.Source, "worldkernel:"))
		require.True(t, strings.HasPrefix(e.Type, "worldkernel."))
		require.True(t, known[e.CausedBy], "the cause comes first")
		require.False(t, known[e.ID])
		known[e.ID] = true
	}

	data := worldctl(t, nil, "-w", dir, "export", "-", "--format", "otlp")
	require.True(t, bytes.Equal(data, worldctl(t, nil, "-w", dir, "export", "-", "--format", "otlp")))
	lines := jsonLines[otlpLine](t, data)
	traces := make(map[string]string)
	for _, line := range lines {
		s := line.ResourceSpans[0].ScopeSpans[0].Spans[0]
		require.NotContains(t, traces, s.SpanID)
		traces[s.SpanID] = s.TraceID
		if strings.HasPrefix(s.Name, "execute_tool ") {
			performed++
			failed += s.Status.Code / 2
		}
	}
	for _, line := range lines {
		s := line.ResourceSpans[0].ScopeSpans[0].Spans[0]
		if s.ParentSpanID != "" {
			require.Equal(t, s.TraceID, traces[s.ParentSpanID], s.Name)
		}
	}
	return performed, failed
}

func TestExportsOfTheTownHangTogether(t *testing.T) {
	dir := townSent(t)
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	var status struct{ Intents map[string]int }
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "status", "-o", "json"), &status))
	performed, failed := requireExports(t, dir)
	require.Equal(t, status.Intents["committed"]+status.Intents["failed"], performed)
	require.Equal(t, status.Intents["failed"], failed)
}

func TestExportsOfTheAirlineHangTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "airline")
	worldctl(t, nil, "import", "chat", recording.Shared(t, recording.Airline), "-w", dir)
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	performed, failed := requireExports(t, dir)
	require.Equal(t, 361, performed)
	require.Equal(t, 22, failed)
}
