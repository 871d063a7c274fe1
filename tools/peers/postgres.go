package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgres is a PostgreSQL server of our own, with the settings that it comes with.
// Nobody else can connect to it.
type postgres struct {
	url string
	cmd *exec.Cmd
	log bytes.Buffer
}

// startPostgres makes a database in a directory, and starts a server.
func startPostgres(ctx context.Context, dir string) (*postgres, error) {
	initdb, err := postgresProgram("initdb")
	if err != nil {
		return nil, err
	}
	program, err := postgresProgram("postgres")
	if err != nil {
		return nil, err
	}
	as, err := notRoot()
	if err != nil {
		return nil, err
	}
	home := filepath.Join(dir, "pg")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	if as != nil {
		if err := os.Chown(home, int(as.Uid), int(as.Gid)); err != nil {
			return nil, err
		}
	}
	data := filepath.Join(home, "data")
	cmd := exec.CommandContext(ctx, initdb, "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: as}
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, absentError{fmt.Sprintf("initdb: %v: %s", err, bytes.TrimSpace(said))}
	}
	p := &postgres{url: "postgres://bench@/postgres?host=" + home}
	p.cmd = exec.CommandContext(ctx, program, "-D", data, "-k", home, "-h", "")
	p.cmd.Dir, p.cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: as}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGQUIT) }
	if err := p.cmd.Start(); err != nil {
		return nil, absentError{err.Error()}
	}
	if err := p.await(ctx); err != nil {
		p.stop()
		return nil, fmt.Errorf("PostgreSQL does not answer: %w: %s", err, p.log.Bytes())
	}
	return p, nil
}

// postgresProgram finds a program of the server, which Debian has in no directory of
// the path.
func postgresProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return "", absentError{"there is no " + name + ": install postgresql"}
	}
	return slices.Max(found), nil
}

// notRoot is who the server runs as where we are root, whom it refuses.
func notRoot() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, absentError{"PostgreSQL does not run as root, and there is nobody else: " + err.Error()}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err, err2)
}

// await waits until the server answers.
func (p *postgres) await(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	for {
		c, err := pgx.Connect(ctx, p.url)
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// durable fails where the server does not sync what is committed.
func (p *postgres) durable(ctx context.Context) error {
	c, err := pgx.Connect(ctx, p.url)
	if err != nil {
		return err
	}
	var fsync, commit string
	err = c.QueryRow(ctx, "SELECT current_setting('fsync'), current_setting('synchronous_commit')").Scan(&fsync, &commit)
	if err == nil && (fsync != "on" || commit != "on") {
		err = fmt.Errorf("PostgreSQL is not durable: fsync is %s, synchronous_commit is %s", fsync, commit)
	}
	return errors.Join(err, c.Close(ctx))
}

// cpu is what the server has used so far, with its processes, also those that have ended.
func (p *postgres) cpu() (all time.Duration, err error) {
	const tick = time.Second / 100 // USER_HZ
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return 0, absentError{"its server's CPU is read from /proc, which is not there"}
	}
	own := strconv.Itoa(p.cmd.Process.Pid)
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The name is in parentheses and can hold anything. The fields behind it, see
		// proc_pid_stat(5): 0 state, 1 parent, 11 and 12 own time, 13 and 14 that of
		// children that have ended.
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		var mine []string
		switch {
		case file == "/proc/"+own+"/stat":
			mine = f[11:15]
		case f[1] == own:
			mine = f[11:13]
		}
		for _, ticks := range mine {
			n, err := strconv.ParseInt(ticks, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", file, err)
			}
			all += time.Duration(n) * tick
		}
	}
	return all, nil
}

// stop has the server end, and waits until it has.
func (p *postgres) stop() {
	_ = p.cmd.Process.Signal(os.Interrupt)
	_ = p.cmd.Wait()
}
