package chat

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// plain is a message in the same form, whichever API it was recorded from.
type plain struct {
	role    string // empty: there is nothing but answers
	content any
	calls   []callText
	answers []answerText
}

// callText is one call of a tool.
type callText struct {
	at        string // where in the message it stands
	id, name  string
	arguments any // JSON in a text, or an object
}

// answerText is what a tool answered.
type answerText struct {
	id      string // of the call
	content any
	failed  bool // the recording says so
}

// plainMessage reads a message of OpenAI's Chat Completions, of Anthropic's Messages, or
// an item of OpenAI's Responses. What holds a call in another form is refused: a world of
// calls that were left out would answer each question about them with "none".
func plainMessage(fields map[string]any) (plain, error) {
	if err := unreadCalls(fields); err != nil {
		return plain{}, err
	}
	kind, _ := fields["type"].(string)
	if kind != "" && kind != "message" && fields["role"] == nil {
		return item(kind, fields)
	}
	role, err := word(fields, "role")
	if err != nil {
		return plain{}, err
	}
	if role == "tool" {
		a, err := answerOf(fields, "tool_call_id", "content")
		return plain{answers: []answerText{a}}, err
	}
	if roles := []string{"assistant", "developer", "system", "user"}; !slices.Contains(roles, role) {
		return plain{}, fmt.Errorf("role: there is no %q; want one of %s and tool", role, strings.Join(roles, ", "))
	}
	said := plain{role: role, content: fields["content"]}
	if said.calls, err = toolCalls(fields["tool_calls"]); err != nil {
		return said, err
	}
	return said, said.blocks()
}

var (
	// others are names of fields, and types of blocks, in which APIs and frameworks that are not read here have calls.
	others = regexp.MustCompile(`(?i)tool|function|invocation|calls?$|^parts$`)
	// inner are those of them that are looked for at any depth, as in additional_kwargs.
	inner = regexp.MustCompile(`(?i)^(tool|function)_?(calls?|use|invocations?|result|response)$`)
)

// unreadCalls refuses a message with calls in a field that is not read.
func unreadCalls(fields map[string]any) error {
	if fields["function_call"] != nil || fields["role"] == "function" {
		return fmt.Errorf("function_call: this old form has no ids; want tool_calls")
	}
	names := make([]string, 0, len(fields))
	for name, value := range fields { // order cannot show: sorted below
		list, _ := value.([]any)
		object, _ := value.(map[string]any)
		switch {
		case name == "tool_calls" || len(list)+len(object) == 0:
		case others.MatchString(name), name != "content" && name != "input" && holdsCalls(value):
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s: calls are not read in this form; want tool_calls, content blocks of Anthropic, or items of Responses", slices.Min(names))
}

// holdsCalls reports whether calls are somewhere in data that is not read.
func holdsCalls(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, holdsCalls)
	case map[string]any:
		for name, x := range v { // order cannot show: any will do
			list, _ := x.([]any)
			object, _ := x.(map[string]any)
			if inner.MatchString(name) && len(list)+len(object) > 0 || holdsCalls(x) {
				return true
			}
		}
	}
	return false
}

// toolCalls reads the calls of a message of Chat Completions.
func toolCalls(value any) ([]callText, error) {
	if value == nil {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("tool_calls: want a list, not %s", shapeOf(value))
	}
	calls := make([]callText, len(list))
	for n, value := range list {
		at := fmt.Sprintf("tool_calls[%d]", n)
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: want an object, not %s", at, shapeOf(value))
		}
		function, ok := fields["function"].(map[string]any)
		if name, is := fields["function"].(string); is { // of Inspect
			function, ok = map[string]any{"name": name, "arguments": fields["arguments"]}, true
		}
		if !ok {
			return nil, fmt.Errorf("%s: function: want an object, not %s", at, shapeOf(fields["function"]))
		}
		var err error
		if calls[n], err = callOf(at, fields, "id", function, function["arguments"]); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
	}
	return calls, nil
}

// callOf reads a call that has its id and its name each in an object.
func callOf(at string, in map[string]any, id string, named map[string]any, arguments any) (c callText, err error) {
	c = callText{at: at, arguments: arguments}
	if c.id, err = word(in, id); err == nil {
		c.name, err = word(named, "name")
	}
	return c, err
}

// blocks takes the calls and answers out of a content of Anthropic's Messages. A message
// of nothing but answers has no role afterwards.
func (p *plain) blocks() error {
	list, ok := p.content.([]any)
	if one, is := p.content.(map[string]any); is {
		list, ok = []any{one}, true
	}
	if !ok {
		return nil
	}
	rest := make([]any, 0, len(list))
	for n, value := range list {
		at := fmt.Sprintf("content[%d]", n)
		fields, _ := value.(map[string]any)
		kind, _ := fields["type"].(string)
		switch {
		case kind == "tool_use", kind == "server_tool_use", kind == "mcp_tool_use":
			c, err := callOf(at, fields, "id", fields, fields["input"])
			if err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			if fields["tool_type"] != nil { // of Inspect: a tool that the provider ran
				c.arguments = fields["arguments"]
				a, _ := answerOf(fields, "id", "result")
				p.answers = append(p.answers, a)
			}
			p.calls = append(p.calls, c)
		case kind == "tool_result", strings.HasSuffix(kind, "_tool_result"):
			a, err := answerOf(fields, "tool_use_id", "content")
			if err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			p.answers = append(p.answers, a)
		default:
			if others.MatchString(kind) || unreadCalls(fields) != nil {
				return fmt.Errorf("%s: blocks of type %q are not read", at, kind)
			}
			rest = append(rest, value)
		}
	}
	if len(rest) < len(list) {
		p.content = rest
	}
	if len(p.answers) > 0 && len(rest) == 0 && len(p.calls) == 0 {
		p.role = ""
	}
	return nil
}

// item reads an item of OpenAI's Responses that is no message.
func item(kind string, fields map[string]any) (plain, error) {
	switch kind {
	case "function_call", "custom_tool_call":
		arguments := fields["arguments"]
		if kind == "custom_tool_call" {
			arguments = map[string]any{"input": fields["input"]}
		}
		c, err := callOf(kind, fields, "call_id", fields, arguments)
		return plain{role: "assistant", calls: []callText{c}}, err
	case "function_call_output", "custom_tool_call_output":
		a, err := answerOf(fields, "call_id", "output")
		return plain{answers: []answerText{a}}, err
	case "mcp_call":
		return providerCall(kind, fields, fields["name"], fields["arguments"], "output")
	case "web_search_call":
		return providerCall(kind, fields, "web_search", fields["action"], "status")
	case "reasoning":
		return plain{role: "assistant", content: fields["summary"]}, nil
	}
	return plain{}, fmt.Errorf("items of type %q are not read", kind)
}

// providerCall reads a call of a tool that the provider of the model has run, and its answer.
func providerCall(kind string, fields map[string]any, name, arguments any, answer string) (plain, error) {
	a, err := answerOf(fields, "id", answer)
	if err != nil {
		return plain{}, err
	}
	tool, ok := name.(string)
	if !ok {
		return plain{}, fmt.Errorf("name: want text, not %s", shapeOf(name))
	}
	if arguments == nil {
		arguments = map[string]any{}
	}
	return plain{role: "assistant", calls: []callText{{kind, a.id, tool, arguments}}, answers: []answerText{a}}, nil
}

// answerOf reads what a tool answered. Recordings say in several ways that it failed.
func answerOf(fields map[string]any, id, content string) (answerText, error) {
	call, err := word(fields, id)
	if object, is := fields[content].(map[string]any); is && strings.HasSuffix(fmt.Sprint(object["type"]), "_error") { // of a tool that the provider ran
		return answerText{id: call, content: object, failed: true}, err
	}
	failed := says(fields["is_error"]) || says(fields["isError"]) || says(fields["error"]) || fields["status"] == "error" || fields["status"] == "failed"
	return answerText{id: call, content: fields[content], failed: failed}, err
}

// says reports whether a value means yes, of the many that programs have for it.
func says(value any) bool {
	return !slices.Contains([]string{"<nil>", "null", "none", "false", "no", "0", "", "[]", "map[]"}, strings.ToLower(fmt.Sprint(value)))
}

// word returns a text that has to be there.
func word(fields map[string]any, name string) (string, error) {
	word, ok := fields[name].(string)
	switch {
	case !ok:
		return "", fmt.Errorf("%s: want text, not %s", name, shapeOf(fields[name]))
	case word == "":
		return "", fmt.Errorf("%s: is empty", name)
	}
	return word, nil
}
