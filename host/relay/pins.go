package relay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"slices"
)

// Pins are recorded messages. In what goes to the provider they replace what an agent that was started again sends in
// their place, such as another date or another result of the same tool: so the model sees one conversation, and
// the provider has its beginning in the cache. Parts that the agent sends unchanged are no pins.
type Pins map[string]json.RawMessage // by digest of the place and of what the agent sends

// Note adds what differs in a request that was answered from the record and the recorded request.
func (p Pins) Note(now *Asked, recorded []byte) {
	if bytes.Equal(now.Body, recorded) {
		return
	}
	was := make(map[string]json.RawMessage)
	for place, raw := range now.pinnable(recorded) {
		was[place] = raw
	}
	found := make(map[string]json.RawMessage)
	places := 0
	for place, raw := range now.pinnable(now.Body) {
		places++
		old, both := was[place]
		switch key := pinKey(place, raw); {
		case !both:
			return // messages do not stand in pairs
		case !bytes.Equal(old, raw) && key != pinKey(place, old) && now.alike(raw, old):
			found[key] = old
		}
	}
	if places != len(was) {
		return
	}
	for key, old := range found { // order cannot show: each has its own key
		p[key] = old
	}
}

// Pin returns the request with the pins in it, and by JSON pointer what they have replaced; the same request: nothing.
func (p Pins) Pin(a *Asked) (*Asked, map[string][]byte) {
	if len(p) == 0 || a.form == formOther {
		return a, nil
	}
	edit, replaced := Edit{Text: a.Body}, make(map[string][]byte)
	for place, raw := range a.pinnable(a.Body) {
		if pin := p[pinKey(place, raw)]; pin != nil {
			edit.Replace(raw, Unmarked(pin, raw))
			replaced[place] = raw
		}
	}
	if len(replaced) == 0 {
		return a, nil
	}
	pinned, err := Read(a.Dialect, a.Method, a.Path, a.Header, edit.Edited())
	if err != nil || pinned.Key != a.Key {
		return a, nil
	}
	return pinned, replaced
}

// Unmarked returns what is on record for the place of what an agent sends: without a mark of the cache, unless the agent
// sets one there now. It marks later messages then, and providers take few marks.
func Unmarked(recorded, sent json.RawMessage) json.RawMessage {
	if bytes.Contains(sent, cacheMember) {
		return recorded
	}
	return cacheMark.ReplaceAll(recorded, nil)
}

var (
	cacheMember = []byte(`"cache_control"`) //nolint:gochecknoglobals // a constant
	// In a text the quotes would stand behind backslashes.
	cacheMark = regexp.MustCompile(`,\s*"cache_control"\s*:\s*\{[^{}]*\}|"cache_control"\s*:\s*\{[^{}]*\}\s*,`)
)

func pinKey(place string, raw json.RawMessage) string {
	return keyOf([]any{place, canonical(raw, "cache_control")})
}

// pinnable yields the parts of a request that the agent has written, each with its JSON pointer.
func (a *Asked) pinnable(body []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for name, value := range members(body) {
			if name != "system" && name != "instructions" && name != "messages" && name != "input" {
				continue
			}
			if text := bytes.TrimSpace(value); len(text) > 0 && text[0] == '"' && !yield("/"+name, value) {
				return
			}
			i := -1
			for _, raw := range members(value) {
				i++
				if talks := name == "messages" || name == "input"; talks && a.said(fieldsOf(raw)) {
					continue
				}
				if !yield(fmt.Sprintf("/%s/%d", name, i), raw) {
					return
				}
			}
		}
	}
}

// alike reports whether two parts have one lineage.
func (a *Asked) alike(x, y json.RawMessage) bool {
	var of [2]user
	for i, raw := range []json.RawMessage{x, y} {
		t := fieldsOf(raw)
		if role := t.text("role"); role == "" && t.text("call_id") == "" || role == "system" || role == "developer" {
			continue // a part of the system prompt
		}
		of[i].add(a.profile(), t)
		slices.Sort(of[i].ids)
	}
	return slices.Equal(of[0].ids, of[1].ids) && slices.Equal(of[0].texts, of[1].texts) && of[0].notices == of[1].notices
}
