package world

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
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
		fault = fault.Causes[0]
	}
	field = strings.Join(append([]string{"data"}, fault.InstanceLocation...), ".")
	if req, isRequired := fault.ErrorKind.(*kind.Required); isRequired {
		return field, "missing " + strings.Join(req.Missing, ", "), false
	}
	return field, fault.ErrorKind.LocalizedString(message.NewPrinter(language.English)), false
}
