package worldctl

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/serve/gateway"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// hookVariable is where the gateway of an agent is told to its hooks.
const hookVariable = "WORLDKERNEL_HOOK"

// Times of hooks.
const (
	hookPatience = 5 * time.Second // how long a hook looks for its gateway
	hookTimeout  = 2 * 60 * 60     // seconds that the agent gives a hook: longer than the gateway holds one
)

func newHookCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "hook",
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := askHook(cmd.Context(), os.Getenv(hookVariable), c.stdin)
			if err != nil {
				return &fault{err: err, code: exitUsage}
			}
			_, err = c.stdout.Write(answer)
			return err
		},
	}
}

// askHook asks the gateway at an address what an agent's hook asks. It tries again where the connection breaks.
func askHook(ctx context.Context, url string, stdin io.Reader) ([]byte, error) {
	if url == "" {
		return nil, hinted(errors.New("no gateway is named, so the tool is denied"), "worldctl agent run -- COMMAND starts the agent with one")
	}
	call, err := io.ReadAll(io.LimitReader(stdin, gateway.MaxBody+1))
	if err != nil {
		return nil, err
	}
	nonce := rand.Text()
	for begun := time.Now(); ; {
		answer, status, err := postHook(ctx, url, nonce, call)
		switch {
		case err == nil && status == http.StatusOK:
			return answer, nil
		case err == nil:
			return nil, fmt.Errorf("the gateway refuses the call: %s", bytes.TrimSpace(answer))
		case time.Since(begun) > hookPatience || ctx.Err() != nil:
			return nil, fmt.Errorf("the gateway cannot be reached, so the tool is denied: %w", err)
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
		}
	}
}

func postHook(ctx context.Context, url, nonce string, call []byte) (answer []byte, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(call))
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("X-Nonce", nonce)
	direct := &http.Client{Transport: &http.Transport{}} // by no proxy
	resp, err := direct.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	answer, err = io.ReadAll(io.LimitReader(resp.Body, gateway.MaxBody))
	return answer, resp.StatusCode, err
}

// gates reports whether a world has rules for a kind of effects: agents' own tools, or those of servers.
func gates(lw *local.World, kind string) (gates bool) {
	lw.View(func(m *world.Moment) { _, gates = m.Manifest().Effects[kind] })
	return gates
}

// hookedCodex returns the command line of Codex with a hook that asks worldctl, beside those of its user. Codex runs only hooks
// that are trusted by their digest, which it says itself; the trust is in the command line, too, and in no file.
func hookedCodex(argv []string, program, dir string) ([]string, error) {
	ours := shellWord(program) + " hook || exit 2" // a hook that fails otherwise lets the tool run
	out := slices.Insert(slices.Clone(argv), 1, "-c", fmt.Sprintf(`hooks.PreToolUse=[{matcher=".*",hooks=[{type="command",command=%q}]}]`, ours))
	ctx, cancel := context.WithTimeout(context.Background(), hookPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, out[0], out[1], out[2], "app-server")
	cmd.Dir = dir
	where, err := json.Marshal(dir)
	if err != nil {
		return argv, err
	}
	ask, err := cmd.StdinPipe()
	if err != nil {
		return argv, err
	}
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return argv, err
	}
	defer func() { _, _ = ask.Close(), cmd.Wait() }()
	_, err = fmt.Fprintf(ask, `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"worldctl","version":"1"}}}
{"method":"initialized"}
{"id":2,"method":"hooks/list","params":{"cwds":[%s]}}
`, where)
	for from := json.NewDecoder(said); err == nil; {
		var answer struct {
			ID     json.RawMessage
			Result struct {
				Data []struct {
					Hooks []struct{ Key, CurrentHash, Command string }
				}
			}
		}
		if err = from.Decode(&answer); err != nil || string(answer.ID) != "2" {
			continue
		}
		for _, of := range answer.Result.Data {
			for _, h := range of.Hooks {
				if h.Command == ours {
					return slices.Insert(out, 3, "-c", fmt.Sprintf(`hooks.state={%q={trusted_hash=%q}}`, h.Key, h.CurrentHash)), nil
				}
			}
		}
		err = errors.New("it lists no hook of its command line")
	}
	return argv, err
}

// hookedClaude returns the command line of Claude Code with hooks that ask worldctl, beside those of its user.
func hookedClaude(argv []string, program, dir string) ([]string, error) {
	var settings map[string]any
	given, out := flagged(argv, "--settings", 1)
	for _, text := range given {
		if err := readGiven(text, dir, &settings); err != nil {
			return nil, fmt.Errorf("--settings %s: %w", text, err)
		}
	}
	if settings == nil {
		settings = make(map[string]any)
	}
	hooks, _ := settings["hooks"].(map[string]any)
	if hooks == nil {
		hooks = make(map[string]any)
	}
	for _, event := range []string{"PreToolUse", "PostToolUse", "PostToolUseFailure"} {
		of, _ := hooks[event].([]any)
		hooks[event] = append(of, map[string]any{"matcher": "*", "hooks": []any{map[string]any{
			"type": "command", "command": shellWord(program) + " hook", "timeout": hookTimeout, "onFailure": "block",
		}}})
	}
	settings["hooks"] = hooks
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	return slices.Insert(out, 1, "--settings", string(text)), nil
}
