package canon

import (
	"reflect"
	"strings"
)

// unknownField returns the first key of a map that the struct which v points to
// has no field for, "" where there is none: it is deeper, then. The library
// only says its number.
func unknownField(data []byte, v any) string {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return ""
	}
	known := make(map[string]bool)
	for f := range t.Elem().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("cbor"), ",")
		known[name] = true
	}
	r := NewReader(data)
	for n := r.Map(); n > 0; n-- {
		key := r.Text()
		r.Raw()
		if r.Err() != nil {
			return ""
		}
		if !known[key] {
			return key
		}
	}
	return ""
}
