package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/world/api"
)

// slowly is a slow client, one of four kinds, which comes back when it is sent away.
func slowly(ctx context.Context, at, token string, kind int) {
	to, err := url.Parse(at)
	if err != nil {
		return
	}
	head := func(method, path string) string {
		return fmt.Sprintf("%s %s%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n", method, to.Path, path, to.Host, token)
	}
	for ctx.Err() == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", to.Host)
		if err != nil {
			continue
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		switch kind % 4 {
		case 0:
			drip(conn, head("GET", "/cells")[:40], head("GET", "/cells")[40:], 1)
		case 1:
			body := bytes.Repeat([]byte(" "), 1<<20)
			drip(conn, head("POST", "/events")+"Content-Type: application/json\r\nContent-Length: 1048576\r\n\r\n", string(body), 5<<10)
		case 2: // a page that it does not read
			drip(conn, head("GET", "/records?limit=1000")+"\r\n", "", 1)
		case 3:
			drip(conn, head("GET", "/records")+"Accept: text/event-stream\r\n\r\n", "", 1)
		}
		stop()
		_ = conn.Close()
	}
}

// drip writes something at once, and the rest slowly, until it is sent away.
func drip(conn net.Conn, first, rest string, bytesPerSecond int) {
	const parts = 10 // of a second
	if _, err := io.WriteString(conn, first); err != nil {
		return
	}
	for {
		n := min(len(rest), max(1, bytesPerSecond/parts))
		if _, err := io.WriteString(conn, rest[:n]); err != nil {
			return
		}
		rest = rest[n:]
		time.Sleep(time.Second / parts) //nolint:forbidigo // it is slow
		if rest == "" {                 // it does not read, but finds out whether it is connected
			if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				return
			}
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				return
			}
			time.Sleep(5 * time.Second) //nolint:forbidigo // likewise
		}
	}
}

// greedily asks for something, and reads the answer.
func greedily(ctx context.Context, c *benchClient, what string, n int, said *answers) {
	method, path, body := http.MethodGet, "/records?limit=1000", []byte(nil)
	switch what {
	case "cells":
		path = "/cells?limit=1000"
	case "verify":
		path = "/verify"
	case "malformed": // as large as a body may be, of small keys
		method, path, body = http.MethodPost, "/events", smallKeys()
	case "stranger": // who shows no token
	case "event":
		method, path, body = http.MethodPost, "/events", lineOf(n)
	case "bulk":
		method, path = http.MethodPost, "/events"
		body = bytes.Repeat(append(lineOf(n), '\n'), 1000)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.world+path, bytes.NewReader(body))
	if err != nil {
		return
	}
	if what != "stranger" {
		req.Header.Set("Authorization", "Bearer "+c.secret)
	}
	req.Header.Set("Content-Type", "application/json")
	if what == "bulk" {
		req.Header.Set("Content-Type", "application/x-ndjson")
	}
	res, err := c.Do(req)
	said.count(res, err)
	if err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}

// smallKeys is an object of as many small items as a body has room for, and no event. It
// is made once: to make it costs more than a server may spend on it.
var smallKeys = sync.OnceValue(func() []byte { //nolint:gochecknoglobals // made once
	body := []byte("{")
	for i := 0; len(body) < api.DefaultBodyBytes-32; i++ {
		body = fmt.Appendf(body, `"%d":0,`, i)
	}
	return append(body, `"":0}`...)
})

func lineOf(n int) []byte {
	line, err := json.Marshal(map[string]any{"event": "client.sent", "data": clientEvent{fmt.Sprintf("greedy%d", n%100), uint64(n)}})
	if err != nil {
		panic(err) // it can be marshalled
	}
	return line
}

func journalData(e clientEvent) canon.Raw {
	data, err := canon.Marshal(e)
	if err != nil {
		panic(err) // it can be marshalled
	}
	return data
}
