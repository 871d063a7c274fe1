package experiment

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
)

// TestATableOfParquetHoldsABoundedPartOfItself in memory, however many columns it has.
func TestATableOfParquetHoldsABoundedPartOfItself(t *testing.T) {
	const columns, rows = 4096, 1100
	var of table
	row := make([]any, columns)
	for i := range row {
		of.columns = append(of.columns, Column{Name: fmt.Sprintf("c%d", i), Type: Int})
	}
	var out bytes.Buffer
	w := newParquet(&out, &of)
	for n := range rows {
		row[1], row[columns-1] = int64(n), int64(-n)
		require.NoError(t, w.write(row))
		require.LessOrEqual(t, len(w.rows)*columns, parquetBatch)
	}
	require.NoError(t, w.close())
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	require.EqualValues(t, rows, f.NumRows())
	for _, g := range f.RowGroups() {
		require.LessOrEqual(t, g.NumRows()*columns, int64(parquetGroup))
	}
	for n, column := range map[int64]int{1: 1, -1: columns - 1} {
		var got []int64
		for _, g := range f.RowGroups() {
			pages := g.ColumnChunks()[column].Pages()
			for page, err := pages.ReadPage(); err == nil; page, err = pages.ReadPage() {
				values := make([]parquet.Value, page.NumValues())
				_, _ = page.Values().ReadValues(values) // it says io.EOF behind the last
				for _, v := range values {
					got = append(got, v.Int64())
				}
			}
			require.NoError(t, pages.Close())
		}
		require.Len(t, got, rows)
		for i, v := range got {
			require.Equal(t, n*int64(i), v)
		}
	}
}

// TestTablesAreWrittenWholeOrNotAtAll: where one cannot be, none is another than it was.
func TestTablesAreWrittenWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	p := &Plan{Variants: []string{"a"}, Points: [][]any{{}}, Seeds: []uint64{1}, Columns: []Column{{Name: "x", Type: Int}}}
	r := newResults(dir, p)
	var err error
	r.log.file, err = os.Create(filepath.Join(dir, logFile)) //nolint:gosec // a test's
	require.NoError(t, err)
	r.most = 1 << 20
	defer func() { require.NoError(t, r.close()) }()
	_, err = r.writeTables([]string{FormatCSV})
	require.NoError(t, err)
	was, err := os.ReadFile(filepath.Join(dir, "runs.csv"))
	require.NoError(t, err)
	require.NoError(t, r.add(&Result{Planned: Planned{ID: 1, Seed: 1}, Last: []any{int64(1)}}))
	require.NoError(t, os.Remove(filepath.Join(dir, "ticks.csv")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "ticks.csv"), 0o700))
	_, err = r.writeTables([]string{FormatCSV})
	require.Error(t, err)
	is, err := os.ReadFile(filepath.Join(dir, "runs.csv"))
	require.NoError(t, err)
	require.Equal(t, was, is)
	require.Empty(t, leftOver(t, dir))
}

// leftOver returns what replacing files has left behind.
func leftOver(t *testing.T, dir string) (names []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, ".*"))
	require.NoError(t, err)
	return names
}

// TestTablesThatAreThereAreOfAllRuns, in whatever format.
func TestTablesThatAreThereAreOfAllRuns(t *testing.T) {
	r := newResults(t.TempDir(), new(Plan))
	require.Equal(t, Formats(), r.formats(nil))
	require.Equal(t, []string{FormatLines}, r.formats([]string{FormatLines}))
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "runs.parquet"), nil, 0o600))
	require.Equal(t, []string{FormatCSV, FormatParquet}, r.formats([]string{FormatCSV}))
}
