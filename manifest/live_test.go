package manifest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
)

// TestAPatternNamesNothingDestructive: what cannot be undone is live by its exact name only.
func TestAPatternNamesNothingDestructive(t *testing.T) {
	m := &manifest.Manifest{Effects: map[string]manifest.Effect{
		"model.ask": {}, "model.draw": {Class: manifest.ClassWrite}, "model.drop": {Class: manifest.ClassDestructive}, "pay.refund": {Class: manifest.ClassDestructive},
	}}
	for _, c := range []struct {
		live manifest.Live
		want []string
	}{
		{nil, nil},
		{manifest.Live{"*"}, []string{"model.ask", "model.draw"}},
		{manifest.Live{"model.*"}, []string{"model.ask", "model.draw"}},
		{manifest.Live{"model.*", "pay.refund"}, []string{"model.ask", "model.draw", "pay.refund"}},
		{manifest.Live{"model.drop", "model.ask", "model.ask"}, []string{"model.ask", "model.drop"}},
	} {
		kinds, err := c.live.In(m)
		require.NoError(t, err)
		require.Equal(t, c.want, kinds)
	}
	for name, why := range map[string]string{"pay.*": "named exactly: pay.refund", "model.as": "no such effect", "": "no such effect", "mail.*": "no such effect"} {
		_, err := manifest.Live{"model.ask", name}.In(m)
		require.ErrorContains(t, err, `"`+name+`"`)
		require.ErrorContains(t, err, why)
	}
}

// TestMeansOfAnEffect change with all that decides about its answers, and with nothing else.
func TestMeansOfAnEffect(t *testing.T) {
	e := manifest.Effect{Adapter: "llm", Config: manifest.Data("a"), Files: map[string]manifest.Hash{"a": {1}}}
	was := e.Means()
	for _, same := range []func(*manifest.Effect){
		func(e *manifest.Effect) { e.Timeout = 7 }, func(e *manifest.Effect) { e.Class = manifest.ClassRead }, func(e *manifest.Effect) { e.ParamsFile = "x" },
	} {
		is := e
		same(&is)
		require.Equal(t, was, is.Means())
	}
	for _, other := range []func(*manifest.Effect){
		func(e *manifest.Effect) { e.Adapter = "http" }, func(e *manifest.Effect) { e.Config = manifest.Data("b") }, func(e *manifest.Effect) { e.Params = manifest.Hash{2} },
		func(e *manifest.Effect) { e.Files = map[string]manifest.Hash{"a": {2}} }, func(e *manifest.Effect) { e.Files = map[string]manifest.Hash{"b": {1}} },
	} {
		is := e
		other(&is)
		require.NotEqual(t, was, is.Means())
	}
}
