package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/api"
)

// benchClient stands for all clients of a benchmark.
type benchClient struct {
	*http.Client

	world  string // its URL
	secret string
}

func newBenchClient(world, secret string, clients int) *benchClient {
	return &benchClient{&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}, world, secret}
}

func (c *benchClient) do(ctx context.Context, method, path, accept string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.world+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.secret)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	return c.Do(req)
}

// submit submits an event and returns its record.
func (c *benchClient) submit(ctx context.Context, e clientEvent) (id journal.Seq, err error) {
	data, err := json.Marshal(e)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(api.EventRequest{Event: "client.sent", Data: data})
	if err != nil {
		return 0, err
	}
	res, err := c.do(ctx, http.MethodPost, "/events", "application/json", body)
	if err != nil {
		return 0, err
	}
	answer, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusCreated {
		return 0, fmt.Errorf("%s: %s", res.Status, bytes.TrimSpace(answer))
	}
	var accepted api.Submitted
	err = json.Unmarshal(answer, &accepted)
	return accepted.ID, err
}

// follow opens a stream of the events that are submitted.
func (c *benchClient) follow(ctx context.Context) (io.ReadCloser, error) {
	res, err := c.do(ctx, http.MethodGet, "/records?kind=event.submitted", "text/event-stream", nil)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("a stream was answered with %s", res.Status), res.Body.Close())
	}
	return res.Body, nil
}

// lastClient is who submits the event that ends followers.
const lastClient = "the last one"

// readFollowed reads a stream up to the event of the last client, and returns the
// records of all events.
func readFollowed(stream io.Reader) (seen []journal.Seq, err error) {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is {
			continue
		}
		var r struct {
			ID      journal.Seq `json:"id"`
			Payload struct {
				Data clientEvent `json:"data"`
			} `json:"payload"`
		}
		if err := json.Unmarshal([]byte(data), &r); err != nil {
			return nil, err
		}
		if len(seen) > 0 && r.ID <= seen[len(seen)-1] {
			return nil, fmt.Errorf("%w: a follower was sent #%d after #%d", errNotExact, r.ID, seen[len(seen)-1])
		}
		if seen = append(seen, r.ID); r.Payload.Data.Of == lastClient {
			return seen, nil
		}
	}
	return nil, errors.Join(errors.New("a stream has ended"), lines.Err())
}
