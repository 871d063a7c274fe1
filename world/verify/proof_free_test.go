package verify_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/verify"
)

// sorts returns a proof of each sort, small ones.
func sorts(t testing.TB) map[string]verify.Proof {
	w := bots(t)
	w.Submit("go", order("a", act{"effect": "tool.a", "param": "x"}))
	w.Run()
	all := w.Journal.Records()
	finished := journal.Seq(slices.Index(w.Kinds(), journal.KindFinished) + 1)
	return map[string]verify.Proof{
		"record":      proofOf(t, w.Journal, all, 2),
		"receipt":     proofOf(t, w.Journal, all, finished),
		"consistency": consistencyOf(t, all, 3),
		"cell":        celled(t, "bot/a"),
		"no cell":     celled(t, "bot/z"),
	}
}

// weaker makes of what a proof shows the most that can be shown of it by one that
// somebody changed, and that is true: about another cell that was not there, or no
// cell at all.
func weaker(want, got verify.Proven) verify.Proven {
	switch {
	case got.Cell != nil && want.Cell != nil && !want.Cell.Present && !got.Cell.Present && got.Cell.Name != "bot/a" && got.Cell.Name != "bot/b":
		cell := *want.Cell
		want.Says = strings.ReplaceAll(want.Says, cell.Name, got.Cell.Name)
		cell.Name = got.Cell.Name
		want.Cell = &cell
	case got.Cell == nil && want.Cell != nil:
		want.Kind, want.Cell = verify.ProofRecord, nil
		want.Says, _, _ = strings.Cut(want.Says, ": ")
	}
	return want
}

// same requires that data shows nothing but what a proof shows, and reports whether
// it shows anything.
func same(t *testing.T, want *verify.Proven, data []byte) bool {
	t.Helper()
	r, err := verify.CheckProof(data, publics(1, 2))
	if err != nil {
		require.ErrorIs(t, err, verify.ErrNotProof)
		return false
	}
	if r.OK {
		require.Equal(t, weaker(*want, *r), *r, "%s", data)
	}
	return r.OK
}

func TestNoByteOfAProofIsFree(t *testing.T) {
	for name, p := range sorts(t) {
		t.Run(name, func(t *testing.T) {
			data, want := encode(t, p), check(t, p, 1, 2)
			require.Empty(t, want.Faults)
			for i := range data {
				changed := bytes.Clone(data)
				changed[i] ^= 1 << (i % 7)
				same(t, want, changed)
				same(t, want, slices.Delete(bytes.Clone(data), i, i+1))
			}
		})
	}
}

// changes calls with everything that a JSON value can become by one change.
func changes(v any, with func(any)) {
	switch x := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			member := x[key]
			changes(member, func(m any) { x[key] = m; with(x) })
			delete(x, key)
			with(x)
			x[strings.ToUpper(key)] = member
			with(x)
			delete(x, strings.ToUpper(key))
			x[key] = member
		}
		x["more"] = 1
		with(x)
		delete(x, "more")
	case []any:
		for i, item := range x {
			changes(item, func(m any) { x[i] = m; with(x) })
			x[i] = item
			with(slices.Delete(slices.Clone(x), i, i+1))
			with(slices.Insert(slices.Clone(x), i, item))
		}
		with(nil)
	case string:
		for _, s := range []string{"", x + "A", x + "\n", strings.ToUpper(x), strings.ReplaceAll(x, "=", "")} {
			with(s)
		}
		with(nil)
	case float64:
		for _, n := range []any{x + 1, x - 1, -x, x + 0.5, x * 1e15, "1", nil} {
			with(n)
		}
	case bool:
		with(!x)
		with(nil)
	}
}

func TestNoValueOfAProofIsFree(t *testing.T) {
	for name, p := range sorts(t) {
		t.Run(name, func(t *testing.T) {
			want := check(t, p, 1, 2)
			var whole any
			require.NoError(t, json.Unmarshal(encode(t, p), &whole))
			original, err := json.Marshal(whole)
			require.NoError(t, err)
			accepted := 0
			changes(whole, func(any) {
				data, err := json.Marshal(whole)
				require.NoError(t, err)
				if !bytes.Equal(data, original) && same(t, want, data) {
					accepted++
				}
			})
			// Who is trusted need not be listed, and a record is shown without its cell, too.
			free := map[string]int{"record": 1, "receipt": 1, "consistency": 2, "cell": 2, "no cell": 3}
			require.Equal(t, free[name], accepted)
		})
	}
}

func TestProofIsWrittenInOneWay(t *testing.T) {
	p := sorts(t)["receipt"]
	good := string(encode(t, p))
	for name, c := range map[string]string{
		"twice":           strings.Replace(good, `"world":"test"`, `"world":"test","world":"test"`, 1),
		"another schema":  strings.Replace(good, "proof/v1", "proof/v2", 1),
		"unknown":         strings.Replace(good, `"world":"test"`, `"world":"test","more":1`, 1),
		"another case":    strings.Replace(good, `"world":`, `"World":`, 1),
		"a float":         strings.Replace(good, `"record":`, `"record":0.`, 1),
		"more":            good + "{}",
		"none":            "",
		"no object":       "[]",
		"null":            "null",
		"line in base64":  strings.Replace(good, `"bytes":"`, `"bytes":"\n`, 1),
		"older":           strings.Replace(good, `"signers"`, `"older":"x","signers"`, 1),
		"empty payload":   strings.Replace(good, `"inclusion"`, `"payload":"","inclusion"`, 1),
		"null inclusion":  strings.Replace(good, `"inclusion":[`, `"inclusion":null,"x":[`, 1),
		"not UTF-8":       strings.Replace(good, `"test"`, "\"te\xff\"", 1),
		"too large":       good + strings.Repeat(" ", verify.MaxProofBytes),
		"too deep":        strings.Repeat("[", 1000),
		"no bytes at all": "{}",
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, good, c)
			_, err := verify.CheckProof([]byte(c), nil)
			require.ErrorIs(t, err, verify.ErrNotProof)
		})
	}
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, []byte(good), "", "  "))
	r, err := verify.CheckProof(indented.Bytes(), nil)
	require.NoError(t, err)
	require.True(t, r.OK, "white space is free")
	_, err = verify.Proof{World: "test"}.Encode()
	require.ErrorIs(t, err, verify.ErrNotProof)
}

// What decodes encodes to the same value, and nobody who signed nothing is believed.
func FuzzProof(f *testing.F) {
	for _, p := range sorts(f) {
		f.Add(encode(f, p))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := verify.DecodeProof(data)
		if err != nil {
			require.ErrorIs(t, err, verify.ErrNotProof)
			return
		}
		again, err := p.Encode()
		require.NoError(t, err)
		want, err := canon.FromJSON(data)
		require.NoError(t, err)
		got, err := canon.FromJSON(again)
		require.NoError(t, err)
		require.Equal(t, want, got)
		r, err := verify.CheckProof(data, publics(9))
		require.NoError(t, err)
		require.False(t, r.Trusted)
		_, err = json.Marshal(r)
		require.NoError(t, err)
	})
}
