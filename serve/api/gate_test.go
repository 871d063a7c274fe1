package api

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGateShutsWhenNobodyIsInside: worlds are closed after that.
func TestGateShutsWhenNobodyIsInside(t *testing.T) {
	for range 100 {
		entered, leave := make(chan struct{}), make(chan struct{})
		left := false
		g := &gate{}
		g.next = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(entered)
			<-leave
			left = true
		})
		var inside sync.WaitGroup
		inside.Go(func() { g.ServeHTTP(nil, nil) })
		<-entered
		inside.Go(func() {
			g.shut()
			if !left {
				t.Error("it was shut while a request was inside")
			}
		})
		for range 10 {
			runtime.Gosched() // lets shut begin, most of the time
		}
		close(leave)
		inside.Wait()
		late := httptest.NewRecorder()
		g.ServeHTTP(late, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		require.Equal(t, http.StatusServiceUnavailable, late.Code)
	}
}
