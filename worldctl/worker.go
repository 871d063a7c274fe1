package worldctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/host/trust"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/serve/worker"
)

// tokenEnv is the variable that a worker's token can be in.
const tokenEnv = "WORLDCTL_TOKEN"

// maxTokenBytes tells a token from a file that is none.
const maxTokenBytes = 1024

func newWorkerCommand(c *cli) *cobra.Command {
	var cfg worker.Config
	var tokenFile, trustFile string
	cmd := &cobra.Command{
		Use: "worker --server URL",
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case cfg.Server == "":
				return usagef("worldctl worker --server http://127.0.0.1:8080", "worker needs --server: for whom it works")
			case c.world != "":
				return usagef("type --world-id ID", "-w names a directory, and the worlds of a worker are elsewhere")
			}
			return checkWorkers("worker", cfg.Workers)
		},
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.Token, err = workerToken(tokenFile); err != nil {
				return err
			}
			if cfg.Trust, err = readTrust(trustFile); err != nil {
				return err
			}
			cfg.Adapters, cfg.Log, cfg.UnderWay = c.opts.Adapters, c.logger().Logger, c.opts.interrupts.underWay
			return work(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Server, "server", "", "`URL` of the server, as worldctl serve prints it")
	f.StringVar(&tokenFile, "token-file", "", "`FILE` with the token; "+tokenEnv+" does the same")
	f.StringVar(&trustFile, "trust", "", "`FILE` that says what the worker may do")
	f.StringVar(&cfg.Dir, "dir", ".", "the worker's own `DIR`")
	f.StringVar(&cfg.Name, "name", "", "`NAME` by which the server knows the worker; it stays with the directory")
	f.StringArrayVar(&cfg.Worlds, "world-id", nil, "work for the world with this `ID`; for all that the server lists if not given; can be repeated")
	f.IntVar(&cfg.Workers, "workers", 0, "perform at most `N` effects of a world at once; 0 is the host's default")
	return cmd
}

// work works until ctx ends, or the server lets it work for no world.
func work(ctx context.Context, cfg worker.Config) error {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return err
	}
	ended, err := untilTerm(ctx, func() error { return worker.Run(ctx, cfg) })
	switch {
	case errors.Is(err, worker.ErrRefused):
		return hinted(err, "it takes a token with the scope work for the world, and worldctl serve --remote-workers")
	case errors.Is(err, worker.ErrInUse):
		return &fault{err: err, code: exitConflict, hint: "each worker has a directory of its own: --dir"}
	case err == nil && ended != nil:
		return hinted(ended, "what it has and the server has not is handed in by the next worker in %s", cfg.Dir)
	}
	return err
}

// workerToken reads a worker's token, which nobody else may read.
func workerToken(name string) (string, error) {
	if name == "" {
		if token := os.Getenv(tokenEnv); token != "" {
			return token, nil
		}
		return "", usagef("worldctl token new NAME --scope work --file FILE, where the server is", "worker needs --token-file, or the token in %s", tokenEnv)
	}
	data, err := file.ReadSecret(name, maxTokenBytes)
	if errors.Is(err, file.ErrExposed) {
		return "", hinted(err, "chmod 600 %s", name)
	}
	return strings.TrimSpace(string(data)), err
}

// maxTrustBytes tells a trust file from a file that is none.
const maxTrustBytes = 1 << 20

const trustHint = "worldctl worker --help has an example"

// readTrust reads what a worker or a server does for worlds, from a file that nobody else may write. Without one it is
// what needs no secret, no program and no file.
func readTrust(file string) (*trust.Trust, error) {
	if file == "" {
		return &trust.Trust{}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir(), info.Mode()&fs.ModeDevice != 0:
		return nil, hinted(fmt.Errorf("%s: it is no file", file), trustHint)
	case info.Mode().Perm()&0o022 != 0:
		return nil, hinted(fmt.Errorf("%s: others can write it", file), "chmod go-w %s", file)
	case info.Size() > maxTrustBytes:
		return nil, hinted(fmt.Errorf("%s: it is too large for a trust file: more than %d bytes", file, maxTrustBytes), trustHint)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTrustBytes))
	if err != nil {
		return nil, err
	}
	t, err := trust.Parse(data)
	if err != nil {
		return nil, hinted(fmt.Errorf("%s: %w", file, err), trustHint)
	}
	return t, nil
}
