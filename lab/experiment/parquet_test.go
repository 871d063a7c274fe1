package experiment_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/lab/experiment"
)

// readParquet prints the rows of a Parquet file as another implementation reads them: a JSON
// list a row, of name, type and value, floats as their bits.
const readParquet = `
import { readFileSync } from "node:fs";
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
const data = readFileSync(process.argv[2]);
const file = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
const bits = new DataView(new ArrayBuffer(8));
const show = (v) => {
  if (v === null || v === undefined) return "null";
  if (typeof v === "number") { bits.setFloat64(0, v); return "float " + bits.getBigUint64(0).toString(16); }
  return typeof v + " " + v;
};
for (const row of await parquetReadObjects({ file, compressors })) {
  console.log(JSON.stringify(Object.entries(row).map(([k, v]) => [k, show(v)])));
}
`

// TestParquetIsReadByOthers has hyparquet, which shares no code with what writes the files,
// read them: columns, their order, types and values are those of the JSON lines.
func TestParquetIsReadByOthers(t *testing.T) {
	reader := t.TempDir()
	install := exec.CommandContext(t.Context(), "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefer-offline", "hyparquet@1.17.1", "hyparquet-compressors@1.1.1")
	install.Dir = reader
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm has no reader of Parquet here: %v %s", err, out)
	}
	script := filepath.Join(reader, "read.mjs")
	require.NoError(t, os.WriteFile(script, []byte(readParquet), 0o600))
	s := load(t, sir(t, "seeds: 6", "seeds: [1, 18446744073709551615]\nparams: {person.days: [1, 2]}", "  left:",
		"  ill: {expr: status.I > 0}\n  word: {cell: person/1, value: state.status, type: string}\n  left:"))
	for _, s := range []*experiment.Spec{s, load(t, oddlyNamed)} {
		dir := t.TempDir()
		run(t, s, experiment.Options{Dir: dir})
		for _, name := range []string{"runs", "ticks"} {
			out, err := exec.CommandContext(t.Context(), "node", script, filepath.Join(dir, name+".parquet")).Output() //nolint:gosec // ours
			require.NoError(t, err)
			require.Equal(t, jsonRows(t, dir, name), strings.TrimSpace(string(out)))
		}
	}
}

// oddlyNamed has params with names in which tags, quotes and lines end.
const oddlyNamed = `
experiment: odd
version: 1
world: odd
seeds: 1
inputs: go.jsonl
params:
  "a.x,y": [1, 2]
  "a.z,list": [1]
  "a.q\"r\\": [1.5]
  "a.-": [true]
  "a.b` + "`" + `c": [1]
  "a.new\nline": ["", "a,b"]
measures: {n: {cells: a}, text: {cell: a/x, value: state.text, type: string}}
at: every 1
stop: {ticks: 2}
`

// TestParamsMayHaveAnyName: none breaks a table.
func TestParamsMayHaveAnyName(t *testing.T) {
	dir := t.TempDir()
	run(t, load(t, oddlyNamed), experiment.Options{Dir: dir})
	file, err := os.Open(filepath.Join(dir, "runs.parquet"))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	info, err := file.Stat()
	require.NoError(t, err)
	f, err := parquet.OpenFile(file, info.Size())
	require.NoError(t, err)
	require.EqualValues(t, 4, f.NumRows())
	var names []string
	for _, c := range f.Root().Columns() {
		names = append(names, c.Name())
	}
	require.Equal(t, []string{"a.x,y", "a.z,list", "a.q\"r\\", "a.-", "a.b`c", "a.new\nline"}, names[2:8])
	rows, err := csv.NewReader(strings.NewReader(tables(t, dir)["runs.csv"])).ReadAll()
	require.NoError(t, err)
	require.Equal(t, names, rows[0])
}

// jsonRows returns a table of JSON lines as readParquet prints one.
func jsonRows(t *testing.T, dir, name string) string {
	t.Helper()
	var dictionary experiment.Dictionary
	data, err := os.ReadFile(filepath.Join(dir, "dictionary.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &dictionary))
	var columns []experiment.Column
	for _, table := range dictionary.Tables {
		if table.Name == name {
			columns = table.Columns
		}
	}
	lines, err := os.ReadFile(filepath.Join(dir, name+".jsonl"))
	require.NoError(t, err)
	var out []string
	for line := range bytes.Lines(lines) {
		row := make(map[string]json.RawMessage)
		require.NoError(t, json.Unmarshal(line, &row))
		require.Len(t, row, len(columns))
		var cells [][2]string
		for _, c := range columns {
			cells = append(cells, [2]string{c.Name, asRead(t, &c, string(row[c.Name]))})
		}
		text, err := json.Marshal(cells)
		require.NoError(t, err)
		out = append(out, string(text))
	}
	return strings.Join(out, "\n")
}

func asRead(t *testing.T, c *experiment.Column, text string) string {
	t.Helper()
	switch {
	case text == "null":
		return "null"
	case c.Type == experiment.Int || c.Type == experiment.Uint:
		return "bigint " + text
	case c.Type == experiment.Float:
		f, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		return "float " + strconv.FormatUint(math.Float64bits(f), 16)
	case c.Type == experiment.Bool:
		return "boolean " + text
	}
	var s string
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	return "string " + s
}
