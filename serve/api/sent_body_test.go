package api

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// halting is a body of which a part has come.
type halting struct{ begun, rest chan struct{} }

func (h halting) Read([]byte) (int, error) {
	close(h.begun)
	<-h.rest
	return 0, io.EOF
}

func (halting) Close() error { return nil }

// TestAnAnswerBeforeTheBodyEndsTheConnection, and not the call: net/http ends the context of
// a connection on which it stops to listen, and all calls that would come there had none.
func TestAnAnswerBeforeTheBodyEndsTheConnection(t *testing.T) {
	for _, early := range []bool{false, true} {
		h := halting{make(chan struct{}), make(chan struct{})}
		ctx, leave := context.WithCancel(t.Context())
		c := &call{Request: httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil)}
		c.out = &answerWriter{ResponseWriter: httptest.NewRecorder(), call: c}
		freed := make(chan struct{})
		b := &sentBody{call: c, ReadCloser: h, left: func() bool { close(freed); return true }}
		read, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(read)
			_, _ = b.Read(nil)
		}()
		<-h.begun
		if !early {
			close(h.rest)
			<-read
		}
		go func() {
			defer close(ended)
			b.endReading()
		}()
		want := ""
		if early {
			<-freed
			close(h.rest)
			want = "close"
		}
		<-ended
		require.Equal(t, want, c.out.Header().Get("Connection"))
		leave()
		require.NotEqual(t, early, b.callerLeft(), "what ends the context then is that it is listened to no more")
		_, err := b.Read(nil)
		require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
	}
}
