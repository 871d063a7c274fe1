package governance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

func rawJSON(t testing.TB, text string) canon.Raw {
	t.Helper()
	raw, err := canon.FromJSON([]byte(text))
	require.NoError(t, err)
	return raw
}

func requireCode(t *testing.T, want Code, err error) {
	t.Helper()
	var fault *CapError
	require.ErrorAs(t, err, &fault)
	require.Equal(t, want, fault.Code, fault.Reason)
}

func TestLLMConfigWinsOverParams(t *testing.T) {
	config := rawJSON(t, `{"base_url":"https://API.example.com:8443/v1","model":"m-1","max_tokens":100,
		"api_key":"secret://KEY","price":{"prompt":3,"completion":5}}`)
	target, err := ParseLLM(config, rawJSON(t, `{"messages":[{"role":"user","content":"hi"}],"seed":12345678901234567890123}`))
	require.NoError(t, err)
	require.Equal(t, "api.example.com", target.Provider)
	require.Equal(t, "secret://KEY", target.APIKey)
	require.Equal(t, LLMPrice{Prompt: 3, Completion: 5}, target.Price)
	require.Equal(t, "m-1", target.Model)
	require.EqualValues(t, 100, target.MaxTokens)
	require.Equal(t, rawJSON(t, `{"messages":[{"role":"user","content":"hi"}],"seed":12345678901234567890123,"model":"m-1","max_tokens":100}`),
		target.Request)

	_, err = ParseLLM(config, rawJSON(t, `{"model":"m-1","max_completion_tokens":100,"max_tokens":null,"n":1,"stream":false}`))
	require.NoError(t, err, "what config says may be said again")
	for _, params := range []string{
		`{"model":"m-2"}`, `{"max_tokens":101}`, `{"max_completion_tokens":99}`, `{"max_tokens":100,"max_completion_tokens":100}`,
	} {
		_, err = ParseLLM(config, rawJSON(t, params))
		requireCode(t, CodeParamNotAllowed, err)
	}
}

func TestLLMHasNoDetours(t *testing.T) {
	config := rawJSON(t, `{"base_url":"http://127.0.0.1:1"}`)
	for params, code := range map[string]Code{
		`{"stream":true}`:                       CodeParamNotAllowed,
		`{"stream":1}`:                          CodeParamNotAllowed,
		`{"n":2}`:                               CodeParamNotAllowed,
		`{"n":1.0}`:                             CodeParamNotAllowed,
		`{"functions":[{"name":"rm"}]}`:         CodeParamNotAllowed,
		`{"models":["big"]}`:                    CodeParamNotAllowed,
		`{"web_search_options":{}}`:             CodeParamNotAllowed,
		`{"max_tokens":0}`:                      CodeBadParams,
		`{"max_tokens":-1}`:                     CodeBadParams,
		`{"max_tokens":1.5}`:                    CodeBadParams,
		`{"max_tokens":18446744073709551616}`:   CodeBadParams,
		`{"model":["m"]}`:                       CodeBadParams,
		`{"tools":{"type":"function"}}`:         CodeBadParams,
		`{"tools":[{"function":{"name":"a"}}]}`: CodeBadParams,
		`{"tools":[{"type":"function"}]}`:       CodeBadParams,
		`{"tools":["a"]}`:                       CodeBadParams,
		`[]`:                                    CodeBadParams,
	} {
		_, err := ParseLLM(config, rawJSON(t, params))
		t.Log(params)
		requireCode(t, code, err)
	}
	for _, config := range []string{
		`{}`, `{"base_url":"ftp://h"}`, `{"base_url":"https://"}`, `{"base_url":"https://user:word@h"}`, `{"base_url":"http://h#f"}`, `{"base_url":"http://h?version=1"}`,
		`{"base_url":"http://h","surprise":1}`, `{"base_url":"http://h","max_tokens":-1}`, `{"base_url":7}`, `{"base_url":"http://h","api_key":"word"}`, `{"base_url":"http://h/secret://A"}`, `{"base_url":"http://\u0000"}`,
	} {
		_, err := ParseLLM(rawJSON(t, config), nil)
		t.Log(config)
		requireCode(t, CodeBadConfig, err)
		require.NotContains(t, err.Error(), "word")
	}
}

func TestLLMCapability(t *testing.T) {
	all := manifest.CapParams{
		Providers: []string{"API.example.com"}, Models: []string{"m-1", "small-*"}, Tools: []string{"search", "calc*"}, MaxTokens: 50,
	}
	const config = `{"base_url":"https://api.example.com/v1"}`
	const fine = `{"model":"m-1","max_tokens":50,"tools":[{"type":"function","function":{"name":"search"}},{"type":"custom","custom":{"name":"calculate"}}]}`
	for _, c := range []struct {
		name, params, value string
		change              func(*manifest.CapParams)
		code                Code
	}{
		{name: "fine", params: fine},
		{name: "prefix of a model", params: `{"model":"small-7b","max_tokens":1}`},
		{name: "newer name of max_tokens", params: `{"model":"m-1","max_completion_tokens":50}`},
		{name: "no providers", params: fine, change: func(p *manifest.CapParams) { p.Providers = nil }, code: CodeProviderNotAllowed, value: "api.example.com"},
		{name: "no wildcards for providers", params: fine, change: func(p *manifest.CapParams) { p.Providers = []string{"*"} }, code: CodeProviderNotAllowed},
		{name: "other model", params: `{"model":"m-11","max_tokens":1}`, code: CodeModelNotAllowed, value: "m-11"},
		{name: "no model", params: `{"max_tokens":1}`, code: CodeModelNotAllowed},
		{name: "no models", params: fine, change: func(p *manifest.CapParams) { p.Models = nil }, code: CodeModelNotAllowed, value: "m-1"},
		{
			name: "other tool", params: `{"model":"m-1","max_tokens":1,"tools":[{"type":"function","function":{"name":"rm"}}]}`,
			code: CodeToolNotAllowed, value: "rm",
		},
		{
			name: "built-in tool with the name of another", code: CodeToolNotAllowed, value: "web_search",
			params: `{"model":"m-1","max_tokens":1,"tools":[{"type":"web_search","function":{"name":"search"}}]}`,
		},
		{name: "no tools", params: fine, change: func(p *manifest.CapParams) { p.Tools = nil }, code: CodeToolNotAllowed, value: "search"},
		{name: "none asked, none allowed", params: `{"model":"m-1","max_tokens":1,"tools":null}`, change: func(p *manifest.CapParams) { p.Tools = nil }},
		{name: "too many tokens", params: `{"model":"m-1","max_tokens":51}`, code: CodeMaxTokensExceeded, value: "51"},
		{name: "unbounded tokens", params: `{"model":"m-1","max_tokens":null}`, code: CodeMaxTokensExceeded, value: "50"},
		{name: "not bounded by the capability", params: `{"model":"m-1"}`, change: func(p *manifest.CapParams) { p.MaxTokens = 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			target, err := ParseLLM(rawJSON(t, config), rawJSON(t, c.params))
			require.NoError(t, err)
			bounds := all
			if c.change != nil {
				c.change(&bounds)
			}
			denied := target.Allowed(&bounds)
			if c.code == "" {
				require.Nil(t, denied)
				return
			}
			require.NotNil(t, denied)
			require.Equal(t, c.code, denied.Code)
			require.Contains(t, denied.Reason, c.value)
		})
	}
}

func FuzzParseLLM(f *testing.F) {
	config := rawJSON(f, `{"base_url":"http://127.0.0.1:1","model":"m"}`)
	f.Add([]byte(rawJSON(f, `{"tools":[{"type":"function","function":{"name":"a"}}],"max_tokens":3,"n":1}`)))
	f.Fuzz(func(t *testing.T, params []byte) {
		target, err := ParseLLM(config, params)
		if err != nil {
			var fault *CapError
			require.ErrorAs(t, err, &fault)
			return
		}
		require.NoError(t, canon.Valid(target.Request))
		again, err := ParseLLM(config, target.Request)
		require.NoError(t, err, "what is sent means what was judged")
		require.Equal(t, target, again)
	})
}
