package governance

import (
	"bytes"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// llmParams are the params of a chat completion that are passed on: none names a
// model or a tool where no capability looks, or asks for another form of answer.
// The last three are of servers that one runs oneself.
func llmParams() []string {
	return []string{
		"messages", "model", "max_tokens", "max_completion_tokens", "n", "stream",
		"temperature", "top_p", "frequency_penalty", "presence_penalty", "seed", "stop",
		"logit_bias", "logprobs", "top_logprobs", "response_format", "reasoning_effort", "verbosity",
		"modalities", "audio", "prediction", "parallel_tool_calls", "user", "safety_identifier",
		"service_tier", "store", "metadata", "prompt_cache_key", "prompt_cache_retention",
		"top_k", "min_p", "repetition_penalty",
	}
}

// knownParams returns the request that fields come to, whose tools have these
// names.
func knownParams(fields map[string]canon.Raw, tools []string) map[string]canon.Raw {
	request := only(fields, llmParams()...)
	if list, ok := fields["tools"]; ok {
		request["tools"] = knownTools(list)
	}
	if choice := knownChoice(fields["tool_choice"], tools); choice != nil {
		request["tool_choice"] = choice
	}
	return request
}

// Ignored returns, in order, the names of params that the request does not hold
// as they were given: they are not known, or not as a whole.
func (t *LLMTarget) Ignored(params canon.Raw) []string {
	given, _ := paramFields(params) // ParseLLM has read them
	sent, _ := paramFields(t.Request)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if value := given[name]; string(value) != canon.Null && !bytes.Equal(value, sent[name]) {
			out = append(out, name)
		}
	}
	return out
}

// knownTools builds a list of tools anew, which toolNames has read.
func knownTools(tools canon.Raw) canon.Raw {
	r := canon.NewReader(tools)
	if r.Null() {
		return tools
	}
	n := r.Array()
	out := canon.AppendArray(nil, n)
	for range n {
		out = append(out, knownTool(r.Raw(), "name", "description", "parameters", "strict", "format")...)
	}
	return out
}

// knownTool builds a tool, or a choice of one, anew: its type and, of a function
// or a custom one, what is known of it. A server's own tool is its type.
func knownTool(tool canon.Raw, known ...string) canon.Raw {
	fields, _ := paramFields(tool) // a map, or it had no type
	out := only(fields, "type")
	kind, _ := lookup[string](tool, "type")
	if kind == "function" || kind == "custom" {
		body, _ := paramFields(fields[kind]) // likewise, or it had no name
		out[kind] = encodeFields(only(body, known...))
	}
	return encodeFields(out)
}

// knownChoice returns a choice of a tool where it is one of words or names one of
// the tools, all of which are judged; else nil.
func knownChoice(choice canon.Raw, tools []string) canon.Raw {
	r := canon.NewReader(choice)
	if r.Kind() == canon.KindText {
		if !slices.Contains([]string{"none", "auto", "required"}, r.Text()) {
			return nil
		}
		return choice
	}
	kind, _ := lookup[string](choice, "type")
	name, named := lookup[string](choice, kind, "name")
	if !named || kind != "function" && kind != "custom" || !slices.Contains(tools, name) {
		return nil
	}
	return knownTool(choice, "name")
}

// only returns the fields of these names.
func only(fields map[string]canon.Raw, names ...string) map[string]canon.Raw {
	out := make(map[string]canon.Raw, len(names))
	for _, name := range names {
		if value, ok := fields[name]; ok {
			out[name] = value
		}
	}
	return out
}

// encodeFields encodes items that are canonical, which cannot fail.
func encodeFields(fields map[string]canon.Raw) canon.Raw {
	raw, err := canon.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return raw
}
