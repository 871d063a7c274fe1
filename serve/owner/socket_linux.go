package owner

import "syscall"

// descriptors is where open directories have short names.
const descriptors = "/proc/self/fd"

// userAt returns the user at the other end of a socket.
func userAt(fd int) (int, error) {
	is, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(is.Uid), nil
}
