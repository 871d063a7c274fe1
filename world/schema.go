package world

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// schema is a JSON Schema that event data must satisfy.
type schema struct {
	compiled *jsonschema.Schema
	count    *evaluations // nil: nobody counts
}

// noLoader refuses references out of a schema: a world holds all it needs.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema must not refer to %s: only to itself", url)
}

// compileSchema compiles a schema's source; file is for messages.
func compileSchema(file string, source []byte, g *guard) (*schema, error) {
	if g.schema(len(source), "schema "+file); g.ended() != nil {
		return nil, g.ended()
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(source))
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", file, err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	s := new(schema)
	if g != nil {
		s.count = &evaluations{guard: g}
		s.count.addTo(c)
	}
	const url = "world:///schema.json"
	if err := c.AddResource(url, doc); err != nil {
		return nil, fmt.Errorf("schema %s: %w", file, err)
	}
	if s.compiled, err = c.Compile(url); err != nil {
		return nil, fmt.Errorf("schema %s: %w", file, err)
	}
	return s, nil
}

// check reports the first field of data that breaks the schema, and the rule.
func (s *schema) check(data journal.Data) (field, rule string, ok bool) {
	if s.count != nil {
		if s.count.begin(data) != nil {
			return "data", "not checked", false
		}
		defer s.count.end(&field, &rule)
	}
	text, err := canon.ToJSON(data)
	if err != nil {
		return "data", err.Error(), false
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return "data", err.Error(), false
	}
	var fault *jsonschema.ValidationError
	if err := s.compiled.Validate(v); err == nil {
		return "", "", true
	} else if !errors.As(err, &fault) {
		return "data", err.Error(), false
	}
	for len(fault.Causes) > 0 {
		fault = slices.MinFunc(fault.Causes, byPlace)
	}
	field = strings.Join(append([]string{"data"}, fault.InstanceLocation...), ".")
	if more, ok := fault.ErrorKind.(*kind.AdditionalProperties); ok {
		slices.Sort(more.Properties)
	}
	if req, isRequired := fault.ErrorKind.(*kind.Required); isRequired {
		return field, "missing " + strings.Join(req.Missing, ", "), false
	}
	return field, fault.ErrorKind.LocalizedString(message.NewPrinter(language.English)), false
}

// byPlace orders what is wrong with data: the library's order is that of its maps, and
// what is told of goes on the record.
func byPlace(a, b *jsonschema.ValidationError) int {
	return cmp.Or(slices.Compare(a.InstanceLocation, b.InstanceLocation), cmp.Compare(a.SchemaURL, b.SchemaURL))
}

// compileParams compiles the schema of an effect's params. It returns its source, too.
func (r *rules) compileParams(effect string, def *manifest.Effect, blobs journal.Blobs) (*schema, []byte, error) {
	if def.Params.IsZero() {
		return nil, nil, nil
	}
	source, err := blobs.Blob(def.Params)
	if err != nil {
		return nil, nil, fmt.Errorf("world: effect %s: schema %s: %w", effect, def.Params, err)
	}
	s, err := compileSchema(cmp.Or(def.ParamsFile, "of "+effect), source, r.guard)
	if err != nil {
		return nil, nil, fmt.Errorf("world: effect %s: %w", effect, err)
	}
	return s, source, nil
}

// paramsBreak returns the denial of params that break their kind's schema.
func (k *kernel) paramsBreak(effect string, params journal.Data) (governance.Decision, bool) {
	rule := k.rules.effects[effect]
	if rule == nil || rule.params == nil {
		return governance.Decision{}, false
	}
	field, what, ok := rule.params.check(params)
	if ok {
		return governance.Decision{}, false
	}
	at := "params" + strings.TrimPrefix(field, "data")
	return governance.Decision{Code: governance.CodeBadParams, Reason: fmt.Sprintf("%s: %s", at, what)}, true
}
