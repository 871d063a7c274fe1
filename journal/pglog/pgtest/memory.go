package pgtest

import (
	"os"
	"syscall"
)

// room is what servers of a few packages of tests take at most.
const room = 4 << 30

// InMemory returns a directory in the machine's memory in which there is room for servers; empty:
// there is none, or TMPDIR says where temporary files are to be. What a server in it syncs is durable
// for those who outlive its process, which is all that tests end.
func InMemory() string {
	const shm = "/dev/shm"
	var s syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(shm, &s) != nil || uint64(s.Bavail)*uint64(s.Bsize) < room { //nolint:unconvert // of other types on other systems
		return ""
	}
	return shm
}
