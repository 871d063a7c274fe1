package worldctl

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/checkpoint"
	faults "github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/bundle"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/verify"
)

// The tests in second_verifier_*.go hold the two verifiers against each other: this
// program and tools/verify, which was written from the documents alone and has no
// kernel. What one refuses the other refuses, but for what only a replay finds out.

// second is the other verifier.
type second struct {
	t      testing.TB
	python string
	tool   string
	trust  []ed25519.PublicKey
	worlds []string // that they sign for
}

func secondVerifier(t testing.TB, worlds []string, trust ...ed25519.PublicKey) *second {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the second verifier needs python3, which is not here")
		}
		t.Skip("the second verifier needs python3, which is not here")
	}
	tool, err := filepath.Abs("../tools/verify")
	require.NoError(t, err)
	return &second{t: t, python: python, tool: tool, trust: trust, worlds: worlds}
}

// finding is what both verifiers say of a bundle, as far as the second one can.
type finding struct {
	Name    string        `json:"name"`
	OK      bool          `json:"ok"`
	Trusted bool          `json:"trusted"`
	WorldID string        `json:"world_id"`
	Records uint64        `json:"records"`
	From    journal.Seq   `json:"from"`
	Fault   *verify.Fault `json:"fault"`

	ExecutionHash      journal.Hash       `json:"execution_hash"`
	EventChainRootHash journal.Hash       `json:"event_chain_root_hash"`
	Ledger             verify.LedgerProof `json:"tool_invocation_ledger_proof"`
	Receipts           verify.Receipts    `json:"receipts"`
	Governance         verify.Governance  `json:"governance"`
	Checkpoints        verify.Checkpoints `json:"checkpoints"`
	Redacted           uint64             `json:"redacted"`
	Withheld           uint64             `json:"withheld"`
}

// batch begins to verify the files in a directory. The result waits for the end.
func (s *second) batch(dir string) func() map[string]finding {
	s.t.Helper()
	args := []string{"-X", "utf8", s.tool, "--batch", dir}
	for i, key := range s.trust {
		text, err := checkpoint.FormatKey(s.worlds[i], key)
		require.NoError(s.t, err)
		args = append(args, "--trust", text)
	}
	cmd := exec.Command(s.python, args...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	require.NoError(s.t, cmd.Start())
	return func() map[string]finding {
		s.t.Helper()
		err := cmd.Wait()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != exitVerify) {
			require.NoError(s.t, err, stderr.String())
		}
		require.Empty(s.t, stderr.String())
		found := make(map[string]finding)
		for line := range bytes.Lines(out.Bytes()) {
			var f finding
			require.NoError(s.t, json.Unmarshal(line, &f), "%s", line)
			found[f.Name] = f
		}
		return found
	}
}

// ours is what this program says of a bundle. byReplay says that it is refused, and
// only because its inputs give another journal.
type ours struct {
	finding
	byReplay bool
}

// errUnread is what a replay ends with that must not be.
var errUnread = errors.New("no replay")

// unreplayed is a history that cannot be replayed.
type unreplayed struct{ *bundle.Reader }

func (unreplayed) Record(journal.Seq) ([]byte, error) { return nil, errUnread }

// judge verifies a bundle as `worldctl verify FILE --trust` does.
func (s *second) judge(data []byte) ours {
	s.t.Helper()
	r, err := local.VerifyBundle(s.t.Context(), bytes.NewReader(data), local.Options{}, local.Verification{Trust: s.trust})
	if err != nil {
		require.True(s.t, errors.Is(err, bundle.ErrNotBundle) || errors.Is(err, bundle.ErrVersion), "%v", err)
		return ours{finding: finding{Fault: &verify.Fault{Place: "bundle", Message: err.Error()}}}
	}
	f := finding{
		OK: r.OK, Trusted: r.Trusted, WorldID: r.WorldID, Records: r.Records, From: r.From, ExecutionHash: r.ExecutionHash, EventChainRootHash: r.EventChainRootHash,
		Ledger: r.Ledger, Receipts: r.Receipts, Governance: r.Governance, Checkpoints: r.Checkpoints, Redacted: r.Redacted, Withheld: r.Withheld,
	}
	if r.OK {
		return ours{finding: f}
	}
	f.Fault = &r.Faults[0]
	return ours{f, s.goodUnreplayed(data)}
}

// goodUnreplayed reports whether nothing is wrong with a bundle but that its replay
// ends early.
func (s *second) goodUnreplayed(data []byte) bool {
	r, err := bundle.Open(bytes.NewReader(data), bundle.Options{})
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, r.Close()) }()
	h := r.Header()
	report, err := verify.Verify(s.t.Context(), unreplayed{r}, verify.Config{
		Damage: r.Damage(), Checkpoints: r.Checkpoints(), Signers: h.Keys, Trust: s.trust, Sealed: true, Withheld: h.Withheld,
		Begin: verify.Begin{First: h.First, Root: h.Root, Nodes: h.Nodes, World: h.World},
	})
	require.NoError(s.t, err)
	return !slices.ContainsFunc(report.Faults, func(f verify.Fault) bool { return !strings.Contains(f.Message, errUnread.Error()) })
}

// mutant is a bundle that somebody changed.
type mutant struct {
	name string
	data []byte
	due  due
}

// due is what has to become of a mutant. Whatever it is, both verifiers agree, but for
// what only the replay finds out.
type due byte

const (
	refusal        due = iota // both refuse it, the replay or not
	kernelsRefusal            // ours refuses it: of an owner who changes what follows from the inputs
	readersRefusal            // likewise: of one whose manifest no kernel can read
	agreement                 // it may be a history that the owner could have had
)

func botsOf(t *testing.T) *source.Loaded {
	t.Helper()
	loaded, err := source.Load("../world/worldtest/testdata/bots/world.yaml")
	require.NoError(t, err)
	return loaded
}

// good is a bundle of a world that lived, and who signs for it.
type good struct {
	data []byte
	keys []ed25519.PrivateKey
	gaps bool // it lacks payloads
}

// goodBundle returns a bundle of a random world; every fifth is a range of it.
func goodBundle(t *testing.T, seed uint64, loaded *source.Loaded, kinds map[journal.Kind]int) (g good, l *life) {
	t.Helper()
	l = lived(t, seed, loaded, 30+int(seed%4)*40)
	kindsOf(t, l.w, kinds)
	g.keys = []ed25519.PrivateKey{l.owner()}
	first := journal.Seq(1)
	if seed%5 == 0 {
		first += journal.Seq(l.rng.IntN(int(l.w.Journal.Head().ID)))
	}
	var withheld []journal.Hash
	if names := l.withholdable(); len(names) > 0 && first == 1 && l.rng.IntN(3) == 0 {
		withheld = names[:1]
	}
	g.gaps = len(withheld)+len(l.redacted) > 0
	g.data = l.bundleOf(first, withheld, g.keys...)
	return g, l
}

// owners are the keys that tests trust, and the worlds that they sign for.
func owners(t *testing.T) ([]string, []ed25519.PublicKey) {
	t.Helper()
	var keys []ed25519.PublicKey
	worlds := []string{"test", "child"}
	for _, id := range worlds {
		key := (&life{t: t, id: id}).owner()
		keys = append(keys, key.Public().(ed25519.PublicKey))
	}
	return worlds, keys
}

// TestSimulationOfGoodBundles has both verifiers believe random worlds, and say the
// same of them.
//
// SEED and SIM_RUNS are as for the simulations in world/worldtest.
func TestSimulationOfGoodBundles(t *testing.T) {
	t.Parallel()
	const few = 50
	first, runs := faults.Seeds(t, few, 1000)
	worlds, trust := owners(t)
	s := secondVerifier(t, worlds, trust...)
	loaded := botsOf(t)
	kinds := make(map[journal.Kind]int)
	for begin := first; begin < first+uint64(runs); begin += 100 {
		dir := t.TempDir()
		all := make(map[string][]byte)
		for seed := begin; seed < min(begin+100, first+uint64(runs)); seed++ {
			g, _ := goodBundle(t, seed, loaded, kinds)
			name := fmt.Sprintf("%06d", seed)
			all[name] = g.data
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), g.data, 0o600))
		}
		found := s.batch(dir)
		mine := make(map[string]finding)
		for name, data := range all { // order cannot show: compared by name
			f := s.judge(data).finding
			f.Name = name
			mine[name] = f
		}
		theirs := found()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			require.Nil(t, mine[name].Fault, "SEED=%s", name)
			require.True(t, mine[name].Trusted, "SEED=%s", name)
			require.Equal(t, mine[name], theirs[name], "SEED=%s", name)
		}
	}
	t.Logf("SEED=%d: %d worlds, kinds of records: %v", first, runs, kinds)
	if runs >= few {
		for _, kind := range kindsThere(t) {
			require.NotZero(t, kinds[kind], "%s: the simulation does what it is for", kind)
		}
	}
}

// kindsThere returns the kinds of records that docs/journal-format.md names.
func kindsThere(t *testing.T) (kinds []journal.Kind) {
	t.Helper()
	doc, err := os.ReadFile("../docs/journal-format.md")
	require.NoError(t, err)
	_, rest, there := strings.Cut(string(doc), "\n## Kinds\n")
	require.True(t, there)
	rest, _, _ = strings.Cut(rest, "\n## ")
	for line := range strings.Lines(rest) {
		if row, is := strings.CutPrefix(line, "| `"); is {
			first, _, _ := strings.Cut(row, " |")
			for kind := range strings.SplitSeq(strings.TrimSuffix(first, "`"), "`, `") {
				require.True(t, journal.Kind(kind).Known(), kind)
				kinds = append(kinds, journal.Kind(kind))
			}
		}
	}
	return kinds
}

// tallies counts mutants by what became of them.
type tallies map[string]map[string]int

func (c tallies) add(name, what string) {
	if c[name] == nil {
		c[name] = make(map[string]int)
	}
	c[name][what]++
}

// hold verifies mutants with both and requires that what is due becomes of them.
func (s *second) hold(mutants []mutant, c tallies) (held bool) {
	s.t.Helper()
	dir := s.t.TempDir()
	for i, m := range mutants {
		require.NoError(s.t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d", i)), m.data, 0o600))
	}
	found := s.batch(dir)
	mine := make([]ours, len(mutants))
	for i, m := range mutants {
		mine[i] = s.judge(m.data)
	}
	theirs := found()
	held = true
	for i, m := range mutants {
		a, b := mine[i], theirs[fmt.Sprintf("%06d", i)]
		what, as := verdictOf(a, b)
		c.add(m.name, what)
		if !slices.Contains(as, m.due) {
			held = false
			s.t.Errorf("%s: %s\n  ours   %t %+v\n  theirs %t %+v", m.name, what, a.OK, a.Fault, b.OK, b.Fault)
		}
	}
	require.NoError(s.t, os.RemoveAll(dir))
	return held
}

// verdictOf says what became of a mutant, and where that is right.
func verdictOf(a ours, b finding) (what string, as []due) {
	switch {
	case b.Name == "":
		return "the second one said nothing", nil
	case !a.OK && !b.OK:
		return "refused", []due{refusal, kernelsRefusal, readersRefusal, agreement}
	case !a.OK && a.byReplay:
		return "refused by the replay alone", []due{kernelsRefusal, agreement}
	case !a.OK:
		return "refused by ours alone", []due{readersRefusal}
	case !b.OK:
		return "REFUSED BY THE SECOND ALONE", nil
	}
	a.Name = b.Name
	if !reflect.DeepEqual(a.finding, b) {
		return "ANOTHER REPORT", nil
	}
	return "another history of the owner's", []due{agreement}
}

// mutantsOf makes n mutants of a bundle, by the crafts in their turn.
func mutantsOf(t *testing.T, g good, n int, rng *rand.Rand, turn func() craft) (out []mutant) {
	t.Helper()
	f := cutOpen(t, g.data, g.keys)
	require.Equal(t, unpacked(t, g.data), f.unpacked(), "a bundle that was cut open closes again")
	for tries := 0; len(out) < n && tries < 20*n; tries++ {
		c := turn()
		data, due := c.make(g, f.clone(rng))
		if data != nil {
			out = append(out, mutant{c.name, data, due})
		}
	}
	return out
}

// TestSimulationOfForgedBundles changes bundles in all ways that it knows, and
// requires that both verifiers refuse what they have to, and agree on the rest.
//
// SEED and SIM_RUNS are as for the simulations in world/worldtest.
func TestSimulationOfForgedBundles(t *testing.T) {
	t.Parallel()
	const few, ofEach = 5, 53
	first, runs := faults.Seeds(t, few, 60)
	worlds, trust := owners(t)
	s := secondVerifier(t, worlds, trust...)
	loaded := botsOf(t)
	counts := make(tallies)
	kinds := make(map[journal.Kind]int)
	for seed := first; seed < first+uint64(runs); seed++ {
		g, l := goodBundle(t, seed, loaded, kinds)
		turn := inTurn(crafts(), seed*ofEach)
		if !s.hold(mutantsOf(t, g, ofEach, l.rng, turn), counts) {
			t.Errorf("SEED=%d SIM_RUNS=1 shows it again", seed)
		}
	}
	counts.log(t, fmt.Sprintf("SEED=%d: mutants of %d bundles", first, runs))
	if runs >= few {
		for _, c := range crafts() {
			require.NotEmpty(t, counts[c.name], "%s: the simulation does what it is for", c.name)
		}
	}
}

// log prints what became of mutants.
func (c tallies) log(t *testing.T, of string) {
	t.Helper()
	total := make(map[string]int)
	for _, name := range slices.Sorted(maps.Keys(c)) {
		t.Logf("%-60s %v", name, c[name])
		for what, n := range c[name] { // order cannot show: sums
			total[what] += n
		}
	}
	t.Logf("%s: %v", of, total)
}
