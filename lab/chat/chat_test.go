package chat

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/recording"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// create makes a world of the recording in a file.
func create(t *testing.T, file, dir string, b local.CreateOptions) error {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	rec, err := Read(file, data)
	if err == nil {
		err = rec.Create(t.Context(), dir, b, local.Options{}, nil)
	}
	return err
}

const (
	chatAsks    = `{"role":"assistant","content":null,"tool_calls":[{"id":"x","function":{"name":"look","arguments":"{}"}}]}`
	chatAnswers = `{"role":"tool","tool_call_id":"x","content":"fine"}`
)

func TestRecordingsInEveryForm(t *testing.T) {
	run := `{"messages":[` + chatAsks + "," + chatAnswers + `]}`
	for name, c := range map[string]struct {
		text string
		keys []string
	}{
		"array":        {"[" + run + ",\n" + run + "]\n", []string{"0", "1"}},
		"lines":        {run + "\n\n" + run, []string{"0", "1"}},
		"one":          {run, []string{"0"}},
		"indented":     {strings.ReplaceAll(run, ",", ",\n  "), []string{"0"}},
		"task, trial":  {`{"task_id":3,"trial":1,"id":"x","traj":[]}`, []string{"3.1"}},
		"task as text": {`{"task_id":"a","trial":"b","traj":[]}`, []string{"a.b"}},
		"id":           {`[{"task_id":3,"id":"x","trajectory":[]}]`, []string{"x"}},
		"id number":    {`{"id":12345678901234567890,"messages":[]}`, []string{"12345678901234567890"}},
	} {
		t.Run(name, func(t *testing.T) {
			rec, err := Read("f", []byte(c.text))
			require.NoError(t, err)
			var keys []string
			for _, run := range rec.runs {
				keys = append(keys, run.key)
			}
			require.Equal(t, c.keys, keys)
		})
	}
}

func TestCallsFindTheirAnswers(t *testing.T) {
	data, err := os.ReadFile("testdata/chat.json")
	require.NoError(t, err)
	rec, err := Read("chat.json", data)
	require.NoError(t, err)
	require.Equal(t, Sums{Runs: 3, Messages: 11, Calls: 6, Failed: 2}, rec.Sums())
	require.Equal(t, map[string]string{"tool.find_book": "find_book", "tool.checkshelf": "checkShelf", "tool.renew": "renew"}, rec.tools)

	again := rec.runs[0].calls[1:]
	require.Equal(t, again[0].id, again[1].id, "recordings use ids again")
	require.Equal(t, again[0].params, again[1].params, "white space is no difference")
	require.True(t, again[0].failed)
	require.False(t, again[1].failed)

	renew := rec.runs[1].calls
	require.JSONEq(t, `"renewed"`, jsonOf(t, renew[0].answer), "answers come in any order")
	require.JSONEq(t, `"again"`, jsonOf(t, renew[1].answer))
	require.JSONEq(t, `{"arguments":"the third one"}`, jsonOf(t, renew[2].params), "arguments that are no JSON stay text")
	require.True(t, renew[2].failed)
	require.Equal(t, 4, rec.runs[0].messages[3].index, "messages keep their place among the answers")
}

func jsonOf(t *testing.T, data journal.Data) string {
	t.Helper()
	text, err := data.MarshalJSON()
	require.NoError(t, err)
	return string(text)
}

// The same run as three APIs record it: a look that finds, and one that fails.
func TestCallsAreFoundInEveryDialect(t *testing.T) {
	for name, messages := range map[string]string{
		"Chat Completions": `{"role":"user","content":"hi"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"q\":1}"}},
				{"id":"b","type":"function","function":{"name":"look","arguments":"{\"q\":2}"}}]},
			{"role":"tool","tool_call_id":"a","content":"fine"},{"role":"tool","tool_call_id":"b","content":"no","error":true},
			{"role":"assistant","content":"bye"}`,
		"as MCP says it": `{"role":"user","content":"hi"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"q\":1}"}},
				{"id":"b","type":"function","function":{"name":"look","arguments":"{\"q\":2}"}}]},
			{"role":"tool","tool_call_id":"a","content":"fine"},{"role":"tool","tool_call_id":"b","content":"no","isError":true},
			{"role":"assistant","content":"bye"}`,
		"Messages": `{"role":"user","content":[{"type":"text","text":"hi"}]},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"a","name":"look","input":{"q":1}},{"type":"tool_use","id":"b","name":"look","input":{"q":2}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"fine"},{"type":"tool_result","tool_use_id":"b","content":"no","is_error":true}]},
			{"role":"assistant","content":[{"type":"text","text":"bye"}]}`,
		"Responses": `{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},
			{"type":"function_call","id":"fc_1","call_id":"a","name":"look","arguments":"{\"q\":1}"},
			{"type":"function_call","id":"fc_2","call_id":"b","name":"look","arguments":"{\"q\":2}"},
			{"type":"function_call_output","call_id":"a","output":"fine"},{"type":"function_call_output","call_id":"b","output":"no","status":"error"},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"bye"}]}`,
	} {
		rec, err := Read("f", []byte(`[{"messages":[`+messages+`]}]`))
		require.NoError(t, err, name)
		sums := rec.Sums()
		require.Equal(t, []int{2, 1, 0}, []int{sums.Calls, sums.Failed, sums.Lost}, name)
		for i, call := range rec.runs[0].calls {
			require.Equal(t, "tool.look", call.kind, name)
			require.JSONEq(t, []string{`{"q":1}`, `{"q":2}`}[i], jsonOf(t, call.params), name)
			require.JSONEq(t, []string{`"fine"`, `"no"`}[i], jsonOf(t, call.answer), name)
		}
	}
}

// Tools that the provider of the model runs are called and answered in one message.
func TestCallsThatTheProviderRanAreFound(t *testing.T) {
	for messages, want := range map[string]Sums{
		`{"role":"assistant","content":[{"type":"server_tool_use","id":"1","name":"web_search","input":{"query":"x"}},
			{"type":"web_search_tool_result","tool_use_id":"1","content":[{"type":"web_search_result","url":"u"}]}]}`: {Calls: 1},
		`{"role":"assistant","content":[{"type":"server_tool_use","id":"1","name":"web_search","input":{}},
			{"type":"web_search_tool_result","tool_use_id":"1","content":{"type":"web_search_tool_result_error","error_code":"x"}}]}`: {Calls: 1, Failed: 1},
		`{"role":"assistant","content":[{"type":"mcp_tool_use","id":"1","name":"look","server_name":"s","input":{}},
			{"type":"mcp_tool_result","tool_use_id":"1","is_error":true,"content":[]}]}`: {Calls: 1, Failed: 1},
		`{"role":"assistant","content":[{"type":"server_tool_use","id":"1","name":"web_search","input":{}}]}`:                                                 {Calls: 1, Lost: 1},
		`{"type":"mcp_call","id":"1","name":"look","arguments":"{}","output":"fine","error":null}`:                                                            {Calls: 1},
		`{"type":"web_search_call","id":"1","status":"completed","action":{"type":"search","query":"x"}}`:                                                     {Calls: 1},
		`{"type":"web_search_call","id":"1","status":"failed"}`:                                                                                               {Calls: 1, Failed: 1},
		`{"role":"assistant","content":[{"type":"tool_use","tool_type":"web_search","id":"1","name":"find","arguments":"{}","result":"r","error":"broken"}]}`: {Calls: 1, Failed: 1},
	} {
		rec, err := Read("f", []byte(`[{"messages":[`+messages+`]}]`))
		require.NoError(t, err, messages)
		want.Runs, want.Messages = 1, 1
		require.Equal(t, want, rec.Sums(), messages)
	}
}

// Recordings say in many forms that a tool failed, and that it did not.
func TestFailuresAreFoundInWhateverForm(t *testing.T) {
	forms := []string{
		`{"role":"tool","tool_call_id":"a","content":"no","error":%s}`, `{"role":"tool","tool_call_id":"a","content":"no","isError":%s}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"no","is_error":%s}]}`, `{"type":"function_call_output","call_id":"a","output":"no","error":%s}`,
	}
	for value, failed := range map[string]int{
		"null": 0, "false": 0, "0": 0, "0.0": 0, `""`: 0, `"false"`: 0, `"None"`: 0, "[]": 0, "{}": 0,
		"true": 1, `"true"`: 1, "1": 1, `"no such file"`: 1, `{"code":1}`: 1, "[1]": 1,
	} {
		for _, form := range forms {
			rec, err := Read("f", fmt.Appendf(nil, `[{"messages":[{"type":"function_call","call_id":"a","name":"look","arguments":"{}"},`+form+`]}]`, value))
			require.NoError(t, err)
			require.Equal(t, failed, rec.Sums().Failed, form, value)
		}
	}
}

// What may be a call in a form that is not read is refused: never is a run one without calls that has some.
func TestCallsInFormsThatAreNotReadAreRefused(t *testing.T) {
	for _, message := range []string{
		`{"role":"assistant","content":[{"type":"mcp_tool_use","id":"1","name":"look"}]}`,
		`{"role":"assistant","content":[{"type":"container_use","id":"1"},{"type":"tool_search","id":"1"}]}`,
		`{"role":"assistant","content":[{"type":"mcp_call","name":"look"}]}`,
		`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"1"}]}`,
		`{"role":"assistant","content":{"type":"tool_call","id":"1"}}`,
		`{"role":"assistant","content":[{"toolUse":{"toolUseId":"1","name":"look"}}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"x","extra":{"functionCall":{"name":"look"}}}]}`,
		`{"role":"assistant","content":"","additional_kwargs":{"tool_calls":[{"id":"1","function":{"name":"look"}}]}}`,
		`{"role":"assistant","content":"","kwargs":[{"deep":{"tool_use":{"name":"look"}}}]}`,
		`{"role":"assistant","content":"","calls":[{"name":"look"}]}`,
		`{"role":"assistant","toolCalls":[{"id":"1"}]}`, `{"role":"model","parts":[{"functionCall":{"name":"look"}}]}`,
		`{"role":"assistant","function_call":{"name":"look"}}`, `{"role":"function","name":"look","content":"x"}`,
		`{"type":"file_search_call","id":"1"}`, `{"type":"computer_call","call_id":"1"}`, `{"type":"ai","content":"","tool_calls":[]}`,
		`{"message":{"role":"assistant","tool_calls":[{"id":"1"}]}}`, `{"role":"assistant","tool_calls":{"id":"1"}}`,
	} {
		_, err := Read("f", []byte(`[{"messages":[`+message+`]}]`))
		require.ErrorContains(t, err, "run 0, message 0: ", message)
	}
	for message, calls := range map[string]int{
		`{"role":"assistant","content":{"type":"tool_use","id":"1","name":"look","input":{"tool_calls":[1]}}}`:                    1,
		`{"role":"assistant","content":null,"tool_calls":null,"function_call":null,"metadata":{"tool_choice":"auto","tools":[]}}`: 0,
	} {
		rec, err := Read("f", []byte(`[{"messages":[`+message+`]}]`))
		require.NoError(t, err, message)
		require.Equal(t, calls, rec.Sums().Calls, message)
	}
}

// A call without an answer was made, and nobody knows what came of it.
func TestARunThatBrokeOffIsInDoubt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	file := filepath.Join(t.TempDir(), "f.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"id":"good","messages":[`+chatAsks+`,`+chatAnswers+`]}`+"\n"+`{"id":"crashed","messages":[`+chatAsks+`]}`), 0o600))
	require.NoError(t, create(t, file, dir, local.CreateOptions{}))
	w, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	defer w.Close() //nolint:errcheck // the test is over
	require.NoError(t, w.Run(t.Context()))
	is := w.Status().Intents
	require.Equal(t, []int{1, 1}, []int{is[receipt.StateCommitted], is[receipt.StateInDoubt]})
}

func TestFaultsOfARecordingHaveAPlace(t *testing.T) {
	ok := `{"messages":[]}` + "\n"
	run := func(messages string) string {
		return ok + "\n" + `{"messages":[{"role":"user","content":"hi"},` + messages + `]}`
	}
	calls := func(calls string) string { return run(`{"role":"assistant","tool_calls":` + calls + `}`) }
	call := func(id, function string) string { return calls(`[{"id":` + id + `,"function":` + function + `}]`) }
	type at struct{ line, run, message int }
	for name, c := range map[string]struct {
		text string
		want at
		is   error
	}{
		"empty file":             {"", at{1, -1, -1}, errNoRuns},
		"empty array":            {" [ ]", at{1, -1, -1}, errNoRuns},
		"byte order mark":        {"\ufeff" + ok, at{1, -1, -1}, nil},
		"UTF-16":                 {"\xff\xfe[\x00]\x00", at{1, -1, -1}, nil},
		"not JSON":               {ok + ok + "{oops}\n" + ok, at{3, 2, -1}, nil},
		"cut line":               {ok + `{"messages":[`, at{2, 1, -1}, io.ErrUnexpectedEOF},
		"cut array":              {"[" + ok, at{2, -1, -1}, io.ErrUnexpectedEOF},
		"after the array":        {"[" + ok + "]\n[]", at{3, -1, -1}, nil},
		"key twice":              {ok + `{"messages":[],"messages":[]}`, at{2, 1, -1}, nil},
		"run is a number":        {ok + "3", at{2, 1, -1}, nil},
		"no messages":            {ok + "{}", at{2, 1, -1}, nil},
		"messages are text":      {ok + `{"traj":"x"}`, at{2, 1, -1}, nil},
		"id is a list":           {ok + `{"id":[],"messages":[]}`, at{2, 1, -1}, nil},
		"id is no key":           {ok + `{"id":"a\nb","messages":[]}`, at{2, 1, -1}, nil},
		"same name":              {ok + `{"id":0,"messages":[]}`, at{2, 1, -1}, errRunTwice},
		"message is text":        {run(`"x"`), at{3, 1, 1}, nil},
		"no role":                {run(`{"content":"x"}`), at{3, 1, 1}, nil},
		"empty role":             {run(`{"role":""}`), at{3, 1, 1}, nil},
		"unknown role":           {run(`{"role":"usr","content":"x"}`), at{3, 1, 1}, nil},
		"calls are an object":    {calls(`{}`), at{3, 1, 1}, nil},
		"call is text":           {calls(`["x"]`), at{3, 1, 1}, nil},
		"call without id":        {calls(`[{"function":{"name":"a","arguments":"{}"}}]`), at{3, 1, 1}, nil},
		"call without function":  {calls(`[{"id":"x"}]`), at{3, 1, 1}, nil},
		"function without name":  {call(`"x"`, `{"arguments":"{}"}`), at{3, 1, 1}, nil},
		"arguments are a number": {call(`"x"`, `{"name":"a","arguments":3}`), at{3, 1, 1}, nil},
		"tool name too long":     {call(`"x"`, `{"name":"`+strings.Repeat("a", 124)+`","arguments":"{}"}`), at{3, 1, 1}, errToolName},
		"tool names collide": {
			calls(`[{"id":"x","function":{"name":"Look","arguments":"{}"}},{"id":"y","function":{"name":"look","arguments":"{}"}}]`),
			at{3, 1, 1},
			errToolName,
		},
		"parts of Gemini":       {run(`{"role":"model","parts":[{"functionCall":{"name":"a"}}]}`), at{3, 1, 1}, nil},
		"invocations":           {run(`{"role":"assistant","content":"","toolInvocations":[{"toolName":"a"}]}`), at{3, 1, 1}, nil},
		"block not read":        {run(`{"role":"assistant","content":[{"type":"tool-call","toolName":"a"}]}`), at{3, 1, 1}, nil},
		"tool_use without id":   {run(`{"role":"assistant","content":[{"type":"tool_use","name":"a"}]}`), at{3, 1, 1}, nil},
		"tool_use of a user":    {run(`{"role":"user","content":[{"type":"tool_use","id":"x","name":"a","input":{}}]}`), at{3, 1, 1}, nil},
		"result without a call": {run(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}`), at{3, 1, 1}, errUnasked},
		"item not read":         {run(`{"type":"file_search_call","id":"x"}`), at{3, 1, 1}, nil},
		"half of a surrogate":   {run(`{"role":"user","content":"\udcb2"}`), at{3, 1, -1}, nil},
		"answer too large":      {run(chatAsks + `,{"role":"tool","tool_call_id":"x","content":"` + strings.Repeat("a", manifest.DefaultReceipt) + `"}`), at{3, 1, 2}, world.ErrTooLarge},
		"user calls a tool":     {run(strings.ReplaceAll(chatAsks, "assistant", "user") + "," + chatAnswers), at{3, 1, 1}, nil},
		"old function_call":     {run(`{"role":"assistant","function_call":{"name":"a"}}`), at{3, 1, 1}, nil},
		"answer without call":   {run(chatAnswers), at{3, 1, 1}, errUnasked},
		"answer before call":    {run(chatAnswers + "," + chatAsks), at{3, 1, 1}, errUnasked},
		"answered twice":        {run(chatAsks + "," + chatAnswers + "," + chatAnswers), at{3, 1, 3}, errUnasked},
		"answer to another id":  {run(chatAsks + "," + strings.ReplaceAll(chatAnswers, `"x"`, `"y"`)), at{3, 1, 2}, errUnasked},
		"answer without id":     {run(chatAsks + `,{"role":"tool","content":"x"}`), at{3, 1, 2}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read("f", []byte(c.text))
			var fault *Error
			require.ErrorAs(t, err, &fault)
			require.Equal(t, c.want, at{fault.line, fault.run, fault.message}, err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
		})
	}
}

func TestImportedRunsGoThroughTheKernel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	err := create(t, "testdata/chat.json", dir, local.CreateOptions{ID: "library"})
	require.NoError(t, err)

	lw, err := local.Open(dir, local.Options{Paranoid: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, lw.Close()) }()
	require.NoError(t, lw.Run(t.Context()))
	s := lw.Status()
	require.Equal(t, "chat", s.World)
	require.Equal(t, "library", s.ID)
	require.True(t, s.Idle)
	require.Zero(t, s.Halted)
	require.Equal(t, 3, s.Cells)
	require.Equal(t, 4, s.Intents[receipt.StateCommitted])
	require.Equal(t, 2, s.Intents[receipt.StateFailed])
	require.EqualValues(t, 9, s.Time, "message j falls due at tick j + 1")
	lw.View(func(w *world.Moment) {
		for _, cell := range w.Cells() {
			if cell.Cell.Key == "walk-in" {
				require.JSONEq(t, `{"messages":{"user":1,"assistant":2},"calls":3,"answers":{"ok":2,"error":1},
					"last":{"index":5,"role":"assistant","content":"Zwei Bücher sind verlängert. 📚"}}`, jsonOf(t, cell.State))
			}
		}
	})
}

func TestTheSameRecordingMakesTheSameManifest(t *testing.T) {
	hash := func() manifest.Hash {
		dir := filepath.Join(t.TempDir(), "x")
		err := create(t, "testdata/chat.json", dir, local.CreateOptions{})
		require.NoError(t, err)
		lw, err := local.Open(dir, local.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, lw.Close()) }()
		return lw.Status().Manifest
	}
	first := hash()
	require.Equal(t, first, hash())
}

func TestRunsWithoutToolsNeedNoCassette(t *testing.T) {
	file := filepath.Join(t.TempDir(), "talk: \"it's\" #1.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"messages":[{"role":"user","content":"hi"}]}`), 0o600))
	dir := t.TempDir()
	err := create(t, file, dir, local.CreateOptions{})
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(dir, cassetteFile))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestManyCallsInOneMessage(t *testing.T) {
	var asks, answers []string
	for range manifest.DefaultEffects + 1 {
		asks = append(asks, `{"id":"x","function":{"name":"look","arguments":"{}"}}`)
		answers = append(answers, chatAnswers)
	}
	text := `{"messages":[{"role":"assistant","content":null,"tool_calls":[` + strings.Join(asks, ",") + `]},` + strings.Join(answers, ",") + `]}`
	file := filepath.Join(t.TempDir(), "many.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	dir := t.TempDir()
	err := create(t, file, dir, local.CreateOptions{})
	require.NoError(t, err)
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, lw.Close()) }()
	require.NoError(t, lw.Run(t.Context()))
	require.Equal(t, len(asks), lw.Status().Intents[receipt.StateCommitted])
}

func TestAFailedImportLeavesNothing(t *testing.T) {
	over := `{"messages":[{"role":"user","content":"` + strings.Repeat("a", manifest.DefaultPayload) + `"}]}`
	for name, c := range map[string]struct {
		text  string
		birth local.CreateOptions
	}{
		"not a recording":   {text: "{}"},
		"message too large": {text: over},
		"bad id":            {text: `{"messages":[]}`, birth: local.CreateOptions{ID: "no id"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "f.json")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
			dir := t.TempDir()
			err := create(t, file, filepath.Join(dir, "deep", "world"), c.birth)
			require.Error(t, err)
			requireEmpty(t, dir)
			err = create(t, file, dir, c.birth)
			require.Error(t, err)
			requireEmpty(t, dir)
		})
	}
}

func TestAMessageThatIsTooLargeIsNamed(t *testing.T) {
	text := `{"messages":[]}` + "\n" + `{"messages":[{"role":"user","content":""},{"role":"user","content":"` + strings.Repeat("a", manifest.DefaultPayload) + `"}]}`
	file := filepath.Join(t.TempDir(), "f.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	err := create(t, file, t.TempDir(), local.CreateOptions{})
	require.ErrorIs(t, err, world.ErrTooLarge)
	var fault *Error
	require.ErrorAs(t, err, &fault)
	require.Equal(t, place{file, 2, 1, 1}, fault.place)
}

func TestImportWritesOverNothing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
	err := create(t, "testdata/chat.json", dir, local.CreateOptions{})
	require.ErrorIs(t, err, local.ErrNotEmpty)

	dir = t.TempDir()
	err = create(t, "testdata/chat.json", dir, local.CreateOptions{})
	require.NoError(t, err)
	err = create(t, "testdata/chat.json", dir, local.CreateOptions{})
	require.ErrorIs(t, err, local.ErrExists)

	err = create(t, "testdata/chat.json", "testdata/chat.json", local.CreateOptions{})
	require.Error(t, err)
}

// A directory is filled and not replaced where somebody may be in it.
func TestImportIntoTheWorkingDirectory(t *testing.T) {
	file, err := filepath.Abs("testdata/chat.json")
	require.NoError(t, err)
	up := t.TempDir()
	dir := filepath.Join(up, "here")
	require.NoError(t, os.Mkdir(dir, 0o700))
	t.Chdir(dir)
	require.NoError(t, create(t, file, ".", local.CreateOptions{}))
	require.FileExists(t, local.ManifestFile)
	lw, err := local.Open(".", local.Options{})
	require.NoError(t, err)
	require.NoError(t, lw.Close())
	entries, err := os.ReadDir(up)
	require.NoError(t, err)
	require.Len(t, entries, 1, "and nothing is beside it")
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestAirline(t *testing.T) {
	file, dir := recording.Shared(t, recording.Airline), t.TempDir()
	err := create(t, file, dir, local.CreateOptions{})
	require.NoError(t, err)
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, lw.Close()) }()
	require.NoError(t, lw.Run(t.Context()))

	s := lw.Status()
	require.True(t, s.Idle)
	require.Equal(t, 60, s.Cells)
	require.Zero(t, s.Halted)
	require.Equal(t, 22, s.Intents[receipt.StateFailed])
	require.Equal(t, 361-22, s.Intents[receipt.StateCommitted])
	keys, repeated := map[receipt.Key]bool{}, 0
	lw.View(func(w *world.Moment) {
		for _, e := range w.Intents() {
			keys[e.Intent.Key] = true
			if e.Intent.Occurrence > 0 {
				repeated++
			}
		}
	})
	require.Len(t, keys, 361, "every call has a key of its own")
	require.Equal(t, 11, repeated, "10 are repeated letter by letter, one with its arguments in another order")
	for range 3 {
		got, err := lw.Replay(t.Context(), 0, nil)
		require.NoError(t, err)
		require.Equal(t, s.Head, got.Head)
	}
	report, err := lw.Verify(t.Context(), local.Verification{})
	require.NoError(t, err)
	require.True(t, report.OK)
}
