package host

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// httpNetwork opens the connections of http effects. It checks the address that
// is dialled, when it is dialled: a name that means something else by then
// gains nothing.
type httpNetwork struct {
	public *ssrf.Guardian // for hosts that nobody named
	named  *ssrf.Guardian // for names that a capability or the manifest names

	resolver *net.Resolver                   // nil: the machine's
	roots    *x509.CertPool                  // nil: the machine's
	dialling func(addr netip.AddrPort) error // nil, or asked about each address that passed the guard
}

func newHTTPNetwork() *httpNetwork {
	azure := ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")) // public by its number only
	return &httpNetwork{
		public: ssrf.New(ssrf.WithAnyPort(), azure),
		named: ssrf.New(ssrf.WithAnyPort(), azure,
			ssrf.WithAllowedV4Prefixes(
				netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"),
				netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16")),
			ssrf.WithAllowedV6Prefixes(netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("fc00::/7"))),
	}
}

// addressError says that an address is not for worlds to reach.
type addressError struct {
	addr netip.Addr
	err  error
}

func (e *addressError) Error() string {
	return fmt.Sprintf("address %s is not allowed: %v", e.addr, e.err)
}
func (e *addressError) Unwrap() error { return e.err }

// check reports why a connection to addr may not be made on behalf of host. A
// host that is named may be on this machine or in its network, but only an
// address that is named itself may be anything: no name of good repute can be
// turned into the address of a cloud's metadata.
func (n *httpNetwork) check(addr netip.Addr, host string, named bool) error {
	addr = addr.Unmap()
	guard := n.public
	if literal, err := netip.ParseAddr(host); named && err != nil {
		guard = n.named
	} else if named && literal == addr {
		return nil
	}
	err := guard.SafeAddr(addr)
	if err == nil && metadata(addr) {
		err = ssrf.ErrProhibitedIP
	}
	if err != nil {
		return &addressError{addr, err}
	}
	return nil
}

// metadata reports the addresses of cloud services in private networks.
func metadata(addr netip.Addr) bool {
	return netip.MustParsePrefix("fd00:ec2::/32").Contains(addr) || netip.MustParsePrefix("fd20:ce::/32").Contains(addr)
}

// dialer returns a dialler for one request to host.
func (n *httpNetwork) dialer(host string, named bool) *net.Dialer {
	return &net.Dialer{Resolver: n.resolver, Control: func(_, address string, _ syscall.RawConn) error {
		dialled, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("address %s: %w", address, err)
		}
		if err := n.check(dialled.Addr(), host, named); err != nil || n.dialling == nil {
			return err
		}
		return n.dialling(dialled)
	}}
}
