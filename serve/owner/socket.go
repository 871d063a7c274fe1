package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/internal/file"
)

// socketFile is where the owner of a world listens, in the directory of the world.
const socketFile = ".world/owner.sock"

// maxSocketPath is how long the path of a socket can be on every system.
const maxSocketPath = 103

var errLongPath = errors.New("its path is too long for a socket")

// socket is what an owner listens on.
type socket struct {
	net.Listener

	path string
}

// listen makes the socket of a world that this process owns: nobody else can be
// using the one that a killed owner has left. Until it is for this user alone,
// .world and Accept keep others out.
func listen(dir string) (*socket, error) {
	s := &socket{path: filepath.Join(dir, socketFile)}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err := reach(s.path, func(path string) error {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return err
		}
		l.SetUnlinkOnClose(false) // path may be good for this moment only
		s.Listener = l
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(s.path, 0o600); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// Accept returns the next connection of somebody who may use the socket.
func (s *socket) Accept() (net.Conn, error) {
	for {
		conn, err := s.Listener.Accept()
		if err != nil || mayAsk(conn.(*net.UnixConn)) {
			return conn, err
		}
		_ = conn.Close() // nobody whom this process would tell anything
	}
}

// remove removes the socket, so that nobody finds it. What was accepted stays open.
func (s *socket) remove() {
	_ = os.Remove(s.path) // the next owner does it otherwise
	_ = s.Close()
}

// mayAsk reports whether the process at the other end belongs to the user of this
// one, or to root. Where a system does not say, the modes of the socket and of .world
// keep others out.
func mayAsk(conn *net.UnixConn) bool {
	uid, err := peer(conn)
	return errors.Is(err, errors.ErrUnsupported) || err == nil && allowed(uid)
}

// allowed reports whether a user may have commands carried out here, or is told any.
func allowed(uid int) bool { return uid == os.Geteuid() || uid == 0 }

// dial connects to the owner of the world in a directory, which is this user's or
// root's: whoever else made a socket there would be told command lines, and
// passphrases. Both the file and who listens are looked at, as far as the system says.
func dial(dir string) (conn net.Conn, err error) {
	name := filepath.Join(dir, socketFile)
	err = reach(name, func(path string) error {
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		switch info.Mode().Type() {
		case fs.ModeSocket:
		case fs.ModeSymlink: // it may lead to any server of this user or of root
			return fmt.Errorf("%w: %s is a link", ErrStranger, name)
		default:
			return fmt.Errorf("%s is no socket", name)
		}
		if uid, known := file.OwnerOf(info); known && !allowed(uid) {
			return fmt.Errorf("%w: %s is user %d's", ErrStranger, name, uid)
		}
		if conn, err = net.Dial("unix", path); err != nil {
			return err
		}
		uid, err := peer(conn.(*net.UnixConn))
		if err == nil && !allowed(uid) {
			err = fmt.Errorf("%w: user %d listens at %s", ErrStranger, uid, name)
		}
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return errors.Join(err, conn.Close())
		}
		return nil
	})
	return conn, err
}

// reach lets use use a path of a socket, by another name where it is too long.
func reach(path string, use func(path string) error) error {
	if len(path) <= maxSocketPath {
		return use(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // only its name is used
	other := filepath.Join(descriptors, fmt.Sprint(dir.Fd()), filepath.Base(path))
	if _, err := os.Stat(filepath.Dir(other)); err != nil {
		return fmt.Errorf("%s: %w", path, errLongPath)
	}
	return use(other)
}
