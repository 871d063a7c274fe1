package worldctl

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	faults "github.com/worldkernel/worldkernel/internal/fault"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/bundle"
)

// crafted are files that are small, or large where they are unpacked, and that make a
// careless verifier take all of a machine. All of them are refused by both.
type crafted struct {
	name string
	data []byte
}

// crafter puts a bundle together whose links and signatures are none: what is looked
// at here is what it costs to find that out.
type crafter struct {
	t     *testing.T
	items []byte
	last  uint64
}

// newCrafter returns the items of a bundle whose first record creates a world.
func newCrafter(t *testing.T, more ...any) *crafter {
	f := &crafter{t: t}
	manifest := value(map[string]any{})
	if len(more) > 0 {
		manifest = value(more[0])
	}
	f.blob(manifest)
	f.record("world.created", []any{1, "w", "w", 1, hashOf(manifest), "k", []any{}})
	return f
}

// record appends a record whose payload is made of a list.
func (f *crafter) record(kind string, payload []any) { f.stored(kind, value(value(payload))) }

// stored appends a record with a payload as it stands in it.
func (f *crafter) stored(kind string, payload []byte) {
	f.last++
	f.pair(slices.Concat([]byte{0x85}, value(f.last), value(0), value(kind), value(0), payload))
}

func (f *crafter) pair(record []byte) {
	f.items = append(append(append(f.items, 0x82), record...), "\x48linkless"...)
}

func (f *crafter) blob(content []byte) { f.items = canon.AppendBytes(f.items, content) }

// large appends a blob, and a record that has it as its payload, as often as is said.
func (f *crafter) large(payload []byte, times int) {
	f.blob(payload)
	for range times {
		f.stored("event.submitted", value([]any{hashOf(payload), len(payload)}))
	}
}

// file packs the items, under a header with keys and hashes of what was withheld.
func (f *crafter) file(keys []ed25519.PublicKey, withheld ...journal.Hash) []byte {
	if len(keys) == 0 {
		keys = []ed25519.PublicKey{make(ed25519.PublicKey, ed25519.PublicKeySize)}
	}
	h := bundle.Header{World: "w", First: 1, Last: journal.Seq(max(f.last, 1)), Keys: keys, Withheld: withheld}
	return packed(f.t, append(appendHeader(nil, &h), f.items...))
}

func value(x any) []byte {
	b, err := canon.Marshal(x)
	if err != nil {
		panic(err)
	}
	return b
}

func hashOf(b []byte) []byte { h := canon.Sum(b); return h[:] }

// counted returns 32 bytes that count.
func counted(n int) []byte { return binary.BigEndian.AppendUint64(make([]byte, 24), uint64(n)+1) }

// nested returns so many arrays, each within the one before.
func nested(n int) []byte { return append(bytes.Repeat([]byte{0x81}, n), 0) }

// listOf returns an array of n values that were encoded before.
func listOf(n int, x string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0x9a}, uint32(n)), strings.Repeat(x, n)...)
}

func craftedFiles(t *testing.T) []crafted {
	return slices.Concat(craftedForms(t), craftedNumbers(t), craftedBombs(t), craftedSearches(t), craftedProofs())
}

// craftedForms have values in places where nobody expects them.
func craftedForms(t *testing.T) []crafted {
	raw := func(items string) []byte {
		f := newCrafter(t)
		f.items = append(f.items, items...)
		return f.file(nil)
	}
	kindless := newCrafter(t)
	kindless.pair([]byte("\x85\x02\x00\x80\x00\x41\x80"))
	repeated := newCrafter(t)
	repeated.stored("event.submitted", value(slices.Concat(listOf(1, "\xba\x00\x00\x40\x00"), bytes.Repeat([]byte("\x61a\x00"), 1<<14))))
	governed := newCrafter(t, map[string]any{"governance": []any{1}, "effects": map[string]any{}})
	elected := newCrafter(t, map[string]any{"governance": map[string]any{"approvals": "many", "approvers": []any{map[string]any{"key": []any{1}}}}})
	elected.record("manifest.proposed", []any{1, counted(1), counted(2), "a", nil, "r"})
	elected.record("manifest.applied", []any{1, 1, counted(2), counted(1), "a", "k", []any{}})
	return []crafted{
		{"an item of a million arrays in each other", raw(string(nested(1 << 20)))},
		{"a payload of arrays in each other", func() []byte {
			f := newCrafter(t)
			f.large(nested(1<<20), 1)
			return f.file(nil)
		}()},
		{"a record whose kind is a list", kindless.file(nil)},
		{"a map with one key 16,384 times", repeated.file(nil)},
		{"an array that claims 2^64-1 values", raw("\x9b\xff\xff\xff\xff\xff\xff\xff\xff\x00")},
		{"a map that claims 2^32-1 values", raw("\xba\xff\xff\xff\xff\x00")},
		{"bytes that claim 2^63", raw("\x5b\x80\x00\x00\x00\x00\x00\x00\x00\x00")},
		{"half a surrogate in a checkpoint", raw("\x63\xed\xa0\x80")},
		{"rules of which governance is a list", governed.file(nil)},
		{"rules of which approvals are a text", elected.file(nil)},
	}
}

// craftedNumbers have numbers with more digits than anybody reads.
func craftedNumbers(t *testing.T) []crafted {
	huge := "\xc2\x5a\x00\x10\x00\x00" + strings.Repeat("\xff", 1<<20)
	version := slices.Concat([]byte("\x89\x72worldkernel/bundle"), []byte(huge), value("w"), value(1), value(1), []byte("\x40\x80\x80\x80"))
	id := newCrafter(t)
	id.pair(slices.Concat([]byte{0x85}, []byte(huge), value(0), value("clock.advanced"), value(0), value(value([]any{1, 1, false}))))
	inside := newCrafter(t)
	inside.large([]byte("\x86\x01\x61e\x00\xf4\x80"+huge), 3)
	return []crafted{
		{"a version of 2,500,000 digits", packed(t, version)},
		{"an id of 2,500,000 digits", id.file(nil)},
		{"a payload of 2,500,000 digits", inside.file(nil)},
	}
}

// craftedBombs are much where they are unpacked.
func craftedBombs(t *testing.T) []crafted {
	raw := func(items []byte) []byte { f := newCrafter(t); f.items = append(f.items, items...); return f.file(nil) }
	lists := newCrafter(t)
	lists.large(listOf(10<<20, "\x80"), 1)
	maps := newCrafter(t)
	maps.large(listOf(1000000, "\xa1\x61a\xa0"), 1)
	texts := newCrafter(t)
	texts.large(listOf(3000000, "\x62ab"), 1)
	names := newCrafter(t)
	for range 5000 {
		names.record("intent.emitted", []any{1, counted(int(names.last)), strings.Repeat("s", 2000), "c/a", "k", "", "", 0, "allow", []any{}, nil})
	}
	blobs := newCrafter(t)
	for n := range 200000 {
		blobs.blob(counted(n))
	}
	return []crafted{
		{"ten million items", raw(make([]byte, 10<<20))},
		{"ten million empty lists", lists.file(nil)},
		{"a million maps in maps", maps.file(nil)},
		{"three million texts", texts.file(nil)},
		{"a blob of 120 MiB", raw(canon.AppendBytes(nil, make([]byte, 120<<20)))},
		{"a million records of nothing", raw(bytes.Repeat([]byte("\x82\x80\x48linkless"), 1<<20))},
		{"names of 2,000 characters", names.file(nil)},
		{"200,000 blobs that nobody needs", blobs.file(nil)},
		{"a bundle packed twice", packed(t, newCrafter(t).file(nil))},
		{"what follows a bundle", append(newCrafter(t).file(nil), packed(t, make([]byte, 10<<20))...)},
	}
}

// craftedSearches have whoever looks for each among all that was before look long.
func craftedSearches(t *testing.T) []crafted {
	const many = 2000
	key := counted(1)
	intent := func(decision string, n int) []any {
		return []any{1, counted(n), "s", "c/a", "k", "", "", 0, decision, []any{}, nil}
	}
	same := newCrafter(t)
	same.large(value([]any{1, "e", 0, false, []any{"c/a"}, nil, strings.Repeat("x", 1<<20)}), many)
	brought := newCrafter(t)
	content := make([]byte, 1<<20)
	files := make(map[string]any)
	for n := range 500 {
		files[fmt.Sprint(n)] = map[string]any{"source": hashOf(content)}
	}
	rules := value(map[string]any{"reducers": files})
	brought.blob(content)
	brought.blob(rules)
	brought.record("manifest.proposed", []any{1, counted(1), hashOf(rules), "a", nil, "r"})
	late := newCrafter(t)
	late.record("intent.emitted", intent("allow", 0))
	for n := range many {
		nonce := counted(n)[16:]
		late.record("invocation.started", []any{1, key, n + 1, 1, nonce})
		late.record("invocation.expired", []any{1, key, n + 1, "late"})
		late.record("intent.in_doubt", []any{1, key, "c/a", n + 1, "retry", ""})
	}
	turns := newCrafter(t)
	turns.record("intent.denied", []any{1, key, "s", "c/a", "k", "", "", 0, "code", "", []any{}, nil})
	for n := range many {
		at := uint64(1)
		if n%2 == 1 {
			at = turns.last - 2
		}
		turns.record("rollback.applied", []any{1, "s", key, at, 0, "", "a", false, false, false, []any{}})
		turns.record("intent.denied", []any{1, key, "s", "c/a", "k", "", "", 0, "code", "", []any{}, nil})
	}
	gone, hidden := newCrafter(t), counted(7)
	for n := range many {
		gone.record("intent.emitted", intent("allow", n))
		gone.stored("intent.denied", value([]any{hidden, 5000}))
	}
	forks := newCrafter(t)
	for n := range many {
		forks.record("manifest.proposed", []any{1, counted(1), counted(n), "a", nil, "r"})
		forks.record("world.forked", []any{1, "w", "w", 1, key, "hold", []any{}, key, "a", nil})
	}
	return []crafted{
		{"one payload of many records", same.file(nil)},
		{"one content of many names", brought.file(nil)},
		{"attempts that were given up", late.file(nil)},
		{"rollbacks to the same and to the last", turns.file(nil)},
		{"payloads that are gone among intents", gone.file(nil, journal.Hash(hidden))},
		{"forks among proposals", forks.file(nil)},
		{"checkpoints by 1,024 keys", signedByMany(t)},
	}
}

func signedByMany(t *testing.T) []byte {
	f := newCrafter(t)
	keys := make([]ed25519.PublicKey, 1024)
	for n := range keys {
		keys[n] = counted(n)
	}
	zeros := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for range 400 {
		f.record("clock.advanced", []any{1, f.last, false})
		note := fmt.Sprintf("worldkernel/w\n%d\n%s\n\n\u2014 worldkernel/w AAAAAAAA\n", f.last, zeros)
		f.items = canon.AppendText(f.items, note)
	}
	return f.file(keys)
}

// craftedProofs are JSON.
func craftedProofs() []crafted {
	proof := func(world, record, more string) []byte {
		return fmt.Appendf(nil, `{"schema":"worldkernel/proof/v1","world":"%s","record":%s,"bytes":"gA==","inclusion":[],"checkpoint":"%[1]s","signers":["%[1]s"]%[3]s}`, world, record, more)
	}
	return []crafted{
		{"a proof of half a surrogate", proof(`\ud800`, "1", "")},
		{"a proof of half a surrogate in a cell", proof("w", "1", `,"cell":{"name":"\udfff","present":true,"proof":""}`)},
		{"a proof of a million digits", proof("w", strings.Repeat("9", 1000000), "")},
		{"a proof of arrays in each other", proof("w", strings.Repeat("[", 1000000), "")},
		{"a proof of four million lists", proof("w", "1", `,"cell":[`+strings.Repeat("[],", 4000000)+`[]]`)},
		{"a proof with a key twice", proof("w", "1", `,"world":"w"`)},
		{"a proof of 8 MiB", proof("w", "1", `,"payload":"`+strings.Repeat("A", 8<<20)+`"`)},
	}
}

// weigh runs a program and says what it printed, how it ended, and the most memory
// that it had. The system counts for a child what its parent had when it began, so
// there is a small parent.
const weigh = `
import json, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
done = subprocess.run(sys.argv[1:], capture_output=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"code": done.returncode, "out": done.stdout.decode("utf-8", "replace"), "err": done.stderr.decode("utf-8", "replace"),
                  "kib": used.ru_maxrss, "cpu": used.ru_utime + used.ru_stime}))
`

type weighed struct {
	Code     int
	Out, Err string
	KiB      int
	CPU      float64
}

func (s *second) weigh(args ...string) (w weighed) {
	s.t.Helper()
	out, err := exec.Command(s.python, append([]string{"-c", weigh}, args...)...).Output()
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(out, &w), "%s", out)
	return w
}

// TestCraftedFilesCostLittle has both verifiers refuse files that were made to cost: by
// a verdict, in at most 256 MiB, and without looking long.
func TestCraftedFilesCostLittle(t *testing.T) {
	t.Parallel()
	const most = 256 << 10 // KiB
	worlds, trust := owners(t)
	s := secondVerifier(t, worlds, trust...)
	program, err := exec.LookPath("worldctl")
	require.NoError(t, err)
	dir := t.TempDir()
	for i, c := range craftedFiles(t) {
		if int64(i)%faults.Stride(3) != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			file := filepath.Join(dir, fmt.Sprintf("%02d", i))
			require.NoError(t, os.WriteFile(file, c.data, 0o600))
			ours := s.weigh(program, "verify", file, "-o", "json")
			theirs := s.weigh(s.python, "-X", "utf8", s.tool, "--max-work", "1", file, "-o", "json")
			t.Logf("%d bytes; ours: %d, %d MiB, %.1f s; theirs: %d, %d MiB, %.1f s %s", len(c.data),
				ours.Code, ours.KiB>>10, ours.CPU, theirs.Code, theirs.KiB>>10, theirs.CPU, theirs.Err)
			require.Equal(t, exitVerify, ours.Code, "%.2000s", ours.Err)
			require.Equal(t, exitVerify, theirs.Code, "%.2000s", theirs.Err)
			require.NotContains(t, theirs.Err, "Traceback")
			require.LessOrEqual(t, ours.KiB, most)
			require.LessOrEqual(t, theirs.KiB, most)
		})
	}
}
