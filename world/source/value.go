package source

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// text decodes a text.
func (d *decoder) text(to *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		switch {
		case d.refused[n]:
		case n.Kind != yaml.ScalarNode || n.Tag != "!!str":
			d.refuse(n, "want text, not %s%s", describe(n), quoteHint(n))
		case !utf8.ValidString(n.Value):
			d.refuse(n, "is not UTF-8")
		default:
			*to = n.Value
		}
	}
}

func quoteHint(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		return ": put it in quotes"
	}
	return ""
}

// expression decodes the text of an expression, for which true and false need
// no quotes.
func (d *decoder) expression(to *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Tag == "!!bool" && !d.refused[n] {
			*to = strings.ToLower(n.Value)
			return
		}
		d.text(to)(n)
	}
}

// texts decodes a list of them.
func (d *decoder) texts(to *[]string) func(*yaml.Node) { return listOf(d, to, d.text) }

func listOf[T any](d *decoder, to *[]T, decode func(*T) func(*yaml.Node)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		*to = listed(d, n, func(item *yaml.Node) (v T) {
			decode(&v)(item)
			return v
		})
	}
}

// scalar decodes what parse takes, and says what was wanted in the place of anything else.
func scalar[T any](d *decoder, to *T, want string, parse func(n *yaml.Node) (T, bool)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if d.refused[n] {
			return
		}
		v, ok := parse(n)
		if n.Kind != yaml.ScalarNode || !ok {
			d.refuse(n, "want %s, not %s", want, describe(n))
			return
		}
		*to = v
	}
}

// number decodes an integer of 64 bits from 0.
func (d *decoder) number(to *uint64) func(*yaml.Node) {
	want := fmt.Sprintf("an integer from 0 to %d", uint64(math.MaxUint64))
	return scalar(d, to, want, func(n *yaml.Node) (uint64, bool) {
		v, err := strconv.ParseUint(strings.TrimPrefix(n.Value, "+"), 10, 64)
		return v, n.Tag == "!!int" && err == nil
	})
}

// ticks decodes a length of time, at least a tick: a number of ticks, or a duration,
// which lasts so many whole ticks of the world's clock, or a little longer.
func (d *decoder) ticks(to *manifest.Tick) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Tag == "!!int" {
			d.count((*uint64)(to))(n)
			return
		}
		scalar(d, to, "ticks or a duration such as 90m or 24h", func(n *yaml.Node) (manifest.Tick, bool) {
			v, err := manifest.ParseDuration(n.Value)
			if err != nil {
				return 0, false
			}
			return d.clock.Ticks(v), true
		})(n)
	}
}

// moment decodes a tick: its number, or a time, for which the first tick from there on
// stands.
func (d *decoder) moment(to *manifest.Tick) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Tag == "!!int" {
			d.number((*uint64)(to))(n)
			if last := d.clock.Last(); *to > last {
				d.refuse(n, "the clock ends at tick %d", last)
			}
			return
		}
		var at int64
		scalar(d, &at, "a tick or a time such as 2026-12-24T18:00Z", func(n *yaml.Node) (int64, bool) {
			v, err := manifest.ParseTime(n.Value)
			return v, err == nil
		})(n)
		if d.refused[n] {
			return
		}
		v, err := d.clock.From(at)
		if err == nil && v == 0 {
			err = errors.New("it is that of tick 0")
		}
		if err != nil {
			d.refuse(n, "the time %s: %s", n.Value, err)
			return
		}
		*to = v
	}
}

// boolean decodes true or false.
func (d *decoder) boolean(to *bool) func(*yaml.Node) {
	return scalar(d, to, "true or false", func(n *yaml.Node) (bool, bool) {
		return strings.EqualFold(n.Value, "true"), n.Tag == "!!bool"
	})
}

// count decodes an integer from 1.
func (d *decoder) count(to *uint64) func(*yaml.Node) {
	return func(n *yaml.Node) {
		d.number(to)(n)
		if !d.refused[n] && *to == 0 {
			d.refuse(n, "must be at least 1")
		}
	}
}

// size decodes a number of bytes, at least 1.
func (d *decoder) size(to *uint64) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
			d.count(to)(n)
			return
		}
		v, ok := parseSize(n.Value)
		if !ok {
			d.refuse(n, "want a size such as 65536, 64KiB, 1MiB or 1GiB, not %s", describe(n))
			return
		}
		*to = v
	}
}

// sizeOrNone is size, and takes 0.
func (d *decoder) sizeOrNone(to *uint64) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.Tag == "!!int" {
			d.number(to)(n)
			return
		}
		d.size(to)(n)
	}
}

func parseSize(s string) (uint64, bool) {
	digits := strings.TrimRight(s, "BKMGi")
	v, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || v == 0 || !isDecimal(digits) {
		return 0, false
	}
	shift := 0
	switch strings.TrimSpace(s[len(digits):]) {
	case "B":
	case "KiB":
		shift = 10
	case "MiB":
		shift = 20
	case "GiB":
		shift = 30
	default:
		return 0, false
	}
	return v << shift, v<<shift>>shift == v
}

// duration decodes a Go duration greater than 0, in nanoseconds.
func (d *decoder) duration(to *int64) func(*yaml.Node) {
	return scalar(d, to, "a duration such as 500ms, 1m or 24h", func(n *yaml.Node) (int64, bool) {
		v, err := manifest.ParseDuration(n.Value)
		return int64(v), err == nil
	})
}

// epoch decodes an RFC 3339 time, quoted or not, in nanoseconds since 1970.
func (d *decoder) epoch(to *int64) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if d.refused[n] {
			return
		}
		_, err := time.Parse(time.RFC3339, n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			d.refuse(n, "want a time such as 2026-01-01T00:00:00Z, not %s", describe(n))
			return
		}
		if *to, err = manifest.ParseTime(n.Value); err != nil {
			d.refuse(n, "%v", err)
		}
	}
}

// config decodes the config of an adapter, any mapping, to canonical bytes.
func (d *decoder) config(n *yaml.Node) manifest.Data {
	if d.refused[n] || isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.refuse(n, "want a mapping, not %s", describe(n))
		return nil
	}
	data, err := canon.Marshal(d.value(n))
	if err != nil {
		d.refuse(n, "%s", err)
	}
	return data
}

// value decodes any data. What is refused in it becomes nil.
func (d *decoder) value(n *yaml.Node) any {
	switch {
	case d.refused[n] || isNull(n):
		return nil
	case n.Kind == yaml.MappingNode:
		return named(d, n, func(_, value *yaml.Node) any { return d.value(value) })
	case n.Kind == yaml.SequenceNode:
		return listed(d, n, d.value)
	case n.Tag == "!!bool":
		return strings.EqualFold(n.Value, "true")
	case n.Tag == "!!int" || n.Tag == "!!float":
		return d.numeral(n)
	default:
		var s string
		d.text(&s)(n)
		return s
	}
}

// numeral decodes an integer of any size or a finite float.
func (d *decoder) numeral(n *yaml.Node) any {
	if isDecimal(n.Value) {
		if digits := len(strings.TrimLeft(n.Value, "+-")); digits > canon.MaxDigits {
			d.refuse(n, "an integer of %d digits, more than %d", digits, canon.MaxDigits)
			return nil
		}
		v, _ := new(big.Int).SetString(n.Value, 10)
		return v
	}
	v, err := strconv.ParseFloat(n.Value, 64)
	if err != nil { // which YAML's .nan and .inf give, too
		d.refuse(n, "%s is not a finite number", n.Value)
		return nil
	}
	return v
}
