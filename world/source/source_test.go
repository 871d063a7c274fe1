package source

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/sshkey"
	"github.com/worldkernel/worldkernel/manifest"
)

const goodWorld = `world: support-desk
version: 1
seed: 42
clock: {epoch: 2026-01-01T00:00:00Z, tick: 1m}
reducers:
  agent: {engine: starlark, source: ./code/agent.star, grants: [tools], on_error: halt,
          limits: {gas: 200000, state: 256KiB, effects: 16, events: 64, value: 1MiB}}
  clerk: {engine: go, name: clerk, version: "2", on_error: skip, limits: {state: 256KiB, value: 1MiB}}
events:
  ticket.opened: {schema: ticket.json}
  ticket.closed: {}
  ticket.lost:
effects:
  tool.lookup: {adapter: recorded, config: {cassette: tape.json}}
  tool.answer: {adapter: stub, config: {answers: tape.json}}
  tool.script: {adapter: stub, config: {script: stub.star}}
caps:
  tools: {type: any, params: {kinds: ["tool.*"]}, expires: 100000}
policies:
  - {name: all tools, when: 'intent.kind.startsWith("tool.")', decide: allow}
routing:
  - {event: "ticket.*", reducer: agent, key: event.data.customer}
  - {event: "*", reducer: clerk, key: "'desk'"}
limits: {events_per_tick: 1000, in_flight: 8, mailbox: 100, alarms: 50, payload: 1MiB, receipt: 65536}
`

// The public keys of 32 bytes of 1 and of 2.
const (
	aliceKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB"
	bobKey   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIC"
)

const agentStar = "def reduce(ctx, state, event):\n    return state\n"

func files() fstest.MapFS {
	return fstest.MapFS{
		"code/agent.star": {Data: []byte(agentStar)},
		"stub.star":       {Data: []byte("def answer(kind, params, n):\n    return {}\n")},
		"ticket.json":     {Data: []byte(`{"type": "object"}`)},
		"tape.json":       {Data: []byte(`[]`)},

		"approvers/alice.pub": {Data: []byte(aliceKey + " alice@home\n")},
		"approvers/bob.pub":   {Data: []byte(bobKey)},
		"approvers/twin.pub":  {Data: []byte(bobKey + " twin")},
		"approvers/old.pub":   {Data: []byte("ssh-rsa AAAAB3NzaC1yc2E alice")},
		"approvers/alice":     {Data: []byte("-----BEGIN OPENSSH PRIVATE KEY-----\n")},
		"approvers/long.pub":  {Data: []byte(aliceKey + strings.Repeat(" ", sshkey.MaxFileBytes))},
	}
}

func loadText(world string, more fstest.MapFS, options ...Option) (*Loaded, error) {
	all := files()
	maps.Copy(all, more)
	all["world.yaml"] = &fstest.MapFile{Data: []byte(world)}
	return load(all, "desk/world.yaml", options...)
}

// TestGoodManifestHasItsHash guards the way from text to bytes: a change of
// this hash is a change of every world's manifest.
func TestGoodManifestHasItsHash(t *testing.T) {
	loaded, err := loadText(goodWorld, nil)
	require.NoError(t, err)
	b, err := loaded.Manifest.Encode()
	require.NoError(t, err)
	require.Equal(t, "ce545346a5ce923455744562dd42cef3063405ab5701f5202c7a3474e52bee9a", canon.Sum(b).String())
}

func TestLoadedHoldsExactlyItsContents(t *testing.T) {
	loaded, err := loadText(goodWorld, nil)
	require.NoError(t, err)
	require.Len(t, loaded.Contents, len(loaded.Manifest.Contents()))
	for _, h := range loaded.Manifest.Contents() {
		require.Equal(t, h, canon.Sum(loaded.Contents[h]))
	}
}

func TestWithoutCodeTheManifestIsTheSame(t *testing.T) {
	whole, err := loadText(goodWorld, nil)
	require.NoError(t, err)
	bare, err := loadText(goodWorld, nil, WithoutCode())
	require.NoError(t, err)
	require.Equal(t, whole, bare)
}

func TestFieldsArriveInTheManifest(t *testing.T) {
	loaded, err := loadText(goodWorld, nil)
	require.NoError(t, err)
	m := loaded.Manifest
	require.Equal(t, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano(), m.Clock.Epoch)
	require.Equal(t, int64(time.Minute), m.Clock.Tick)
	require.Equal(t, manifest.Reducer{
		Engine: "starlark", File: "code/agent.star", Source: canon.Sum([]byte(agentStar)),
		Grants: []string{"tools"}, OnError: "halt",
		Limits: manifest.ReducerLimits{Gas: 200_000, State: 256 << 10, Effects: 16, Events: 64, Value: 1 << 20}.WithDefaults(),
	}, m.Reducers["agent"])
	require.Equal(t, manifest.Reducer{
		Engine: "go", Name: "clerk", Version: "2", OnError: "skip", Limits: manifest.ReducerLimits{State: 256 << 10, Value: 1 << 20}.WithDefaults(),
	}, m.Reducers["clerk"])
	require.Equal(t, "ticket.json", m.Events["ticket.opened"].File)
	require.True(t, m.Events["ticket.lost"].Schema.IsZero())
	require.JSONEq(t, `{"cassette": "tape.json"}`, toJSON(t, m.Effects["tool.lookup"].Config))
	require.Equal(t, map[string]manifest.Hash{"cassette": canon.Sum([]byte("[]"))}, m.Effects["tool.lookup"].Files)
	require.Equal(t, manifest.Cap{
		Type: "any", Params: manifest.CapParams{Kinds: []string{"tool.*"}}, Expires: 100_000,
	}, m.Caps["tools"])
	require.Equal(t, manifest.Limits{
		EventsPerTick: 1000, InFlight: 8, Mailbox: 100, Alarms: 50, Payload: 1 << 20, Receipt: 65_536,
	}, m.Limits)
}

// TestTimeIsCountedInTicksOfTheClock: durations and times become ticks, also where the
// clock comes after them.
func TestTimeIsCountedInTicksOfTheClock(t *testing.T) {
	clock := "clock: {epoch: 2026-01-01T00:00:00Z, tick: 1m}\n"
	for _, c := range []struct {
		ttl, expires     string
		ticks, expiresAt manifest.Tick
	}{
		{"24h", "2026-01-02T00:00:00Z", 1440, 1440},
		{"61s", "2026-01-01T00:01:01Z", 2, 2},
		{"1ns", `"2026-01-01T02:01+02:00"`, 1, 1},
		{"7", "7", 7, 7},
	} {
		text := "defaults: {approval_ttl: " + c.ttl + "}\n" +
			strings.NewReplacer(clock, "", "expires: 100000", "expires: "+c.expires).Replace(goodWorld) + clock
		loaded, err := loadText(text, nil)
		require.NoError(t, err)
		require.Equal(t, c.ticks, loaded.Manifest.Defaults.ApprovalTTL, c.ttl)
		require.Equal(t, c.expiresAt, loaded.Manifest.Caps["tools"].Expires, c.expires)
	}
}

func TestKeysOfApproversArePartOfTheManifest(t *testing.T) {
	loaded, err := loadText(goodWorld+`governance: {approvals: 2, four_eyes: true, approvers: [./approvers/alice.pub, approvers/bob.pub]}`, nil)
	require.NoError(t, err)
	require.Equal(t, manifest.Governance{Approvals: 2, FourEyes: true, Approvers: []manifest.Approver{
		{Name: "alice", File: "approvers/alice.pub", Key: manifest.PublicKey(bytes.Repeat([]byte{1}, 32))},
		{Name: "bob", File: "approvers/bob.pub", Key: manifest.PublicKey(bytes.Repeat([]byte{2}, 32))},
	}}, loaded.Manifest.Governance)
	plain, err := loadText(goodWorld, nil)
	require.NoError(t, err)
	require.Equal(t, plain.Contents, loaded.Contents)

	for _, empty := range []string{"governance:", "governance: {}", "governance: {four_eyes: false, approvers: []}"} {
		loaded, err := loadText(goodWorld+empty, nil)
		require.NoError(t, err)
		require.Equal(t, plain.Manifest, loaded.Manifest, empty)
	}
}

func toJSON(t *testing.T, data manifest.Data) string {
	t.Helper()
	b, err := canon.ToJSON(data)
	require.NoError(t, err)
	return string(b)
}

func TestOwnAdapterTakesAnyConfig(t *testing.T) {
	world := strings.Replace(goodWorld, "{adapter: recorded, config: {cassette: tape.json}}",
		`{adapter: mail, config: {rate: 0.5, most: 99999999999999999999, on: true, none: , list: [-1, a, {b: "1.5"}]}}`, 1)
	_, err := loadText(world, nil)
	require.ErrorAs(t, err, new(*Error))

	loaded, err := loadText(world, nil, WithAdapter("mail"))
	require.NoError(t, err)
	e := loaded.Manifest.Effects["tool.lookup"]
	want, err := canon.FromJSON([]byte(`{"on": true, "list": [-1, "a", {"b": "1.5"}], "most": 99999999999999999999, "none": null, "rate": 0.5}`))
	require.NoError(t, err)
	require.Equal(t, want, e.Config)
	require.Empty(t, e.Files)
}

// outward is a world whose effects touch the outside.
const outward = `world: outward
reducers:
  agent: {engine: go, name: agent, version: "1", grants: [web, tools], budget: {calls: 10, bytes: 1MiB}}
effects:
  tool.lookup: {adapter: exec, config: {program: ./tools/lookup}, timeout: 5s, idempotent: true, class: read}
  tool.refund: {adapter: http, config: {url: "http://127.0.0.1:8080/refunds", method: POST},
                retry: {attempts: 7, backoff: 250ms}, on_in_doubt: verify, external_key: per_attempt, class: destructive,
                verify: {adapter: http, config: {rate: 0.5}, mode: human}, settles_after: 2m, on_repeat: reuse, max_cost: {tokens: 5, bytes: 64KiB, micros: 0}, rate: 10/m,
                compensate: {kind: tool.refund_cancel, params: '{"id": receipt.payload.id}'}}
  tool.refund_cancel: {adapter: mcp, config: {url: "http://127.0.0.1:1"}, verify: {adapter: file}}
  tool.note: {adapter: file, config: {root: data}, on_in_doubt: fail}
  model.chat: {adapter: llm}
caps:
  tools: {type: any, params: {kinds: ["tool.*"]}, budget: {calls: 1000, tokens: 2, bytes: 3B, micros: 4}, expires: 100000}
  web: {type: http, params: {schemes: [https], hosts: ["*.example.com"], ports: [443], methods: [GET], paths: [/a], max_bytes: 1KiB}}
  model: {type: llm, params: {providers: [api.example.com], models: ["gpt*"], max_tokens: 9, tools: [t]}}
  server: {type: mcp, params: {servers: [npx], tools: ["x*"]}}
  disk: {type: file, params: {root: data, access: [read, write], max_bytes: 5}}
  shell: {type: exec, params: {programs: [./lookup], args: ["-*"]}}
policies:
  - {name: refunds, when: 'intent.class == "destructive" && budget.calls < 5', decide: require_approval}
budget: {calls: 11, tokens: 12, bytes: 13, micros: 14}
defaults: {snapshot_every: 10000, checkpoint_every: 20000, retention: {max_snapshots: 7}, approval_ttl: 1441}
`

func TestEffectsAndCapsArriveInTheManifest(t *testing.T) {
	loaded, err := loadText(outward, nil)
	require.NoError(t, err)
	m := loaded.Manifest
	require.Equal(t, manifest.Budget{Calls: 10, Bytes: 1 << 20}, m.Reducers["agent"].Budget)
	require.Equal(t, manifest.Budget{Calls: 11, Tokens: 12, Bytes: 13, Micros: 14}, m.Budget)
	require.Equal(t, manifest.Defaults{
		ApprovalTTL: 1441, SnapshotEvery: 10_000, CheckpointEvery: 20_000, Retention: manifest.Retention{MaxSnapshots: 7},
	}, m.Defaults)
	require.Equal(t, manifest.DecideRequireApproval, m.Policies[0].Decide)
	require.Equal(t, manifest.Effect{
		Adapter: "exec", Config: fromJSON(t, `{"program": "./tools/lookup"}`), Timeout: 5_000_000_000, Idempotent: true,
		Class: "read", Retry: manifest.Retry{Attempts: manifest.DefaultAttempts, Backoff: manifest.DefaultBackoff},
		OnInDoubt: "retry", OnRepeat: "ask",
	}, m.Effects["tool.lookup"])
	require.Equal(t, manifest.Effect{
		Adapter: "http", Config: fromJSON(t, `{"url": "http://127.0.0.1:8080/refunds", "method": "POST"}`),
		Timeout: manifest.DefaultTimeout, Class: "destructive", ExternalKey: "per_attempt",
		Retry: manifest.Retry{Attempts: 7, Backoff: 250_000_000}, OnInDoubt: "verify", SettlesAfter: 120_000_000_000, OnRepeat: "reuse",
		Verify:     &manifest.Verify{Adapter: "http", Config: fromJSON(t, `{"rate": 0.5}`), Mode: "human"},
		Compensate: &manifest.Compensate{Kind: "tool.refund_cancel", Params: `{"id": receipt.payload.id}`},
		MaxCost:    manifest.MaxCost{Tokens: new(uint64(5)), Bytes: new(uint64(64 << 10)), Micros: new(uint64(0))},
		Rate:       manifest.Rate{Calls: 10, Per: 60},
	}, m.Effects["tool.refund"])
	require.Equal(t, &manifest.Verify{Adapter: "file", Mode: "strict"}, m.Effects["tool.refund_cancel"].Verify)
	require.Equal(t, "fail", m.Effects["tool.note"].OnInDoubt)
	require.Equal(t, map[string]manifest.Cap{
		"tools": {
			Type: "any", Params: manifest.CapParams{Kinds: []string{"tool.*"}}, Expires: 100_000,
			Budget: manifest.Budget{Calls: 1000, Tokens: 2, Bytes: 3, Micros: 4},
		},
		"web": {Type: "http", Params: manifest.CapParams{
			Schemes: []string{"https"}, Hosts: []string{"*.example.com"}, Ports: []uint64{443}, Methods: []string{"GET"},
			Paths: []string{"/a"}, MaxBytes: 1024,
		}},
		"model": {Type: "llm", Params: manifest.CapParams{
			Providers: []string{"api.example.com"}, Models: []string{"gpt*"}, MaxTokens: 9, Tools: []string{"t"},
		}},
		"server": {Type: "mcp", Params: manifest.CapParams{Servers: []string{"npx"}, Tools: []string{"x*"}}},
		"disk":   {Type: "file", Params: manifest.CapParams{Root: "data", Access: []string{"read", "write"}, MaxBytes: 5}},
		"shell":  {Type: "exec", Params: manifest.CapParams{Programs: []string{"./lookup"}, Args: []string{"-*"}}},
	}, m.Caps)
}

func fromJSON(t *testing.T, text string) manifest.Data {
	t.Helper()
	data, err := canon.FromJSON([]byte(text))
	require.NoError(t, err)
	return data
}

func TestOwnAdapterMayVerify(t *testing.T) {
	world := strings.Replace(outward, "verify: {adapter: file}", "verify: {adapter: ledger}", 1)
	_, err := loadText(world, nil)
	require.ErrorAs(t, err, new(*Error))
	_, err = loadText(world, nil, WithAdapter("ledger"))
	require.NoError(t, err)
}

func TestMinimalWorldLoads(t *testing.T) {
	loaded, err := loadText("world: w\nreducers: {a: {engine: go, name: a, version: '1'}}\nevents:\nrouting:\n", nil)
	require.NoError(t, err)
	require.Empty(t, loaded.Contents)
}

func TestLoadStaysInItsDirectory(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "secret.json")
	require.NoError(t, os.WriteFile(outside, []byte("[]"), 0o600))
	inside := filepath.Join(dir, "world")
	require.NoError(t, os.CopyFS(inside, files()))
	path := filepath.Join(inside, "world.yaml")
	require.NoError(t, os.WriteFile(path, []byte(goodWorld), 0o600))
	_, err := Load(path)
	require.NoError(t, err)

	tape := filepath.Join(inside, "tape.json")
	require.NoError(t, os.Remove(tape))
	require.NoError(t, os.Symlink(outside, tape))
	_, err = Load(path)
	var faults *Error
	require.ErrorAs(t, err, &faults)
	require.Equal(t, path, faults.Faults[0].File)
	require.Len(t, faults.Faults, 2)
}

func TestNoWorldFileIsNotAFault(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "world.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotErrorAs(t, err, new(*Error))
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(goodWorld), []byte(`{"type": "object"}`), []byte(agentStar))
	f.Add([]byte(outward), []byte(`{}`), []byte(agentStar))
	for _, c := range faulty() {
		f.Add([]byte(c.world()), []byte(`{"$ref": "x"}`), []byte("x ="))
	}
	f.Fuzz(func(t *testing.T, world, schema, star []byte) {
		loaded, err := loadText(string(world), fstest.MapFS{
			"ticket.json": {Data: schema}, "code/agent.star": {Data: star}, "stub.star": {Data: star},
		})
		if err != nil {
			var faults *Error
			require.ErrorAs(t, err, &faults)
			require.NotEmpty(t, faults.Faults)
			return
		}
		require.Empty(t, loaded.Manifest.Validate())
		b, err := loaded.Manifest.Encode()
		require.NoError(t, err)
		_, err = manifest.Decode(b)
		require.NoError(t, err)
		require.Len(t, loaded.Contents, len(loaded.Manifest.Contents()))
	})
}
