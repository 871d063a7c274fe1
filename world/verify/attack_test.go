package verify_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/attack"
	"github.com/worldkernel/worldkernel/world/verify"
)

// leaf is a value in a proof, and how to put another in its place.
type leaf struct {
	value any
	set   func(any)
}

// leaves returns all values of a proof, those that hold others first.
func leaves(v any, set func(any)) (all []leaf) {
	all = append(all, leaf{v, set})
	switch x := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			all = append(all, leaves(x[key], func(m any) { x[key] = m })...)
		}
	case []any:
		for i := range x {
			all = append(all, leaves(x[i], func(m any) { x[i] = m })...)
		}
	}
	return all
}

// bent returns another value for one, of its type or not.
func bent(a *attack.Attempt, v, other any) any {
	if s, ok := v.(string); ok && len(s) > 0 && a.Chance(2) {
		b := []byte(s)
		switch i := a.IntN(len(b)); a.IntN(4) {
		case 0:
			b[i] ^= 1 << a.IntN(5)
		case 1:
			b = slices.Delete(b, i, i+1)
		case 2:
			b = slices.Insert(b, i, attack.Pick[byte](a, 0, 0xff, 0x41, 0x3d, 0x0a, 0x2e))
		default:
			return strings.ToLower(s)
		}
		return string(b)
	}
	if n, ok := v.(float64); ok && a.Chance(2) {
		return n + float64(a.IntN(5)-2)
	}
	if list, ok := v.([]any); ok && len(list) > 0 && a.Chance(2) {
		i, j := a.IntN(len(list)), a.IntN(len(list))
		list = slices.Clone(list)
		list[i], list[j] = list[j], list[i]
		return append(list, list[:a.IntN(2)]...)
	}
	return attack.Pick[any](a, other, other, nil, "", float64(0), true, []any{}, map[string]any{})
}

// TestAttackProofs changes proofs, and makes one of the parts of several. What shows
// anything shows what one of them did.
func TestAttackProofs(t *testing.T) {
	proofs := sorts(t)
	names := slices.Sorted(maps.Keys(proofs))
	encoded, shown := map[string][]byte{}, map[string]verify.Proven{}
	for name, p := range proofs {
		encoded[name], shown[name] = encode(t, p), *check(t, p, 1, 2)
	}
	attack.Run(t, "proofs", func(a *attack.Attempt) {
		data := encoded[attack.Pick(a, names...)]
		if a.Chance(3) {
			data = bytes.Clone(data)
			for range 1 + a.IntN(3) {
				i := a.IntN(len(data))
				data[i] ^= 1 << a.IntN(8)
				if a.Chance(3) {
					data = slices.Delete(data, i, min(i+1+a.IntN(9), len(data)))
				}
			}
		} else {
			var whole any
			require.NoError(t, json.Unmarshal(data, &whole))
			for range 1 + a.IntN(3) {
				var other any // anew: nothing is put into itself
				require.NoError(t, json.Unmarshal(encoded[attack.Pick(a, names...)], &other))
				others := leaves(other, nil)
				all := leaves(whole, func(v any) { whole = v })
				at := all[a.IntN(len(all))]
				at.set(bent(a, at.value, others[a.IntN(len(others))].value))
			}
			var err error
			data, err = json.Marshal(whole)
			require.NoError(t, err)
		}
		got, err := verify.CheckProof(data, publics(1, 2))
		if err != nil || !got.OK {
			return
		}
		for _, name := range names {
			if reflect.DeepEqual(weaker(shown[name], *got), *got) {
				return
			}
		}
		a.Through("it shows %+v: %s", *got, data)
	})
}
