package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// ask submits events of a client, from one on.
type ask func(clientEvent) error

// ask has every client ask for a while, one request after the other.
func (b *submitBench) ask(connect func(client int) (ask, error), batch int) (*load, error) {
	asks, errs := make([]ask, b.clients), make([]error, b.clients)
	for i := range asks {
		var err error
		if asks[i], err = connect(i); err != nil {
			return nil, err
		}
	}
	l := &load{Accepted: make([]uint64, b.clients)}
	took := make([][]time.Duration, b.clients)
	var working sync.WaitGroup
	cpu, began := cpuTime(), time.Now()
	for i := range asks {
		working.Go(func() {
			e := clientEvent{Of: "c" + strconv.Itoa(i)}
			for last := time.Now(); errs[i] == nil && last.Sub(began) < b.span; {
				errs[i] = asks[i](e)
				e.N += uint64(batch)
				now := time.Now()
				took[i] = append(took[i], now.Sub(last))
				last = now
			}
			l.Accepted[i] = e.N
		})
	}
	working.Wait()
	l.Wall, l.CPU = time.Since(began), cpuTime()-cpu
	all := slices.Concat(took...)
	slices.Sort(all)
	l.Requests, l.P50, l.P99 = len(all), part(all, 50), part(all, 99)
	return l, errors.Join(errs...)
}

// part returns how many milliseconds a part of what took so long did not take longer than.
func part(took []time.Duration, percent int) float64 {
	if len(took) == 0 {
		return 0
	}
	return float64(took[(len(took)-1)*percent/100].Microseconds()) / 1000
}

// runClients is a process of clients of a server, which prints what has come of them.
func (b *submitBench) runClients(ctx context.Context, at string, secrets []string) error {
	to, err := url.Parse(at)
	if err != nil {
		return err
	}
	l, err := b.ask(func(client int) (ask, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", to.Host)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		c := &leanClient{conn: conn, in: bufio.NewReader(conn), to: to, secret: secrets[client%len(secrets)], batch: b.batch}
		return c.submit, nil
	}, b.batch)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(l)
}

// leanClient speaks as little HTTP as such a server needs: its own cost is not to be
// taken for the server's.
type leanClient struct {
	conn   net.Conn
	in     *bufio.Reader
	to     *url.URL
	secret string
	batch  int

	head, body []byte
}

func (c *leanClient) submit(e clientEvent) error {
	mediaType := "application/json"
	if c.batch > 1 {
		mediaType = "application/x-ndjson"
	}
	c.body = c.body[:0]
	for range c.batch {
		c.body = fmt.Appendf(c.body, `{"event":"client.sent","data":{"to":%q,"n":%d}}`+"\n", e.Of, e.N)
		e.N++
	}
	c.head = fmt.Appendf(c.head[:0], "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n",
		c.to.Path, c.to.Host, c.secret, mediaType, len(c.body))
	if _, err := c.conn.Write(append(c.head, c.body...)); err != nil {
		return err
	}
	return c.answer()
}

// answer reads an answer, and holds it to what was asked.
func (c *leanClient) answer() error {
	status, length := 0, 0
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if status == 0 {
			_, code, _ := bytes.Cut(line, []byte(" "))
			status, _ = strconv.Atoi(string(code[:3])) // what is none is no success
		}
		if value, is := bytes.CutPrefix(line, []byte("Content-Length: ")); is {
			length, _ = strconv.Atoi(string(value)) // likewise
		}
	}
	answer := make([]byte, length)
	if _, err := io.ReadFull(c.in, answer); err != nil {
		return err
	}
	if status != http.StatusCreated {
		return fmt.Errorf("%d: %s", status, answer)
	}
	return nil
}
