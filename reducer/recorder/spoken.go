package recorder

import (
	"bytes"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Spoken returns what an agent asks a model or a tool, or what these answer, in one line as people speak; empty: the data is none of that.
// For example "claude-x: What is in a.txt?", "Let me look. → read {"path":"a.txt"}", "files/read {"path":"a.txt"}".
func Spoken(d canon.Raw) string { return strings.Join(strings.Fields(spoken(d)), " ") }

func spoken(d canon.Raw) string {
	has := func(field string) bool { return bytes.Contains(d, []byte(field)) } // most data is no session's: it is not decoded
	switch {
	case has("server_tools"):
		var asked Request
		if canon.UnmarshalTrusted(d, &asked) == nil && asked.Model != "" {
			return asked.Model + ": " + asked.Prompt
		}
	case has("cache_read"):
		var answer Answer
		if canon.UnmarshalTrusted(d, &answer) == nil {
			text := answer.Text
			for _, use := range answer.Calls {
				text += " → " + use.Name + " " + use.Input
			}
			return text
		}
	case has("tool_use_id"):
		var asked ToolRequest
		if canon.UnmarshalTrusted(d, &asked) == nil && asked.Tool != "" {
			arguments, err := canon.ToJSON(asked.Arguments)
			if err == nil {
				return asked.Name() + " " + string(arguments)
			}
		}
	case has("is_error"):
		var answer ToolAnswer
		if canon.UnmarshalTrusted(d, &answer) == nil {
			return answer.Says()
		}
	}
	return ""
}
