package worldctl

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	faults "github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/internal/recording"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world/local"
)

// airlineOf makes a world of the first runs of the recording, and lets it run.
func airlineOf(t *testing.T, runs int) (dir string) {
	t.Helper()
	data, err := os.ReadFile(recording.Any(t, recording.Airline))
	require.NoError(t, err)
	var all []json.RawMessage
	require.NoError(t, json.Unmarshal(data, &all))
	some, err := json.Marshal(all[:min(runs, len(all))])
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "runs.json")
	require.NoError(t, os.WriteFile(file, some, 0o600))
	dir = filepath.Join(t.TempDir(), "airline")
	worldctl(t, nil, "import", "chat", file, "-w", dir)
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	return dir
}

// villeOf makes a world of the first moves of the recording, and lets it run.
func villeOf(t *testing.T, moves int) (dir string) {
	t.Helper()
	var some bytes.Buffer
	for lines := bufio.NewScanner(villeMoves(t, recording.Any)); moves > 0 && lines.Scan(); moves-- {
		some.Write(append(lines.Bytes(), '\n'))
	}
	dir = filepath.Join(t.TempDir(), "ville")
	worldctl(t, nil, "init", dir, "--template", "ville")
	worldctl(t, &some, "-w", dir, "send", "-")
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	return dir
}

// stored is a bundle of a world in a directory, and its owner's keys.
func stored(t *testing.T, dir string) (g good, id string) {
	t.Helper()
	w, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, w.ExportBundle(t.Context(), &b, local.BundleOptions{}))
	g.data = b.Bytes()
	g.keys, err = w.Keys().CheckpointKeys()
	require.NoError(t, err)
	id = w.Status().ID
	require.NoError(t, w.Close())
	return g, id
}

// TestSimulationOfForgedRecordings does to bundles of real recordings what
// TestSimulationOfForgedBundles does to made-up ones.
func TestSimulationOfForgedRecordings(t *testing.T) {
	t.Parallel()
	const ofEach = 20
	first, runs := faults.Seeds(t, 1, 15)
	airline, ville := 10, 400
	if runs > 1 {
		airline, ville = 30, 1200
	}
	for _, c := range []struct {
		name string
		make func() (dir string)
	}{
		{"airline", func() string { return airlineOf(t, airline) }},
		{"ville", func() string { return villeOf(t, ville) }},
		{"talk", func() string {
			dir, _ := talkOf(t, 15) // with blobs in pieces
			worldctl(t, nil, "-w", dir, "run", "-q")
			return dir
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, id := stored(t, c.make())
			s := secondVerifier(t, []string{id}, g.keys[0].Public().(ed25519.PublicKey))
			rng := rand.New(rand.NewPCG(first, 3))
			all := crafts()
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			counts := make(tallies)
			turn := inTurn(all, 0)
			for range runs {
				s.hold(mutantsOf(t, g, ofEach, rng, turn), counts)
			}
			counts.log(t, fmt.Sprintf("SEED=%d: mutants of a bundle of %d records", first, s.judge(g.data).Records))
		})
	}
}

// saying are the parts of a report that mean the same wherever a world is verified.
type saying struct {
	ExecutionHash journal.Hash
	ChainRoot     journal.Hash
	Records       uint64
	Ledger        [4]any
	Governance    any
	Redacted      uint64
}

func (f *finding) saying() saying {
	l := f.Ledger
	return saying{f.ExecutionHash, f.EventChainRootHash, f.Records, [4]any{l.OK, l.Attempts, l.NoVerifier, l.PendingIdempotencyKeys}, f.Governance, f.Redacted}
}

// TestOneWorldIsProvenAlikeEverywhere verifies a world from its store, from a bundle,
// over HTTP, and with the second verifier.
func TestOneWorldIsProvenAlikeEverywhere(t *testing.T) {
	dir := townSent(t)
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	g, id := stored(t, dir)
	s := secondVerifier(t, []string{id}, g.keys[0].Public().(ed25519.PublicKey))

	file := filepath.Join(t.TempDir(), "town.bundle")
	require.NoError(t, os.WriteFile(file, g.data, 0o600))
	bundled := s.judge(g.data).finding
	require.True(t, bundled.OK && bundled.Trusted)
	want := bundled.saying()

	var found finding
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "verify", "-o", "json"), &found))
	require.Equal(t, want, found.saying(), "the store")
	require.Equal(t, bundled.Receipts.Unverifiable, found.Receipts.Checked, "with the keys that the bundle lacks")

	found = finding{}
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "verify", file, "-o", "json"), &found))
	require.Equal(t, want, found.saying(), "the bundle, by the program")

	theirs := s.batch(filepath.Dir(file))()["town.bundle"]
	require.True(t, theirs.OK && theirs.Trusted)
	require.Equal(t, want, theirs.saying(), "the second verifier")

	v := verifiedOverHTTP(t, dir, id)
	require.True(t, v.Ledger.OK && v.Replay.OK)
	l := v.Ledger
	require.Equal(t, want, saying{
		v.ExecutionHash, v.EventChainRootHash, v.Replay.Records,
		[4]any{l.OK, l.Attempts, l.NoVerifier, l.PendingIdempotencyKeys},
		v.Replay.Governance, v.Replay.Redacted,
	}, "over HTTP")
}

// verifiedOverHTTP asks a server of a world to verify it.
func verifiedOverHTTP(t *testing.T, dir, id string) (v api.Verification) {
	t.Helper()
	w, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()
	secret, hash := api.NewToken()
	tokens, err := api.ParseTokens([]byte("ada read " + hash + " *\n"))
	require.NoError(t, err)
	s, err := api.New(api.Config{Worlds: []*local.World{w}, Tokens: tokens})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/api/worlds/"+id+"/verify", nil)
	r.Header.Set("Authorization", "Bearer "+secret)
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, r)
	body, err := io.ReadAll(answer.Result().Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.Code, "%s", body)
	require.NoError(t, json.Unmarshal(body, &v))
	return v
}
