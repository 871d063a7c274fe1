package experiment

import (
	"fmt"
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// What a table of Parquet holds in memory, however many columns and rows it has.
const (
	parquetRows  = 4096    // written together
	parquetBatch = 1 << 20 // values that are written together
	parquetGroup = 1 << 22 // values of a group of rows, whose pages lie in memory until its end
)

// parquetWriter writes Parquet: optional columns, 64 bits, text as UTF-8, zstd.
type parquetWriter struct {
	out  *parquet.GenericWriter[any]
	rows []parquet.Row
	most int // rows that are written together
}

func newParquet(w io.Writer, t *table) *parquetWriter {
	columns := len(t.columns)
	p := &parquetWriter{most: min(parquetRows, parquetBatch/columns)}
	fields := make([]reflect.StructField, columns) // which keep their order, as a parquet.Group does not
	for i, c := range t.columns {
		fields[i] = reflect.StructField{Name: fmt.Sprintf("C%d", i), Type: parquetType(c.Type), Tag: `parquet:",optional"`}
	}
	schema := parquet.NewSchema(t.name, nameColumns(parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface()), t.columns))
	p.out = parquet.NewGenericWriter[any](w, schema, parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("worldkernel", "1", ""),
		parquet.MaxRowsPerRowGroup(int64(parquetGroup/columns)))
	return p
}

// columnsNode is a schema whose columns have other names than the fields of a struct can, in
// whose tags commas and quotes mean something.
type columnsNode struct {
	parquet.Node
	fields []parquet.Field
}

func nameColumns(of parquet.Node, columns []Column) *columnsNode {
	n := &columnsNode{Node: of}
	for i, f := range of.Fields() {
		n.fields = append(n.fields, columnField{f, columns[i].Name})
	}
	return n
}

// Fields implements parquet.Node.
func (n *columnsNode) Fields() []parquet.Field { return n.fields }

type columnField struct {
	parquet.Field
	name string
}

// Name implements parquet.Field.
func (f columnField) Name() string { return f.name }

func parquetType(t Type) reflect.Type {
	switch t {
	case Int:
		return reflect.TypeFor[int64]()
	case Uint:
		return reflect.TypeFor[uint64]()
	case Float:
		return reflect.TypeFor[float64]()
	case Bool:
		return reflect.TypeFor[bool]()
	default:
		return reflect.TypeFor[string]()
	}
}

func (p *parquetWriter) write(row []any) error {
	out := make(parquet.Row, len(row))
	for i, v := range row {
		value := parquet.NullValue()
		defined := 1
		switch v := v.(type) {
		case nil:
			defined = 0
		case int64:
			value = parquet.Int64Value(v)
		case uint64:
			value = parquet.Int64Value(int64(v)) // as the format has unsigned ones
		case float64:
			value = parquet.DoubleValue(v)
		case bool:
			value = parquet.BooleanValue(v)
		case string:
			value = parquet.ByteArrayValue([]byte(v))
		}
		out[i] = value.Level(0, defined, i)
	}
	if p.rows = append(p.rows, out); len(p.rows) >= p.most {
		return p.flush()
	}
	return nil
}

func (p *parquetWriter) flush() error {
	_, err := p.out.WriteRows(p.rows)
	p.rows = p.rows[:0]
	return err
}

func (p *parquetWriter) close() error {
	if err := p.flush(); err != nil {
		return err
	}
	return p.out.Close()
}
