package relay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func requestFor(t testing.TB, dialect, path, body string) *Asked {
	t.Helper()
	a, err := Read(dialect, http.MethodPost, path, make(http.Header), []byte(body))
	require.NoError(t, err)
	return a
}

// TestGivenAnswersAreRead as those of providers are: whole, with the text and the calls that were given.
func TestGivenAnswersAreRead(t *testing.T) {
	for path, given := range map[string]string{
		"/v1/messages":         `{"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"hi"},{"type":"tool_use","id":"c","name":"look","input":{"q":"<1>"}}],"usage":{"output_tokens":99}}`,
		"/v1/chat/completions": `{"choices":[{"message":{"content":"hi","tool_calls":[{"id":"c","function":{"name":"look","arguments":"{\"q\":\"<1>\"}"}}]}}],"usage":{"completion_tokens":99}}`,
		"/v1/responses":        `{"output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","call_id":"c","name":"look","arguments":"{\"q\":\"<1>\"}"}],"usage":{"output_tokens":99}}`,
	} {
		dialect := OpenAI
		if path == "/v1/messages" {
			dialect = Anthropic
		}
		for _, stream := range []bool{false, true} {
			a := requestFor(t, dialect, path, fmt.Sprintf(`{"model":"m","stream":%t,"messages":[],"input":"x"}`, stream))
			for _, content := range []string{given, " hi\n"} {
				_, body, err := a.Given([]byte(content))
				require.NoError(t, err)
				r := newReading(a, stream)
				_, err = r.add(body)
				require.NoError(t, err)
				answer := r.readWhole(a, body)
				require.Equal(t, "hi", answer.Text, "%s %t %s", path, stream, body)
				require.Equal(t, "m", answer.Model)
				require.Equal(t, stream, r.ended, "%s %s", path, body)
				if content != given {
					require.Empty(t, answer.Calls)
					continue
				}
				require.Len(t, answer.Calls, 1)
				require.Equal(t, []string{"c", "look"}, []string{answer.Calls[0].ID, answer.Calls[0].Name}, "%s %s", path, body)
				require.JSONEq(t, `{"q":"<1>"}`, answer.Calls[0].Input)
			}
		}
		a := requestFor(t, dialect, path, `{"model":"m","messages":[]}`)
		for _, bad := range []string{`{"`, `{}`, `{"content":3,"choices":[],"output":{}}`, `{"content":["x"],"choices":[{}],"output":[1]}`} {
			_, _, err := a.Given([]byte(bad))
			require.Error(t, err, bad)
		}
	}
}

// TestAnotherModelIsAsked with all the rest of the request as it is.
func TestAnotherModelIsAsked(t *testing.T) {
	a := requestFor(t, OpenAI, "/v1/chat/completions", `{"a": 1, "model" :"m" ,"messages":[{"model":"m"}], "model":"m2"}`)
	key := a.Key
	require.NoError(t, a.SetModel(`x"y`))
	want := `{"a": 1, "model" :"x\"y" ,"messages":[{"model":"m"}], "model":"x\"y"}`
	require.Equal(t, want, string(a.Body), "byte for byte")
	require.Equal(t, `x"y`, a.Model)
	require.Equal(t, key, a.Key)
}

// FuzzGiven: an answer is refused, or is read whole.
func FuzzGiven(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"tool_use","input":{}}],"choices":[{"message":{"tool_calls":[3]}}],"output":[{"content":[4]}]}`))
	f.Add([]byte("hi"))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, path := range []string{"/v1/messages", "/v1/chat/completions", "/v1/responses"} {
			dialect := OpenAI
			if path == "/v1/messages" {
				dialect = Anthropic
			}
			for _, stream := range []bool{false, true} {
				a := requestFor(t, dialect, path, fmt.Sprintf(`{"model":"m","stream":%t}`, stream))
				_, body, err := a.Given(content)
				if err != nil {
					continue
				}
				require.Equal(t, !stream, json.Valid(bytes.TrimSpace(body)))
				r := newReading(a, stream)
				_, err = r.add(body)
				require.NoError(t, err)
				require.Equal(t, stream, r.ended, "%s", body)
			}
		}
	})
}
