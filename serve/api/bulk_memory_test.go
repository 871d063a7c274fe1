package api_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
)

// slowBody is a body of lines, which looks at the memory in use each time that
// another MiB of it was read.
type slowBody struct {
	line []byte
	left int // lines
	cut  bool
	rest []byte
	read int
	live []uint64 // bytes of live memory, each time
}

func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		if b.left == 0 && b.cut {
			return 0, errors.New("the caller is gone")
		}
		if b.left == 0 {
			return 0, io.EOF
		}
		n := min(b.left, 1<<20/len(b.line))
		b.left -= n
		b.rest = bytes.Repeat(b.line, n)
		b.live = append(b.live, inUse())
		b.read++
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (s *served) bulk(b *slowBody) *http.Request {
	req := s.request("POST", "/api/worlds/w/events", []byte{})
	req.Body, req.ContentLength = io.NopCloser(b), -1
	return req
}

// 60 MiB of short lines took 2.2 GiB.
func TestMemoryDoesNotGrowWithABulk(t *testing.T) {
	w := create(t, "w")
	s := serve(t, api.Config{Worlds: wrap(w)})
	line := []byte(`{"event":"go","data":{"pad":"` + strings.Repeat("x", 1000) + `"}}` + "\n")
	b := &slowBody{line: line, left: 32 << 20 / len(line)}
	p := s.do(s.bulk(b)).problem(http.StatusUnprocessableEntity, "schema")
	require.EqualValues(t, 1, p.Line, "all of it was read before the world was asked")
	require.Equal(t, &api.Bulk{}, p.Bulk)
	require.GreaterOrEqual(t, b.read, 32)
	// What is held for the body stays and grows with it; what others hold for a moment,
	// on a machine that is busy, is not there at every look.
	const looks = 8
	first, last := slices.Min(b.live[:looks]), slices.Min(b.live[len(b.live)-looks:])
	require.Less(t, last, first+8<<20)
}

// TestDataOfTheLargestSizeComesOverTheAPI: an event with as many bytes as a world takes
// fits into a body, and into a line, in the widest form of JSON; so does what is said to have come of an
// intent. One byte more is refused by the world, which names its limit.
func TestDataOfTheLargestSizeComesOverTheAPI(t *testing.T) {
	const most = 2 << 20
	s := serve(t, api.Config{Worlds: wrap(create(t, "w", "version: 1", "version: 1\nlimits: {payload: 2MiB, receipt: 2MiB}"))})
	data := func(bytes int) string { return `"` + strings.Repeat(`\u0001`, bytes-5) + `"` } // and 5 bytes of CBOR before them
	for _, body := range []func(string) any{
		func(line string) any { return line },
		func(line string) any { return []byte(line + "\n") },
	} {
		event := func(bytes int) any { return body(`{"event":"ping","to":"bot/a","data":` + data(bytes) + `}`) }
		require.Equal(t, http.StatusCreated, s.post("/api/worlds/w/events", event(most)).Status)
		p := s.post("/api/worlds/w/events", event(most+1)).problem(http.StatusRequestEntityTooLarge, "too-large")
		require.Contains(t, p.Detail, "limits.payload")
	}
	resolve := `{"reason":"so","executed":true,"payload":` + data(most) + `}`
	s.post("/api/worlds/w/intents/"+strings.Repeat("0", 64)+"/resolve", resolve).problem(http.StatusNotFound, "not-found")
}

func TestBulkOverOneMebibyteIsTakenInItsOrder(t *testing.T) {
	w := create(t, "w")
	s := serve(t, api.Config{Worlds: wrap(w)})
	before := ok[view.Status](s.get("/api/worlds/w")).Head.ID
	var text strings.Builder
	for range 40 {
		for _, bot := range []string{"a", "b"} {
			text.WriteString(`{"event":"go","data":{"to":"` + bot + `","pad":"` + strings.Repeat("x", 60<<10) + "\"}}\n\n")
		}
	}
	got := s.post("/api/worlds/w/events", []byte(text.String()+`{"event":"unheard"}`)).problem(http.StatusUnprocessableEntity, "unknown-event")
	require.EqualValues(t, 161, got.Line)
	require.Equal(t, &api.Bulk{Accepted: 80, First: before + 1, Last: before + 80}, got.Bulk)
}

// A body that breaks off is nothing, however much of it was read.
func TestBulkThatIsCutIsNothing(t *testing.T) {
	w := create(t, "w")
	s := serve(t, api.Config{Worlds: wrap(w)})
	before := w.Head()
	line := []byte(`{"event":"go","data":{"to":"a"}}` + "\n")
	res, err := s.http.Client().Do(s.bulk(&slowBody{line: line, left: 2 << 20 / len(line), cut: true}))
	if err == nil {
		require.NoError(t, res.Body.Close())
	}
	require.ErrorContains(t, err, "the caller is gone")
	require.NoError(t, s.http.Config.Shutdown(t.Context())) // then the request has ended
	require.Equal(t, before, w.Head())
}

func TestIntegerHasALimitAtTheAPI(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	event := `{"event":"go","data":{"to":` + strings.Repeat("7", 1<<19) + `}}`
	for _, body := range []any{event, []byte("\n" + event)} {
		p := s.post("/api/worlds/w/events", body).problem(http.StatusBadRequest, "malformed")
		require.Contains(t, p.Detail, "$.data.to: an integer of 524288 digits, more than 4096")
	}
	p := s.post("/api/worlds/w/step", `{"ticks":`+strings.Repeat("7", 1<<19)+`}`).problem(http.StatusBadRequest, "malformed")
	require.Contains(t, p.Detail, "$.ticks: an integer of 524288 digits")
}
