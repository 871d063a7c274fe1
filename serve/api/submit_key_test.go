package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
)

// TestAKeyHasARequestSubmitOnce, one event or many, and is for one request.
func TestAKeyHasARequestSubmitOnce(t *testing.T) {
	w := worlds(t, "w")[0]
	s := serve(t, api.Config{Worlds: wrap(w)})
	send := func(key string, body any) *answer {
		t.Helper()
		req := s.request("POST", "/api/worlds/w/events", body)
		req.Header.Set("Idempotency-Key", key)
		return s.do(req)
	}
	first := send(`"8e03978e-40d5"`, act("a"))
	one := ok[api.Submitted](first)
	again := send("8e03978e-40d5", act("a"))
	require.Equal(t, one, ok[api.Submitted](again))
	require.Equal(t, first.Header.Get("Location"), again.Header.Get("Location"))
	send("8e03978e-40d5", act("b")).problem(http.StatusUnprocessableEntity, "key-reused")
	send("8e03978e-40d5", []byte(`{"event":"go","data":{"to":"b","do":[]}}`)).problem(http.StatusUnprocessableEntity, "key-reused")

	lines := []byte(strings.Repeat(`{"event":"go","data":{"to":"a","do":[]}}`+"\n", 3))
	bulk := ok[api.Bulk](send("many", lines))
	require.Equal(t, api.Bulk{Accepted: 3, First: 3, Last: 5}, bulk)
	require.Equal(t, bulk, ok[api.Bulk](send("many", lines)))
	send("many", lines[:len(lines)/3]).problem(http.StatusUnprocessableEntity, "key-reused")
	require.Equal(t, uint64(5), uint64(w.Head().ID))
	require.NotEqual(t, one, ok[api.Submitted](s.post("/api/worlds/w/events", act("a"))), "without a key it is another")

	for _, key := range []string{"", `""`, strings.Repeat("k", 256), `a"b`, `a\b`, "caf\xc3\xa9"} {
		require.Equal(t, http.StatusBadRequest, send(key, act("a")).Status, key)
	}
	req := s.request("POST", "/api/worlds/w/events", act("a"))
	req.Header["Idempotency-Key"] = []string{"a", "b"}
	s.do(req).problem(http.StatusBadRequest, "malformed")
}
