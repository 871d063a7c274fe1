package kill

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

// Exit codes that are no fault here: see worldctl --help.
const (
	failed      = 1
	nothing     = 2 // to do, or to tell
	denied      = 4
	conflict    = 5
	undecided   = 6
	interrupted = 130
)

// choose returns what is done next; false: there is nothing of its kind to do.
func (k *life) choose() (verb, bool) {
	n := k.rng.IntN(100)
	for _, chance := range []struct {
		below int
		make  func() (verb, bool)
	}{
		{8, k.send},
		{19, k.sendMany},
		{21, k.pad},
		{46, k.drive},
		{52, k.resolve},
		{56, k.settleRepeat},
		{63, k.snapshot},
		{70, k.rollback},
		{72, k.prune},
		{75, k.collect},
		{78, k.archive},
		{80, k.redact},
		{82, k.rotate},
		{84, k.checkpoint},
		{87, k.copied},
		{90, k.exported},
		{96, k.govern},
	} {
		if n < chance.below {
			return chance.make()
		}
	}
	return k.inspect()
}

func (k *life) order() order {
	o := order{fmt.Sprint("c", k.rng.IntN(4)), paid[k.rng.IntN(len(paid))], k.next}
	k.next++
	if len(k.last) > 0 && k.rng.IntN(4) == 0 { // once more, as after a rollback
		o = k.last[max(0, len(k.last)-1-k.rng.IntN(4))]
	}
	k.last = append(k.last, o)
	return o
}

func (k *life) send() (verb, bool) {
	o := k.order()
	data, err := json.Marshal(o)
	require.NoError(k.t, err)
	return verb{name: "send", args: []string{"send", "order", string(data)}, then: k.sent(o)}, true
}

// sent notes that orders are sent. What it returns notes whether that was acknowledged.
func (k *life) sent(all ...order) func(acknowledged bool) {
	for _, o := range all {
		s := k.orders[o.N]
		s.most++
		k.orders[o.N] = s
	}
	return func(acknowledged bool) {
		for _, o := range all {
			if s := k.orders[o.N]; acknowledged {
				s.least++
				k.orders[o.N] = s
			}
		}
	}
}

func (k *life) sendMany() (verb, bool) {
	var lines strings.Builder
	var all []order
	for range 2 + k.rng.IntN(12) {
		o := k.order()
		data, err := json.Marshal(map[string]any{"event": "order", "data": o})
		require.NoError(k.t, err)
		lines.Write(append(data, '\n'))
		all = append(all, o)
	}
	return verb{name: "send -", args: []string{"send", "-"}, stdin: lines.String(), then: k.sent(all...)}, true
}

// pad sends what can be redacted.
func (k *life) pad() (verb, bool) {
	data := fmt.Sprintf(`{"cell": "c0", "pad": "%d %s"}`, k.rng.Uint64(), strings.Repeat("pad ", 1200))
	return verb{name: "send", args: []string{"send", "padded", data}, kind: padded}, true
}

func (k *life) drive() (verb, bool) {
	return verb{name: "run", args: []string{"run"}, codes: []int{undecided}}, true
}

// resolve has a person decide about what is in doubt: she looks into the bank's book.
func (k *life) resolve() (verb, bool) {
	for _, e := range k.seen.intents {
		if e.State == receipt.StateInDoubt && !e.Waiting {
			k.bank.settle()
			return k.truth(&e), true
		}
	}
	return verb{}, false
}

func (k *life) truth(e *receipt.Entry) verb {
	args := []string{"intent", "resolve", e.Intent.Key.String(), "--reason", "the bank's book", "--not-executed"}
	if k.bank.has(e.Intent.Key.External(k.seen.id)) {
		args[len(args)-1] = "--executed"
	}
	return verb{name: "intent resolve", args: args, codes: []int{failed, conflict}}
}

// settleRepeat has a person decide about what a rollback led to again.
func (k *life) settleRepeat() (verb, bool) {
	for _, e := range k.seen.intents {
		if e.State.AwaitsPerson() {
			args := []string{"intent", "deny", e.Intent.Key.String(), "--reason", "it was done"}
			if e.Repeats != nil && k.rng.IntN(2) == 0 {
				args = []string{"intent", "approve", e.Intent.Key.String(), "--reuse", "--reason", "it was done"}
			}
			return verb{name: "intent deny", args: args, codes: []int{failed, denied, conflict}}, true
		}
	}
	return verb{}, false
}

func (k *life) snapshot() (verb, bool) {
	return verb{name: "snapshot create", args: []string{"snapshot", "create"}, kind: journal.KindSnapshot, codes: []int{conflict}}, true
}

func (k *life) anySnapshot() (string, bool) {
	if len(k.seen.snapshots) == 0 {
		return "", false
	}
	return k.seen.snapshots[k.rng.IntN(len(k.seen.snapshots))], true
}

func (k *life) rollback() (verb, bool) {
	to, ok := k.anySnapshot()
	return verb{name: "rollback", args: []string{"rollback", to, "--ack", "--reason", "so"}, kind: journal.KindRollback, codes: []int{failed, conflict}}, ok
}

func (k *life) prune() (verb, bool) {
	to, ok := k.anySnapshot()
	return verb{name: "snapshot prune", args: []string{"snapshot", "prune", to}, kind: journal.KindPruned, codes: []int{failed, conflict}}, ok && len(k.seen.snapshots) > 2
}

func (k *life) collect() (verb, bool) {
	return verb{name: "gc", args: []string{"gc"}}, true
}

func (k *life) archive() (verb, bool) {
	before, ok := k.anySnapshot()
	return verb{name: "archive", args: []string{"archive", "--before", before, k.beside("old.wkarch")}, codes: []int{failed, conflict}}, ok
}

func (k *life) redact() (verb, bool) {
	if len(k.seen.padded) == 0 {
		return verb{}, false
	}
	record := k.seen.padded[k.rng.IntN(len(k.seen.padded))]
	args := []string{"redact", "#" + strconv.Itoa(int(record)), "--reason", "so"}
	return verb{name: "redact", args: args, kind: journal.KindRedacted, codes: []int{failed, conflict}}, true
}

// redacted reports whether a payload may be gone.
func (k *life) redacted() bool { return k.promise[journal.KindRedacted].most > 0 }

func (k *life) rotate() (verb, bool) {
	return verb{name: "keys rotate", args: []string{"keys", "rotate"}, kind: journal.KindRotated}, true
}

func (k *life) checkpoint() (verb, bool) {
	return verb{name: "checkpoint", args: []string{"checkpoint"}}, true
}

// inspect looks at the world, which opens it as its owner.
func (k *life) inspect() (verb, bool) {
	name := []string{"status", "verify", "replay"}[k.rng.IntN(3)]
	if name == "replay" && k.redacted() {
		return verb{}, false // it ends where the payload is gone
	}
	return verb{name: name, args: []string{name}}, true
}

// beside returns a new name beside the world.
func (k *life) beside(name string) string {
	k.made++
	return filepath.Join(k.base, fmt.Sprintf("%d.%s", k.made, name))
}

// copied makes another directory of the world, by a fork or a backup. After a kill the
// same command, which nobody kills, finds the copy or makes it.
func (k *life) copied() (verb, bool) {
	name, to := []string{"fork", "backup"}[k.rng.IntN(2)], k.beside("copy")
	return verb{name: name, args: []string{name, to}, then: func(acknowledged bool) {
		if _, err := os.Stat(to); !acknowledged && err != nil {
			k.must(name, to)
		}
		k.verified(to)
		if name == "backup" {
			k.restored(to)
		} else {
			k.held(to)
		}
		require.NoError(k.t, os.RemoveAll(to))
	}}, true
}

// restored kills who restores a backup.
func (k *life) restored(backup string) {
	to := k.beside("restored")
	acknowledged := k.attempt(verb{name: "restore", args: []string{"restore", backup, "-w", to}})
	if _, err := os.Stat(to); !acknowledged && err != nil {
		k.must("restore", backup, "-w", to)
	}
	k.verified(to)
	require.NoError(k.t, os.RemoveAll(to))
}

// held runs a fork on hold, which does nothing outside.
func (k *life) held(fork string) {
	before := len(k.bank.entries(0))
	k.attempt(verb{name: "run of a fork", args: []string{"run", "-w", fork}, codes: []int{undecided}})
	k.verified(fork)
	k.bank.settle()
	require.Len(k.t, k.bank.entries(0), before, "a fork on hold did something outside")
}

// exported writes the journal to a file. A file of all of it makes a world again; of a
// journal in which something was redacted, a bundle is verified.
func (k *life) exported() (verb, bool) {
	file, whole := k.beside("export"), !k.redacted()
	args := []string{"export", file}
	return verb{name: "export", args: args, then: func(acknowledged bool) {
		if _, err := os.Stat(file); !acknowledged && err != nil {
			k.must(args...)
		}
		k.must("verify", file)
		if whole {
			k.imported(file)
		}
		require.NoError(k.t, os.Remove(file))
	}}, true
}

// imported kills who makes a world of an export.
func (k *life) imported(file string) {
	to := k.beside("imported")
	args := []string{"import", "journal", file, "-w", to}
	k.attempt(verb{name: "import journal", args: args})
	if _, err := os.Stat(filepath.Join(to, ".world")); err != nil {
		k.must(args...)
	}
	k.verified(to)
	require.NoError(k.t, os.RemoveAll(to))
}

// govern takes the next step of a change of the rules, as far as was seen.
func (k *life) govern() (verb, bool) {
	var open *governance.Proposal
	for _, p := range k.seen.proposals {
		if p.Open() && p.Base == k.seen.manifest {
			open = p
		}
	}
	if open == nil {
		k.version++
		k.write(k.dir, k.version)
		return verb{name: "propose", args: []string{"propose"}, kind: journal.KindProposed, codes: []int{conflict}}, true
	}
	p := fmt.Sprint("p", open.N)
	switch open.Stage {
	case governance.Proposed:
		return verb{name: "shadow", args: []string{"shadow", p}, kind: journal.KindShadowed, codes: []int{failed, nothing}}, true
	case governance.Shadowed:
		return verb{name: "approve", args: []string{"approve", p, "--key", k.key}, kind: journal.KindApproved, codes: []int{denied}}, true
	default:
		return verb{name: "apply", args: []string{"apply", p}, kind: journal.KindApplied, codes: []int{denied, conflict, undecided}}, true
	}
}

// verified requires that a directory holds a world that verifies.
func (k *life) verified(dir string) {
	k.t.Helper()
	r, err := local.Verify(k.t.Context(), dir, local.Options{}, local.Verification{})
	require.NoError(k.t, err, dir)
	require.True(k.t, r.OK, "%s: %v", dir, r.Faults)
}
