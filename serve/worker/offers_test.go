package worker

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host/trust"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/api"
)

func TestNoMoreOffersAreTakenThanWereAskedFor(t *testing.T) {
	want := api.Offers{Schema: "s", Offers: []api.Offer{}}
	for range 3 {
		want.Offers = append(want.Offers, api.Offer{Key: receipt.Key{Hash: canon.Sum(nil)}, Kind: "k", Raw: []byte{1}, Params: json.RawMessage("[[1]]")})
	}
	text, err := json.Marshal(want)
	require.NoError(t, err)
	var got api.Offers
	require.NoError(t, readOffers(strings.NewReader(string(text)), 3, &got))
	require.Len(t, got.Offers, 3)
	require.Equal(t, want.Offers[2].Key, got.Offers[2].Key)
	require.Nil(t, got.Offers[0].Params, "their bytes are there")

	many := io.MultiReader(strings.NewReader(`{"schema":[{"a":1}],"offers":[{}`), forever(`,{}`))
	in, got := &counted{Reader: many}, api.Offers{}
	require.ErrorIs(t, readOffers(in, 3, &got), errTooMany)
	require.Len(t, got.Offers, 3)
	require.Less(t, in.bytes, 1<<16, "the rest is not read")
	for _, bad := range []string{"", "[]", "{", `{"offers":{}}`, `{"offers":[1]}`, `{"offers":[{}`, `{"manifest":1}`, `{"x":[}`} {
		require.Error(t, readOffers(strings.NewReader(bad), 3, new(api.Offers)), bad)
	}
}

// forever is a text again and again.
type forever string

func (f forever) Read(p []byte) (n int, err error) {
	for n+len(f) <= len(p) {
		n += copy(p[n:], f)
	}
	return n, nil
}

type counted struct {
	io.Reader
	bytes int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes += n
	return n, err
}

// TestAServerCannotFillAWorker: answers have bounds, and so has all that is read for one
// manifest; what no worker performs is not read.
func TestAServerCannotFillAWorker(t *testing.T) {
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent++
		_, _ = io.Copy(w, forever("xxxxxxxx"))
	}))
	defer server.Close()
	c, err := newClient(&Config{Server: server.URL, Token: "t"})
	require.NoError(t, err)
	var data []byte
	require.ErrorIs(t, c.get(t.Context(), "/", 1000, &data), errTooLarge)
	require.ErrorIs(t, c.post(t.Context(), "/", 1, &data), errTooLarge)

	cfg := &Config{Server: server.URL, Token: "t", Dir: t.TempDir(), Trust: new(trust.Trust), Log: slog.New(slog.DiscardHandler)}
	w, err := newWorldWorker(cfg, c, "w")
	require.NoError(t, err)
	r := &rules{contents: make(map[manifest.Hash][]byte), bytes: maxContents - 1000}
	_, err = w.content(t.Context(), r, manifest.Hash{})
	require.ErrorIs(t, err, errTooLarge, "all contents together")

	sent = 0
	r = &rules{contents: make(map[manifest.Hash][]byte), manifest: &manifest.Manifest{Effects: map[string]manifest.Effect{
		"a": {Adapter: "recorded", Config: canon.Raw("\xa1\x68cassette\x61x"), Files: map[string]manifest.Hash{"cassette": {}}},
	}}}
	h, err := w.open(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, h.Close())
	require.Zero(t, sent)
	require.Nil(t, r.contents)
}
