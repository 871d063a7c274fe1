package api_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
)

func TestRoutesAndDocumentAgree(t *testing.T) {
	doc, _ := document(t)
	written := map[string]*openapi3.Operation{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			written[method+" "+path] = op
		}
	}
	segment := regexp.MustCompile(`\{(\w+)\}`)
	for _, rt := range api.RoutesOf() {
		name := rt.Method + " " + rt.Path
		op := written[name]
		require.NotNil(t, op, "%s is not in the document", name)
		delete(written, name)
		scope, _ := op.Extensions["x-scope"].(string)
		require.Equal(t, string(rt.Scope), scope, name)
		var query, path, want []string
		for _, p := range op.Parameters {
			switch p.Value.In {
			case "query":
				query = append(query, p.Value.Name)
			case "path":
				path = append(path, p.Value.Name)
			}
		}
		for _, found := range segment.FindAllStringSubmatch(rt.Path, -1) {
			want = append(want, found[1])
		}
		require.ElementsMatch(t, rt.Query, query, name)
		require.ElementsMatch(t, want, path, name)
	}
	require.Empty(t, written, "in the document only")
}

// TestDocumentLeavesNothingOpen: an answer with a field that no schema has would
// pass a schema that allows others.
func TestDocumentLeavesNothingOpen(t *testing.T) {
	doc, _ := document(t)
	for name, schema := range doc.Components.Schemas {
		if s := schema.Value; s.Type.Is("object") && name != "Contents" {
			require.NotNil(t, s.AdditionalProperties.Has, name)
			require.False(t, *s.AdditionalProperties.Has, name)
			if !strings.HasSuffix(name, "Request") {
				for _, p := range s.Required {
					require.Contains(t, s.Properties, p, name)
				}
			}
		}
	}
}

func TestDocumentIsServedInBothForms(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	loader := openapi3.NewLoader()
	a, err := loader.LoadFromData(s.get("/api/openapi.yaml").Body)
	require.NoError(t, err)
	b, err := loader.LoadFromData(s.get("/api/openapi.json").Body)
	require.NoError(t, err)
	paths := func(doc *openapi3.T) []string {
		out := doc.Paths.InMatchingOrder()
		slices.Sort(out)
		return out
	}
	require.Equal(t, paths(a), paths(b))
	require.NotEmpty(t, paths(a))
}
