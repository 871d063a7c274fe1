package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// MarshalJSON returns p as ParsePatchJSON takes it.
func (p Patch) MarshalJSON() ([]byte, error) {
	type plain Patch // without this method
	if p.Ops == nil {
		p.Ops = []Op{}
	}
	return json.Marshal(plain(p))
}

// MarshalJSON returns o with the hashes and public keys in its value as hex, as in
// the JSON form of a manifest.
func (o Op) MarshalJSON() ([]byte, error) {
	value, err := o.convert(toHex)
	if err != nil {
		return nil, err
	}
	type plain Op // without this method
	o.Value = value
	return json.Marshal(plain(o))
}

// ParsePatchJSON parses a patch as people write it: JSON with the keys of the
// struct tags, hashes in hex, values as in the JSON form of a manifest. The error
// wraps ErrBadPatch and names the place.
func ParsePatchJSON(data []byte) (*Patch, error) {
	raw, err := canon.FromJSON(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPatch, err)
	}
	tree, err := canon.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPatch, err)
	}
	t := reflect.TypeFor[Patch]()
	if tree, err = fit(t, convert(t, tree, fromHex), ""); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPatch, err)
	}
	encoded, err := canon.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPatch, err)
	}
	p, err := DecodePatch(encoded)
	if err != nil {
		return nil, err
	}
	for i := range p.Ops {
		if p.Ops[i].Value, err = p.Ops[i].convert(fromHex); err != nil {
			return nil, fmt.Errorf("%w: /ops/%d: %w", ErrBadPatch, i, err)
		}
	}
	return p, nil
}

// convert returns o's value with what stands where a manifest has hashes and
// public keys turned by f.
func (o Op) convert(f func(any) any) (Data, error) {
	path, err := parsePointer(o.Path)
	t := typeAt(reflect.TypeFor[Manifest](), path)
	if err != nil || t == nil || len(o.Value) == 0 {
		return o.Value, nil // which Apply refuses, or has no value
	}
	tree, err := canon.Decode(o.Value)
	if err != nil {
		return nil, err
	}
	return canon.Marshal(convert(t, tree, f))
}

// toHex is for hashes and for public keys, which have their length.
func toHex(v any) any {
	if b, ok := v.([]byte); ok && len(b) == len(Hash{}) {
		return Hash(b).String()
	}
	return v
}

// fromHex leaves text that is neither as it is, for fit to refuse.
func fromHex(v any) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	h, err := canon.ParseHash(s)
	if err != nil {
		return v
	}
	return h[:]
}

// typeAt returns the type of what is at path in a t, nil where nothing can be;
// below Data is Data.
func typeAt(t reflect.Type, path []string) reflect.Type {
	for _, name := range path {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case t == reflect.TypeFor[Data]():
			return t
		case t.Kind() == reflect.Map, t.Kind() == reflect.Slice:
			t = t.Elem()
		case t.Kind() == reflect.Struct:
			if t = fieldNamed(t, name); t == nil {
				return nil
			}
		default:
			return nil
		}
	}
	return t
}

func fieldNamed(t reflect.Type, name string) reflect.Type {
	for _, f := range fieldsOf(t) {
		if f.name == name {
			return f.typ
		}
	}
	return nil
}

// convert returns v, which it changes, with f applied wherever a t has a hash or
// a public key. What has not the form of a t stays as it is.
func convert(t reflect.Type, v any, f func(any) any) any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[Hash](), reflect.TypeFor[PublicKey]():
		return f(v)
	case reflect.TypeFor[Data]():
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v { // order cannot show: a map is built from a map
			if below := typeAt(t, []string{name}); below != nil {
				v[name] = convert(below, child, f)
			}
		}
	case []any:
		if t.Kind() == reflect.Slice {
			for i, child := range v {
				v[i] = convert(t.Elem(), child, f)
			}
		}
	}
	return v
}
