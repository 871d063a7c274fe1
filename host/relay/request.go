package relay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/reducer/recorder"
)

// The dialects.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
)

// form is the API of a dialect that a request is for.
type form int

const (
	formOther     form = iota // no model is asked: a list of models, a count of tokens
	formChat                  // OpenAI Chat Completions
	formResponses             // OpenAI Responses
	formMessages              // Anthropic Messages
)

// maxPrompt is how many bytes of the last text of the user's policies see.
const maxPrompt = 1_000

// Read parses a request of an agent: the fields that policies see, and its lineage in Key. Header is
// that of the agent, of which nothing is recorded. The error says why the request is none.
func Read(dialect, method, target string, header http.Header, body []byte) (*Asked, error) {
	a := &Asked{Header: header}
	a.Dialect, a.Method, a.Path, a.Body = dialect, method, target, body
	a.form = formOf(dialect, method, target)
	if at, _, _ := strings.Cut(target, "?"); a.form == formOther && method != http.MethodGet && !strings.HasSuffix(at, "/messages/count_tokens") {
		return nil, fmt.Errorf("%w: %s %s", ErrUnknown, method, at)
	}
	if len(body) > 0 {
		if !valid(body) {
			return nil, fmt.Errorf("the request is no JSON object: %w", json.Unmarshal(body, new(any)))
		} else if body[afterSpace(body, 0)] != '{' {
			return nil, errors.New("the request is no JSON object")
		}
		if err := a.readFields(fieldsOf(body)); err != nil {
			return nil, err
		}
	}
	if a.Key == "" {
		a.Key = keyOf([]any{dialect, method, target, canonical(body)})
	}
	return a, nil
}

// ErrUnknown says that a request may ask a model in a way that nothing here can judge or count.
var ErrUnknown = errors.New("the gateway passes on chat completions, responses, messages, counts of tokens and what only reads, and knows no")

// Asked is a request, with what is not recorded of it.
type Asked struct {
	recorder.Request

	Header http.Header // of the agent
	Key    string      // the lineage: 32 hex digits; requests of one lineage are the same one, asked again

	form form
}

// Asks reports whether the request asks a model.
func (a *Asked) Asks() bool { return a.form != formOther }

func formOf(dialect, method, target string) form {
	at, _, _ := strings.Cut(target, "?")
	switch at = path.Clean(at); {
	case method != http.MethodPost:
	case dialect == OpenAI && strings.HasSuffix(at, "/chat/completions"):
		return formChat
	case dialect == OpenAI && strings.HasSuffix(at, "/responses"):
		return formResponses
	case dialect == Anthropic && strings.HasSuffix(at, "/messages"):
		return formMessages
	}
	return formOther
}

// readFields reads the fields that policies, budgets and the lineage are about.
func (a *Asked) readFields(fields map[string]json.RawMessage) error {
	if a.form == formOther {
		return nil
	}
	for _, name := range []string{"conversation", "background"} {
		if v := string(bytes.TrimSpace(fields[name])); a.form == formResponses && v != "" && v != "null" && v != "false" {
			return fmt.Errorf("%s keeps the state of the conversation at the provider, where the world cannot see it: send the input whole", name)
		}
	}
	_ = json.Unmarshal(fields["model"], &a.Model)
	_ = json.Unmarshal(fields["stream"], &a.Stream)
	choices := uint64(1)
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "n"} {
		v := bytes.TrimSpace(fields[name])
		if len(v) == 0 || string(v) == "null" {
			continue
		}
		var n uint64
		if json.Unmarshal(v, &n) != nil || n > maxCount {
			return fmt.Errorf("%s is no natural number up to %d", name, maxCount)
		}
		if name == "n" {
			choices = max(n, 1)
		} else {
			a.MaxTokens = max(a.MaxTokens, n)
		}
	}
	if choices > 1 && a.MaxTokens == 0 {
		a.MaxTokens = governance.DefaultOutputTokens
	}
	a.MaxTokens *= choices
	a.InputTokens = uint64(len(a.Body)) / bytesPerToken
	a.readTools(fields["tools"])
	turns, prompt := a.turns(fields)
	a.Prompt = shorten(prompt, maxPrompt)
	at, _, _ := strings.Cut(a.Path, "?")
	a.Key = keyOf([]any{at, a.Model, len(a.Tools) > 0, a.Stream, turns})
	return nil
}

// maxCount is the greatest number that a request may ask for of anything.
const maxCount = 1 << 30

// bytesPerToken is below what texts have, so that what is set aside for a request is enough.
const bytesPerToken = 2

// readTools sorts the tools that the model may ask for from those that the provider runs.
func (a *Asked) readTools(raw json.RawMessage) {
	var tools []struct {
		Type, Name string
		Function   struct{ Name string }
		Tools      []struct{ Name string }
	}
	_ = json.Unmarshal(raw, &tools)
	for _, t := range tools {
		name := t.Name
		if name == "" {
			name = t.Function.Name
		}
		switch t.Type {
		case "namespace":
			for _, of := range t.Tools {
				a.Tools = append(a.Tools, name+"."+of.Name)
			}
		case "", "function", "custom", "local_shell":
			a.Tools = append(a.Tools, name)
		default:
			a.ServerTools = append(a.ServerTools, t.Type)
		}
	}
}

// canonical returns JSON as a value whose members are in order; nil: it is none.
func canonical(raw []byte, without ...string) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return strip(v, without)
}

// strip takes members out of an item, and out of what is in it.
func strip(v any, without []string) any {
	switch v := v.(type) {
	case map[string]any:
		for name, of := range v {
			if slices.Contains(without, name) {
				delete(v, name)
			} else {
				v[name] = strip(of, without)
			}
		}
	case []any:
		for i := range v {
			v[i] = strip(v[i], without)
		}
	}
	return v
}

func shorten(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "")
}
