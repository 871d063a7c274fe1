package local

import (
	"path/filepath"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
)

// Archive moves the records before a snapshot's to a new file, but for record 1,
// and returns what is in there. The world reads them from it as long as it stays
// where it is. Errors of the name are those of package snapshot.
func (lw *World) Archive(snapshot, file string) (a store.Archived, err error) {
	if file, err = filepath.Abs(file); err != nil {
		return store.Archived{}, err
	}
	lw.still.Lock()
	defer lw.still.Unlock()
	lw.mu.Lock()
	defer lw.mu.Unlock()
	s, err := lw.w.FindSnapshot(snapshot)
	if err != nil {
		return store.Archived{}, err
	}
	if err := lw.w.Checkpoint(); err != nil {
		return store.Archived{}, err
	}
	return lw.store.Archive(journal.Seq(s.Record)-1, file)
}
