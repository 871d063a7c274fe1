package governance

import (
	"net/url"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// Codes of llm effects; CodeToolNotAllowed is one of mcp effects too.
const (
	CodeProviderNotAllowed Code = "provider_not_allowed"
	CodeModelNotAllowed    Code = "model_not_allowed"
	CodeToolNotAllowed     Code = "tool_not_allowed"
	CodeMaxTokensExceeded  Code = "max_tokens_exceeded" // or not given where the capability bounds them
)

// LLMTarget is the chat completion that an llm effect would ask for.
type LLMTarget struct {
	BaseURL   string    `cbor:"base_url"`   // as the config has it
	Provider  string    `cbor:"-"`          // host of BaseURL in lower case, without the port
	APIKey    string    `cbor:"api_key"`    // a reference to a secret; empty: none is sent
	Model     string    `cbor:"model"`      // empty: not given
	Tools     []string  `cbor:"-"`          // that the model may ask for, in the order of the request
	MaxTokens uint64    `cbor:"max_tokens"` // of the answer; 0: not given
	Request   canon.Raw `cbor:"-"`          // the request's body, of known names only: params, and what config fixes
	Price     LLMPrice  `cbor:"price"`
}

// LLMPrice is what 1,000 tokens cost, in millionths of a unit of money.
type LLMPrice struct {
	Prompt     uint64 `cbor:"prompt"`
	Completion uint64 `cbor:"completion"`
}

// ParseLLM reads the config and the params of an llm effect. Config is
//
//	base_url     where the API is, such as https://api.openai.com/v1
//	api_key      a reference such as secret://NAME
//	model        fixes the model
//	max_tokens   fixes the bound of the answer
//	price        {prompt, completion}: see LLMPrice
//
// and params are those of an OpenAI chat completion. The request is built anew
// of what has a known name, to the letter, in params and in their tools: servers
// differ in what they take for a name, and in which of two counts. The error is
// a *CapError.
func ParseLLM(config, params canon.Raw) (*LLMTarget, error) {
	t := new(LLMTarget)
	if err := decodeConfig(config, t); err != nil {
		return nil, err
	}
	base, err := serverURL("base_url", t.BaseURL)
	if err != nil {
		return nil, err
	}
	if base.RawQuery != "" {
		return nil, capErrorf(CodeBadConfig, "base_url has a query, which no request would keep")
	}
	if t.APIKey != "" && !strings.HasPrefix(t.APIKey, "secret://") { // without the text, which may be a secret itself
		return nil, capErrorf(CodeBadConfig, "api_key is no reference such as secret://NAME")
	}
	fields, err := paramFields(params)
	if err != nil {
		return nil, err
	}
	t.Provider = strings.ToLower(base.Hostname())
	if err := refuseDetours(fields); err != nil {
		return nil, err
	}
	if t.Model, err = fixText(fields, "model", t.Model); err != nil {
		return nil, err
	}
	if t.MaxTokens, err = maxTokens(fields, t.MaxTokens); err != nil {
		return nil, err
	}
	if t.Tools, err = toolNames(fields["tools"]); err != nil {
		return nil, err
	}
	if t.Request, err = canon.Marshal(knownParams(fields, t.Tools)); err != nil {
		return nil, capErrorf(CodeBadParams, "params: %v", err)
	}
	return t, nil
}

// Allowed says which bound of a capability t exceeds; nil: none.
func (t *LLMTarget) Allowed(p *manifest.CapParams) *CapError {
	isProvider := func(host string) bool { return strings.EqualFold(host, t.Provider) }
	if !slices.ContainsFunc(p.Providers, isProvider) {
		return capErrorf(CodeProviderNotAllowed, "provider %q is not among %s", t.Provider, quoted(p.Providers))
	}
	if !matchesAny(p.Models, t.Model) {
		return capErrorf(CodeModelNotAllowed, "model %q is not among %s", shortened(t.Model), quoted(p.Models))
	}
	for _, tool := range t.Tools {
		if !matchesAny(p.Tools, tool) {
			return capErrorf(CodeToolNotAllowed, "tool %q is not among %s", shortened(tool), quoted(p.Tools))
		}
	}
	switch {
	case p.MaxTokens == 0:
		return nil
	case t.MaxTokens == 0:
		return capErrorf(CodeMaxTokensExceeded, "max_tokens is not given, %d are allowed", p.MaxTokens)
	case t.MaxTokens > p.MaxTokens:
		return capErrorf(CodeMaxTokensExceeded, "max_tokens is %d, %d are allowed", t.MaxTokens, p.MaxTokens)
	}
	return nil
}

// refuseDetours refuses params that would go round the checks: functions is
// what tools was called before, models and plugins are how routers name models
// and tools, and stream and n change the shape of the answer.
func refuseDetours(fields map[string]canon.Raw) error {
	for _, name := range []string{"functions", "function_call", "models", "plugins", "web_search_options", "stream", "n"} {
		value, ok := fields[name]
		if !ok {
			continue
		}
		r := canon.NewReader(value)
		switch {
		case r.Null():
		case name == "stream" && r.Kind() == canon.KindBool && !r.Bool():
		case name == "n" && string(value) == "\x01": // canonical 1
		default:
			return capErrorf(CodeParamNotAllowed, "%s is not allowed", name)
		}
	}
	return nil
}

// maxTokens reads the bound of an answer, under either of its names, and puts
// the one that config fixes into fields.
func maxTokens(fields map[string]canon.Raw, fixed uint64) (uint64, error) {
	const older, newer = "max_tokens", "max_completion_tokens"
	var asked uint64
	for _, name := range []string{older, newer} {
		r := canon.NewReader(fields[name])
		if len(fields[name]) == 0 || r.Null() {
			continue
		}
		n := r.Uint()
		switch {
		case r.Close() != nil || n == 0:
			return 0, capErrorf(CodeBadParams, "%s is not a whole number above 0", name)
		case asked != 0:
			return 0, capErrorf(CodeParamNotAllowed, "%s and %s are two names of one param", older, newer)
		case fixed != 0 && n != fixed:
			return 0, capErrorf(CodeParamNotAllowed, "%s is %d, config.max_tokens is %d", name, n, fixed)
		}
		asked = n
	}
	if asked == 0 && fixed != 0 {
		delete(fields, newer) // it is null
		fields[older] = canon.AppendUint(nil, fixed)
		asked = fixed
	}
	return asked, nil
}

// toolNames returns the names of an OpenAI list of tools. A tool that is
// neither a function nor a custom one is built into the provider: its type is
// its name.
func toolNames(tools canon.Raw) ([]string, error) {
	r := canon.NewReader(tools)
	if len(tools) == 0 || r.Null() {
		return nil, nil
	}
	n := r.Array()
	var names []string
	for i := range n {
		tool := r.Raw()
		name, ok := lookup[string](tool, "type")
		if ok && (name == "function" || name == "custom") {
			name, ok = lookup[string](tool, name, "name")
		}
		if !ok {
			return nil, capErrorf(CodeBadParams, "tools[%d] has no type, or no name", i)
		}
		names = append(names, name)
	}
	if r.Close() != nil {
		return nil, capErrorf(CodeBadParams, "tools is not a list of tools")
	}
	return names, nil
}

// lookup returns the item at a path of names in data; false: there is none, or it is of another type.
func lookup[T any](data canon.Raw, path ...string) (v T, ok bool) {
	item, err := canon.Lookup(data, path...)
	if err == nil {
		err = canon.Unmarshal(item, &v)
	}
	if err != nil {
		var none T
		return none, false
	}
	return v, true
}

// paramFields returns the items of a map of params.
func paramFields(params canon.Raw) (map[string]canon.Raw, error) {
	fields := map[string]canon.Raw{}
	if len(params) == 0 {
		return fields, nil
	}
	if err := canon.Valid(params); err != nil {
		return nil, capErrorf(CodeBadParams, "params: %v", err)
	}
	r := canon.NewReader(params)
	for range r.Map() {
		name := r.Text()
		fields[name] = r.Raw()
	}
	if r.Close() != nil {
		return nil, capErrorf(CodeBadParams, "params are not a map")
	}
	return fields, nil
}

// fixText returns the text of a field, which is the one that config fixes, if
// it does.
func fixText(fields map[string]canon.Raw, name, fixed string) (string, error) {
	value, ok := fields[name]
	if !ok {
		if fixed != "" {
			fields[name] = canon.AppendText(nil, fixed)
		}
		return fixed, nil
	}
	r := canon.NewReader(value)
	text := r.Text()
	switch {
	case r.Close() != nil:
		return "", capErrorf(CodeBadParams, "%s is not text", name)
	case fixed != "" && text != fixed:
		return "", capErrorf(CodeParamNotAllowed, "%s is %q, config.%s is %q", name, shortened(text), name, fixed)
	}
	return text, nil
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return manifest.Match(pattern, name) })
}

// serverURL parses the address of a server that config names under key.
func serverURL(key, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil: // it may hold a password: not in the reason
		return nil, capErrorf(CodeBadConfig, "%s is not a URL", key)
	case u.User != nil:
		return nil, capErrorf(CodeBadConfig, "%s names a user", key)
	case holdsSecret(address):
		return nil, capErrorf(CodeBadConfig, "%s holds a reference to a secret, which would be sent as it is written: a secret goes into a header", key)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Fragment != "":
		return nil, capErrorf(CodeBadConfig, "%s is %q, not an http or https address", key, shortened(address))
	}
	return u, nil
}

func llmAdapter() adapter {
	return adapter{
		parse: func(config, params canon.Raw) (target, error) { return ParseLLM(config, params) },
		fixed: func(config canon.Raw, p *manifest.CapParams) *CapError {
			t, err := ParseLLM(config, nil)
			if err != nil {
				return nil
			}
			exceeded := t.Allowed(p)
			if exceeded != nil && (exceeded.Code == CodeMaxTokensExceeded || exceeded.Code == CodeModelNotAllowed && t.Model == "") {
				return nil // params say it
			}
			return exceeded
		},
		needs: func(config canon.Raw) (Needs, error) {
			t, err := ParseLLM(config, nil)
			if err != nil {
				return Needs{}, err
			}
			return goesTo(t.BaseURL)
		},
	}
}
