package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// checkHost refuses a request that a web page could have made a browser send: one
// for a name that is not this server's (DNS rebinding), or from another origin.
func (s *Server) checkHost(r *http.Request) error {
	if !s.allowed(r.Host) && !isLoopback(r.Host, localPort(r)) {
		return failed(http.StatusMisdirectedRequest, "misdirected", "this server does not answer to that host")
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) && !s.allowed(u.Host) {
			return failed(http.StatusForbidden, "origin", "requests from that origin are not answered")
		}
	}
	return nil
}

func (s *Server) allowed(host string) bool {
	return slices.ContainsFunc(s.cfg.AllowedHosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// localPort returns the TCP port on which a request came; 0: there is none.
func localPort(r *http.Request) int {
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return addr.Port
	}
	return 0
}

// isLoopback reports whether a Host header names this machine to itself, with a
// port that is not another one's.
func isLoopback(hostport string, port int) bool {
	const usual = 80
	host, text, err := net.SplitHostPort(hostport)
	if err != nil {
		host, text = strings.Trim(hostport, "[]"), strconv.Itoa(usual)
	}
	if n, err := strconv.Atoi(text); err != nil || port != 0 && n != port {
		return false
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}
