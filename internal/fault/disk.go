package fault

import (
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Disk returns files whose operations errors strikes, each one: errorfs hands out a file
// that is to be written over as it is, and would not see what is done with that.
func Disk(files vfs.FS, errors errorfs.Injector) vfs.FS {
	return reusing{errorfs.Wrap(files, errors)}
}

type reusing struct{ vfs.FS }

func (f reusing) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.Rename(from, to); err != nil {
		return nil, err
	}
	return f.OpenReadWrite(to, category)
}

// TakingTurns returns files in memory that do under a mutex what they cannot do while
// they are copied as a crash would leave them: links, and what read-locks twice what the
// copy write-locks, which waits for ever where that comes between.
func TakingTurns(files vfs.FS, mu *sync.Mutex) vfs.FS { return takingTurns{files, mu} }

type takingTurns struct {
	vfs.FS

	mu *sync.Mutex
}

func (f takingTurns) Link(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.FS.Link(from, to)
}

func (f takingTurns) Lock(name string) (io.Closer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.FS.Lock(name)
}
