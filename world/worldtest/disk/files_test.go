package disk

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/worldkernel/worldkernel/internal/fault"
)

// trouble is what a disk does to one process.
type trouble struct {
	fault string
	from  int64 // the operation of the fault's kind that it strikes at, counted from 1
}

// operations are the kinds of operations that faults strike at.
func operations(fault string) []errorfs.OpKind {
	switch fault {
	case "read fails":
		return []errorfs.OpKind{errorfs.OpFileRead, errorfs.OpFileReadAt}
	case "sync fails":
		return []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}
	case "open fails":
		return []errorfs.OpKind{errorfs.OpOpen, errorfs.OpCreate, errorfs.OpOpenDir}
	case "rename fails":
		return []errorfs.OpKind{errorfs.OpRename}
	case "remove fails":
		return []errorfs.OpKind{errorfs.OpRemove}
	case "disk full":
		return []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpCreate, errorfs.OpFilePreallocate}
	}
	all := []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileWriteAt}
	if strings.HasPrefix(fault, "power cut") {
		all = append(all, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpRename)
	}
	return all
}

// failing is the disk of one process, over files that outlive it.
type failing struct {
	vfs.FS // what the process has

	mem     *vfs.MemFS
	trouble trouble
	rng     *rand.Rand
	before  func() // a power cut: called before the files are copied

	mu    sync.Mutex
	armed bool
	count int64
	cut   *vfs.MemFS  // what a power cut leaves; nil: there was none
	hit   atomic.Bool // the fault has struck
	dead  atomic.Bool // the process has ended
}

func newFailing(mem *vfs.MemFS, t trouble, rng *rand.Rand) *failing {
	f := &failing{mem: mem, trouble: t, rng: rng}
	f.FS = fault.Disk(tearing{fault.TakingTurns(mem, &f.mu), f}, errorfs.InjectorFunc(f.inject))
	return f
}

// arm lets the fault strike from now on.
func (f *failing) arm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = true
}

// inject strikes at operations, as errors or power cuts.
func (f *failing) inject(op errorfs.Op) error {
	if f.dead.Load() {
		select {} // Pebble would try again, for ever
	}
	if f.trouble.fault == "" || f.trouble.fault == tornWrite {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, mine := f.counted(op.Kind)
	if !mine {
		return nil
	}
	switch f.trouble.fault {
	case "power cut, unsynced lost", "power cut, unsynced mixed", "power cut, unsynced kept":
		if n == f.trouble.from {
			f.powerCut()
		}
		return nil
	case "disk full":
		if n >= f.trouble.from {
			f.hit.Store(true)
			return syscall.ENOSPC
		}
	case "disk dead":
		if n >= f.trouble.from {
			f.hit.Store(true)
			return syscall.EIO
		}
	case "open fails":
		if n == f.trouble.from {
			f.hit.Store(true)
			return syscall.ENFILE
		}
	default:
		if n == f.trouble.from {
			f.hit.Store(true)
			return syscall.EIO
		}
	}
	return nil
}

// counted returns which operation of the fault's kind this is.
func (f *failing) counted(kind errorfs.OpKind) (n int64, mine bool) {
	if !f.armed {
		return 0, false
	}
	mine = f.trouble.fault == "disk dead"
	for _, k := range operations(f.trouble.fault) {
		mine = mine || k == kind
	}
	if mine {
		f.count++
	}
	return f.count, mine
}

// powerCut copies what a power cut leaves at this moment.
func (f *failing) powerCut() {
	if f.before != nil {
		f.before()
	}
	unsynced := map[string]int{"power cut, unsynced lost": 0, "power cut, unsynced mixed": 50, "power cut, unsynced kept": 100}
	f.cut = f.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced[f.trouble.fault], RNG: f.rng})
	f.hit.Store(true)
}

const tornWrite = "write torn"

// tearing does half of a write.
type tearing struct {
	vfs.FS

	disk *failing
}

func (f tearing) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.torn(f.FS.Create(name, category))
}

func (f tearing) OpenReadWrite(name string, category vfs.DiskWriteCategory, options ...vfs.OpenOption) (vfs.File, error) {
	return f.torn(f.FS.OpenReadWrite(name, category, options...))
}

func (f tearing) torn(file vfs.File, err error) (vfs.File, error) {
	if err != nil || f.disk.trouble.fault != tornWrite {
		return file, err
	}
	return tornFile{file, f.disk}, nil
}

type tornFile struct {
	vfs.File

	disk *failing
}

func (f tornFile) Write(p []byte) (int, error) {
	f.disk.mu.Lock()
	n, mine := f.disk.counted(errorfs.OpFileWrite)
	f.disk.mu.Unlock()
	if !mine || n != f.disk.trouble.from {
		return f.File.Write(p)
	}
	f.disk.hit.Store(true)
	n2, err := f.File.Write(p[:len(p)/2])
	if err == nil {
		err = syscall.EIO
	}
	return n2, err
}
