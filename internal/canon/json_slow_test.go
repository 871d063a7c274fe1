package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// slowJSON is FromJSON as it was at first: it reads token by token, and keeps each item
// by itself. What FromJSON returns is what it returns, errors too: they are in journals.
func slowJSON(data []byte, maxDigits int) (Raw, error) {
	r := slowReader{json.NewDecoder(bytes.NewReader(data)), maxDigits}
	r.UseNumber()
	b, err := r.appendValue(nil, MaxDepth)
	if err != nil {
		return nil, below("$", err)
	}
	if _, err := r.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("canon: more than one JSON value")
	}
	return b, nil
}

// slowReader reads the tokens of one JSON value.
type slowReader struct {
	*json.Decoder
	maxDigits int // of an integer
}

// appendValue appends the next value; depth is how many containers may still be
// opened.
func (r *slowReader) appendValue(b []byte, depth int) ([]byte, error) {
	token, err := r.next()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if depth == 0 {
			return nil, fmt.Errorf("nested deeper than %d", MaxDepth)
		}
		if t == '[' {
			return r.appendArray(b, depth-1)
		}
		return r.appendObject(b, depth-1)
	case string:
		return AppendText(b, t), nil
	case json.Number:
		return appendNumber(b, t.String(), r.maxDigits)
	case bool:
		return AppendBool(b, t), nil
	default:
		return AppendNull(b), nil
	}
}

func (r *slowReader) next() (json.Token, error) {
	token, err := r.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return token, nil
}

func (r *slowReader) appendArray(b []byte, depth int) ([]byte, error) {
	var items []byte
	n := 0
	for ; r.More(); n++ {
		var err error
		if items, err = r.appendValue(items, depth); err != nil {
			return nil, below("["+strconv.Itoa(n)+"]", err)
		}
	}
	if _, err := r.next(); err != nil {
		return nil, err
	}
	return append(AppendArray(b, n), items...), nil
}

func (r *slowReader) appendObject(b []byte, depth int) ([]byte, error) {
	type pair struct {
		name      string
		key, item []byte
	}
	var pairs []pair
	for r.More() {
		token, err := r.next()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // the decoder lets nothing else stand here
		item, err := r.appendValue(nil, depth)
		if err != nil {
			return nil, below("."+name, err)
		}
		pairs = append(pairs, pair{name, AppendText(nil, name), item})
	}
	if _, err := r.next(); err != nil {
		return nil, err
	}
	slices.SortFunc(pairs, func(a, b pair) int { return bytes.Compare(a.key, b.key) })
	b = AppendMap(b, len(pairs))
	for i, p := range pairs {
		if i > 0 && p.name == pairs[i-1].name {
			return nil, fmt.Errorf("duplicate key %q", p.name)
		}
		b = append(append(b, p.key...), p.item...)
	}
	return b, nil
}

func sameAsSlow(t testing.TB, text []byte) {
	t.Helper()
	const digits = 30
	if CheckText(text) != nil {
		return
	}
	want, fault := slowJSON(text, digits)
	got, err := fromJSON(text, digits)
	if errors.Is(err, errHalf) { // encoding/json has U+FFFD in its place
		require.Regexp(t, `\\u[dD][89a-fA-F]`, string(text))
		require.True(t, fault != nil || bytes.Contains(want, []byte("\uFFFD")), "%q", text)
		return
	}
	require.Equal(t, want, got, "%q", text)
	require.Equal(t, fault == nil, err == nil, "%q: %v", text, err)
	if fault != nil {
		require.EqualError(t, err, fault.Error(), "%q", text)
	}
}

// pieces are what texts are made of that are JSON now and then.
var pieces = strings.Split(`{ } [ ] , : "a" "b" "\u0061" "\ud83d\ude00" "\ud800" "\ud800\u0041" "\n\/\"" "\x" "é" "" 1 -1 0 01 - 1.5 1e9 1E-400 -0 -0.0 1e999 1. .5 `+
	`123456789012345678 9223372036854775808 1234567890123456789012345678901 true false null nul x " \ {"a":1,"b":2} {"b":[1],"a":{}} {"a":1,"a":2}`, " ")

func TestFromJSONReadsAsItAlwaysDid(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		var text []byte
		for range random.IntN(9) {
			text = append(text, pieces[random.IntN(len(pieces))]...)
			if random.IntN(8) == 0 {
				text = append(text, " \n"[random.IntN(2)])
			}
		}
		sameAsSlow(t, text)
	}
	var value func(depth int) string
	value = func(depth int) string {
		switch n := random.IntN(30); {
		case depth == 0 || random.IntN(3) == 0:
			return pieces[6+random.IntN(len(pieces)-6)]
		case random.IntN(2) == 0:
			items := make([]string, n)
			for i := range items {
				items[i] = value(depth - 1)
			}
			return "[" + strings.Join(items, ", ") + "]"
		default:
			items := make([]string, n)
			for i := range items {
				items[i] = fmt.Sprintf(`"%d":%s`, random.IntN(2000), value(depth-1))
			}
			return "{" + strings.Join(items, ",") + "}"
		}
	}
	for range 1_000 {
		sameAsSlow(t, []byte(value(3)))
	}
	for _, depth := range []int{MaxDepth - 1, MaxDepth, MaxDepth + 1} {
		sameAsSlow(t, []byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)))
		sameAsSlow(t, []byte(strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)))
	}
}

func FuzzJSONReadsAsItAlwaysDid(f *testing.F) {
	for _, p := range pieces {
		f.Add([]byte(p))
	}
	f.Fuzz(func(t *testing.T, text []byte) { sameAsSlow(t, text) })
}

// TestJSONOfSmallItemsCostsWhatItsBytesDo: many small keys took forty times their bytes.
func TestJSONOfSmallItemsCostsWhatItsBytesDo(t *testing.T) {
	for name, text := range map[string]string{
		"keys":    "{" + strings.Join(numbered(`"%d":0`), ",") + "}",
		"objects": "[" + strings.Join(numbered(`{"%d":0}`), ",") + "]",
		"deep":    strings.Repeat("[", 60) + strings.Join(numbered("%d"), ",") + strings.Repeat("]", 60),
		"fault":   "{" + strings.Join(numbered(`"%d":0`), ",") + ",}",
		"equal":   "{" + strings.Repeat(`"a":0,`, many) + `"a":0}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := FromJSON([]byte(text))
		runtime.ReadMemStats(&after)
		require.Equal(t, name == "fault" || name == "equal", err != nil, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64*len(text)), name)
		if err == nil {
			require.Less(t, after.Mallocs-before.Mallocs, uint64(1000), name)
		}
	}
}

// many is how many small items a text has.
const many = 1 << 17

func numbered(format string) []string {
	items := make([]string, many)
	for i := range items {
		items[i] = fmt.Sprintf(format, (i*7919)%many)
	}
	return items
}
