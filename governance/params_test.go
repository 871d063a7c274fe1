package governance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// Schemas of params: of two effects that have nothing in common, and one of anything.
const (
	cardParams = `{
		"type": "object", "additionalProperties": false, "$defs": {"line": {
			"type": "object", "additionalProperties": false, "properties": {"cents": {"type": "integer"}, "text": {"type": "string"}}
		}},
		"properties": {
			"amount": {"type": "integer"}, "rate": {"type": "number"}, "to": {"type": "string"}, "urgent": {"type": "boolean"},
			"note": {"type": ["string", "null"]}, "tags": {"type": "array", "items": {"type": "string"}},
			"line": {"$ref": "#/$defs/line"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
			"open": {"type": "object", "properties": {"x": {"type": "string"}}}, "none": false
		}
	}`
	mailParams = `{"type": "object", "additionalProperties": false, "properties": {"to": {"type": "string"}, "body": {"type": "string"}}}`
)

func paramsManifest(when string) (*manifest.Manifest, func(manifest.Hash) ([]byte, error)) {
	m := &manifest.Manifest{
		Effects: map[string]manifest.Effect{
			"pay.card": {Adapter: "http", Class: manifest.ClassWrite, Params: canon.Sum([]byte(cardParams))},
			"mail":     {Adapter: "exec", Class: manifest.ClassWrite, Params: canon.Sum([]byte(mailParams))},
			"any":      {Adapter: "mcp", Class: manifest.ClassRead},
		},
		Policies: []manifest.Policy{{Name: "first", When: "true"}, {Name: "second", When: when}},
	}
	return m, func(h manifest.Hash) ([]byte, error) {
		return map[manifest.Hash][]byte{canon.Sum([]byte(cardParams)): []byte(cardParams), canon.Sum([]byte(mailParams)): []byte(mailParams)}[h], nil
	}
}

func TestPoliciesAreHeldAgainstTheSchemasOfParams(t *testing.T) {
	const card = `intent.kind == "pay.card" && `
	for when, want := range map[string]string{
		// What there is.
		card + `intent.params.amount > 100`: "",
		card + `intent.params.amount > 1.5 && intent.params.rate >= 1 && 2.0 == intent.params.rate`: "",
		card + `intent.params.to == "x" && intent.params.urgent`:                                    "",
		card + `intent.params.tags.exists(t, t == "x") && "y" in intent.params.tags`:                "",
		card + `intent.params.all(k, k != "x") && size(intent.params) < 3`:                          "",
		card + `"amount" in intent.params && intent.params["amount"] > 3`:                           "",
		card + `has(intent.params.note) && intent.params.note == null`:                              "",
		card + `intent.params.line.cents > 1 && intent.params.lines[0].text == "x"`:                 "",
		card + `intent.params.lines.all(l, l.cents < 5)`:                                            "",
		card + `intent.params.open.y > 1`:                                                           "",
		card + `intent.params.lines.all(l, l.sents < 5)`:                                            "the params of pay.card have no sents there: did you mean cents?",

		`effect.idempotent && intent.params.nowhere == 1`:                                                           "",
		`intent.kind in {"any": 1, "mail": 2} || intent.kind.matches("^(any|mail)$") || intent.params.amount > 100`: "",

		// What cannot be there.
		`[{"k": "pay.card"}].exists(r, r.k == intent.kind) && intent.kind > "n" && intent.params.amonut > 100`: "the params of pay.card have no amonut there: did you mean amount?",
		card + `intent.params.amonut > 100`:          "the params of pay.card have no amonut there: did you mean amount?",
		card + `intent.params["amonut"] > 100`:       "the params of pay.card have no amonut there: did you mean amount?",
		card + `has(intent.params.amonut)`:           "the params of pay.card have no amonut there: did you mean amount?",
		card + `"amonut" in intent.params`:           "the params of pay.card have no amonut there: did you mean amount?",
		card + `intent.params.line.cent > 1`:         "the params of pay.card have no cent there: did you mean cents?",
		card + `intent.params.lines[0].quantity > 1`: "the params of pay.card have no quantity there: they have cents, text",
		card + `intent.params.none == 1`:             "the params of pay.card have no none there: did you mean note?",

		// What is of another type.
		card + `intent.params.to > 5`:               "params of pay.card: > does not take (string, int)",
		card + `intent.params.amount == "5"`:        "params of pay.card: == does not take (int, string)",
		card + `intent.params.rate.startsWith("5")`: "params of pay.card: startsWith does not take int.(string)",
		card + `intent.params.open.x == 1`:          "params of pay.card: == does not take (string, int)",
		card + `5 in intent.params.tags`:            "params of pay.card: in does not take (int, list(string))",
		card + `(intent.params.to ? 1 : 2) > 1`:     "params of pay.card: ?: does not take (string, int, int)",

		// Which effects an expression is about.
		`intent.params.amonut > 100`:                                                      "", // any may have it
		`intent.kind != "any" && intent.params.amount > 100`:                              "", // pay.card has it
		`intent.kind != "any" && intent.params.amonut > 100`:                              "the params of mail have no amonut there: they have body, to",
		`intent.params.amonut > 100 && intent.kind == "mail"`:                             "the params of mail have no amonut there: they have body, to",
		`intent.kind in ["mail", "pay.card"] && intent.params.too == ""`:                  "the params of mail have no too there: did you mean to?",
		`intent.kind.startsWith("pay.") ? intent.params.body == "" : true`:                "the params of pay.card have no body there: they have amount, line, lines, note, open, rate, tags, to, urgent",
		`intent.kind == "mail" || intent.params.body == ""`:                               "",
		`intent.class == "write" && effect.adapter == "exec" && intent.params.amount > 1`: "the params of mail have no amount there: they have body, to",
		`!(intent.kind == "mail" || intent.class == "read") && intent.params.body == ""`:  "the params of pay.card have no body there: they have amount, line, lines, note, open, rate, tags, to, urgent",
		`has(intent.params.amount) && intent.params.amount > 5`:                           "",
		`intent.kind != "any" && has(intent.params.amount) && intent.params.amount > 5`:   "",
		`cell.key == "x" && intent.kind == "mail" && intent.params.to == 5`:               "params of mail: == does not take (string, int)",
		`intent.tag == "unheard" && intent.params.amonut == 5`:                            "",
	} {
		require.NoError(t, governance.CheckPolicy(when), when)
		m, schema := paramsManifest(when)
		faults, err := governance.CheckRules(m, schema, nil)
		require.NoError(t, err)
		if want == "" {
			require.Empty(t, faults, when)
			continue
		}
		require.Len(t, faults, 1, when)
		require.Equal(t, "/policies/1/when", faults[0].Path)
		require.Equal(t, want, faults[0].Msg, when)
		require.Equal(t, 1, faults[0].Line)
		require.Greater(t, faults[0].Column, 1)
	}
}

func TestTransformsAreHeldAgainstTheSchemaOfTheirParams(t *testing.T) {
	m, schema := paramsManifest("true")
	card := m.Effects["pay.card"]
	for params, want := range map[string]string{
		`{"to": intent.params.to, "of": receipt.payload.anything}`: "",
		`{"to": intent.params.too}`:                                "the params of pay.card have no too there: did you mean to?",
	} {
		require.NoError(t, governance.CheckTransform(params))
		card.Compensate = &manifest.Compensate{Kind: "mail", Params: params}
		m.Effects["pay.card"] = card
		faults, err := governance.CheckRules(m, schema, nil)
		require.NoError(t, err)
		if want == "" {
			require.Empty(t, faults)
			continue
		}
		require.Len(t, faults, 1)
		require.Equal(t, "/effects/pay.card/compensate/params", faults[0].Path)
		require.Equal(t, want, faults[0].Msg)
	}
}

// TestCheckingParamsEndsWhenNobodyWaits: candidates of strangers are checked, too.
func TestCheckingParamsEndsWhenNobodyWaits(t *testing.T) {
	m, schema := paramsManifest(`intent.kind == "mail" && intent.params.amount > 1`)
	faults, err := governance.CheckRules(m, schema, func() bool { return true })
	require.NoError(t, err)
	require.Empty(t, faults)
}
