package governance

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/decls"

	"github.com/worldkernel/worldkernel/manifest"
)

// Bounds of what is looked at in a schema.
const (
	maxParamsVars  = 1000 // variables of its types
	maxParamsDepth = 16   // of objects, and of references to references
)

// paramsSchema is a JSON Schema, as far as CheckRules understands it: properties, items,
// types, additionalProperties and references within it. All else, such as allOf, can
// only forbid more.
type paramsSchema struct{ doc any }

func parseParams(text []byte) (*paramsSchema, error) {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	s := new(paramsSchema)
	return s, in.Decode(&s.doc)
}

// shape is a place in a schema; the zero value says nothing of what may be there.
type shape struct {
	schema *paramsSchema
	node   map[string]any
}

func (s *paramsSchema) root() shape { return s.shape(s.doc, 0) }

// shape returns the place that a schema is at, behind its references.
func (s *paramsSchema) shape(x any, depth int) shape {
	node, ok := x.(map[string]any)
	if !ok {
		return shape{}
	}
	ref, ok := node["$ref"].(string)
	if !ok {
		return shape{s, node}
	}
	path, local := strings.CutPrefix(ref, "#")
	if !local || depth == maxParamsDepth || path != "" && path[0] != '/' || strings.Contains(path, "%") {
		return shape{}
	}
	at := s.doc
	for _, name := range strings.Split(path, "/")[1:] {
		below, ok := at.(map[string]any)
		if !ok {
			return shape{}
		}
		at = below[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return s.shape(at, depth+1)
}

// property returns what a field of an object is, and whether there can be one.
func (p shape) property(name string) (field shape, possible bool) {
	properties, _ := p.node["properties"].(map[string]any)
	if x, ok := properties[name]; ok {
		return p.schema.shape(x, 0), x != false
	}
	_, patterns := p.node["patternProperties"]
	return shape{}, patterns || p.node["additionalProperties"] != false
}

// lacks says that an object cannot have a field, and which it may be a slip of.
func (p shape) lacks(kind, name string) string {
	properties, _ := p.node["properties"].(map[string]any)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(properties)), func(name string) bool { return properties[name] == false })
	msg := "the params of " + kind + " have no " + name + " there"
	if like := manifest.Nearest(name, names); like != "" {
		return msg + ": did you mean " + like + "?"
	}
	if len(names) > 0 && len(names) <= 20 {
		return msg + ": they have " + strings.Join(names, ", ")
	}
	return msg
}

// item returns what the items of a list are.
func (p shape) item() shape {
	if p.node == nil || p.node["prefixItems"] != nil {
		return shape{}
	}
	return p.schema.shape(p.node["items"], 0)
}

// declarer gathers the types of params as variables with qualified names, which the
// checker takes for what they stand for. Objects have none, since they are maps that
// rules may walk; nor has what can be of several types.
type declarer struct {
	number  *cel.Type // of numbers
	numbers bool      // there are some
	left    int       // how many more variables
	vars    []*decls.VariableDecl
}

func (d *declarer) walk(name string, p shape, depth int) {
	if depth > maxParamsDepth || d.left == 0 {
		return
	}
	if typ := d.typeOf(p, depth); typ != nil && depth > 0 {
		d.left--
		d.vars = append(d.vars, decls.NewVariable(name, typ))
		return
	}
	properties, _ := p.node["properties"].(map[string]any)
	for _, field := range slices.Sorted(maps.Keys(properties)) {
		d.walk(name+"."+field, p.schema.shape(properties[field], 0), depth+1)
	}
}

// typeOf returns the type of what is at a place; nil: an object, or of any type.
func (d *declarer) typeOf(p shape, depth int) *cel.Type {
	switch typ, _ := p.node["type"].(string); typ {
	case "string":
		return cel.StringType
	case "boolean":
		return cel.BoolType
	case "integer", "number":
		d.numbers = true
		return d.number
	case "array":
		if item := d.typeOf(p.item(), depth+1); depth < maxParamsDepth && item != nil {
			return cel.ListType(item)
		}
		return cel.ListType(cel.DynType)
	}
	return nil
}
