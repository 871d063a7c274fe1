package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// serverGrace is how long a server has to end after its input has, and again after SIGTERM.
const serverGrace = 2 * time.Second

// Bridge stands between a client and a server of the Model Context Protocol, in the place of the server. It runs the
// server, and passes all that they say through a gateway.
type Bridge struct {
	URL    string        // of the gateway, with the server's name: see Gateway.URL
	Hold   time.Duration // how long a call waits for a person; 0: as the client allows
	Server *exec.Cmd     // with neither stdin nor stdout yet
	Client io.Reader     // what the client says
	Out    io.Writer     // what it is told

	client, server *queue
	ended          chan struct{} // closed when the server has ended

	mu      sync.Mutex
	gateway net.Conn // mu is held while a frame is written: the gateway reads all that it is sent
}

// Run runs the server until it has ended, or the gateway has gone. Once ctx ends it is as if the client had gone.
func (b *Bridge) Run(ctx context.Context) error {
	conn, from, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it is over
	b.ended = make(chan struct{})
	written := make(chan struct{})
	b.gateway = conn
	b.client = newQueue(b.Out, func(error) { close(written) })
	leave := sync.OnceFunc(func() { b.send(frameLeft, nil) })
	defer context.AfterFunc(ctx, leave)()
	go func() {
		b.lines(b.Client, frameClient, frameClients)
		leave()
	}()
	err = b.follow(from)
	b.endServer()
	b.client.close()
	<-written
	return err
}

func (b *Bridge) dial(ctx context.Context) (net.Conn, *bufio.Reader, error) {
	at, err := url.Parse(b.URL)
	if err != nil {
		return nil, nil, err
	}
	if b.Hold > 0 {
		at.RawQuery = url.Values{"hold": {b.Hold.String()}}.Encode()
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at.Host)
	if err != nil {
		return nil, nil, fmt.Errorf("the gateway is not there: %w", err)
	}
	req := &http.Request{Method: http.MethodGet, URL: at, Host: at.Host, Header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {mcpProtocol}}}
	from := bufio.NewReader(conn)
	resp, err := new(http.Response), req.Write(conn)
	if err == nil {
		resp, err = http.ReadResponse(from, req) //nolint:bodyclose // it has none, or conn is closed
	}
	if err == nil && resp.StatusCode != http.StatusSwitchingProtocols {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		err = fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(why))
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("the gateway does not take the server: %w", err), conn.Close())
	}
	return conn, from, nil
}

// follow does what the gateway says, until the server has ended.
func (b *Bridge) follow(from *bufio.Reader) error {
	for {
		f, err := readFrame(from)
		if err != nil {
			if isClosed(b.ended) {
				return nil
			}
			return fmt.Errorf("the gateway has gone: %w", err)
		}
		switch f.kind {
		case frameStart:
			if err := b.start(); err != nil {
				return err
			}
		case frameClient:
			b.client.put(f.data, []byte("\n"))
		case frameServer:
			b.server.put(f.data, []byte("\n"))
		case frameStop:
			if b.server == nil {
				return nil
			}
			go b.endServer() // nobody waits for one that does not end by itself
		}
	}
}

// start runs the server.
func (b *Bridge) start() error {
	if b.server != nil {
		return errors.New("the gateway starts the server twice")
	}
	stdin, err := b.Server.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := b.Server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := b.Server.Start(); err != nil {
		return err
	}
	b.server = newQueue(stdin, func(error) { _ = stdin.Close() })
	go func() {
		b.lines(stdout, frameServer, frameServers)
		why := "well"
		if err := b.Server.Wait(); err != nil {
			why = err.Error()
		}
		close(b.ended)
		b.send(frameEnded, []byte(why))
	}()
	return nil
}

// endServer ends the server, if it has not ended.
func (b *Bridge) endServer() {
	if b.server == nil {
		return
	}
	b.server.close()
	for _, end := range []func(){func() {}, func() { _ = b.Server.Process.Signal(syscall.SIGTERM) }, func() { _ = b.Server.Process.Kill() }} {
		end()
		select {
		case <-b.ended:
			return
		case <-time.After(serverGrace):
		}
	}
}

// lines sends the gateway the lines of a reader.
func (b *Bridge) lines(from io.Reader, kind, large byte) {
	eachLine(from, maxLine, func(line []byte) { b.send(kind, line) }, func(ends []byte) { b.send(large, ends) })
}

// send sends the gateway a frame. Where it cannot, follow ends, too.
func (b *Bridge) send(kind byte, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.gateway.Write(frameOf(kind, data)); err != nil {
		_ = b.gateway.Close()
	}
}
