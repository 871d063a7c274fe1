package governance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

func TestArgumentsOfParamsAreThoseThatConfigNames(t *testing.T) {
	config := fromJSON(t, `{"program": "x", "args": ["-v", {"param": "city"}, {"param": "days", "prefix": "--days="}, "end"]}`)
	for params, want := range map[string][]string{
		`{"city": "Bern", "days": 3, "more": "-rf"}`:     {"-v", "Bern", "--days=3", "end"},
		`{"city": "", "days": -3}`:                       {"-v", "", "--days=-3", "end"},
		`{"city": "a b; rm *", "days": "-x"}`:            {"-v", "a b; rm *", "--days=-x", "end"},
		`{"city": true, "days": 2.5}`:                    {"-v", "true", "--days=2.5", "end"},
		`{"city": 12345678901234567890123, "days": "ü"}`: {"-v", "12345678901234567890123", "--days=ü", "end"},
	} {
		got, err := governance.ParseExec(config, fromJSON(t, params))
		require.NoError(t, err, params)
		require.Equal(t, want, got.Args)
		require.Equal(t, 1, got.Fixed, "what follows the first of params is as open as that")
	}
	for params, reason := range map[string]string{
		`{"days": 1}`:                     "params have no city, which is args[1]",
		`null`:                            "params have no city, which is args[1]",
		`{"city": "-rf", "days": 1}`:      "params.city is args[1], and begins with -, like an option",
		`{"city": -1, "days": 1}`:         "params.city is args[1], and begins with -, like an option",
		`{"city": "a\u0000b", "days": 1}`: "params.city is args[1], and holds a NUL",
		`{"city": ["a"], "days": 1}`:      "params.city is args[1], and no text, number or boolean",
		`{"city": "a", "days": null}`:     "params.days is args[2], and no text, number or boolean",
	} {
		_, err := governance.ParseExec(config, fromJSON(t, params))
		require.Equal(t, governance.CodeBadParams, capCode(t, err), params)
		require.ErrorContains(t, err, reason)
	}
	target, err := governance.ParseExec(config, fromJSON(t, `{"city": "Bern", "days": 3}`))
	require.NoError(t, err)
	caps := func(args ...string) *manifest.CapParams {
		return &manifest.CapParams{Programs: []string{"x"}, Args: args}
	}
	require.Nil(t, target.Allowed(caps("-v", "Bern", "--days=*", "end")))
	require.Equal(t, governance.CodeArgNotAllowed, target.Allowed(caps("-v", "Basel", "--days=*", "end")).Code)
}

func TestExecTargetIsConfigAloneAndParamsNeverBecomeArguments(t *testing.T) {
	config := fromJSON(t, `{"program": "./tools/x", "args": ["-v", "a b"], "env": {"TOKEN": "secret://t"}, "compensate_on": [3], "max_bytes": 9}`)
	for _, params := range []string{`null`, `["-rf", "/"]`, `{"args": ["-rf"], "program": "sh", "env": {"PATH": "/tmp"}}`, `"; rm -rf /"`} {
		got, err := governance.ParseExec(config, fromJSON(t, params))
		require.NoError(t, err)
		require.Equal(t, governance.ExecTarget{
			Program: "./tools/x", Args: []string{"-v", "a b"}, Fixed: 2, Env: map[string]string{"TOKEN": "secret://t"},
			CompensateOn: []int{3}, MaxBytes: 9,
		}, *got)
	}
	got, err := governance.ParseExec(fromJSON(t, `{"program": "x"}`), nil)
	require.NoError(t, err)
	require.Equal(t, governance.ExecTarget{Program: "x", MaxBytes: governance.DefaultExecBytes}, *got)
}

func TestExecTargetIsRefusedWithItsCode(t *testing.T) {
	for _, config := range []string{
		`{}`, `{"program": ""}`, `{"program": "a\u0000b"}`, `{"program": 7}`, `{"program": "x", "shell": true}`,
		`{"program": "x", "args": "-v"}`, `{"program": "x", "args": ["a\u0000"]}`, `{"program": "x", "args": ["secret://t"]}`,
		`{"program": "x", "args": [7]}`, `{"program": "x", "args": [{}]}`, `{"program": "x", "args": [{"param": "a", "more": 1}]}`,
		`{"program": "x", "args": [{"param": "a", "prefix": "secret://"}]}`, `{"program": "x", "output": "xml"}`,
		`{"program": "x", "env": {"": "x"}}`, `{"program": "x", "env": {"A=B": "x"}}`, `{"program": "x", "env": {"A": "\u0000"}}`,
		`{"program": "x", "env": {"WORLDKERNEL_ATTEMPT": "1"}}`, `{"program": "x", "env": ["A"]}`,
		`{"program": "x", "compensate_on": [0]}`, `{"program": "x", "compensate_on": [256]}`, `{"program": "x", "max_bytes": -1}`,
	} {
		_, err := governance.ParseExec(fromJSON(t, config), nil)
		require.Equal(t, governance.CodeBadConfig, capCode(t, err), config)
	}
	_, err := governance.ParseExec(fromJSON(t, `{"program": "x"}`), canon.Raw{0xff})
	require.Equal(t, governance.CodeBadParams, capCode(t, err))
}

func TestExecCapabilityNamesProgramAndArguments(t *testing.T) {
	parse := func(config string) *governance.ExecTarget {
		target, err := governance.ParseExec(fromJSON(t, config), nil)
		require.NoError(t, err)
		return target
	}
	bare := parse(`{"program": "./tools/x"}`)
	require.Nil(t, bare.Allowed(&manifest.CapParams{Programs: []string{"y", "./tools/x"}}))
	for _, programs := range [][]string{nil, {"tools/x"}, {"x"}, {"*"}, {"./tools/*"}, {"./tools/x "}} {
		require.Equal(t, governance.CodeProgramNotAllowed, bare.Allowed(&manifest.CapParams{Programs: programs}).Code, "%q", programs)
	}
	for _, c := range []struct {
		arg, pattern string
		ok           bool
	}{
		{"-v", "-v", true},
		{"-v", "*", true},
		{"", "*", true},
		{"", "", true},
		{"--to=ann", "--to=*", true},
		{"a.txt", "*.txt", true},
		{"a-b-c", "a*b*c", true},
		{"abcabc", "a*c", true},
		{"ab", "a*b", true},
		{"a*b", "a*b", true},
		{"xx", "*x*x*", true},
		{"-vv", "-v", false},
		{"v", "-v", false},
		{"", "-v", false},
		{"--to", "--to=*", false},
		{"a.txt2", "*.txt", false},
		{"a", "a*a", false},
		{"x", "*x*x*", false},
		{"acb", "a*b*c", false},
		{"-v", "", false},
		{"ab", "a?", false},
		{"ab", "[a]b", false},
	} {
		target := parse(`{"program": "x", "args": [` + inJSON(t, c.arg) + `]}`)
		denied := target.Allowed(&manifest.CapParams{Programs: []string{"x"}, Args: []string{"never", c.pattern}})
		require.Equal(t, c.ok, denied == nil, "%q %q", c.pattern, c.arg)
		if denied != nil {
			require.Equal(t, governance.CodeArgNotAllowed, denied.Code)
		}
	}
	two := parse(`{"program": "x", "args": ["-a", "-b"]}`)
	require.Equal(t, governance.CodeArgNotAllowed, two.Allowed(&manifest.CapParams{Programs: []string{"x"}, Args: []string{"-a"}}).Code)
	require.Equal(t, governance.CodeArgNotAllowed, two.Allowed(&manifest.CapParams{Programs: []string{"x"}}).Code)
	require.Nil(t, two.Allowed(&manifest.CapParams{Programs: []string{"x"}, Args: []string{"-a", "-b"}}))
}
