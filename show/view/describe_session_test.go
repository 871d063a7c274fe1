package view

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/reducer/recorder"
)

// What is said in a session is shown as text that a terminal does not act on; in full it is data.
func TestASessionIsDescribedAsItWasSpoken(t *testing.T) {
	d, err := canon.Marshal(recorder.ToolAnswer{Text: "hello\x1b[2J", Result: []byte("{}")})
	require.NoError(t, err)
	require.Equal(t, "hello<U+001B>[2J", Describer{}.Data(d))
	require.Equal(t, byte('{'), Describer{Full: true}.Data(d)[0])
}
