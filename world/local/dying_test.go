package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// moment is where a process dies on an effect's way.
type moment string

const (
	beforePermit   moment = "before the batch with the permit is appended"
	beforeSecond   moment = "before the batch with the second permit is appended"
	afterPermit    moment = "when the permit is durable and nobody knows that"
	beforePerform  moment = "when the adapter is called"
	afterPerform   moment = "when the outside has changed and the adapter has not said so"
	afterStored    moment = "when the stored result is about to be handed to the world"
	afterFinished  moment = "when the receipt is journaled and its cell has not seen it"
	afterDelivered moment = "when the cell has handled the receipt"
)

// These tell a process that it is to die: in which world, and when.
const (
	dyingWorld  = "WORLDKERNEL_TEST_DYING_WORLD"
	dyingMoment = "WORLDKERNEL_TEST_DYING_MOMENT"
)

func TestMain(m *testing.M) {
	testlog.Begin()
	if dir := os.Getenv(dyingWorld); dir != "" {
		fmt.Fprintln(os.Stderr, "it lived:", runAndDie(dir, moment(os.Getenv(dyingMoment))))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// die ends this process as a power cut would, for all that it can do about it.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// runAndDie runs a world as local.Open would have it run, but that every unit
// is a batch of its own, and that it dies at a moment.
func runAndDie(dir string, at moment) error {
	hidden := filepath.Join(dir, ".world")
	ring, err := os.ReadFile(filepath.Join(hidden, "keyring"))
	if err != nil {
		return err
	}
	keys, err := receipt.DecodeKeyring(ring)
	if err != nil {
		return err
	}
	s, err := openStore(hidden, keys)
	if err != nil {
		return err
	}
	w, err := world.Open(world.Config{
		Journal: &dyingJournal{Store: s, at: at}, History: s, Keys: keys, BatchRecords: 1,
		NewHost: func(id string, m *manifest.Manifest) (world.Host, error) {
			attempts, _ := s.Log().(host.Attempts)
			h, err := host.New(host.Config{
				Attempts: attempts, World: id, Manifest: m, Content: s.Blob, Keys: keys, Dir: dir,
				Adapters: outside(dir, at), EffectLog: filepath.Join(hidden, "effects"),
			})
			return dyingHost{h, at}, err
		},
	})
	if err != nil {
		return err
	}
	return w.Run(context.Background())
}

func openStore(hidden string, keys *receipt.Keyring) (*store.Store, error) {
	anchorKey, err := keys.AnchorKey()
	if err != nil {
		return nil, err
	}
	log, err := local.LogOf(hidden)
	if err != nil {
		return nil, err
	}
	return store.Open(hidden, store.Options{AnchorKey: anchorKey, Log: log})
}

// dyingJournal makes every batch durable before the next is computed.
type dyingJournal struct {
	*store.Store
	at   moment
	seen map[journal.Kind]int
}

func (j *dyingJournal) Append(b journal.Batch) (journal.Pending, error) {
	if j.seen == nil {
		j.seen = make(map[journal.Kind]int)
	}
	here := make(map[journal.Kind]bool)
	for _, s := range b.Records {
		rec, err := journal.DecodeRecord(s.Bytes)
		if err != nil {
			return nil, err
		}
		here[rec.Kind] = true
		j.seen[rec.Kind]++
	}
	permits := j.seen[journal.KindStarted]
	if here[journal.KindStarted] && (j.at == beforePermit || j.at == beforeSecond && permits == 2) {
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // in which a host that was told too early would be seen
		die()
	}
	p, err := j.Store.Append(b)
	if err == nil {
		err = p.Wait()
	}
	if err != nil {
		return nil, err
	}
	switch {
	case j.at == afterPermit && here[journal.KindStarted]:
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // what must not come cannot be waited for
		die()
	case j.at == afterFinished && here[journal.KindFinished],
		j.at == afterDelivered && j.seen[journal.KindStepped] == 2:
		die()
	}
	return p, nil
}

// dyingHost hands over answers whose results the effect store holds.
type dyingHost struct {
	*host.Host
	at moment
}

func (h dyingHost) Answers() ([]receipt.Answer, error) {
	answers, err := h.Host.Answers()
	for _, a := range answers {
		if a.Receipt != nil && h.at == afterStored {
			die()
		}
	}
	return answers, err
}

// callsFile is the outside: a line for each time that it was changed.
const callsFile = "calls"

// outside returns an adapter that changes the outside, durably.
func outside(dir string, at moment) map[string]host.Factory {
	return map[string]host.Factory{"outside": func(host.Setup) (host.Adapter, error) {
		return outsideAdapter{filepath.Join(dir, callsFile), at}, nil
	}}
}

type outsideAdapter struct {
	file string
	at   moment
}

func (a outsideAdapter) Perform(_ context.Context, call host.Call) (host.Result, error) {
	if a.at == beforePerform {
		die()
	}
	f, err := os.OpenFile(a.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return host.Result{}, err
	}
	if _, err = fmt.Fprintln(f, call.External); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return host.Result{}, err
	}
	if a.at == afterPerform {
		die()
	}
	return host.Result{Status: receipt.StatusOK, Payload: receipt.Data(canon.AppendText(nil, "done"))}, f.Close()
}
