package experiment

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/show/measure"
)

// fileMode is that of all files of results: they are their owner's, as an export is.
const fileMode = 0o600

// Formats of tables of results.
const (
	FormatCSV     = "csv"
	FormatLines   = "jsonl"
	FormatParquet = "parquet"
)

// Formats returns all formats of tables.
func Formats() []string { return []string{FormatCSV, FormatLines, FormatParquet} }

// formats returns the formats of tables: those that are asked for, and those that are there, which
// would be of fewer runs than the others.
func (r *results) formats(asked []string) (out []string) {
	for _, format := range Formats() {
		_, err := os.Stat(filepath.Join(r.dir, "runs."+format))
		if err == nil || asked == nil || slices.Contains(asked, format) {
			out = append(out, format)
		}
	}
	return out
}

// rowWriter writes one table.
type rowWriter interface {
	write(row []any) error
	close() error
}

// output is a file of one table.
type output struct {
	path   string
	format string
	table  *table
	rows   rowWriter // while it is written
}

// writeTables writes the results that there are as tables and a dictionary, each file whole
// or not at all, and returns their paths.
func (r *results) writeTables(formats []string) (paths []string, err error) {
	tables := r.plan.tables()
	var all []output
	for i := range tables {
		for _, format := range formats {
			path := filepath.Join(r.dir, tables[i].name+"."+format)
			all, paths = append(all, output{path: path, format: format, table: &tables[i]}), append(paths, path)
		}
	}
	if err := r.writeFrom(all, 0); err != nil {
		return nil, err
	}
	path := filepath.Join(r.dir, dictionaryFile)
	data, err := r.plan.dictionary(formats)
	if err == nil {
		err = file.Put(path, data, fileMode)
	}
	return append(paths, path), err
}

// writeFrom writes the files from one on, those before it being open: each result is read once
// for all of them.
func (r *results) writeFrom(all []output, i int) error {
	if i == len(all) {
		return r.visitResults(func(x *Result) error {
			for _, o := range all {
				if err := o.table.rows(x, o.rows.write); err != nil {
					return err
				}
			}
			return nil
		})
	}
	o := &all[i]
	return file.Replace(o.path, fileMode, func(w io.Writer) (err error) {
		buffered := bufio.NewWriterSize(w, 1<<20)
		if o.rows, err = newRows(buffered, o.table, o.format); err != nil {
			return err
		}
		if err := r.writeFrom(all, i+1); err != nil {
			return err
		}
		if err := o.rows.close(); err != nil {
			return err
		}
		return buffered.Flush()
	})
}

func newRows(w io.Writer, t *table, format string) (rowWriter, error) {
	switch format {
	case FormatCSV:
		return newCSV(w, t)
	case FormatLines:
		return newLines(w, t), nil
	case FormatParquet:
		return newParquet(w, t), nil
	}
	return nil, fmt.Errorf("%q is none of %s", format, strings.Join(Formats(), ", "))
}

// csvWriter writes RFC 4180 with \n; nothing stands for no value.
type csvWriter struct {
	out *csv.Writer
	row []string
}

func newCSV(w io.Writer, t *table) (*csvWriter, error) {
	c := &csvWriter{out: csv.NewWriter(w)}
	for _, column := range t.columns {
		c.row = append(c.row, column.Name)
	}
	return c, c.out.Write(c.row)
}

func (c *csvWriter) write(row []any) error {
	c.row = c.row[:0]
	for _, v := range row {
		c.row = append(c.row, measure.Text(v))
	}
	return c.out.Write(c.row)
}

func (c *csvWriter) close() error {
	c.out.Flush()
	return c.out.Error()
}

// linesWriter writes an object a line, its fields in the order of the columns.
type linesWriter struct {
	out     io.Writer
	names   [][]byte
	scratch bytes.Buffer
}

func newLines(w io.Writer, t *table) *linesWriter {
	l := &linesWriter{out: w}
	for _, c := range t.columns {
		name, _ := json.Marshal(c.Name) // text
		l.names = append(l.names, name)
	}
	return l
}

func (l *linesWriter) write(row []any) error {
	l.scratch.Reset()
	for i, v := range row {
		value, err := json.Marshal(v)
		if err != nil {
			return err
		}
		l.scratch.WriteByte("{,"[min(i, 1)])
		l.scratch.Write(l.names[i])
		l.scratch.WriteByte(':')
		l.scratch.Write(value)
	}
	l.scratch.WriteString("}\n")
	_, err := l.out.Write(l.scratch.Bytes())
	return err
}

func (*linesWriter) close() error { return nil }

// Dictionary is what dictionary.json says: what the columns of the tables are.
type Dictionary struct {
	Format     string            `json:"format"`
	Experiment string            `json:"experiment"`
	Hash       string            `json:"hash"`
	Begin      string            `json:"begin"`
	Variants   []string          `json:"variants"`
	Tables     []DictionaryTable `json:"tables"`
}

// DictionaryTable describes a table in a Dictionary.
type DictionaryTable struct {
	Name    string   `json:"name"`
	Doc     string   `json:"description"`
	Files   []string `json:"files"`
	Columns []Column `json:"columns"`
}

func (p *Plan) dictionary(formats []string) ([]byte, error) {
	d := Dictionary{Format: "worldkernel.dictionary.v1", Experiment: p.Experiment, Hash: p.Hash.String(), Begin: p.Begin, Variants: p.Variants}
	for _, t := range p.tables() {
		x := DictionaryTable{Name: t.name, Doc: t.doc, Columns: slices.Clone(t.columns)}
		for _, format := range formats {
			x.Files = append(x.Files, t.name+"."+format)
		}
		d.Tables = append(d.Tables, x)
	}
	data, err := json.MarshalIndent(&d, "", "  ")
	return append(data, '\n'), err
}
