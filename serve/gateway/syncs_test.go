package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/world"
)

// A call waits for two syncs: of event, step and permit, and of what came of it.
func TestACallWaitsForTwoSyncs(t *testing.T) {
	r := newStage(t).start()
	r.post("openai", chatPath, ask("first"))
	const calls = 20
	before := r.lw.StoreStats().JournalSyncs
	for n := range calls {
		status, _ := r.post("openai", chatPath, ask(fmt.Sprint(n)))
		require.Equal(t, http.StatusOK, status)
	}
	require.LessOrEqual(t, r.lw.StoreStats().JournalSyncs-before, uint64(2*calls+calls/4), "a tick may begin in between")
}

// An event that nobody handles yet is durable though the driver waits for a call that is under way.
func TestAnEventIsDurableWhileACallIsUnderWay(t *testing.T) {
	s := newStage(t)
	begun, done := make(chan struct{}), make(chan struct{})
	s.answersBy(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-done
		w.WriteHeader(http.StatusOK)
	})
	r := s.start()
	var asking sync.WaitGroup
	asking.Go(func() { r.post("openai", chatPath, ask("x")) })
	<-begun
	later := world.Submission{Name: recorder.Served, To: &reducer.Cell{Reducer: recorder.Name, Key: "a"}, When: world.When{In: time.Hour}}
	sent, err := r.lw.SubmitEvent(t.Context(), later)
	require.NoError(t, err)
	require.NoError(t, r.lw.Await(t.Context(), sent.ID-1))
	close(done)
	asking.Wait()
}

// A whole answer is not flushed: with its end the agent may ask again, and then its request holds no place any more.
func TestAnAnswerEndsWithItsRequest(t *testing.T) {
	r := newStage(t).start()
	w := httptest.NewRecorder()
	r.g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, r.url("openai", chatPath), strings.NewReader(ask("x"))))
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "hello")
	require.False(t, w.Flushed)
}
