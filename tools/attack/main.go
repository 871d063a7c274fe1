// Command attack makes the attempts that every attack_test.go of the product makes,
// and sums up what they say.
//
//	go run -C tools ./attack [-seed N] [-attempts N] [-run REGEXP]
//
// For each class it prints how many attempts were made and how many came through.
// What came through is printed before that, with the command that makes it again. It
// exits with 1 if anything did, or if a test failed otherwise.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	seed := flag.Uint64("seed", 1, "the first `seed`")
	attempts := flag.Uint64("attempts", 2500, "how many attempts of each class")
	only := flag.String("run", "", "only tests whose name, after TestAttack, matches this `regexp`")
	root := flag.String("root", "..", "the root of the repository")
	flag.Parse()
	ok, err := run(os.Stdout, *root, *only, *seed, *attempts)
	if err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run makes the attempts and reports whether nothing came through.
func run(out io.Writer, root, only string, seed, attempts uint64) (bool, error) {
	packages, err := attacked(root)
	if err != nil {
		return false, err
	}
	args := []string{"test", "-count=1", "-v", "-timeout", "0", "-run", "^TestAttack(" + only + ")"}
	cmd := exec.Command("go", append(args, packages...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), fmt.Sprintf("SEED=%d", seed), fmt.Sprintf("ATTEMPTS=%d", attempts))
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	total, err := sum(out, output)
	if err != nil {
		return false, err
	}
	failed := cmd.Wait()
	fmt.Fprintln(out, total)
	if failed != nil && total.through == 0 {
		return false, fmt.Errorf("go test: %w", failed)
	}
	return failed == nil && total.through == 0 && total.tried > 0, nil
}

// attacked returns the packages that have attacks.
func attacked(root string) (packages []string, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(d.Name(), "attack") || !strings.HasSuffix(d.Name(), "_test.go") {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if packages == nil || !slices.Contains(packages, "./"+filepath.ToSlash(dir)) {
			packages = append(packages, "./"+filepath.ToSlash(dir))
		}
		return err
	})
	return packages, err
}

// totals are the sums over all classes.
type totals struct{ classes, tried, through int }

func (t totals) String() string {
	return fmt.Sprintf("%d classes: %d tried, %d through", t.classes, t.tried, t.through)
}

var (
	summary = regexp.MustCompile(`attack: (.+): (\d+) tried, (\d+) through$`)
	noise   = regexp.MustCompile(`^(=== |--- PASS|PASS|ok |testing: warning: no tests to run)`)
)

// sum copies what go test -v says, without what went well, and adds up what the
// classes came to.
func sum(out io.Writer, from io.Reader) (t totals, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		m := summary.FindStringSubmatch(lines.Text())
		if m == nil {
			if !noise.MatchString(lines.Text()) {
				fmt.Fprintln(out, lines.Text())
			}
			continue
		}
		tried, _ := strconv.Atoi(m[2]) // digits
		through, _ := strconv.Atoi(m[3])
		t.classes, t.tried, t.through = t.classes+1, t.tried+tried, t.through+through
		fmt.Fprintf(out, "%-20s %8d tried %8d through\n", m[1], tried, through)
	}
	return t, lines.Err()
}
