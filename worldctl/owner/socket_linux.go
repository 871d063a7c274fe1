package owner

import (
	"net"
	"os"
	"syscall"
)

// descriptors is where open directories have short names.
const descriptors = "/proc/self/fd"

// mayAsk reports whether the process at the other end belongs to the user of this
// one, or to root.
func mayAsk(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var peer *syscall.Ucred
	failed := raw.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	return failed == nil && err == nil && allowed(int(peer.Uid))
}

// allowed reports whether a user may have commands carried out here.
func allowed(uid int) bool { return uid == os.Geteuid() || uid == 0 }
