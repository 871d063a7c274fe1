package governance

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// encode appends a CEL value as canonical CBOR. The error names what the data
// of a world has no form for, or what is too large.
func encode(b []byte, v ref.Val, depth int) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case types.Null:
		b = canon.AppendNull(b)
	case types.Bool:
		b = canon.AppendBool(b, bool(v))
	case types.Int:
		b = canon.AppendInt(b, int64(v))
	case types.Uint:
		b = canon.AppendUint(b, uint64(v))
	case types.Double:
		b, err = canon.AppendFloat(b, float64(v))
	case types.String:
		b, err = encodeText(b, string(v))
	case types.Bytes:
		b = canon.AppendBytes(b, v)
	case *great:
		b = canon.AppendBig(b, v.Int)
	case *dataList:
		b = append(b, v.data...)
	case *dataMap:
		b = append(b, v.data...)
	case *list:
		b, err = encodeItems(b, v, depth+1)
	case *dict:
		b, err = encodeEntries(b, v.entries, depth+1)
	default:
		err = fmt.Errorf("a value of type %s is not data", v.Type().TypeName())
	}
	if err == nil && len(b) > MaxTransformed {
		err = fmt.Errorf("the data has more than %d bytes", MaxTransformed)
	}
	return b, err
}

func encodeText(b []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return b, fmt.Errorf("the text %.32q is not UTF-8", s)
	}
	return canon.AppendText(b, s), nil
}

func encodeItems(b []byte, l *list, depth int) ([]byte, error) {
	if depth > canon.MaxDepth {
		return b, errTooDeep()
	}
	b = canon.AppendArray(b, len(l.items))
	for _, v := range l.items {
		var err error
		if b, err = encode(b, v, depth); err != nil {
			return b, err
		}
	}
	return b, nil
}

// encodeEntries writes the entries of a map in the order of their encoded keys.
func encodeEntries(b []byte, entries []entry, depth int) ([]byte, error) {
	if depth > canon.MaxDepth {
		return b, errTooDeep()
	}
	type encodedEntry struct {
		key   []byte
		value ref.Val
	}
	var all []encodedEntry
	for _, e := range entries {
		text, ok := e.key.(types.String)
		if !ok {
			return b, fmt.Errorf("a map has a key of type %s, not a string", e.key.Type().TypeName())
		}
		key, err := encodeText(nil, string(text))
		if err != nil {
			return b, err
		}
		all = append(all, encodedEntry{key, e.value})
	}
	slices.SortFunc(all, func(x, y encodedEntry) int { return bytes.Compare(x.key, y.key) })
	b = canon.AppendMap(b, len(all))
	for _, e := range all {
		var err error
		if b, err = encode(append(b, e.key...), e.value, depth); err != nil {
			return b, err
		}
	}
	return b, nil
}

func errTooDeep() error { return fmt.Errorf("the data is nested deeper than %d", canon.MaxDepth) }
