package governance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

func transform(t require.TestingT, expr, payload string) (canon.Raw, error) {
	data, err := canon.FromJSON([]byte(payload))
	require.NoError(t, err)
	params, err := canon.FromJSON([]byte(`{"amount": 12, "who": "mia"}`))
	require.NoError(t, err)
	f, err := NewTransform(expr)
	require.NoError(t, err, expr)
	return f.Eval(
		&receipt.Receipt{Status: receipt.StatusError, Payload: data, ExternalRef: "ref-7"},
		&receipt.Intent{Kind: "tool.refund", Params: params, Cell: "agent/mia"},
	)
}

func TestTransformGivesCanonicalData(t *testing.T) {
	const payload = `{"id": "r1", "list": [1, 2.5, null, true], "huge": 18446744073709551615, "neg": -9223372036854775809}`
	for expr, want := range map[string]string{
		`{"id": receipt.payload.id}`:                                    `{"id": "r1"}`,
		`receipt.payload`:                                               payload,
		`{"zz": 1, "b": 2, "a": {"y": [], "x": {}}}`:                    `{"a": {"x": {}, "y": []}, "b": 2, "zz": 1}`,
		`[receipt.status, receipt.external_ref]`:                        `["error", "ref-7"]`,
		`{"k": intent.kind, "p": intent.params, "c": intent.cell}`:      `{"k": "tool.refund", "p": {"amount": 12, "who": "mia"}, "c": "agent/mia"}`,
		`has(receipt.payload.none) ? receipt.payload.none : null`:       `null`,
		`intent.params.amount > 10 ? "great" : "small"`:                 `"great"`,
		`receipt.payload.list.map(x, x == null, "none")`:                `["none"]`,
		`intent.params.map(k, k)`:                                       `["amount", "who"]`,
		`-0.0`:                                                          `0.0`,
		`{"d": double(intent.params.amount) / 5.0, "u": 7u, "b": true}`: `{"b": true, "d": 2.4, "u": 7}`,
	} {
		got, err := transform(t, expr, payload)
		require.NoError(t, err, expr)
		require.NoError(t, canon.Valid(got), expr)
		wanted, err := canon.FromJSON([]byte(want))
		require.NoError(t, err)
		require.Equal(t, wanted, got, expr)
	}
	got, err := transform(t, `b"\x00\xff"`, `{}`)
	require.NoError(t, err)
	require.Equal(t, canon.Raw(canon.AppendBytes(nil, []byte{0, 0xff})), got)
}

func TestTransformThatGivesNoDataIsAnError(t *testing.T) {
	many := `[` + strings.TrimSuffix(strings.Repeat(`receipt.payload,`, 600), ",") + `]`
	for expr, payload := range map[string]string{
		`receipt.payload.missing`:      `{}`,
		`1.0 / 0.0`:                    `{}`,
		`0.0 / 0.0`:                    `{}`,
		`{1: 2}`:                       `{}`,
		`{true: 2}`:                    `{}`,
		`{dyn(1.5): 2}`:                `{}`,
		`type(1)`:                      `{}`,
		`[1, [type(receipt.payload)]]`: `{}`,
		`receipt.payload.n + 1`:        `{"n": 18446744073709551616}`,
		`[receipt.payload]`:            strings.Repeat("[", canon.MaxDepth) + strings.Repeat("]", canon.MaxDepth),
		`{"a": receipt.payload}`:       strings.Repeat("[", canon.MaxDepth) + strings.Repeat("]", canon.MaxDepth),
		`receipt.payload.map(x, receipt.payload)`: `[` + strings.TrimSuffix(strings.Repeat("1,", 2000), ",") + `]`,
		many: `"` + strings.Repeat("x", 2000) + `"`,
		`receipt.payload.all(x, receipt.payload.all(y, x == y))`: `[` + strings.TrimSuffix(strings.Repeat("1,", 1000), ",") + `]`,
	} {
		_, err := transform(t, expr, payload)
		require.Error(t, err, "%.100s", expr)
		require.Less(t, len(err.Error()), 512)
	}
	maps := strings.Repeat(`{"a":`, canon.MaxDepth) + "1" + strings.Repeat("}", canon.MaxDepth)
	_, err := transform(t, `{"a": receipt.payload}`, maps)
	require.Error(t, err)
	f, err := NewTransform(`receipt.external_ref`)
	require.NoError(t, err)
	_, err = f.Eval(&receipt.Receipt{ExternalRef: "\xff"}, &receipt.Intent{})
	require.Error(t, err)
	deepest := strings.Repeat("[", canon.MaxDepth-1) + strings.Repeat("]", canon.MaxDepth-1)
	got, err := transform(t, `[receipt.payload]`, deepest)
	require.NoError(t, err)
	require.NoError(t, canon.Valid(got))
}

func TestTransformFaultsHaveTheirPlace(t *testing.T) {
	for expr, column := range map[string]int{
		`{"id": receipt.payload.id}`: 0,
		`receipt.cost`:               1,
		`{"a": intent.step}`:         7,
		`world.time`:                 1,
		`budget.calls`:               1,
		`{"a": }`:                    7,
		``:                           1,
		`google.protobuf.Struct{}`:   23,
	} {
		err := CheckTransform(expr)
		if column == 0 {
			require.NoError(t, err)
			continue
		}
		var at *PolicyError
		require.ErrorAs(t, err, &at, expr)
		require.Equal(t, column, at.Column, "%s: %s", expr, err)
	}
}

func FuzzTransform(f *testing.F) {
	for _, s := range []string{
		`{"id": receipt.payload.id}`, `receipt.payload`, `[intent.params, 1u, 2.5, b"a", null]`, `{"b": {1: 2}, "a": dyn(type(1))}`,
		`receipt.payload.map(k, k)`, `"\u00e9" + intent.cell`, `string(b'\xff')`, "\xff",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		if CheckTransform(expr) != nil {
			return
		}
		first, err := transform(t, expr, `{"id": 1, "l": [1, {"y": null}], "z": "é"}`)
		second, again := transform(t, expr, `{"id": 1, "l": [1, {"y": null}], "z": "é"}`)
		require.Equal(t, err == nil, again == nil)
		require.Equal(t, first, second)
		if err == nil {
			require.NoError(t, canon.Valid(first))
		}
	})
}
