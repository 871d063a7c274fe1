package pglog

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// usualPort is where PostgreSQL listens that nobody has told otherwise.
const usualPort = 5432

// Where returns the servers and the database of a URL, as db1,db2:5433/worlds: what people call a store
// that may not have answered yet. It has no user and no password.
func Where(url string) (string, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return "", &RefusedError{State: BadURL, Err: err} // pgx leaves the password out
	}
	var hosts []string
	add := func(host string, port uint16) {
		if port != usualPort {
			host = net.JoinHostPort(host, strconv.Itoa(int(port)))
		}
		if !slices.Contains(hosts, host) { // it is tried with and without encryption
			hosts = append(hosts, host)
		}
	}
	c := cfg.ConnConfig
	add(c.Host, c.Port)
	for _, f := range c.Fallbacks {
		add(f.Host, f.Port)
	}
	return strings.Join(hosts, ",") + "/" + c.Database, nil
}
