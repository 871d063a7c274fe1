// Package schema holds JSON values to JSON Schemas, at a cost that is counted.
//
// Three kilobytes of schema can ask for 2^40 checks of a small value. So a check has a number
// of steps, which it spends before the work, and what needs more has no verdict. Members
// are looked at in the order of their names, and so the number, the verdict and the fault that is
// told of follow from schema and value alone. Schemas are read by a library, which evaluates nothing here.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// BaseSteps is how many steps a check has, whatever the value.
	BaseSteps = 1_000_000
	// ByteSteps is how many more it has for each byte of the value.
	ByteSteps = 2

	rootURL        = "world:///"
	maxSourceBytes = 4 << 20
	maxNumberBits  = 1 << 14 // about 4,900 digits

	maxPatternBytes = 1 << 14
	maxInstructions = 1 << 18

	// To compile a schema takes the library the square of how many others are in it: 0.8 s for so many.
	maxSubschemas = 5000
)

// errRemote refuses references that leave a schema.
var errRemote = errors.New("a schema refers to nothing outside itself")

// Schema is a JSON Schema. It is safe for concurrent use.
type Schema struct {
	root     *jsonschema.Schema
	all      []*jsonschema.Schema                       // each after those that it evaluates on the same value
	programs map[jsonschema.Regexp]uint64               // instructions
	patterns map[*jsonschema.Schema][]jsonschema.Regexp // of names of members, in order
	noting   bool                                       // some part asks what was not evaluated
}

type noLoader struct{}

// Load returns errRemote.
func (noLoader) Load(string) (any, error) { return nil, errRemote }

// Compile reads a schema of draft 2020-12, where it names no other.
func Compile(source []byte) (*Schema, error) {
	if len(source) > maxSourceBytes {
		return nil, fmt.Errorf("it has %d bytes, a schema at most %d", len(source), maxSourceBytes)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(source))
	if err == nil {
		err = new(extent).add(doc, false)
	}
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(rootURL+"schema.json", doc); err != nil {
		return nil, err
	}
	root, err := c.Compile(rootURL + "schema.json")
	if err != nil {
		return nil, plainly(err)
	}
	s := &Schema{root: root, programs: make(map[jsonschema.Regexp]uint64), patterns: make(map[*jsonschema.Schema][]jsonschema.Regexp)}
	return s, s.survey()
}

// extent is how much a document has of what takes longer than its bytes.
type extent struct {
	instructions uint64 // of regular expressions
	subschemas   int    // at most: all that can be one
}

// add refuses numbers, regular expressions and schemas in schemas that make much of few bytes. value
// says that v is, or is listed as, what a value may be: true and false are no schemas then. What
// is in an object there may be, for a schema may refer to it.
func (e *extent) add(v any, value bool) error {
	switch v := v.(type) {
	case bool:
		if !value {
			e.subschemas++
		}
	case map[string]any:
		e.subschemas++
		for _, key := range slices.Sorted(maps.Keys(v)) {
			x := v[key]
			if pattern, ok := x.(string); ok && key == "pattern" {
				e.instructions += programSize(pattern)
			}
			if named, ok := x.(map[string]any); ok && key == "patternProperties" {
				for pattern := range named { // order cannot show: a sum
					e.instructions += programSize(pattern)
				}
			}
			if err := e.add(x, key == "enum" || key == "const"); err != nil {
				return err
			}
		}
	case []any:
		for _, x := range v {
			if err := e.add(x, value); err != nil {
				return err
			}
		}
	case json.Number:
		if r, ok := new(big.Rat).SetString(shortened(v)); !ok || r.Num().BitLen()+r.Denom().BitLen() > maxNumberBits {
			return fmt.Errorf("a number has more than %d bits", maxNumberBits)
		}
	}
	if e.instructions > maxInstructions {
		return fmt.Errorf("its regular expressions are too large: more than %d instructions in all", uint64(maxInstructions))
	}
	if e.subschemas > maxSubschemas {
		return fmt.Errorf("it has more than %d schemas in it", maxSubschemas)
	}
	return nil
}

// shortened returns a number, or none where its exponent alone is too great.
func shortened(n json.Number) string {
	if _, exponent, found := strings.Cut(strings.ToLower(string(n)), "e"); found && len(strings.TrimLeft(exponent, "+-0")) > 4 {
		return ""
	}
	return string(n)
}

// survey finds all parts of a schema, and refuses those that no value could be held to.
func (s *Schema) survey() error {
	f := finder{Schema: s, seen: make(map[*jsonschema.Schema]progress)}
	for next := []*jsonschema.Schema{s.root}; len(next) > 0; { // each within other values than the one before
		x := next[len(next)-1]
		next = next[:len(next)-1]
		if f.seen[x] == unseen {
			f.visit(x)
			next = append(next, f.within...)
			f.within = f.within[:0]
		}
	}
	return f.err
}

type progress int

const (
	unseen progress = iota
	begun
	done
)

type finder struct {
	*Schema
	seen   map[*jsonschema.Schema]progress
	within []*jsonschema.Schema // parts for members and items
	err    error                // the first
}

// visit finds a part and those that are evaluated on the same value.
func (f *finder) visit(x *jsonschema.Schema) {
	f.seen[x] = begun
	f.noteCost(x)
	for _, p := range parts(x) {
		if p.re != nil {
			f.programs[p.re] = programSize(p.re.String())
		}
		switch {
		case p.into != same:
			f.within = append(f.within, p.of)
		case f.seen[p.of] == begun:
			f.fault("%s refers to itself without looking into the value", place(p.of))
		case f.seen[p.of] == unseen:
			f.visit(p.of)
		}
	}
	f.seen[x] = done
	f.all = append(f.all, x)
}

func (f *finder) fault(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// noteCost keeps of a part what its evaluation costs.
func (f *finder) noteCost(x *jsonschema.Schema) {
	if x.DynamicRef != nil || x.RecursiveRef != nil {
		f.fault("%s: $dynamicRef and $recursiveRef are not supported: refer with $ref", place(x))
	}
	f.noting = f.noting || x.UnevaluatedItems != nil || x.UnevaluatedProperties != nil
	if len(x.PatternProperties) > 0 {
		f.patterns[x] = sortedPatterns(x)
	}
	if x.Pattern != nil {
		f.programs[x.Pattern] = programSize(x.Pattern.String())
	}
}

// place says where a part stands, as a JSON pointer.
func place(x *jsonschema.Schema) string {
	_, at, _ := strings.Cut(x.Location, "#")
	if at == "" {
		return "the schema"
	}
	return at
}

// programSize returns how many instructions a regular expression has.
func programSize(pattern string) uint64 {
	if len(pattern) > maxPatternBytes {
		return maxInstructions + 1
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 1 // the library says why
	}
	p, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 1
	}
	return uint64(len(p.Inst))
}

// plainly words why a document is no schema, in an order of its own.
func plainly(err error) error {
	if load, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return fmt.Errorf("%w: %s", load.Err, strings.TrimPrefix(load.URL, rootURL))
	}
	var schema *jsonschema.SchemaValidationError // which wraps without Unwrap
	var invalid *jsonschema.ValidationError
	if errors.As(err, &schema) && errors.As(schema.Err, &invalid) {
		reasons := leaves(nil, invalid)
		slices.Sort(reasons) // the library's order is that of its maps
		return fmt.Errorf("is not a JSON Schema: %s", strings.Join(slices.Compact(reasons), "; "))
	}
	return err
}

// leaves appends the messages of the innermost errors.
func leaves(to []string, e *jsonschema.ValidationError) []string {
	if len(e.Causes) == 0 {
		return append(to, e.Error())
	}
	for _, cause := range e.Causes {
		to = leaves(to, cause)
	}
	return to
}
