package host

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// liveHost performs effects of kind "k".
func liveHost(t testing.TB, files vfs.FS, path string, do func(Call)) *Host {
	t.Helper()
	ring, err := receipt.NewKeyring("town", []receipt.Epoch{{Number: 1, Secret: make([]byte, receipt.SecretBytes)}})
	require.NoError(t, err)
	cfg := Config{
		World: "town", Keys: ring, EffectLog: path, Workers: DefaultWorkers, Lease: DefaultLease, Grace: DefaultGrace,
		Manifest: &manifest.Manifest{Effects: map[string]manifest.Effect{"k": {}}},
	}
	effects := map[string]*effect{"k": {adapter: tallied(do), live: true}}
	h, err := start(cfg, effects, cfg.secrets(), files)
	require.NoError(t, err)
	return h
}

func aPermit(n uint64) receipt.Permit {
	return receipt.Permit{
		Intent: receipt.Intent{
			Key: receipt.Key{Hash: canon.Sum(binary.BigEndian.AppendUint64(nil, n))}, Step: "agent/1@1.0~0000000000000000",
			Cell: "agent/1", Kind: "k", Params: canon.AppendUint(nil, n), Cap: "tools",
		},
		Attempt: 1,
	}
}

// BenchmarkLive has many cells wait for the receipt of one effect after the
// other, as a world at a barrier does.
func BenchmarkLive(b *testing.B) {
	for _, cells := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(cells), func(b *testing.B) {
			h := liveHost(b, vfs.Default, b.TempDir()+"/effects", func(Call) {})
			b.ReportAllocs()
			var tasks []receipt.Task
			begun, ended := 0, 0
			for ; begun < min(cells, b.N); begun++ {
				tasks = append(tasks, receipt.Task{Permit: aPermit(uint64(begun))})
			}
			for ended < b.N {
				h.Start(tasks)
				tasks = tasks[:0]
				require.NoError(b, h.Wait(b.Context()))
				answers, err := h.Answers()
				require.NoError(b, err)
				for i := range answers {
					p := receipt.Permit{Intent: receipt.Intent{Key: answers[i].Key, Kind: "k"}, Attempt: answers[i].Attempt}
					tasks = append(tasks, receipt.Task{Work: receipt.Forget, Permit: p})
					if begun < b.N {
						tasks = append(tasks, receipt.Task{Permit: aPermit(uint64(begun))})
						begun++
					}
				}
				ended += len(answers)
			}
			b.ReportMetric(float64(h.Stats().EffectSyncs)/float64(b.N), "syncs/op")
			require.NoError(b, h.Close())
		})
	}
}
