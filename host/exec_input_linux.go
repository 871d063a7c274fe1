package host

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// sealed returns a file in memory, which nobody can change any more: no other
// program that gets hold of the descriptor can take anything from who reads it.
func sealed(data []byte) (*os.File, error) {
	const name = "worldkernel-input"
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err = f.WriteAt(data, 0); err == nil { // the offset, which the program inherits, stays at 0
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE|unix.F_SEAL_SEAL)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
