package manifest

import (
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// field is one field of a struct by its tag.
type field struct {
	name     string
	optional bool // absent where it is empty
	typ      reflect.Type
}

func fieldsOf(t reflect.Type) []field {
	var out []field
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("cbor"), ",")
		out = append(out, field{name, options != "", f.Type})
	}
	return out
}

// fit returns v, as canon.Decode gives it and which it changes, in the form in
// which a t is encoded: without fields that may be absent and are empty. The
// error begins with the place, below path, of what no t is encoded to.
func fit(t reflect.Type, v any, path string) (any, error) {
	switch t {
	case reflect.TypeFor[Hash]():
		b, ok := v.([]byte)
		return v, unless(ok && len(b) == len(Hash{}), "a hash", v, path)
	case reflect.TypeFor[PublicKey]():
		b, ok := v.([]byte)
		return v, unless(ok && len(b) == len(PublicKey{}), "a public key", v, path)
	case reflect.TypeFor[Data]():
		return v, nil
	}
	ok, want := true, ""
	switch t.Kind() {
	case reflect.Pointer:
		return fit(t.Elem(), v, path)
	case reflect.Struct:
		return fitStruct(t, v, path)
	case reflect.Map:
		return fitMap(t, v, path)
	case reflect.Slice:
		return fitList(t, v, path)
	case reflect.String:
		_, ok = v.(string)
		want = "text"
	case reflect.Bool:
		_, ok = v.(bool)
		want = "true or false"
	case reflect.Uint64:
		ok, want = isUint64(v), "an integer of 64 bits from 0"
	case reflect.Int64:
		_, ok = v.(int64)
		want = "an integer of 64 bits with sign"
	default:
		panic("manifest: a field of type " + t.String())
	}
	return v, unless(ok, want, v, path)
}

func fitStruct(t reflect.Type, v any, path string) (any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, unless(ok, "a map", v, path)
	}
	fields := fieldsOf(t)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			return nil, fmt.Errorf("%s: there is no such key", path+"/"+escape(name))
		}
	}
	for _, f := range fields {
		at := path + "/" + f.name
		child, there := m[f.name]
		if !there && !f.optional {
			return nil, fmt.Errorf("%s: is missing", at)
		}
		if !there {
			continue
		}
		child, err := fit(f.typ, child, at)
		if err != nil {
			return nil, err
		}
		if m[f.name] = child; f.optional && isEmpty(f.typ, child) {
			delete(m, f.name)
		}
	}
	return m, nil
}

func fitMap(t reflect.Type, v any, path string) (any, error) {
	m, ok := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		child, err := fit(t.Elem(), m[name], path+"/"+escape(name))
		if err != nil {
			return nil, err
		}
		m[name] = child
	}
	return v, unless(ok, "a map", v, path)
}

func fitList(t reflect.Type, v any, path string) (any, error) {
	list, ok := v.([]any)
	for i := range list {
		child, err := fit(t.Elem(), list[i], path+"/"+strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		list[i] = child
	}
	return v, unless(ok, "a list", v, path)
}

func isUint64(v any) bool {
	switch n := v.(type) {
	case int64:
		return n >= 0
	case *big.Int:
		return n.IsUint64()
	}
	return false
}

// isEmpty reports whether a t that is encoded as v is left out where it may be.
// What is behind a pointer, and Data, are there or not, and never empty.
func isEmpty(t reflect.Type, v any) bool {
	if t.Kind() == reflect.Pointer || t == reflect.TypeFor[Data]() {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case []byte:
		return Hash(v).IsZero() // fit lets no other bytes stand here
	default:
		return v == "" || v == false || v == int64(0)
	}
}

// unless returns the error that v at path is not what is wanted, or nil.
func unless(ok bool, want string, v any, path string) error {
	if ok {
		return nil
	}
	if path == "" {
		return fmt.Errorf("want %s, not %s", want, describe(v))
	}
	return fmt.Errorf("%s: want %s, not %s", path, want, describe(v))
}

// describe names the type of a value, for messages.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return "text"
	case []byte:
		return fmt.Sprintf("%d bytes", len(v))
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	default:
		return fmt.Sprintf("the number %v", v)
	}
}
