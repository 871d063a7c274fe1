package node_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// metricsText is what the node tells.
func (r *running) metricsText() string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), "GET", r.url+"/metrics", strings.NewReader(""))
	require.NoError(r.t, err)
	req.Header.Set("Authorization", "Bearer "+r.secret)
	res, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, res.Body.Close())
	require.Equal(r.t, http.StatusOK, res.StatusCode, "%s", text)
	return string(text)
}

// metrics are the samples that the node tells, by their names, without labels.
func (r *running) metrics() map[string]string {
	r.t.Helper()
	text, out := r.metricsText(), map[string]string{}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 2 && words[1] == "TYPE" {
			out[words[2]] = ""
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z_]+)(?:\{.*\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
		out[m[1]] = m[2]
	}
	return out
}

// TestANodeTellsHowItStands, in metrics that the alerts and the dashboard name, and no others.
func TestANodeTellsHowItStands(t *testing.T) {
	one := run(t, create(t, 2), "one", time.Hour)
	one.owns(2)
	require.Eventually(t, func() bool { return one.metrics()["worldkernel_store_records_total"] != "0" }, time.Minute, 10*time.Millisecond)
	told := one.metrics()
	for name, want := range map[string]string{
		"worldkernel_node_worlds": "2", "worldkernel_node_worlds_owned_total": "2", "worldkernel_store_up": "1", "worldkernel_store_nodes": "1",
		"worldkernel_store_worlds": "2", "worldkernel_store_worlds_orphaned": "0", "worldkernel_store_worlds_overdue": "0", "worldkernel_node_worlds_halted": "0",
	} {
		require.Equal(t, want, told[name], name)
	}
	require.NotEqual(t, "0", told["worldkernel_store_append_seconds_count"])

	dir := filepath.Join("..", "..", "deploy")
	var rules, dashboard any
	text, err := os.ReadFile(filepath.Join(dir, "alerts.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &rules))
	drawn, err := os.ReadFile(filepath.Join(dir, "dashboard.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(drawn, &dashboard))
	words, err := os.ReadFile(filepath.Join("..", "..", "docs", "machines.md"))
	require.NoError(t, err)
	named := func(text []byte) []string {
		return regexp.MustCompile(`worldkernel_[a-z_]+`).FindAllString(string(text), -1)
	}
	known := slices.Sorted(maps.Keys(told))
	for _, name := range append(append(named(text), named(drawn)...), named(words)...) {
		require.Contains(t, known, name)
	}
	for _, name := range known {
		if strings.HasPrefix(name, "worldkernel_node_") || strings.HasPrefix(name, "worldkernel_store_") && !strings.HasPrefix(name, "worldkernel_store_append_seconds_") {
			require.Contains(t, string(words), name, "docs/machines.md has each")
		}
	}
	for _, alert := range regexp.MustCompile(`(?m)alert: (\w+)`).FindAllStringSubmatch(string(text), -1) {
		require.Contains(t, string(words), alert[1], "docs/machines.md says what to do")
	}
}

// TestComposeGivesTheScriptsWhatTheyAskFor: each service of deploy/compose.yaml runs a script that is there, and
// gives it the variables that it has no default for, and no others but those of worldctl and of PostgreSQL.
func TestComposeGivesTheScriptsWhatTheyAskFor(t *testing.T) {
	dir := filepath.Join("..", "..", "deploy")
	text, err := os.ReadFile(filepath.Join(dir, "compose.yaml"))
	require.NoError(t, err)
	var file struct {
		Services map[string]struct {
			Command     []string
			Environment map[string]string
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	require.Len(t, file.Services, 5)
	for name, s := range file.Services {
		require.Len(t, s.Command, 1, name)
		script, err := os.ReadFile(filepath.Join(dir, filepath.Base(s.Command[0])))
		require.NoError(t, err, name)
		asked := map[string]bool{}
		for _, m := range regexp.MustCompile(`\$\{?([A-Z_]+)([^A-Z_]?-?)`).FindAllStringSubmatch(string(script), -1) {
			if m[1] != "PATH" && m[2] != ":-" {
				asked[m[1]] = true
			}
		}
		for variable := range asked {
			require.Contains(t, s.Environment, variable, name)
		}
		for variable := range s.Environment {
			require.True(t, asked[variable] || strings.HasPrefix(variable, "WORLDCTL_") || strings.HasPrefix(variable, "PG"), "%s: %s", name, variable)
		}
	}
}
