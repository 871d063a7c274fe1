package kill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/serve/shared"
	"github.com/worldkernel/worldkernel/world/local"
)

// How much TestNodesDie does where nobody asks for more, and how long a lease is there.
const (
	fewNodeKills = 5
	fewWorlds    = 6
	nodeLease    = 2 * time.Second
)

// cluster is processes that own the worlds of a store between them, and the outside.
type cluster struct {
	t       *testing.T
	rng     *rand.Rand
	program string
	dir     string
	url     string // of the store
	server  *pgtest.Server
	store   *shared.Store // to look at it
	sink    *sink
	lease   time.Duration
	members []*member
	worlds  []string

	mu     sync.Mutex
	owned  map[string]*member  // by world: who has said last that it owns it
	epochs map[string][]string // by world: who has owned it in each epoch; empty where that one gave it up in an orderly way
	since  map[string]time.Time
	left   map[string]bool // since it was given up in an orderly way
	gaps   []time.Duration // from when a world's owner was struck until another had it
	graces []time.Duration // likewise, of owners that ended in an orderly way
}

func newCluster(t *testing.T, program string, worlds, payments int, lease time.Duration) *cluster {
	t.Helper()
	seed := uint64(environ(t, "SEED", 1))
	t.Logf("SEED=%d", seed)
	k := &cluster{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), program: program, dir: t.TempDir(), server: pgtest.Start(t), sink: newSink(t), lease: lease,
		owned: map[string]*member{}, epochs: map[string][]string{}, since: map[string]time.Time{}, left: map[string]bool{},
	}
	k.url = k.server.URL(t)
	require.NoError(t, pglog.Init(t.Context(), k.url))
	var err error
	k.store, err = shared.Open(t.Context(), k.url, shared.Options{Copies: filepath.Join(k.dir, "looks")})
	require.NoError(t, err)
	t.Cleanup(k.store.Close)
	k.create(worlds, payments)
	for _, name := range []string{"one", "two", "three"} {
		m := &member{cluster: k, name: name, link: newLink(t, k.server)}
		k.members = append(k.members, m)
		t.Cleanup(func() { m.kill() })
	}
	return k
}

func nodeOptions() local.Options {
	return local.Options{Passphrase: func() ([]byte, error) { return []byte("open"), nil }}
}

// create makes worlds in each of which a cell pays so often, a payment every so many seconds, and then says so.
func (k *cluster) create(worlds, payments int) {
	k.t.Helper()
	dir := k.t.TempDir()
	for name, text := range map[string]string{
		"world.yaml": fmt.Sprintf(nodeRules, k.sink.port()), "payer.star": fmt.Sprintf(payer, payments, max(1, worlds/20)),
	} {
		require.NoError(k.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	loaded, err := local.Load(filepath.Join(dir, local.ManifestFile), nodeOptions())
	require.NoError(k.t, err)
	for i := range worlds {
		id := fmt.Sprintf("w%d", i)
		k.worlds = append(k.worlds, id)
		require.NoError(k.t, k.store.Create(k.t.Context(), id, loaded, local.CreateOptions{}, nodeOptions()))
		w, err := k.store.World(id)
		require.NoError(k.t, err)
		lw, err := local.Open(w.Dir, w.In(nodeOptions()))
		require.NoError(k.t, err)
		_, err = lw.Submit(k.t.Context(), "begin", map[string]any{"to": id})
		require.NoError(k.t, err)
		require.NoError(k.t, lw.Close())
		require.NoError(k.t, os.RemoveAll(w.Dir))
	}
}

// owns notes that a process has said that it owns a world.
func (k *cluster) owns(by *member, world string, epoch int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.epochs[world]) <= epoch {
		k.epochs[world] = append(k.epochs[world], "")
	}
	k.epochs[world][epoch] = by.name
	k.owned[world] = by
	if struck, ok := k.since[world]; ok {
		gap := time.Since(struck)
		if k.left[world] {
			k.graces = append(k.graces, gap)
		} else {
			k.gaps = append(k.gaps, gap)
		}
		delete(k.since, world)
		delete(k.left, world)
	}
}

// gives notes that a process has given a world up in an orderly way.
func (k *cluster) gives(by *member, world string, epoch int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if epoch < len(k.epochs[world]) {
		k.epochs[world][epoch] = ""
	}
	if k.owned[world] == by {
		delete(k.owned, world)
		k.since[world], k.left[world] = time.Now(), true
	}
}

// struck notes that a process is out of the world's way from now on.
func (k *cluster) struck(m *member) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for world, by := range k.owned { // order cannot show: each is noted
		if by == m {
			k.since[world] = time.Now()
		}
	}
}

// doubtful reports whether one of the owners of a world in some epochs did not give it up.
func (k *cluster) doubtful(world string, from, to int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range k.epochs[world][min(from, len(k.epochs[world])):min(to, len(k.epochs[world]))] {
		if name != "" {
			return true
		}
	}
	return false
}

// strike does one bad thing to one process, which is well again afterwards.
func (k *cluster) strike() string {
	m := k.members[k.rng.IntN(len(k.members))]
	gone := k.lease + k.lease/2 // when others have had its worlds for a while
	switch k.rng.IntN(8) {
	case 0:
		k.struck(m)
		m.kill()
		m.start()
		return "killed, and started again"
	case 1:
		k.struck(m)
		m.kill()
		k.passes(gone)
		m.start()
		return "killed"
	case 2:
		m.stop()
		k.struck(m)
		k.passes(gone)
		m.goOn()
		return "stopped beyond the lease"
	case 3:
		k.struck(m)
		m.link.cut()
		k.passes(gone)
		m.link.heal()
		return "cut off beyond the lease"
	case 4:
		k.struck(m)
		m.link.stall()
		k.passes(gone)
		m.link.heal()
		return "its messages late by more than the lease"
	case 5:
		return k.holdUp(m)
	case 6:
		return k.answerLate(m)
	}
	m.end()
	m.start()
	return "ended, and started again"
}

// holdUp has an attempt of a process begin after others have had its worlds, and have done and forgotten what
// was to be done: what is begun then is done again, by whoever is let.
func (k *cluster) holdUp(m *member) string {
	c := m.link.holdUp(k.lease, false)
	if c == nil {
		return "nothing of it was to be held up"
	}
	k.struck(m)
	k.passes(4 * k.lease)
	close(c.let)
	k.passes(k.lease / 2) // it is asked for again, for it was long on its way
	m.link.heal()
	return "what it begins held up beyond the lease"
}

// answerLate has a begin of a process be durable and its answer come 0.5 to 5 s later, with all else that the
// process asks of the database: others may have had its worlds by then, and looked whether anything was paid.
func (k *cluster) answerLate(m *member) string {
	c := m.link.holdUp(k.lease, true)
	if c == nil {
		return "no answer of it was to be held up"
	}
	k.struck(m)
	k.passes(500*time.Millisecond + time.Duration(k.rng.IntN(4501))*time.Millisecond)
	close(c.let)
	m.link.heal()
	return "what it begins answered late"
}

// passes waits: leases are of real time, and of the clock of the database.
func (k *cluster) passes(d time.Duration) {
	select {
	case <-k.t.Context().Done():
	case <-time.After(d):
	}
}

// TestNodesDie has three processes own worlds that pay at a sink that counts, and kills them, stops them for
// longer than their lease, cuts them off, and has what they say to the database come late. Each payment is
// made once, or is in doubt where an owner had begun it that did not give its world up; and every world goes
// on to its end, and verifies. KILLS and WORLDS say how much is done, LEASE how long a lease is; with HELD=1
// all that is done is to hold up what processes begin, and with HELD=answers the answers to that, by 0.5 to 5 s. With WORLDCTL of a program whose tokens fence nothing,
// CONTROL=1 wants something to be paid twice, and ends when it is.
func TestNodesDie(t *testing.T) {
	kills, worlds, lease := environ(t, "KILLS", fewNodeKills), environ(t, "WORLDS", fewWorlds), time.Duration(environ(t, "LEASE", int(nodeLease.Seconds())))*time.Second
	every := max(1, worlds/20)
	// A strike takes one lease and a half in the middle: worlds pay until the last.
	payments := environ(t, "PAYMENTS", kills*int(lease.Seconds())*3/2/every+4)
	k := newCluster(t, program(t), worlds, payments, lease)
	for _, m := range k.members {
		m.start()
	}
	k.sink.await(t, func() bool { return k.sink.paid() > 0 })
	how := map[string]int{}
	control := os.Getenv("CONTROL") != ""
	for n := 0; n < kills && (!control || len(k.sink.twice()) == 0); n++ {
		var struck string
		switch m := k.members[n%len(k.members)]; os.Getenv("HELD") {
		case "":
			struck = k.strike()
		case "answers":
			struck = k.answerLate(m)
		default:
			struck = k.holdUp(m)
		}
		how[struck]++
		t.Logf("%d of %d: %s; %d payments, %d twice", n+1, kills, struck, k.sink.paid(), len(k.sink.twice()))
	}
	if !control {
		k.sink.await(t, func() bool { return k.sink.done() == worlds })
		for _, m := range k.members {
			m.end()
		}
	}
	twice := k.sink.twice()
	t.Logf("%d struck: %v; %d payments, %d twice", kills, how, k.sink.paid(), len(twice))
	t.Logf("worlds went on after %s; after an end in peace %s", spread(k.gaps), spread(k.graces))
	if control {
		require.NotEmpty(t, twice, "without a fence something is done twice, or this test cannot see it")
		return
	}
	require.Empty(t, twice)
	k.judge(payments)
}

// judge looks at all worlds.
func (k *cluster) judge(payments int) {
	k.t.Helper()
	ended := map[string]int{}
	for _, id := range k.worlds {
		for how, n := range k.judgeOf(id, payments) {
			ended[how] += n
		}
	}
	k.t.Logf("payments by how they ended: %v", ended)
	require.Equal(k.t, payments*len(k.worlds), ended["committed"]+ended["in_doubt"], "none is lost")
}

// spread tells of the middle and the longest of some times.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	return fmt.Sprintf("%v in the middle, %v for 99 of 100, %v at most, %d times",
		all[len(all)/2].Round(time.Millisecond), all[len(all)*99/100].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond), len(all))
}

// waitBetween is how long between two looks at what is awaited.
const waitBetween = 20 * time.Millisecond

// await returns when something is so; the test's own deadline is the only one.
func (s *sink) await(t *testing.T, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case <-t.Context().Done():
			require.NoError(t, context.Cause(t.Context()))
		case <-time.After(waitBetween):
		}
	}
}
