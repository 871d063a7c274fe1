//go:build unix

package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// shell is the config of a program that is a shell script: the shell is the
// program here, the adapter uses none.
func shell(t testing.TB, script string, more map[string]any) receipt.Data {
	t.Helper()
	config := map[string]any{"program": "/bin/sh", "args": []string{"-c", script}}
	for key, value := range more {
		config[key] = value
	}
	d, err := canon.Marshal(config)
	require.NoError(t, err)
	return d
}

func execIn(t testing.TB, s Setup) Adapter {
	t.Helper()
	s.Kind = "f"
	a, err := newExec(s)
	require.NoError(t, err)
	return a
}

// ran runs a shell script to an end that can be told.
func ran(t testing.TB, script, params string) Result {
	t.Helper()
	return performed(t, execIn(t, Setup{Dir: t.TempDir(), Config: shell(t, script, nil)}), params)
}

func TestExecGivesParamsAndTakesJSONExactly(t *testing.T) {
	for _, params := range []string{
		`null`, `{"b": [1, 2.5, -0.1, 1e300, 123456789012345678901234567890, "ü\n", null, true], "a": {}}`, `"; rm -rf / #"`, `7.0`,
	} {
		r := ran(t, "cat", params)
		require.Equal(t, receipt.StatusOK, r.Status)
		require.Equal(t, liveData(t, params), r.Payload, params)
		require.NotZero(t, r.Cost.Bytes)
	}
	require.Equal(t, receipt.StatusOK, ran(t, "echo 1", `"`+strings.Repeat("x", 1<<20)+`"`).Status, "params need not be read")
}

func TestExecFindsProgramsWhereTheyAreMeantToBe(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tools"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tools", "x"), []byte("#!/bin/sh\nprintf '\"%s\"' \"$PWD\"\n"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cat"), []byte("#!/bin/sh\necho '\"mine\"'\n"), 0o755))
	t.Setenv("PATH", dir)
	t.Chdir(dir)
	actual, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	for _, program := range []string{"./tools/x", "tools/x", filepath.Join(dir, "tools/x")} {
		for _, in := range []string{dir, ""} {
			r := performed(t, execIn(t, Setup{Dir: in, Config: liveData(t, fmt.Sprintf(`{"program": %q}`, program))}), `null`)
			require.Equal(t, liveData(t, fmt.Sprintf("%q", actual)), r.Payload, "it runs in the world's directory")
		}
	}
	r := performed(t, execIn(t, Setup{Dir: dir, Config: liveData(t, `{"program": "cat"}`)}), `"params"`)
	require.Equal(t, liveData(t, `"params"`), r.Payload, "neither PATH nor the directory has a say")
}

func TestExecGivesShellCharactersNoMeaning(t *testing.T) {
	dir := t.TempDir()
	hostile := []string{
		"$(touch pwned)", "`touch pwned`", "; touch pwned", "| touch pwned", "&& touch pwned", "> pwned", "$HOME", "*", "~", "$IFS", "-n", "", " a  b ", "{a,b}", "!!", "#",
	}
	script := `printf '['; for a; do printf '"%s",' "$a"; done; printf '0]'`
	args := append([]string{"-c", script, "sh"}, hostile...)
	r := performed(t, execIn(t, Setup{Dir: dir, Config: shell(t, "", map[string]any{"args": args})}), `"$(touch pwned); touch pwned"`)
	got, err := canon.Decode(r.Payload)
	require.NoError(t, err)
	want := []any{}
	for _, a := range hostile {
		want = append(want, a)
	}
	require.Equal(t, append(want, int64(0)), got)
	program := execIn(t, Setup{Dir: dir, Config: liveData(t, `{"program": "touch pwned; sh"}`)})
	require.Equal(t, "not_found", codeIn(t, performed(t, program, `null`)))
	require.NoFileExists(t, filepath.Join(dir, "pwned"))
}

func TestProgramThatMayNotStartDoesNot(t *testing.T) {
	dir := t.TempDir()
	s := Setup{Dir: dir, Config: shell(t, "touch pwned", nil)}
	s.Program = func(path string, args []string) error {
		require.True(t, filepath.IsAbs(path))
		require.Contains(t, strings.Join(args, " "), "touch pwned")
		return &governance.CapError{Code: "not_trusted", Reason: "no"}
	}
	require.Equal(t, "not_trusted", codeIn(t, performed(t, execIn(t, s), `null`)))
	require.NoFileExists(t, filepath.Join(dir, "pwned"))
}

func TestExecInheritsNothing(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "INHERITED-CANARY")
	t.Setenv("WORLDCTL_SECRET_t", "INHERITED-CANARY")
	t.Setenv("LD_PRELOAD", "")
	s := secretsOf(map[string]string{"token": "resolved"})
	config := shell(t, "env >&2; ls /proc/self/fd 2>/dev/null; exit 1", map[string]any{"env": map[string]string{"TOKEN": "secret://token", "LANG": "de"}})
	call := liveCall(t, `null`, 0)
	call.Permit.Attempt = 3
	r, err := execIn(t, Setup{Dir: t.TempDir(), Config: config, Secret: s.resolve}).Perform(t.Context(), call)
	require.NoError(t, err)
	raw, err := canon.Lookup(r.Payload, "stderr")
	require.NoError(t, err)
	var got []string
	for line := range strings.SplitSeq(canon.NewReader(raw).Text(), "\n") {
		if name, _, _ := strings.Cut(line, "="); !slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name) { // the shell's own
			got = append(got, line)
		}
	}
	require.ElementsMatch(t, []string{
		"PATH=" + ProgramPath, "LANG=de", "TOKEN=resolved", "WORLDKERNEL_ATTEMPT=3", "WORLDKERNEL_IDEMPOTENCY_KEY=" + call.External,
		"TRACEPARENT=" + call.Permit.Key.TraceParent(3),
	}, got)
	require.NotContains(t, payloadOf(t, r), "INHERITED-CANARY")
	require.NotContains(t, payloadOf(t, s.redact(r)), "resolved")
}

func TestFiftySecretsOfAProgramAppearNowhere(t *testing.T) {
	dir, env, all := t.TempDir(), map[string]string{}, []string{}
	for i := range 50 {
		name := fmt.Sprintf("s%d", i)
		if i%2 == 0 {
			t.Setenv("WORLDCTL_SECRET_"+name, awkward(i))
		} else {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(awkward(i)+"\n"), 0o600))
		}
		env[fmt.Sprintf("S%d", i)] = "secret://" + name
		all = append(all, awkward(i))
	}
	// Raw on standard error, as JSON and in base64 on standard output.
	script := `for i in $(seq 0 49); do eval v=\$S$i; printf '%s|' "$v" >&2; b="$b,\"$(printf %s "$v" | base64 -w0)\""; done; printf '[0%s]' "$b"; exit 1`
	s := newSecrets(Secrets(dir))
	r := performed(t, execIn(t, Setup{Dir: dir, Config: shell(t, script, map[string]any{"env": env}), Secret: s.resolve}), `null`)
	require.Contains(t, string(r.Payload), awkward(49), "the program had them")
	text := payloadOf(t, s.redact(r))
	requireNoCanary(t, text, all)
	for _, reference := range env {
		require.Equal(t, 2, strings.Count(text, reference+"|")+strings.Count(text, reference+`"`), reference)
	}
	r, err := execIn(t, Setup{
		Dir: dir, Config: shell(t, `printf %s "$S0" >&2; kill -9 $$`, map[string]any{"env": env}), Secret: s.resolve,
	}).Perform(t.Context(), liveCall(t, `null`, 0))
	require.ErrorContains(t, err, awkward(0))
	requireNoCanary(t, s.redactText(err.Error()), all)
	require.Empty(t, r.Payload)
}

func TestExecExitStatusSaysWhatCameOfIt(t *testing.T) {
	for _, c := range []struct {
		script string
		status receipt.Status
		class  receipt.Outcome
		json   string
	}{
		{`echo '{"a": 1}'`, receipt.StatusOK, "", `{"a": 1}`},
		{`echo '{"why": 1}'; echo no >&2; exit 1`, receipt.StatusError, "", `{"code": "exit", "error": "/bin/sh exited with status 1", "exit": 1, "stderr": "no", "stdout": {"why": 1}}`},
		{`echo no; exit 2`, receipt.StatusError, "", `{"code": "exit", "error": "/bin/sh exited with status 2", "exit": 2, "stderr": ""}`},
		{`exit 75`, receipt.StatusError, receipt.OutcomeRetryableFailure, `{"code": "exit", "error": "/bin/sh exited with status 75", "exit": 75, "stderr": ""}`},
		{`exit 7`, receipt.StatusError, receipt.OutcomeCompensatable, `{"code": "exit", "error": "/bin/sh exited with status 7", "exit": 7, "stderr": ""}`},
	} {
		for _, idempotent := range []bool{true, false} {
			a := execIn(t, Setup{Dir: t.TempDir(), Config: shell(t, c.script, map[string]any{"compensate_on": []int{7}}), Effect: manifest.Effect{Idempotent: idempotent}})
			r := performed(t, a, `null`)
			require.Equal(t, c.status, r.Status, c.script)
			require.Equal(t, c.class, r.Class, c.script)
			require.JSONEq(t, c.json, payloadOf(t, r))
			require.False(t, r.Unsent)
		}
	}
	for script, code := range map[string]string{
		`true`: "not_json", `echo yes`: "not_json", `echo '{"a": 1} {"b": 2}'`: "not_json", `printf '{"a": 1'`: "not_json",
		`printf '"\377"'`: "not_json", `echo '{"a": 1, "a": 2}'`: "not_json", `echo NaN`: "not_json",
		`head -c 3000000 /dev/zero | tr '\0' 1`: "too_large",
	} {
		r := ran(t, script, `null`)
		require.Equal(t, receipt.StatusError, r.Status, script)
		class := map[string]receipt.Outcome{"too_large": receipt.OutcomeCompensatable}[code]
		require.Equal(t, class, r.Class, "it did happen: %s", script)
		require.False(t, r.Unsent)
		require.Equal(t, code, codeIn(t, r), script)
		require.Less(t, len(r.Payload), 8<<10)
	}
	limited := execIn(t, Setup{Dir: t.TempDir(), Config: shell(t, `echo '"1234567"'`, map[string]any{"max_bytes": 9})})
	require.Equal(t, "too_large", codeIn(t, performed(t, limited, `null`)), "the newline counts")
}

func TestExecTakesParamsAsArgumentsAndTextWhereConfigSaysSo(t *testing.T) {
	config := map[string]any{
		"program": "/bin/sh", "output": "text",
		"args": []any{"-c", `printf '%s|' "$@"`, "sh", map[string]any{"param": "city"}, map[string]any{"param": "days", "prefix": "--days="}},
	}
	data, err := canon.Marshal(config)
	require.NoError(t, err)
	a := execIn(t, Setup{Dir: t.TempDir(), Config: data})
	r := performed(t, a, `{"city": "$(id) 'Bern'; \"x\"\n", "days": 3}`)
	require.Equal(t, receipt.StatusOK, r.Status)
	require.Equal(t, liveData(t, `"$(id) 'Bern'; \"x\"\n|--days=3|"`), r.Payload, "no shell reads them, and nothing is cut")
	for _, params := range []string{`{"city": "-c", "days": 1}`, `{"city": "x"}`} {
		r = performed(t, a, params)
		require.True(t, r.Unsent, params)
		require.Empty(t, r.Class)
		require.Equal(t, "bad_params", codeIn(t, r))
	}
	text := map[string]any{"output": "text"}
	r = performed(t, execIn(t, Setup{Dir: t.TempDir(), Config: shell(t, `printf 'a\377'`, text)}), `null`)
	require.Equal(t, "not_text", codeIn(t, r))
	require.Empty(t, r.Class, "it did happen")
	r = performed(t, execIn(t, Setup{Dir: t.TempDir(), Config: shell(t, `echo no; exit 3`, text)}), `null`)
	require.JSONEq(t, `{"code": "exit", "error": "/bin/sh exited with status 3", "exit": 3, "stderr": "", "stdout": "no\n"}`, payloadOf(t, r))
	_, err = newExecVerifier(Setup{Config: data})
	require.ErrorContains(t, err, "answers in JSON")
}

func TestSecretThatIsMissingIsPermanentAndNamed(t *testing.T) {
	needing := func(lookup func(string) (string, error)) Result {
		config := shell(t, "true", map[string]any{"env": map[string]string{"A": "secret://GONE"}})
		return performed(t, execIn(t, Setup{Dir: t.TempDir(), Config: config, Secret: newSecrets(lookup).resolve}), `null`)
	}
	r := needing(func(string) (string, error) { return "", ErrNoSecret })
	require.True(t, r.Unsent)
	require.Empty(t, r.Class, "it is not there at the next attempt either")
	require.JSONEq(t, `{"code": "no_secret", "error": "env.A: secret://GONE: there is no such secret"}`, payloadOf(t, r))
	r = needing(func(string) (string, error) { return "", syscall.EMFILE })
	require.Equal(t, receipt.OutcomeRetryableFailure, r.Class, "it may be")
}

func TestExecKeepsNoMoreOutputThanItsLimit(t *testing.T) {
	f := finished{limit: 5}
	for _, part := range []string{"abc", "def", "ghi"} {
		n, err := f.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, 3, n, "a program that is not disturbed comes to an end that can be told")
	}
	require.Equal(t, "abcde", string(f.output))
	require.True(t, f.flooded())
}

func TestExecThatDidNotStartSaysSo(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain"), []byte("#!/bin/sh\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "orphan"), []byte("#!/no/such/interpreter\n"), 0o755))
	for program, code := range map[string]string{
		"./none": "not_found", "no-such-program": "not_found", "./plain": "refused", dir: "refused", "./orphan": "not_found",
	} {
		r := performed(t, execIn(t, Setup{Dir: dir, Config: liveData(t, fmt.Sprintf(`{"program": %q}`, program))}), `null`)
		require.Equal(t, receipt.StatusError, r.Status)
		require.Empty(t, r.Class, program)
		require.True(t, r.Unsent)
		require.Equal(t, code, codeIn(t, r), program)
	}
	s := secretsOf(map[string]string{"nul": "a\x00b"})
	for _, reference := range []string{"secret://none", "secret://nul", "secret://a/b"} {
		config := shell(t, "touch ran", map[string]any{"env": map[string]string{"X": reference}})
		r := performed(t, execIn(t, Setup{Dir: dir, Config: config, Secret: s.resolve}), `null`)
		require.Equal(t, receipt.StatusError, r.Status)
		require.True(t, r.Unsent)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := execIn(t, Setup{Dir: dir, Config: shell(t, "touch ran", nil)}).Perform(ctx, liveCall(t, `null`, 0))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusTimeout, r.Status)
	require.Equal(t, receipt.OutcomeRetryableFailure, r.Class)
	require.True(t, r.Unsent)
	require.NoFileExists(t, filepath.Join(dir, "ran"))
	for _, config := range []string{`{}`, `{"program": "sh", "shell": true}`} {
		_, err := newExec(Setup{Config: liveData(t, config)})
		require.Error(t, err, config)
	}
}

// The time of a program is over once it has said that it is ready; whatever it
// does about it, Perform ends, and its whole group with it.
func TestExecEndsWithItsTime(t *testing.T) {
	for name, script := range map[string]string{
		"obedient":            `echo x >ready; exec sleep 1000`,
		"ignores SIGTERM":     `trap '' TERM; echo x >ready; while :; do sleep 1000; done`,
		"exits on SIGTERM":    `trap 'exit 0' TERM; echo x >ready; while :; do sleep 0.1; done`,
		"floods":              `echo x >ready; exec yes`,
		"floods, no SIGPIPE":  `trap '' PIPE TERM; echo x >ready; while :; do echo y; done`,
		"grandchild, ignores": `trap '' TERM; (echo x >ready; sleep 1000) & (sleep 1000) & wait; sleep 1000`,
		"reads nothing":       `echo x >ready; sleep 1000 <&0 & wait`,
	} {
		for _, idempotent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/idempotent=%t", name, idempotent), func(t *testing.T) {
				dir := t.TempDir()
				alive := pipe(t, dir, "alive", os.O_RDONLY)
				ready := pipe(t, dir, "ready", os.O_RDWR) // so that it does not end before it begins
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					_, _ = io.ReadFull(ready, make([]byte, 1))
					cancel()
				}()
				a := execIn(t, Setup{
					Dir: dir, Config: shell(t, "exec 9>alive; "+script, nil), Effect: manifest.Effect{Idempotent: idempotent},
				})
				r, err := a.Perform(ctx, liveCall(t, `"`+strings.Repeat("x", 200_000)+`"`, 0))
				requireEnded(t, alive)
				if !idempotent {
					require.Error(t, err, "nobody can tell")
					return
				}
				require.NoError(t, err)
				require.Equal(t, receipt.StatusTimeout, r.Status)
				require.Equal(t, receipt.OutcomeRetryableFailure, r.Class)
				require.False(t, r.Unsent)
			})
		}
	}
}

// pipe makes a named pipe and opens it to read from.
func pipe(t *testing.T, dir, name string, flag int) *os.File {
	t.Helper()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	f, err := os.OpenFile(filepath.Join(dir, name), flag|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// requireEnded waits for the last process that holds the other end of a pipe.
func requireEnded(t *testing.T, alive *os.File) {
	t.Helper()
	require.NoError(t, alive.SetReadDeadline(time.Now().Add(2*time.Minute)))
	_, err := alive.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "it is still running")
}

func TestExecDoesNotWaitForAGrandchildThatHoldsItsOutput(t *testing.T) {
	dir := t.TempDir()
	alive := pipe(t, dir, "alive", os.O_RDONLY)
	r := performed(t, execIn(t, Setup{Dir: dir, Config: shell(t, `exec 9>alive; (trap '' TERM; sleep 1000) & echo '{"ok": true}'`, nil)}), `null`)
	require.Equal(t, receipt.StatusOK, r.Status)
	require.Equal(t, liveData(t, `{"ok": true}`), r.Payload)
	requireEnded(t, alive)
}

func TestExecKilledByASignalIsInDoubt(t *testing.T) {
	for _, script := range []string{`echo '{"ok": true}'; kill -9 $$`, `kill -SEGV $$`} {
		config := shell(t, script, nil)
		_, err := execIn(t, Setup{Dir: t.TempDir(), Config: config}).Perform(t.Context(), liveCall(t, `null`, 0))
		require.Error(t, err)
		r := performed(t, execIn(t, Setup{Dir: t.TempDir(), Config: config, Effect: manifest.Effect{Idempotent: true}}), `null`)
		require.Equal(t, receipt.StatusError, r.Status)
		require.Equal(t, receipt.OutcomeRetryableFailure, r.Class)
		require.Equal(t, "killed", codeIn(t, r))
	}
}

func TestExecKeepsTheEndOfStandardError(t *testing.T) {
	r := ran(t, `for i in $(seq 1 20000); do echo "line $i"; done >&2; echo "the end" >&2; exit 1`, `null`)
	raw, err := canon.Lookup(r.Payload, "stderr")
	require.NoError(t, err)
	text := canon.NewReader(raw).Text()
	require.LessOrEqual(t, len(text), maxTail)
	require.True(t, strings.HasSuffix(text, "line 20000\nthe end"))
}

func TestExecVerifierAsksAndDoesNotGuess(t *testing.T) {
	dir := t.TempDir()
	verifier := func(script string) Verifier {
		v, err := newExecVerifier(Setup{Dir: dir, Config: shell(t, script, nil), Effect: manifest.Effect{ExternalKey: manifest.ExternalPerAttempt}})
		require.NoError(t, err)
		return v
	}
	call := liveCall(t, `{"n": 12345678901234567890123}`, 0)
	for script, want := range map[string]receipt.Found{
		`echo '{"happened": true, "payload": {"id": 7}, "reason": "found it"}'`: {Verdict: receipt.Happened, Payload: liveData(t, `{"id": 7}`), Reason: "found it"},
		`echo '{"happened": false, "reason": "none"}'`:                          {Verdict: receipt.NotHappened, Reason: "none"},
		`echo '{"happened": false, "payload": 1, "reason": "none"}'`:            {Verdict: receipt.NotHappened, Reason: "none"},
		`echo '{"happened": null, "reason": "down"}'`:                           {Verdict: receipt.Unknown, Reason: "down"},
	} {
		found, err := verifier(script).Verify(t.Context(), call)
		require.NoError(t, err)
		want.Reason = "/bin/sh: " + want.Reason
		require.Equal(t, want, found, script)
	}
	for _, script := range []string{
		`echo '{}'`, `echo true`, `echo null`, `echo '{"happened": 1}'`, `echo '{"happened": "true"}'`, `echo '{"happened": true, "sure": false}'`,
		`echo '{"happened": true}'; exit 1`, `echo '{"happened": true}'; kill -9 $$`, `true`, `echo '{"happened": true} {"happened": true}'`,
	} {
		found, err := verifier(script).Verify(t.Context(), call)
		require.NoError(t, err)
		require.Equal(t, receipt.Unknown, found.Verdict, script)
		require.NotEmpty(t, found.Reason)
	}
	missing, err := newExecVerifier(Setup{Dir: dir, Config: liveData(t, `{"program": "./none"}`)})
	require.NoError(t, err)
	found, err := missing.Verify(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, receipt.Unknown, found.Verdict)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = missing.Verify(ctx, call)
	require.ErrorIs(t, err, context.Canceled)
}

func TestExecVerifierIsToldWhatItIsAskedAbout(t *testing.T) {
	v, err := newExecVerifier(Setup{
		Dir:    t.TempDir(),
		Config: shell(t, `printf '{"happened": true, "payload": '; cat; printf ', "reason": "%s"}' "$WORLDKERNEL_IDEMPOTENCY_KEY"`, nil),
		Effect: manifest.Effect{ExternalKey: manifest.ExternalPerAttempt},
	})
	require.NoError(t, err)
	call := liveCall(t, `{"n": 12345678901234567890123, "text": "<&>"}`, 0)
	found, err := v.Verify(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, liveData(t, fmt.Sprintf(`{"external_key": %q, "intent": {"key": %q, "kind": "f", "params": {"n": 12345678901234567890123, "text": "<&>"}}, "receipt": null}`,
		call.External, call.Permit.Key)), found.Payload)
	require.Contains(t, found.Reason, call.External)

	r := receipt.New("town", call.Permit, receipt.StatusOK, liveData(t, `[1.5, 12345678901234567890123]`))
	r.Attempt = 2
	found, err = v.Confirm(t.Context(), Call{}, &r)
	require.NoError(t, err)
	require.Contains(t, found.Reason, call.Permit.Key.External("town")+":2")
	text, err := json.Marshal(&r)
	require.NoError(t, err)
	require.Equal(t, liveData(t, fmt.Sprintf(`{"external_key": %q, "intent": {"key": %q, "kind": "f", "params": null}, "receipt": %s}`,
		call.Permit.Key.External("town")+":2", call.Permit.Key, text)), found.Payload)
}
