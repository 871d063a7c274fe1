package journal

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
)

// TestEveryRowSaysWhereThingsStand holds the rows to the structs of their bodies: a
// row that says too little hides a record from the index of its cell or intent.
func TestEveryRowSaysWhereThingsStand(t *testing.T) {
	require.Len(t, rows, len(allKinds), "every kind has a row, and is in the tests")
	for kind, got := range rows {
		require.NotNil(t, got.body, kind)
		want := row{}
		body := reflect.TypeOf(got.body()).Elem()
		for i := range body.NumField() {
			item := i - 1 // the first field says that it is an array
			switch f := body.Field(i); {
			case f.Name == "Cell":
				want.cell = item
			case f.Name == "To" && f.Type.Kind() == reflect.Slice:
				want.cells = item
			case f.Name == "Actor" && kind == KindOperator:
				want.operator = item
			case f.Type == reflect.TypeFor[receipt.Key]():
				want.key = item
			case f.Name == "Receipt":
				want.receipt = item
			}
		}
		require.Equal(t, want, row{cell: got.cell, cells: got.cells, operator: got.operator, key: got.key, receipt: got.receipt}, kind)
	}
}
