package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/worldkernel/worldkernel/governance"
)

// ProgramPath is where adapters look for programs, and programs for theirs.
const ProgramPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// execGrace is how long a program has after SIGTERM, and whoever holds its
// output after its end.
const execGrace = time.Second

// program is a program that can be run, any number of times at once.
type program struct {
	*governance.ExecTarget
	setup Setup
}

// run runs the program to its end, which is within execGrace of ctx's. An error
// means that it did not start.
func (p *program) run(ctx context.Context, input []byte, external string, of attempt) (*finished, error) {
	dir, path, err := p.setup.FindProgram(p.Program, p.Args)
	if err != nil {
		return nil, err
	}
	env, err := p.environment(external, of)
	if err != nil {
		return nil, err
	}
	stdin, err := newInput(append(input, '\n'))
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", p.Program, err)
	}
	defer stdin.Close() //nolint:errcheck // it was written in whole
	done := &finished{limit: p.MaxBytes, stderr: p.setup.Tail(maxTail)}
	var killed atomic.Bool
	cmd := exec.CommandContext(ctx, path, p.Args...)
	cmd.Args[0], cmd.Dir, cmd.Env = p.Program, dir, env
	var out outputs
	defer out.Close() //nolint:errcheck // it was read
	stdout, err := out.open(done)
	stderr, failed := out.open(done.stderr)
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("program %s: %w", p.Program, err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.WaitDelay = execGrace
	cmd.Cancel = func() error {
		killed.Store(true)
		return SignalGroup(cmd.Process.Pid, syscall.SIGTERM)
	}
	if err := OwnGroup(cmd); err != nil {
		return nil, err
	}
	if err := Enclose(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("program %s: %w", p.Program, cause(err))
	}
	done.await(cmd, &out, &killed)
	return done, nil
}

// await waits for the end of a program that has started, and for whoever holds its output.
func (f *finished) await(cmd *exec.Cmd, out *outputs, killed *atomic.Bool) {
	out.startReading()
	waited := cmd.Wait()
	if !killed.Load() {
		out.await(time.Now().Add(execGrace))
	}
	if err := SignalGroup(cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		waited = errors.Join(waited, err)
	}
	out.await(time.Now())
	out.drain()
	f.killed = killed.Load()
	if cmd.ProcessState == nil { // the process could not be waited for
		fmt.Fprintf(f.stderr, "\n%v", waited)
		f.exit = -1
		return
	}
	f.exit = cmd.ProcessState.ExitCode()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		f.signal = status.Signal()
	}
}

// FindProgram returns the directory in which a program is to start, and its path, if it may start
// with these arguments.
func (s *Setup) FindProgram(program string, args []string) (dir, path string, err error) {
	if dir, err = filepath.Abs(s.Dir); err != nil {
		return "", "", cause(err)
	}
	path, err = FindProgram(dir, program)
	if err == nil && s.Program != nil {
		err = s.Program(path, args)
	}
	if err != nil {
		return "", "", fmt.Errorf("program %s: %w", program, cause(err))
	}
	return dir, path, nil
}

// FindProgram returns the path of a program as adapters find it: in the world's
// directory, an absolute path, if its name has a slash, else in the usual places. The
// error wraps fs.ErrNotExist where it is in none of them; otherwise nobody has looked.
func FindProgram(dir, program string) (string, error) {
	name := filepath.FromSlash(program)
	switch {
	case filepath.IsAbs(name):
		return name, nil
	case strings.ContainsRune(program, '/'):
		return filepath.Join(dir, name), nil
	}
	for _, on := range strings.Split(ProgramPath, ":") {
		path, err := exec.LookPath(filepath.Join(on, name)) // a path: the environment's PATH has no say
		if err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("it is not on %s: %w", ProgramPath, fs.ErrNotExist)
}

// environment returns all that the program gets to know of its surroundings.
func (p *program) environment(external string, of attempt) ([]string, error) {
	env := []string{
		"PATH=" + ProgramPath, "LANG=C.UTF-8",
		"WORLDKERNEL_IDEMPOTENCY_KEY=" + external, "WORLDKERNEL_ATTEMPT=" + strconv.FormatUint(of.number, 10),
		"TRACEPARENT=" + of.key.TraceParent(of.number),
	}
	own, err := p.setup.Variables(p.Env)
	return append(env, own...), err // of two the last counts
}

// Variables returns the variables that config gives a program, with secrets in the place of references.
func (s *Setup) Variables(env map[string]string) (out []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		if reference := value; strings.HasPrefix(reference, secretScheme) {
			if value, err = s.Secret(reference); err == nil && strings.ContainsRune(value, 0) {
				err = &SecretError{reference, ErrBadSecret}
			}
			if err != nil {
				return nil, fmt.Errorf("env.%s: %w", name, err)
			}
		}
		out = append(out, name+"="+value)
	}
	return out, nil
}
