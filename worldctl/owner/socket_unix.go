//go:build linux || darwin

package owner

import (
	"errors"
	"io/fs"
	"net"
	"syscall"
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

// ownerOf returns the user that a file belongs to.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(is.Uid), true
}
