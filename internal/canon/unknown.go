package canon

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// UnknownFieldError says that a map has a key which there is no field for.
type UnknownFieldError struct {
	Name   string
	Fields []string // that there are, sorted
}

func (e *UnknownFieldError) Error() string { return fmt.Sprintf("canon: there is no field %q", e.Name) }

// unknownField returns an error about the first key of a map that the struct which v points to
// has no field for, nil where there is none: it is deeper, then. The library
// only says its number.
func unknownField(data []byte, v any) *UnknownFieldError {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil
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
			return nil
		}
		if !known[key] {
			return &UnknownFieldError{key, slices.Sorted(maps.Keys(known))}
		}
	}
	return nil
}
