package twice

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// process is a process that owns a world: its host, and what the bank has of it.
type process struct {
	*world.World
	host   *host.Host
	teller *teller
	store  string // file of the effect store
}

// home is where a world lives: what a process leaves to the next.
type home struct {
	id      string
	journal *worldtest.Journal
	keys    *receipt.Keyring
	dir     string // of the effect store
	stores  int    // files of it: a process that was killed has its own for good
}

func newHome(id, dir string, journal *worldtest.Journal) *home {
	secret := sha256.Sum256([]byte(id))
	keys, err := receipt.NewKeyring(id, []receipt.Epoch{{Number: 1, Secret: secret[:]}})
	if err != nil {
		panic(err)
	}
	return &home{id: id, journal: journal, keys: keys, dir: dir}
}

func (h *home) config(p *process, b *bank, workers int, grace time.Duration) world.Config {
	p.teller = newTeller(b)
	p.store = filepath.Join(h.dir, fmt.Sprintf("%s.%d", h.id, h.stores))
	return world.Config{
		Journal: h.journal, History: h.journal, Keys: h.keys, Registry: registry(),
		BatchRecords: 1 + h.stores%7, CheckpointRecords: 40,
		NewHost: func(id string, m *manifest.Manifest) (world.Host, error) {
			var err error
			p.host, err = host.New(host.Config{
				World: id, Manifest: m, Content: h.journal.Blob, Keys: h.keys,
				EffectLog: p.store, Workers: workers, Grace: grace, Lease: 3 * time.Second,
				Adapters:  map[string]host.Factory{"bank": func(s host.Setup) (host.Adapter, error) { return bankAdapter{p.teller, s}, nil }},
				Verifiers: map[string]host.VerifierFactory{"bank": func(s host.Setup) (host.Verifier, error) { return bankAdapter{p.teller, s}, nil }},
			})
			return p.host, err
		},
	}
}

// kill ends a process at once. What it does after that, it does not do: the next
// one has the effect store as it was at this moment.
func (h *home) kill(p *process) error {
	h.journal.Crash()
	p.teller.die()
	old := p.store
	h.stores++
	data, err := os.ReadFile(old)
	if err == nil {
		err = os.WriteFile(filepath.Join(h.dir, fmt.Sprintf("%s.%d", h.id, h.stores)), data, 0o600)
	}
	if closed := p.host.Close(); err == nil {
		err = closed
	}
	return err
}

// stop ends a process as Ctrl-C does.
func (h *home) stop(p *process) error {
	if err := p.Sync(); err != nil {
		return err
	}
	return p.host.Close()
}
