package twice

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
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
	p.store = h.store()
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
		err = os.WriteFile(h.store(), data, 0o600)
	}
	if closed := p.host.Close(); err == nil {
		err = closed
	}
	return err
}

// tear leaves the effect store as a process does that is killed while it writes: behind
// what is synced stands a part of a frame.
func (h *home) tear(rng *rand.Rand) error {
	path := h.store()
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	const header = 16 // checksum, length of the body, place
	end := 0
	for end+header <= len(data) && binary.BigEndian.Uint64(data[end+8:]) == uint64(end) && (end > 0 || data[end] != 0) {
		end += header + int(binary.BigEndian.Uint32(data[end+4:]))
	}
	torn := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(rng.IntN(500)))
	torn = binary.BigEndian.AppendUint64(torn, uint64(end))
	for range rng.IntN(100) {
		torn = append(torn, byte(rng.Uint32()))
	}
	return os.WriteFile(path, append(data[:end], torn...), 0o600)
}

// store is the file of the effect store of the present process.
func (h *home) store() string { return filepath.Join(h.dir, fmt.Sprintf("%s.%d", h.id, h.stores)) }

// stop ends a process as Ctrl-C does.
func (h *home) stop(p *process) error {
	if err := p.Sync(); err != nil {
		return err
	}
	return p.host.Close()
}
