package relay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
)

// keyOf returns a digest of what is the same in requests of one lineage: of values as encoding/json decodes them.
func keyOf(of []any) string {
	d := digest{Hash: sha256.New()}
	d.add(of)
	return hex.EncodeToString(d.Sum(nil)[:16])
}

// digest hashes values, each behind its type and length, so that no two have the same bytes.
type digest struct {
	hash.Hash

	buf [4096]byte
}

func (d *digest) add(v any) {
	switch v := v.(type) {
	case nil:
		d.head('0', 0)
	case bool:
		d.text('b', strconv.FormatBool(v))
	case int:
		d.text('n', strconv.Itoa(v))
	case json.Number:
		d.text('n', v.String())
	case string:
		d.text('s', v)
	case []string:
		d.head('l', len(v))
		for _, item := range v {
			d.text('s', item)
		}
	case []any:
		d.head('l', len(v))
		for _, item := range v {
			d.add(item)
		}
	case map[string]any:
		d.head('m', len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			d.text('s', name)
			d.add(v[name])
		}
	default:
		panic(fmt.Sprintf("relay: a lineage has no %T", v))
	}
}

func (d *digest) head(kind byte, n int) {
	d.Write(strconv.AppendInt(append(d.buf[:0], kind), int64(n), 10))
	d.Write([]byte{':'})
}

func (d *digest) text(kind byte, text string) {
	d.head(kind, len(text))
	for len(text) > 0 {
		n := copy(d.buf[:], text)
		d.Write(d.buf[:n])
		text = text[n:]
	}
}
