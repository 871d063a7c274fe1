package recorder_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/reducer/recorder"
)

// TestASessionReadsAsItWasSpoken, in one line; data of others is not read so.
func TestASessionReadsAsItWasSpoken(t *testing.T) {
	arguments, err := canon.FromJSON([]byte(`{"path": "a.txt"}`))
	require.NoError(t, err)
	for want, data := range map[string]any{
		"claude-x: What is in a.txt?":          recorder.Request{Model: "claude-x", Prompt: "What is\n in a.txt?", Body: []byte("{}"), Tools: []string{}, ServerTools: []string{}},
		`Let me look. → read {"path":"a.txt"}`: recorder.Answer{Text: "Let me look.", Calls: []recorder.ToolCall{{Name: "read", Input: `{"path":"a.txt"}`}}},
		`files/read {"path":"a.txt"}`:          recorder.ToolRequest{Server: "files", Tool: "read", Arguments: arguments},
		"hello\x1b[2J":                         recorder.ToolAnswer{Text: "hello\x1b[2J", Result: []byte("{}")},
		`{"content":[]}`:                       recorder.ToolAnswer{Result: []byte(`{"content":[]}`)},
		"":                                     map[string]string{"is_error": "of somebody else's making"},
	} {
		d, err := canon.Marshal(data)
		require.NoError(t, err)
		require.Equal(t, want, recorder.Spoken(d))
	}
}
