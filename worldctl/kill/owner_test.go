package kill

import (
	"context"
	"io"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/owner"
)

// owned lets a process own the world and drive it, has it carry out what others are
// asked for, and kills it, and them.
func (k *life) owned() {
	k.t.Helper()
	args := [][]string{{"run", "--until-idle=false"}, {"serve"}}[k.rng.IntN(2)]
	process := k.command(args...)
	process.Stdout = io.Discard
	require.NoError(k.t, process.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = process.Wait() // it is killed
	}()
	k.tell(args, "begins")
	k.answered(done)
	end := time.AfterFunc(time.Duration(k.rng.IntN(400))*time.Millisecond, func() { _ = process.Process.Kill() })
	for ended := false; !ended; {
		if v, ok := k.asked(); ok {
			v.codes = append(v.codes, failed, conflict, interrupted)
			before := k.run.kills
			k.attempt(v)
			if k.run.kills > before {
				k.run.struck.Count("owner's client killed")
			}
		}
		select {
		case <-done:
			ended = true
		default:
		}
	}
	end.Stop()
	k.tell(args, "%v", process.ProcessState)
	k.run.killed(args[0] + " beside others")
	k.look()
}

// answered returns when the owner carries out commands, or has ended.
func (k *life) answered(done <-chan struct{}) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		_, answered, _ := owner.Ask(ctx, k.dir, []string{"version"}, owner.Origin{}, owner.Streams{Stdout: io.Discard, Stderr: io.Discard})
		cancel()
		if answered {
			return
		}
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// asked returns what the owner is asked for.
func (k *life) asked() (verb, bool) {
	switch k.rng.IntN(8) {
	case 0, 1, 2:
		return k.send()
	case 3, 4:
		return k.sendMany()
	case 5:
		return k.snapshot()
	case 6:
		return k.rollback()
	}
	return k.checkpoint()
}
