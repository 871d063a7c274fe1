package worldctl

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/world/local"
)

// passphraseEnv is the variable that a passphrase can be in.
const passphraseEnv = "WORLDCTL_PASSPHRASE"

// maxPassphraseBytes tells a passphrase from a file that is none.
const maxPassphraseBytes = 1024

var (
	errNoPassphrase    = errors.New("no passphrase was given")
	errEmptyPassphrase = errors.New("the passphrase is empty")
	errOtherPassphrase = errors.New("the two passphrases differ")
)

// passphrase is where the passphrase of a sealed keyring comes from: a file, the
// environment, or the person at the terminal, in this order.
type passphrase struct {
	file  string // of --passphrase-file
	known []byte // what was answered, so that nobody is asked again
}

// askPassphrase returns the passphrase of a keyring that is sealed already.
func (c *cli) askPassphrase() ([]byte, error) {
	p, err := c.once(&c.passphrase, func() ([]byte, error) {
		return c.onTerminal(func(prompt prompter) ([]byte, error) { return prompt("passphrase of the keyring: ") })
	})
	if errors.Is(err, errNoPassphrase) {
		err = fmt.Errorf("%w: %w", local.ErrSealed, err)
	}
	return p, err
}

// askNew returns a passphrase that is to seal a keyring: what cannot be seen is
// typed twice.
func (c *cli) askNew() ([]byte, error) { return c.once(&c.passphrase, c.twice) }

// askAnother is askNew for a keyring that has a passphrase: that is where the one of the others
// comes from.
func (c *cli) askAnother(file string) (another []byte, err error) {
	if file != "" {
		another, err = c.readPassphrase(file)
	} else {
		another, err = c.twice()
	}
	switch {
	case errors.Is(err, errNoPassphrase):
		err = hinted(err, "give it with --new-passphrase-file FILE, or on the terminal")
	case err == nil && len(another) == 0:
		err = errEmptyPassphrase
	}
	return another, err
}

// twice has the person at the terminal type a new passphrase.
func (c *cli) twice() ([]byte, error) {
	return c.onTerminal(func(prompt prompter) ([]byte, error) {
		first, err := prompt("new passphrase: ")
		if err != nil {
			return nil, err
		}
		again, err := prompt("again: ")
		if err == nil && !bytes.Equal(first, again) {
			err = errOtherPassphrase
		}
		return first, err
	})
}

// once returns a passphrase, which ask asks for if it comes from nowhere else.
func (c *cli) once(p *passphrase, ask func() ([]byte, error)) ([]byte, error) {
	if p.known != nil {
		return p.known, nil
	}
	var err error
	if text, set := c.passphraseVariable(); p.file != "" {
		p.known, err = c.readPassphrase(p.file)
	} else if set {
		p.known = []byte(text)
	} else {
		p.known, err = ask()
	}
	if err == nil && len(p.known) == 0 {
		err = errEmptyPassphrase
	}
	return p.known, err
}

// readPassphrase reads a file with a passphrase, which ends before the end of its line.
func (c *cli) readPassphrase(name string) ([]byte, error) {
	text, err := file.Read(c.path(name), maxPassphraseBytes)
	if errors.Is(err, file.ErrSize) {
		err = fmt.Errorf("%s holds no passphrase: %w", name, err)
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")), err
}

type prompter func(text string) ([]byte, error)

// onTerminal lets ask talk to the person at the terminal, past stdin and
// stdout, which data may come and go through.
func (c *cli) onTerminal(ask func(prompter) ([]byte, error)) ([]byte, error) {
	if c.prompt != nil {
		return ask(c.prompt)
	}
	in, ok := c.stdin.(*os.File)
	if !c.origin.Console && (!ok || !term.IsTerminal(int(in.Fd()))) {
		return nil, errNoPassphrase
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errNoPassphrase
	}
	defer tty.Close() //nolint:errcheck // nothing is left to be written
	return ask(func(text string) ([]byte, error) {
		fmt.Fprint(tty, text)
		defer fmt.Fprintln(tty)
		return term.ReadPassword(int(tty.Fd()))
	})
}
