//go:build linux || darwin

package owner

import (
	"errors"
	"net"
)

// peer returns the user of the process at the other end, or of the one that listens.
func peer(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) { uid, err = userAt(int(fd)) })
	if failed != nil || err != nil {
		return 0, errors.Join(failed, err)
	}
	return uid, nil
}
