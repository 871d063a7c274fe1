package worldctl

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The browser is led to the page by a file of the user's alone: what others can read, its
// arguments and the log, has no code. The code is good for the scopes that were asked for.
func TestUILeadsABrowserByAFile(t *testing.T) {
	dir := t.TempDir()
	world := filepath.Join(dir, "w")
	require.Equal(t, exitOK, run(t.Context(), released(), []string{"init", world}, nil, io.Discard, io.Discard))
	seen := filepath.Join(dir, "seen")
	script := filepath.Join(dir, "browser")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nstat -c '%a' \"$1\" >"+seen+".part\necho \"$*\" >>"+seen+".part\ncat \"$1\" >>"+seen+".part\nmv "+seen+".part "+seen+"\n"), 0o700)) //nolint:gosec // it is run
	t.Setenv("BROWSER", script)
	stdout, stderr, interrupt := startVerb(t, "ui", world, "--scope", "read")
	log := linesFrom(stderr)
	url := <-linesFrom(stdout)
	var text []byte
	require.Eventually(t, func() (there bool) {
		var err error
		text, err = os.ReadFile(seen)
		return err == nil
	}, time.Minute, time.Millisecond)
	mode, rest, _ := strings.Cut(string(text), "\n")
	argument, page, _ := strings.Cut(rest, "\n")
	require.Equal(t, "600", mode)
	require.NotContains(t, argument, "wk_")
	code := regexp.MustCompile(`url=` + regexp.QuoteMeta(url) + `/ui/#code=(wk_[\w-]+)"`).FindStringSubmatch(page)
	require.NotNil(t, code, page)

	res, err := http.Post(url+"/api/sessions", "application/json", strings.NewReader(`{"code":"`+code[1]+`"}`)) //nolint:noctx,gosec // a test's own server
	require.NoError(t, err)
	defer func() { require.NoError(t, res.Body.Close()) }()
	require.Equal(t, http.StatusCreated, res.StatusCode)
	var session struct {
		Token  string
		Scopes []string
	}
	require.NoError(t, json.NewDecoder(res.Body).Decode(&session))
	require.Equal(t, []string{"read"}, session.Scopes)

	got, err := http.Get(url + "/ui/") //nolint:noctx,gosec // likewise
	require.NoError(t, err)
	defer func() { require.NoError(t, got.Body.Close()) }()
	require.Equal(t, http.StatusOK, got.StatusCode)
	require.NotEmpty(t, got.Header.Get("Content-Security-Policy"))

	require.Equal(t, exitInterrupted, interrupt())
	require.NoFileExists(t, strings.TrimSpace(argument))
	var said bytes.Buffer
	for line := range log {
		said.WriteString(line)
	}
	require.NotContains(t, said.String(), "wk_")
}

func TestUIOfScopesThatAreNone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	require.Equal(t, exitOK, run(t.Context(), released(), []string{"init", dir}, nil, io.Discard, io.Discard))
	for typed, want := range map[string]string{ // order cannot show: each is typed alone
		"--scope root":     `"root" is not a scope`,
		"--addr 0.0.0.0:0": "can be reached from other machines",
	} {
		var said strings.Builder
		args := append([]string{"ui", dir, "--no-browser"}, strings.Fields(typed)...)
		require.Equal(t, exitUsage, run(t.Context(), released(), args, nil, io.Discard, &said))
		require.Contains(t, said.String(), want)
	}
}
