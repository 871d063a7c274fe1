//go:build unix

package host

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that is starved or stopped when its program ends comes to the output when the time for it is over.
func TestOutputIsTakenHoweverLate(t *testing.T) {
	var out outputs
	var got bytes.Buffer
	its, err := out.open(&got)
	require.NoError(t, err)
	_, err = its.WriteString("{}\n")
	require.NoError(t, err)
	require.NoError(t, out.pipes[0].ours.SetReadDeadline(time.Unix(1, 0)))
	out.startReading()
	out.await(time.Now())
	require.Empty(t, got.Bytes(), "nobody had the time")
	out.drain()
	require.Equal(t, "{}\n", got.String())
	_ = out.Close() // the end of the program is closed
}

// Who holds the output of a program that has ended has a moment for it.
func TestWhoIsLeftBehindWritesForAMoment(t *testing.T) {
	r := ran(t, `(sleep 0.2; echo '"late"') & exit 0`, `null`)
	require.Equal(t, `"late"`, payloadOf(t, r))
	r = ran(t, `echo 1; exec 9>&1; sleep 1000 & exit 0`, `null`)
	require.Equal(t, "1", payloadOf(t, r))
}
