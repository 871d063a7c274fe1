package world

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/engines"
)

// agentModule begins the names of modules whose function agent has options that are names.
const agentModule = "@agent/"

// optionChecker looks at the options of one reducer.
type optionChecker struct {
	m               *manifest.Manifest
	kinds, events   []string
	faults, unknown []Finding
}

func agentNames(m *manifest.Manifest, content func(manifest.Hash) ([]byte, error)) (faults, unknown []Finding, err error) {
	c := optionChecker{m: m, kinds: slices.Sorted(maps.Keys(m.Effects)), events: slices.Sorted(maps.Keys(m.Events))}
	seen := make(map[manifest.Hash]bool)
	for _, name := range slices.Sorted(maps.Keys(m.Reducers)) {
		r := m.Reducers[name]
		library := slices.ContainsFunc(slices.Sorted(maps.Keys(r.Modules)), func(s string) bool { return strings.HasPrefix(s, "@") })
		reader, ok := engines.ReaderOf(r.Engine)
		if !ok || !library {
			continue
		}
		if err := c.reducer(name, &r, reader, content, seen); err != nil {
			return nil, nil, err
		}
	}
	return c.faults, c.unknown, nil
}

// reducer looks at the code of a reducer, each text once, and at its params.
func (c *optionChecker) reducer(name string, r *manifest.Reducer, reader reducer.Reader, content func(manifest.Hash) ([]byte, error), seen map[manifest.Hash]bool) error {
	code := r.Code()
	for _, file := range slices.Sorted(maps.Keys(code)) {
		if strings.HasPrefix(file, "@") {
			continue
		}
		text, err := content(code[file])
		if err != nil {
			return err
		}
		found, err := reader.Mentions(file, text)
		if err != nil {
			continue // which others report
		}
		for _, call := range found.Calls {
			if !strings.HasPrefix(call.Module, "@") {
				continue
			}
			module, err := content(r.Modules[call.Module])
			if err != nil {
				return err
			}
			known, err := reader.Options(call.Module, module, call.Function)
			if err != nil {
				continue
			}
			if !seen[code[file]] {
				c.written(file, &call, known)
			}
			if call.Params {
				c.params(name, r, &call, known)
			}
		}
		seen[code[file]] = true
	}
	return nil
}

// written looks at the options that stand in code.
func (c *optionChecker) written(file string, call *reducer.Call, known []reducer.Parameter) {
	for _, o := range call.Options {
		unknown, unfit := inspect(call, known, o.Text, o.Value)
		if unknown != "" {
			c.unknown = append(c.unknown, Finding{File: file, Line: o.Line, Column: o.Column, Msg: unknown})
		}
		if unfit != "" {
			c.faults = append(c.faults, Finding{File: file, Line: o.At.Line, Column: o.At.Column, Msg: unfit})
			continue
		}
		for _, text := range o.Texts {
			if msg := c.wrong(call, o.Text, text.Text); msg != "" {
				c.faults = append(c.faults, Finding{File: file, Line: text.Line, Column: text.Column, Msg: msg})
			}
		}
	}
}

// inspect returns what is wrong with an option of a call: that there is none of that name, or
// that the function cannot take the value; empty: nothing.
func inspect(call *reducer.Call, known []reducer.Parameter, option string, value any) (unknown, unfit string) {
	at := slices.IndexFunc(known, func(p reducer.Parameter) bool { return p.Name == option })
	switch {
	case len(known) == 0:
		return "", ""
	case at < 0:
		var names []string
		for _, p := range known {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		return fmt.Sprintf("%s of %s has no option %q%s", call.Function, call.Module, option, manifest.Instead(option, names)), ""
	}
	says := misfit(known[at].Default, value)
	if says == "" && ofAgent(call) {
		says = misfitOfAgent(option, value)
	}
	if says != "" {
		says = fmt.Sprintf("%s of %s: %s: %s", call.Function, call.Module, option, says)
	}
	return "", says
}

// params looks at the options that are params of a reducer.
func (c *optionChecker) params(name string, r *manifest.Reducer, call *reducer.Call, known []reducer.Parameter) {
	if len(r.Params) == 0 {
		return
	}
	decoded, err := canon.Decode(r.Params)
	params, ok := decoded.(map[string]any)
	if err != nil || !ok {
		return
	}
	for _, option := range slices.Sorted(maps.Keys(params)) {
		at := []string{"reducers", name, "params", option}
		unknown, unfit := inspect(call, known, option, params[option])
		if unknown != "" {
			c.unknown = append(c.unknown, Finding{Path: manifest.Pointer(at...), Msg: unknown})
		}
		if unfit != "" {
			c.faults = append(c.faults, Finding{Path: manifest.Pointer(at...), Msg: unfit})
			continue
		}
		check := func(value any, at []string) {
			if text, ok := value.(string); ok {
				if msg := c.wrong(call, option, text); msg != "" {
					c.faults = append(c.faults, Finding{Path: manifest.Pointer(at...), Msg: msg})
				}
			}
		}
		check(params[option], at)
		if list, ok := params[option].([]any); ok {
			for i, item := range list {
				check(item, append(slices.Clone(at), strconv.Itoa(i)))
			}
		}
	}
}

// wrong returns what is wrong with a name that an option of an agent gives; empty: nothing.
func (c *optionChecker) wrong(call *reducer.Call, option, name string) string {
	if !ofAgent(call) {
		return ""
	}
	kind := func(s string) bool { _, ok := c.m.Effects[s]; return ok }
	switch option {
	case "model":
		if !kind(name) {
			return fmt.Sprintf("there is no effect %q for the agent to ask%s", name, manifest.Instead(name, c.kinds))
		}
	case "tools":
		begin, prefix := strings.CutSuffix(name, "*")
		fits := func(s string) bool { return strings.HasPrefix(s, begin) }
		if prefix && !slices.ContainsFunc(c.kinds, fits) || !prefix && !kind(name) {
			return fmt.Sprintf("no effect matches the tool %q%s", name, manifest.Instead(name, c.kinds))
		}
	case "asks", "emits":
		if _, ok := c.m.Events[name]; !ok && name != "" {
			return fmt.Sprintf("there is no event %q for the agent to emit%s", name, manifest.Instead(name, c.events))
		}
	}
	return ""
}

// ofAgent reports whether a call makes an agent.
func ofAgent(call *reducer.Call) bool {
	return strings.HasPrefix(call.Module, agentModule) && call.Function == "agent"
}

// misfit returns why a function fails that is given a value for an argument with a value of its
// own, whose type is the one that it takes; empty: it does not, as far as that tells.
func misfit(own, value any) string {
	want, is := typeOf(own), typeOf(value)
	switch {
	case want == "" || is == "" || own == nil:
		return ""
	case value == nil && (own == "" || own == false || own == int64(0)): // it is asked for whether it is anything
		return ""
	case want == "a number" && is == "an integer":
		return ""
	case want != is:
		return fmt.Sprintf("want %s, not %s%s", want, given(value, is), meantBy(want, value))
	case want == "an integer" && strings.HasPrefix(fmt.Sprint(value), "-"):
		return fmt.Sprintf("want an integer from 0 on, not %v", value)
	}
	return ""
}

// misfitOfAgent is misfit for what more is known of an agent's options.
func misfitOfAgent(option string, value any) string {
	switch option {
	case "turns":
		if value == int64(0) {
			return "want an integer from 1 on, not 0: it would never ask its model"
		}
	case "prompt", "shorten", "finished":
		if is := typeOf(value); value != nil && is != "" {
			return "want a function, which code can give, not " + given(value, is)
		}
	case "tools":
		list, _ := value.([]any)
		for i, item := range list {
			if is := typeOf(item); is != "" && is != "text" {
				return fmt.Sprintf("want the names of effects, and item %d is %s", i+1, given(item, is))
			}
		}
	}
	return ""
}

// typeOf returns what a value is; empty: code decides.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "true or false"
	case int64, *big.Int:
		return "an integer"
	case float64:
		return "a number"
	case string:
		return "text"
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	}
	return ""
}

// given is a value of a type as people are told of it.
func given(v any, is string) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("the text %q", v)
	case bool, int64, *big.Int, float64:
		return fmt.Sprint(v)
	}
	return is
}

// meantBy says which value of the type that is wanted was probably meant.
func meantBy(want string, v any) string {
	text := strings.TrimSpace(fmt.Sprint(v))
	switch want {
	case "a list":
		if _, is := v.(string); is {
			return fmt.Sprintf(": did you mean [%q]?", v)
		}
	case "an integer":
		if n, err := strconv.ParseUint(strings.TrimSuffix(text, ".0"), 10, 63); err == nil {
			return fmt.Sprintf(": did you mean %d?", n)
		}
	case "a number":
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			return fmt.Sprintf(": did you mean %v?", x)
		}
	case "true or false":
		yes := slices.Contains([]string{"true", "yes", "on", "y", "1"}, strings.ToLower(text))
		if yes || slices.Contains([]string{"false", "no", "off", "n", "0"}, strings.ToLower(text)) {
			return fmt.Sprintf(": did you mean %t?", yes)
		}
	case "text":
		if list, is := v.([]any); is && len(list) == 1 && typeOf(list[0]) == "text" {
			return fmt.Sprintf(": did you mean %q?", list[0])
		}
		if is := typeOf(v); is == "an integer" || is == "a number" {
			return fmt.Sprintf(": did you mean %q?", text)
		}
	}
	return ""
}
