package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// plain returns a value as canonical bytes have it, so that 1 read from YAML is the 1 of
// a state.
func plain(v any) (any, error) {
	b, err := canon.Marshal(v)
	if err != nil {
		return nil, err
	}
	return canon.Decode(b)
}

// misfit returns where a value is not what is wanted, and how: a map has to hold at
// least what is wanted, anything else to be it. Empty: it fits.
func misfit(at string, want, have any) string {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: want %s, not %s", at, show(want), show(have))
		}
		for _, name := range slices.Sorted(maps.Keys(w)) {
			value, there := h[name]
			if !there && w[name] != nil {
				return fmt.Sprintf("%s.%s: want %s, and it is not there", at, name, show(w[name]))
			}
			if text := misfit(at+"."+name, w[name], value); text != "" {
				return text
			}
		}
		return ""
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return fmt.Sprintf("%s: want %s, not %s", at, show(want), show(have))
		}
		for i := range w {
			if text := misfit(at+"["+strconv.Itoa(i)+"]", w[i], h[i]); text != "" {
				return text
			}
		}
		return ""
	}
	if a, b := show(want), show(have); a != b {
		return fmt.Sprintf("%s: want %s, not %s", at, a, b)
	}
	return ""
}

// maxShown is how many characters of a value a message has.
const maxShown = 300

// show writes a value as JSON.
func show(v any) string {
	b, err := canon.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return brief(b)
}

// brief writes canonical bytes as JSON, shortened.
func brief(data canon.Raw) string {
	text, err := canon.ToJSON(data)
	if err != nil {
		return err.Error()
	}
	if runes := []rune(string(text)); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return string(text)
}

// fits reports whether canonical bytes are what is wanted; nil: anything is.
func fits(want any, have canon.Raw) (string, error) {
	if want == nil {
		return "", nil
	}
	w, err := plain(want)
	if err != nil {
		return "", err
	}
	var h any
	if len(have) > 0 {
		if h, err = canon.Decode(have); err != nil {
			return "", err
		}
	}
	return misfit("$", w, h), nil
}
