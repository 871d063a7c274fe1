// Package canon turns values into canonical bytes and back, and hashes them.
//
// The format is deterministic CBOR, RFC 8949 section 4.2.1, restricted to the
// data model of a world (docs/journal-format.md, "Bytes"):
//
//   - integers of any size: shortest head; beyond 64 bits a bignum (tags 2 and
//     3) without leading zeros
//   - byte strings, UTF-8 text strings, arrays, maps with text keys in
//     bytewise order of their encoded form, without duplicates
//   - false, true, null
//   - finite floats in the shortest of 16, 32 and 64 bits that keeps the
//     value; never NaN, an infinity or negative zero
//
// Nothing else is accepted: no indefinite length, no other tag, no undefined,
// no simple value. So equal values have equal bytes, and every decoder here
// refuses bytes that a canonical encoder would not have written.
//
// All functions are safe for concurrent use.
package canon

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// MaxDepth is the deepest nesting of arrays and maps that is accepted.
const MaxDepth = 64

// Raw is one canonical CBOR item. It encodes as itself, and prints as JSON.
// The zero value is null.
type Raw []byte

// Null is the canonical encoding of null.
const Null = "\xf6"

// MarshalCBOR returns r itself, or null for an empty r.
func (r Raw) MarshalCBOR() ([]byte, error) {
	if len(r) == 0 {
		return []byte(Null), nil
	}
	return r, nil
}

// UnmarshalCBOR keeps a copy of data.
func (r *Raw) UnmarshalCBOR(data []byte) error {
	*r = append((*r)[:0:0], data...)
	return nil
}

// MarshalJSON returns r as JSON; see [ToJSON].
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return ToJSON(r)
}

// UnmarshalJSON makes r the canonical form of JSON; see [FromJSON].
func (r *Raw) UnmarshalJSON(data []byte) (err error) {
	*r, err = FromJSON(data)
	return err
}

// modes are the library's encoder and decoder, set up for the format above.
type modes struct {
	enc cbor.UserBufferEncMode
	dec cbor.DecMode
}

//nolint:gochecknoglobals // an immutable codec, built once because building it is slow
var codec = newModes()

func newModes() modes {
	enc, err := cbor.EncOptions{
		Sort:          cbor.SortBytewiseLexical,
		ShortestFloat: cbor.ShortestFloat16,
		NaNConvert:    cbor.NaNConvertReject,
		InfConvert:    cbor.InfConvertReject,
		BigIntConvert: cbor.BigIntConvertShortest,
		IndefLength:   cbor.IndefLengthForbidden,
		NilContainers: cbor.NilContainerAsEmpty,
		TextMarshaler: cbor.TextMarshalerNone,
	}.UserBufferEncMode()
	if err != nil {
		panic(err)
	}
	dec, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		IntDec:            cbor.IntDecConvertSignedOrBigInt,
		BigIntDec:         cbor.BigIntDecodePointer,
		DefaultMapType:    reflect.TypeFor[map[string]any](),
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
		MaxNestedLevels:   MaxDepth + 1,
		MaxArrayElements:  1 << 27,
		MaxMapPairs:       1 << 27,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return modes{enc: enc, dec: dec}
}

// Marshal returns the canonical bytes of v, a value of the data model above or
// a struct of such; negative zero becomes zero. The error names what has no
// canonical form.
func Marshal(v any) ([]byte, error) {
	b, err := codec.enc.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("canon: %w", err)
	}
	return b, normalize(b)
}

// MarshalTo is [Marshal] into a buffer that the caller reuses; on an error the
// buffer's content is undefined.
func MarshalTo(buf *bytes.Buffer, v any) error {
	start := buf.Len()
	if err := codec.enc.MarshalToBuffer(v, buf); err != nil {
		return fmt.Errorf("canon: %w", err)
	}
	return normalize(buf.Bytes()[start:])
}

// normalize does what the library has no option for: it makes negative zeros zero,
// and refuses what lies outside the data model or came with a faulty [Raw].
func normalize(b []byte) error {
	r := Reader{data: b, normalize: true}
	r.skip(MaxDepth)
	return r.Close()
}

// Unmarshal decodes canonical bytes into v and refuses, with their offset,
// bytes that v would not encode to: neither a non-canonical form nor a key that
// v has no field for, a missing field or a null in the place of a number gets
// through. It is for formats; data of users goes through [UnmarshalTrusted].
func Unmarshal(data []byte, v any) error {
	if err := Valid(data); err != nil {
		return err
	}
	if err := UnmarshalTrusted(data, v); err != nil {
		return err
	}
	back, err := Marshal(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(data, back) {
		return &SyntaxError{Offset: commonPrefix(data, back), Reason: "the value found encodes to other bytes"}
	}
	return nil
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// UnmarshalTrusted decodes bytes that are known to be canonical, because this
// process wrote or checked them. It converts where no value is lost, as from an
// integer to a float, leaves fields alone that have no key, and refuses keys
// that have no field.
func UnmarshalTrusted(data []byte, v any) error {
	err := codec.dec.Unmarshal(data, v)
	if unknown := (*cbor.UnknownFieldError)(nil); errors.As(err, &unknown) {
		if named := unknownField(data, v); named != nil {
			return named
		}
	}
	if err != nil {
		return fmt.Errorf("canon: %w", err)
	}
	return nil
}

// Decode returns the value that canonical bytes stand for, built of nil, bool,
// int64, *big.Int, float64, string, []byte, []any and map[string]any.
func Decode(data []byte) (any, error) {
	if err := Valid(data); err != nil {
		return nil, err
	}
	var v any
	err := UnmarshalTrusted(data, &v)
	return v, err
}

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
