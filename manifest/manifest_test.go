package manifest_test

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// TestManifestHashIsFixed guards the format: a change of this hash changes the
// hash of every manifest there is. The first is from before there was governance,
// which without anything said about it has no bytes.
func TestManifestHashIsFixed(t *testing.T) {
	m := good()
	m.Governance = manifest.Governance{Approvers: []manifest.Approver{}}
	b, err := m.Encode()
	require.NoError(t, err)
	require.Equal(t, "44b18d2968aedf1da16ed24be5eb77d05a168892d51ebe568ab4bdc28d670f4f", canon.Sum(b).String())
	b, err = good().Encode()
	require.NoError(t, err)
	require.Equal(t, "2b06c794c09e237238e74cf2f804940e0c806c1fff6d678929f6ccedf47812ac", canon.Sum(b).String())
}

func TestEncodeDecodeIsTheIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyManifest(t)
		b, err := m.Encode()
		require.NoError(t, err)
		decoded, err := manifest.Decode(b)
		require.NoError(t, err)
		again, err := decoded.Encode()
		require.NoError(t, err)
		require.Equal(t, b, again)
		require.Equal(t, m.Contents(), decoded.Contents())
		require.Equal(t, m.Validate(), decoded.Validate())
	})
}

func TestDefaultsAreFilledOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once := anyManifest(t).WithDefaults()
		require.Equal(t, once, once.WithDefaults())
	})
}

func TestDecodeRefusesMissingFields(t *testing.T) {
	_, err := manifest.Decode([]byte{0xa0})
	var syntax *canon.SyntaxError
	require.ErrorAs(t, err, &syntax)
}

func FuzzDecode(f *testing.F) {
	b, err := good().Encode()
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte{0xa0})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := manifest.Decode(data)
		if err != nil {
			return
		}
		m.Validate()
		again, err := m.Encode()
		require.NoError(t, err)
		require.Equal(t, hex.EncodeToString(data), hex.EncodeToString(again))
	})
}

// anyManifest draws a manifest with every field set or not, valid or not.
func anyManifest(t *rapid.T) manifest.Manifest {
	text := rapid.StringN(0, 8, -1)
	texts := rapid.SliceOfN(text, 0, 3)
	number := rapid.Uint64()
	hash := rapid.Custom(func(t *rapid.T) manifest.Hash {
		if rapid.Bool().Draw(t, "none") {
			return manifest.Hash{}
		}
		return canon.Sum([]byte(text.Draw(t, "content")))
	})
	budget := rapid.Make[manifest.Budget]()
	verify := rapid.Custom(func(t *rapid.T) *manifest.Verify {
		return &manifest.Verify{
			Adapter: text.Draw(t, "verifier"), Files: rapid.MapOfN(text, hash, 0, 2).Draw(t, "files"), Mode: text.Draw(t, "mode"),
		}
	})
	reducer := rapid.Custom(func(t *rapid.T) manifest.Reducer {
		return manifest.Reducer{
			Engine: text.Draw(t, "engine"), File: text.Draw(t, "file"), Source: hash.Draw(t, "source"),
			Name: text.Draw(t, "name"), Version: text.Draw(t, "version"), Grants: texts.Draw(t, "grants"),
			OnError: text.Draw(t, "on_error"), Budget: budget.Draw(t, "budget"), Limits: manifest.ReducerLimits{Gas: number.Draw(t, "gas")},
		}
	})
	event := rapid.Custom(func(t *rapid.T) manifest.Event {
		return manifest.Event{File: text.Draw(t, "file"), Schema: hash.Draw(t, "schema")}
	})
	effect := rapid.Custom(func(t *rapid.T) manifest.Effect {
		config, err := canon.Marshal(rapid.MapOfN(text, rapid.Int64(), 0, 3).Draw(t, "config"))
		require.NoError(t, err)
		return manifest.Effect{
			Adapter: text.Draw(t, "adapter"), Config: config,
			Files:   rapid.MapOfN(text, hash, 0, 2).Draw(t, "files"),
			Timeout: rapid.Int64().Draw(t, "timeout"), Class: text.Draw(t, "class"), Idempotent: rapid.Bool().Draw(t, "idempotent"),
			ExternalKey: text.Draw(t, "external_key"), Retry: rapid.Make[manifest.Retry]().Draw(t, "retry"),
			OnInDoubt: text.Draw(t, "on_in_doubt"), SettlesAfter: rapid.Int64().Draw(t, "settles_after"), OnRepeat: text.Draw(t, "on_repeat"), Verify: rapid.OneOf(rapid.Just((*manifest.Verify)(nil)), verify).Draw(t, "verify"),
			Compensate: rapid.Make[*manifest.Compensate]().Draw(t, "compensate"), MaxCost: rapid.Make[manifest.MaxCost]().Draw(t, "max_cost"), Rate: rapid.Make[manifest.Rate]().Draw(t, "rate"),
		}
	})
	capability := rapid.Custom(func(t *rapid.T) manifest.Cap {
		return manifest.Cap{
			Type: text.Draw(t, "type"), Params: rapid.Make[manifest.CapParams]().Draw(t, "params"),
			Budget: budget.Draw(t, "budget"), Expires: manifest.Tick(number.Draw(t, "expires")),
		}
	})
	policy := rapid.Custom(func(t *rapid.T) manifest.Policy {
		return manifest.Policy{Name: text.Draw(t, "name"), When: text.Draw(t, "when"), Decide: text.Draw(t, "decide")}
	})
	route := rapid.Custom(func(t *rapid.T) manifest.Route {
		return manifest.Route{Event: text.Draw(t, "event"), Reducer: text.Draw(t, "reducer"), Key: text.Draw(t, "key")}
	})
	return manifest.Manifest{
		World: text.Draw(t, "world"), Version: number.Draw(t, "version"), Seed: number.Draw(t, "seed"),
		Clock:    manifest.Clock{Epoch: rapid.Int64().Draw(t, "epoch"), Tick: rapid.Int64().Draw(t, "tick")},
		Reducers: rapid.MapOfN(text, reducer, 0, 3).Draw(t, "reducers"),
		Events:   rapid.MapOfN(text, event, 0, 3).Draw(t, "events"),
		Effects:  rapid.MapOfN(text, effect, 0, 3).Draw(t, "effects"),
		Caps:     rapid.MapOfN(text, capability, 0, 3).Draw(t, "caps"),
		Policies: rapid.SliceOfN(policy, 0, 3).Draw(t, "policies"),
		Routing:  rapid.SliceOfN(route, 0, 3).Draw(t, "routing"),
		Budget:   budget.Draw(t, "budget"), Defaults: rapid.Make[manifest.Defaults]().Draw(t, "defaults"),
		Limits: manifest.Limits{Mailbox: number.Draw(t, "mailbox")}, Governance: rapid.Make[manifest.Governance]().Draw(t, "governance"),
	}
}
