package journal

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
)

// TestEveryRowSaysWhereThingsStand holds the rows to the structs of their bodies: a
// row that says too little hides a record from the index of its cell or intent.
func TestEveryRowSaysWhereThingsStand(t *testing.T) {
	require.Len(t, rows, len(allKinds), "every kind has a row, and is in the tests")
	source, err := os.ReadFile("kinds.go")
	require.NoError(t, err)
	for _, name := range regexp.MustCompile(`Kind += "(.+)"`).FindAllSubmatch(source, -1) {
		require.True(t, Kind(name[1]).Known(), "%s has no row", name[1])
	}
	for kind, got := range rows {
		require.NotNil(t, got.body, kind)
		want := row{}
		body := reflect.TypeOf(got.body()).Elem()
		for item := range body.NumField() {
			switch f := body.Field(item); {
			case f.Name == "Cell":
				want.cell = item
			case f.Name == "To" && f.Type.Kind() == reflect.Slice:
				want.cells = item
			case f.Name == "Actor" && kind == KindOperator:
				want.operator = item
			case f.Type == reflect.TypeFor[receipt.Key]():
				want.key = item
			case f.Name == "Attempt":
				want.attempt = item
			case f.Name == "Receipt":
				want.receipt = item
			}
		}
		fields := make(map[string]bool)
		for i := range body.NumField() {
			name, _, _ := strings.Cut(body.Field(i).Tag.Get("json"), ",")
			fields[name] = true
		}
		for _, field := range regexp.MustCompile(`{([a-z_]*)}`).FindAllStringSubmatch(got.words, -1) {
			require.True(t, fields[field[1]], "%s has no %s", kind, field[1])
		}
		require.Equal(t, want, row{cell: got.cell, cells: got.cells, operator: got.operator, key: got.key, attempt: got.attempt, receipt: got.receipt}, kind)
	}
}
