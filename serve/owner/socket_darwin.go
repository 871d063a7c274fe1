package owner

import "golang.org/x/sys/unix"

// descriptors is where open directories would have short names.
const descriptors = "/dev/fd"

// userAt returns the user at the other end of a socket.
func userAt(fd int) (int, error) {
	is, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(is.Uid), nil
}
