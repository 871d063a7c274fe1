package reducer

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// flat reads and writes structs of numbers, strings and booleans without the
// general codec, which is the greater part of what a small step costs. Where a
// type or some bytes are anything else, the general codec does it; a test holds
// the two equal. A flat is bound to one variable.
type flat struct {
	fields []flatField // in canonical order of their keys
}

type flatField struct {
	key   []byte // canonical
	value reflect.Value
}

// flatOf returns the flat of the variable at ptr, or nil where its type is not
// flat.
func flatOf(ptr any) *flat {
	v := reflect.ValueOf(ptr).Elem()
	t := v.Type()
	if t.Kind() != reflect.Struct || t.NumMethod() > 0 || reflect.PointerTo(t).NumMethod() > 0 || t.NumField() > 23 {
		return nil
	}
	f := new(flat)
	for i := range t.NumField() {
		field := t.Field(i)
		name, tagged := field.Tag.Lookup("cbor")
		plain := bytes.IndexByte([]byte(name), ',') < 0 && name != "" && name != "-"
		if !field.IsExported() || field.Anonymous || !tagged || !plain || !isFlat(field.Type) {
			return nil
		}
		f.fields = append(f.fields, flatField{key: canon.AppendText(nil, name), value: v.Field(i)})
	}
	slices.SortFunc(f.fields, func(a, b flatField) int { return bytes.Compare(a.key, b.key) })
	for i := 1; i < len(f.fields); i++ {
		if bytes.Equal(f.fields[i].key, f.fields[i-1].key) {
			return nil
		}
	}
	return f
}

// isFlat reports whether t is one of the predeclared types that a flat knows.
func isFlat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		return t.PkgPath() == ""
	default:
		return false
	}
}

// readMap sets the variable from canonical bytes. It reports false, having set
// anything or nothing, where the bytes are not a map of exactly its fields.
func (f *flat) readMap(data []byte) bool {
	if f == nil {
		return false
	}
	r := canon.NewReader(data)
	if r.Map() != len(f.fields) {
		return false
	}
	for i := range f.fields {
		field := &f.fields[i]
		if !bytes.HasPrefix(data[r.Offset():], field.key) {
			return false
		}
		r.TextBytes()
		switch field.value.Kind() {
		case reflect.Bool:
			field.value.SetBool(r.Bool())
		case reflect.String:
			field.value.SetString(r.Text())
		case reflect.Int, reflect.Int64:
			n := r.Uint() // a negative one is for the general codec
			field.value.SetInt(int64(n))
			if int64(n) < 0 {
				return false
			}
		default:
			field.value.SetUint(r.Uint())
		}
	}
	return r.Close() == nil
}

// append appends the canonical bytes of the variable. It reports false where a
// string is for the general codec to refuse.
func (f *flat) append(b []byte) ([]byte, bool) {
	if f == nil {
		return nil, false
	}
	b = canon.AppendMap(b, len(f.fields))
	for i := range f.fields {
		field := &f.fields[i]
		b = append(b, field.key...)
		switch field.value.Kind() {
		case reflect.Bool:
			b = canon.AppendBool(b, field.value.Bool())
		case reflect.String:
			start := len(b)
			b = canon.AppendText(b, field.value.String())
			if canon.Valid(b[start:]) != nil {
				return nil, false
			}
		case reflect.Int, reflect.Int64:
			b = canon.AppendInt(b, field.value.Int())
		default:
			b = canon.AppendUint(b, field.value.Uint())
		}
	}
	return b, true
}
