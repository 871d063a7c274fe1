package gateway

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// writes notes what is written at once.
type writes chan string

func (w writes) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

// Whoever reads a line or a frame is woken once.
func TestALineAndAFrameAreWrittenAtOnce(t *testing.T) {
	all, done := make(writes), make(chan error)
	q := newQueue(all, func(err error) { done <- err })
	require.True(t, q.put([]byte("line"), []byte("\n")))
	require.Equal(t, "line\n", <-all)
	require.True(t, q.frame(frameServer, []byte("line")))
	require.Equal(t, "s\x00\x00\x00\x04line", <-all)
	q.close()
	require.ErrorIs(t, <-done, io.EOF)
	require.False(t, q.put([]byte("line")))
}

// Who does not read is sent nothing more once too much waits.
func TestAQueueIsBounded(t *testing.T) {
	all, done := make(writes), make(chan error)
	q := newQueue(all, func(err error) { done <- err })
	require.True(t, q.put([]byte("read late")))
	large := make([]byte, maxLine)
	require.Eventually(t, func() bool { return !q.put(large) }, time.Minute, time.Nanosecond)
	require.Equal(t, "read late", (<-all)[:9])
	require.ErrorIs(t, <-done, errSlow)
}
