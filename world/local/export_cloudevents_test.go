package local_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// exported returns what Export writes of a world.
func exported(t testing.TB, w *local.World, format local.Format) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, w.Export(&out, format, nil))
	return out.Bytes()
}

// decodeLines decodes lines of JSON and refuses fields that T does not have.
func decodeLines[T any](t testing.TB, data []byte) []T {
	t.Helper()
	var out []T
	for line := range bytes.Lines(data) {
		require.True(t, bytes.HasSuffix(line, []byte("\n")))
		var v T
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		require.NoError(t, dec.Decode(&v), "%s", line)
		require.False(t, dec.More())
		out = append(out, v)
	}
	return out
}

// cloudEvent has the attributes that docs/exports.md names, and no other. Those
// that may be missing are pointers.
type cloudEvent struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        string          `json:"type"`
	Subject     *string         `json:"subject"`
	Time        string          `json:"time"`
	Tick        string          `json:"tick"`
	CausedBy    *string         `json:"causedby"`
	ContentType string          `json:"datacontenttype"`
	Data        json.RawMessage `json:"data"`
}

// jsonRecord is a line of local.JSONLines.
type jsonRecord struct {
	ID       journal.Seq       `json:"id"`
	Time     manifest.Tick     `json:"time"`
	Kind     journal.Kind      `json:"kind"`
	CausedBy journal.Seq       `json:"caused_by"`
	Payload  json.RawMessage   `json:"payload"`
	Raw      []byte            `json:"raw"`
	Blobs    map[string][]byte `json:"blobs"`
}

// requireCloudEvents requires that a world's CloudEvents are valid and say what
// its records do, and returns them.
func requireCloudEvents(t *testing.T, w *local.World) []cloudEvent {
	t.Helper()
	data := exported(t, w, local.CloudEvents)
	require.Equal(t, data, exported(t, w, local.CloudEvents), "two exports are equal")
	events, records := decodeLines[cloudEvent](t, data), decodeLines[jsonRecord](t, exported(t, w, local.JSONLines))
	require.Len(t, events, len(records))
	for i, e := range events {
		rec := records[i]
		require.Equal(t, "1.0", e.SpecVersion)
		require.Equal(t, decimal(uint64(rec.ID)), e.ID)
		source, err := url.Parse(e.Source)
		require.NoError(t, err)
		require.Equal(t, "worldkernel", source.Scheme)
		require.NotEmpty(t, source.Opaque)
		require.Equal(t, "worldkernel."+string(rec.Kind), e.Type)
		require.Equal(t, decimal(uint64(rec.Time)), e.Tick)
		_, err = time.Parse(time.RFC3339, e.Time)
		require.NoError(t, err)
		require.Equal(t, "application/json", e.ContentType)
		require.JSONEq(t, string(rec.Payload), string(e.Data))
		if e.CausedBy != nil {
			require.Equal(t, decimal(uint64(rec.CausedBy)), *e.CausedBy)
		} else {
			require.Zero(t, rec.CausedBy)
		}
		if e.Subject != nil {
			require.NotEmpty(t, *e.Subject)
		}
	}
	return events
}

// subjects returns the subjects of the events of a kind, "" where one has none.
func subjects(events []cloudEvent, kind journal.Kind) []string {
	var out []string
	for _, e := range events {
		if e.Type != "worldkernel."+string(kind) {
			continue
		}
		subject := ""
		if e.Subject != nil {
			subject = *e.Subject
		}
		out = append(out, subject)
	}
	return out
}

func TestCloudEventsSayWhatTheRecordsDo(t *testing.T) {
	dir, _ := lived(t)
	w := open(t, dir)
	events := requireCloudEvents(t, w)
	require.Equal(t, "worldkernel:test", events[0].Source)
	require.Equal(t, []string{""}, subjects(events, journal.KindCreated))
	require.Equal(t, []string{"bot/a"}, subjects(events, journal.KindSubmitted))
	require.Equal(t, []string{"bot/b"}, subjects(events, journal.KindEmitted))
	require.Equal(t, []string{"bot/a"}, subjects(events, journal.KindStarted), "it names the intent alone")
	require.Equal(t, []string{"bot/a"}, subjects(events, journal.KindFinished))
	_, err := w.Submit(t.Context(), "both", map[string]any{"to": "c"})
	require.NoError(t, err)
	events = requireCloudEvents(t, w)
	require.Equal(t, []string{"bot/a", ""}, subjects(events, journal.KindSubmitted), "one that reaches two cells is about none")
	require.NoError(t, w.Close())
}

func TestCloudEventsOfLiveEffects(t *testing.T) {
	opts, begun := lines()
	w := alive(t, opts, begun)
	events := requireCloudEvents(t, w)
	require.Equal(t, []string{"operator/ada"}, subjects(events, journal.KindOperator))
	require.Equal(t, []string{"bot/a", "bot/a"}, subjects(events, journal.KindResolved))
	require.NoError(t, w.Close())
}

func TestCloudEventsOfAForkNameTheForkFromItsRecordOn(t *testing.T) {
	dir, head := lived(t)
	w := open(t, dir)
	to := filepath.Join(t.TempDir(), "fork")
	_, err := w.Fork(t.Context(), to, local.ForkOptions{ID: "child", Actor: "ada"})
	require.NoError(t, err)
	fork := open(t, to)
	for i, e := range requireCloudEvents(t, fork) {
		want := "worldkernel:test"
		if journal.Seq(i+1) > head.ID {
			want = "worldkernel:child"
		}
		require.Equal(t, want, e.Source, e.ID)
	}
	require.NoError(t, fork.Close())
	require.NoError(t, w.Close())
}

func TestCloudEventsAreTimedByTheClockInForce(t *testing.T) {
	dir, head := lived(t)
	w := open(t, dir)
	var next manifest.Manifest
	w.View(func(w *world.Moment) { next = *w.Manifest() })
	next.Clock = manifest.Clock{Epoch: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano(), Tick: int64(time.Hour)}
	require.NoError(t, worldtest.ErrorOf(w.Apply(t.Context(), approve(t, w, &next), "ann")))
	live(t, w)
	events := requireCloudEvents(t, w)
	require.Equal(t, "2026-01-01T00:00:00Z", events[0].Time)
	for _, e := range events[:head.ID] {
		require.Equal(t, "2026-01-01T00:00:0"+e.Tick+"Z", e.Time)
	}
	last := events[len(events)-1]
	require.Equal(t, "2030-01-01T0"+last.Tick+":00:00Z", last.Time)
	require.NoError(t, w.Close())
}

func TestCloudEventsOfARedactedPayloadHaveNullForData(t *testing.T) {
	dir, record := redactedInput(t)
	w := open(t, dir)
	events := requireCloudEvents(t, w)
	require.JSONEq(t, "null", string(events[record-1].Data))
	require.Nil(t, events[record-1].Subject)
	require.NoError(t, w.Close())
}

// TestExportsForOthersAreFixed compares both with what is written down of a tiny
// world: whoever reads them elsewhere relies on it.
func TestExportsForOthersAreFixed(t *testing.T) {
	w := open(t, create(t))
	act := func(pairs ...any) map[string]any {
		out := make(map[string]any)
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i].(string)] = pairs[i+1]
		}
		return out
	}
	_, err := w.Submit(t.Context(), "go", map[string]any{"to": "a", "do": []any{
		act("effect", "tool.a", "param", "x"), act("effect", "tool.a", "param", "error"), act("effect", "tool.bad"),
		act("emit", "ping", "to", "b"), act("timer", 2),
	}})
	require.NoError(t, err)
	_, err = w.Submit(t.Context(), "skip", map[string]any{"to": "c", "do": []any{act("fail", "as told")}})
	require.NoError(t, err)
	require.NoError(t, w.Run(t.Context()))
	datadriven.RunTest(t, "testdata/exports", func(_ *testing.T, d *datadriven.TestData) string {
		return string(exported(t, w, local.Format(d.Cmd)))
	})
	require.NoError(t, w.Close())
}
