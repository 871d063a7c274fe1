package chat_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/lab/chat"
)

const claudeTranscript = `{"type":"queue-operation","operation":"enqueue","sessionId":"s1"}
{"type":"user","sessionId":"s1","isSidechain":false,"message":{"role":"user","content":"look"}}
{"type":"attachment","sessionId":"s1","attachment":{"type":"x"}}
{"type":"assistant","sessionId":"s1","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"I look"}],"usage":{"server_tool_use":{"web_search_requests":0}}}}
{"type":"assistant","sessionId":"s1","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","sessionId":"s1","toolUseResult":{"stdout":"a"},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a"}]}}
{"type":"user","sessionId":"s1","agentId":"a1","isSidechain":true,"message":{"role":"user","content":"side"}}
{"type":"assistant","sessionId":"s1","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"done"}]}}
{"type":"last-prompt","sessionId":"s1"}
`

const codexTranscript = `{"timestamp":"t","type":"session_meta","payload":{"id":"s2","cwd":"/"}}
{"timestamp":"t","type":"turn_context","payload":{"cwd":"/"}}
{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"look"}]}}
{"timestamp":"t","type":"event_msg","payload":{"type":"user_message","message":"look"}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"a"}}
`

// TestTranscriptsAreRuns of Claude Code, whose answers are in lines of one block each, and of Codex.
func TestTranscriptsAreRuns(t *testing.T) {
	for text, want := range map[string]chat.Sums{
		claudeTranscript: {Runs: 2, Messages: 4, Calls: 1},
		codexTranscript:  {Runs: 1, Messages: 2, Calls: 1},
	} {
		rec, err := chat.Read("a.jsonl", []byte(text))
		require.NoError(t, err)
		require.Equal(t, want, rec.Sums())
	}
}

// TestATranscriptThatCannotBeReadNamesItsLine where a call would be lost.
func TestATranscriptThatCannotBeReadNamesItsLine(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(claudeTranscript, `"type":"tool_use"`, `"type":"tool_use_2"`, 1):                                                                                     "a.jsonl:4: run 0, message 1",
		strings.Replace(claudeTranscript, `{"id":"m2"`, `{"id":"m1"`, 1) + `{"type":"assistant","sessionId":"s1","message":{"id":"m1","role":"assistant","content":"text"}}`: "a.jsonl:10: run 9: message: content: want a list of blocks",
		strings.Replace(codexTranscript, `"function_call"`, `"other_call"`, 1):                                                                                               "a.jsonl:5: run 0, message 1",
		strings.Replace(codexTranscript, `"function_call_output","call_id":"c1"`, `"function_call_output","call_id":"x"`, 1):                                                 "a.jsonl:6: run 0, message 2",
	} {
		_, err := chat.Read("a.jsonl", []byte(text))
		require.ErrorContains(t, err, want)
	}
}
