package worldctl

import (
	"bufio"
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/internal/sshkey"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/bundle"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/verify"
)

func newVerifyCommand(c *cli) *cobra.Command {
	var trust, kept []string
	cmd := &cobra.Command{
		Use: "verify [FILE]",
		RunE: func(cmd *cobra.Command, args []string) error {
			how, err := c.believed(trust, kept)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if cmd.Flags().Changed("memory") {
					return usagef("a FILE has --max-memory", "--memory is for a world, which puts the rest on its disk")
				}
				return c.verifyFile(cmd.Context(), args[0], how)
			}
			for _, name := range []string{"max-gas", "max-memory", "max-time", "max-size"} {
				if cmd.Flags().Changed(name) {
					return usagef("the rules of a world are its owner's, and have its limits", "--%s is for a FILE", name)
				}
			}
			dir, err := c.dir()
			if err != nil {
				return err
			}
			return c.verify(cmd.Context(), dir, how)
		},
	}
	cmd.Flags().StringArrayVar(&trust, "trust", nil, "believe the owner of this public `KEY`, or those in a file; may be repeated")
	c.addBounds(cmd)
	c.addTime(cmd)
	c.addSize(cmd)
	c.memoryFlag(cmd)
	cmd.Flags().StringArrayVar(&kept, "checkpoint", nil, "`FILE` with a checkpoint that must be of this history; may be repeated")
	return cmd
}

// verify does not open the world: one that is too damaged for that gets its
// report all the same.
func (c *cli) verify(ctx context.Context, dir string, how local.Verification) error {
	remedy := "bring back a copy of .world that verifies, or worldctl import journal an export"
	if c.placed != nil {
		remedy = hintDamaged
	}
	var stop func()
	how.Memory = int(c.memory)
	how.Progress, stop = c.counted()
	var r *verify.Report
	var err error
	if c.owns(dir) {
		r, err = c.owned.Verify(ctx, how)
	} else {
		r, err = local.Verify(ctx, dir, c.in(dir, c.options()), how)
	}
	stop()
	if errors.As(err, new(*store.DamageError)) {
		return hinted(err, "%s", remedy)
	}
	if err != nil {
		return ownedIn(dir, err)
	}
	return c.concludeVerify(r, len(how.Trust) > 0, remedy, "worldctl checkpoint signs all of it")
}

func (c *cli) showReport(r *verify.Report, trust bool) {
	facts := [][2]any{
		{"records", r.Records},
		{"chain root", hashOrUnknown(r.EventChainRootHash)},
		{"execution hash", hashOrUnknown(r.ExecutionHash)},
		{"state root", hashOrUnknown(r.StateRoot)},
		{"ledger", fmt.Sprintf("%s: %d pending, %d duplicate, %d orphaned", okay(r.Ledger.OK),
			len(r.Ledger.PendingIdempotencyKeys), len(r.Ledger.DuplicateKeys), len(r.Ledger.OrphanKeys))},
		{"receipts", fmt.Sprintf("%d checked, %d bad, %d unverifiable, %d inherited",
			r.Receipts.Checked, r.Receipts.Bad, r.Receipts.Unverifiable, r.Receipts.Inherited)},
		{"snapshots", snapshotsChecked(r)},
		{"governance", fmt.Sprintf("%s, %d applied, %d bad", view.Number(r.Governance.Proposals, "proposal"), r.Governance.Applied, r.Governance.Bad)},
		{"replay", replayed(&r.Replay)},
	}
	if r.From > 0 { // of the rest nobody can tell anything, and that is no fault
		facts = [][2]any{{"records", fmt.Sprintf("#%d to #%d", r.From, r.Records)}, facts[1], facts[5], {"replay", r.Replay.Error}}
	}
	signed, anchor := r.Checkpoints.Last > 0, cmp.Or(r.Anchor, new(verify.AnchorProof))
	c.facts(append(facts,
		when(r.Redacted+r.Withheld > 0, "payloads gone", fmt.Sprintf("%d redacted, %d withheld%s", r.Redacted, r.Withheld, gaps(r.Replay.Gaps))),
		[2]any{"checkpoints", fmt.Sprintf("%d checked, %d bad", r.Checkpoints.Checked, r.Checkpoints.Bad)},
		when(signed, "signed up to", fmt.Sprintf("#%d", r.Checkpoints.Last)), when(signed, "signed by", strings.Join(r.Checkpoints.Signers, "\n")),
		when(r.Anchor != nil, "anchor", fmt.Sprintf("%s, at #%d", okay(anchor.OK), anchor.ID)),
		[2]any{"verdict", verdict(r, trust)})...)
	c.showFaults(r.Faults)
}

func (c *cli) showFaults(faults []verify.Fault) {
	n := 0
	tabulate(c, table.Row{"", "place", "fault"}, faults, func(f *verify.Fault) table.Row {
		n++
		return table.Row{n, f.Place, f.Message}
	})
}

// gaps says which records a replay could not recompute.
func gaps(all []verify.Gap) string {
	text := ""
	for i, g := range all {
		if i == 0 {
			text = "; not replayed: "
		} else {
			text += ", "
		}
		text += fmt.Sprintf("#%d to #%d", g.From, g.To)
	}
	return text
}

func okay(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAILED"
}

// snapshotsChecked says how many snapshots have the states that the replay came to.
func snapshotsChecked(r *verify.Report) string {
	if len(r.Replay.Needs) > 0 {
		return "states not checked without the replay"
	}
	return fmt.Sprintf("%d checked, %d bad", r.Snapshots.Checked, r.Snapshots.Bad)
}

func replayed(p *verify.ReplayProof) string {
	if len(p.Needs) > 0 {
		return p.Error
	}
	return okay(p.OK)
}

// hashOrUnknown prints a hash that is zero where nobody knows it.
func hashOrUnknown(h journal.Hash) string {
	if h.IsZero() {
		return "unknown"
	}
	return h.String()
}

func verdict(r *verify.Report, trust bool) string {
	switch {
	case r.OK && r.Checkpoints.Last == 0:
		return "consistent"
	case r.OK && !r.Trusted && r.Checkpoints.Trusted > 0:
		return fmt.Sprintf("consistent, signer trusted up to #%d", r.Checkpoints.Trusted)
	case r.OK:
		return signedVerdict("consistent", trust, r.Trusted)
	case len(r.Faults) == 0:
		return "no faults, and " + r.Replay.Error
	}
	return "NOT CONSISTENT: " + view.Number(len(r.Faults), "fault")
}

// What is done about files that are not what verify wants.
const (
	hintBundle     = "verify takes a bundle (worldctl export FILE --format bundle) or a proof (worldctl prove)"
	hintTrust      = "--trust takes a key as worldctl keys list shows it, an SSH public key, or a file with some of them, a line each"
	hintCheckpoint = "a checkpoint is what worldctl checkpoint FILE has written"
	hintSigner     = "ask whoever runs the world for its key, by a way that you trust: worldctl keys list shows it"
)

// sentenceColumns is where a sentence in a table is broken.
const sentenceColumns = 80

// maxKeyBytes is more than a public key has in a line.
const maxKeyBytes = 1024

// errUntrusted says that what is consistent was not signed by whom it had to be.
var errUntrusted = errors.New("none of those whom you trust has signed all of it")

// believed reads whom --trust names, and the checkpoints that --checkpoint does.
func (c *cli) believed(trust, kept []string) (v local.Verification, err error) {
	for _, text := range trust {
		keys, err := c.trusted(text)
		if err != nil {
			return v, err
		}
		v.Trust = append(v.Trust, keys...)
	}
	for _, name := range kept {
		note, err := file.Read(c.path(name), checkpoint.MaxBytes)
		if err == nil {
			_, err = checkpoint.Parse(note)
		}
		if err != nil {
			return v, usagef(hintCheckpoint, "%s: %w", name, err)
		}
		v.Kept = append(v.Kept, note)
	}
	return v, nil
}

// trusted reads a key, or the keys in a file.
func (c *cli) trusted(text string) ([]ed25519.PublicKey, error) {
	if key, err := parseSigner(text); err == nil {
		return []ed25519.PublicKey{key}, nil
	}
	data, err := file.Read(c.path(text), sshkey.MaxFileBytes)
	if err != nil {
		return nil, usagef(hintTrust, "--trust %s is no key, and no file: %w", text, err)
	}
	var keys []ed25519.PublicKey
	for n, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := parseSigner(line)
		if err != nil {
			return nil, usagef(hintTrust, "%s:%d: %w", text, n+1, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, usagef(hintTrust, "%s holds no key", text)
	}
	return keys, nil
}

// parseSigner reads a public key: as checkpoints have it, or as SSH does.
func parseSigner(text string) (ed25519.PublicKey, error) {
	if !strings.HasPrefix(text, "ssh-") {
		_, key, err := checkpoint.ParseKey(text)
		return key, err
	}
	key, _, err := sshkey.ParsePublic([]byte(text))
	return key, err
}

// verifyFile proves what is in a file: a bundle, or a proof.
func (c *cli) verifyFile(ctx context.Context, file string, how local.Verification) error {
	from := c.stdin
	if file != "-" {
		f, err := os.Open(c.path(file))
		if errors.Is(err, fs.ErrNotExist) {
			return usagef(hintBundle, "%w", err)
		}
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // only read
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return usagef("worldctl -w "+shellWord(file)+" verify", "%s is a directory", file)
		}
		from = f
	}
	in := bufio.NewReader(from)
	begins, _ := in.Peek(maxKeyBytes)
	first, _, _ := strings.Cut(string(begins), "\n")
	if strings.HasPrefix(first, "{") {
		if len(how.Kept) > 0 {
			return usagef("worldctl prove checkpoint FILE proves that a checkpoint is of the history", "--checkpoint does not go with a proof")
		}
		return c.verifyProof(in, how.Trust)
	}
	progress, stop := c.counted()
	ctx, counted, release := c.inMemory(ctx, "the verification", progress)
	defer release()
	var last atomic.Uint64
	how.Progress = func(done, all uint64) {
		last.Store(done)
		counted(done, all)
	}
	r, err := local.VerifyBundle(ctx, in, c.options(), how)
	stop()
	if errors.As(err, new(*local.TimeError)) {
		return fmt.Errorf("after record #%d: %w", last.Load(), err)
	}
	if errors.Is(err, bundle.ErrNotBundle) {
		if _, isKey := parseSigner(first); isKey == nil {
			return hinted(fmt.Errorf("%w: %s is a public key", errInvalid, file), "verify FILE --trust %s believes whose it is", file)
		}
		return hinted(fmt.Errorf("%w: %s: %w", errInvalid, file, err), hintBundle)
	}
	if err != nil {
		return err
	}
	return c.concludeVerify(r, len(how.Trust) > 0, "ask for another copy: this one is damaged, or was changed",
		"ask for a bundle that they have signed to its end: worldctl export FILE --format bundle")
}

// counted returns the progress of a verification.
func (c *cli) counted() (progress func(done, all uint64), stop func()) {
	var report func(done uint64)
	end := func() {}
	progress = func(done, all uint64) {
		if report == nil {
			report, end = c.progress("records", all)
		}
		report(done)
	}
	return progress, func() { end() }
}

// concludeVerify prints a report, and says whether it is what was hoped for. remedy is
// for faults, unsigned for what nobody has signed, or not to its end.
func (c *cli) concludeVerify(r *verify.Report, trust bool, remedy, unsigned string) error {
	if err := c.object("verify", r, func() { c.showReport(r, trust) }); err != nil {
		return err
	}
	switch {
	case len(r.Faults) > 0:
		return hinted(fmt.Errorf("%w: %s", errInvalid, view.Number(len(r.Faults), "fault")), "%s", remedy)
	case !r.OK:
		return hinted(errors.New(r.Replay.Error), "all else but the states of snapshots was checked, and there is no fault; %s", hintReducers)
	case !trust || r.Trusted:
		return nil
	case r.Checkpoints.Last == 0:
		return hinted(fmt.Errorf("%w: nothing of it is signed", errInvalid), "%s", unsigned)
	case r.Checkpoints.Trusted > 0:
		return hinted(fmt.Errorf("%w: there are %d records, and whom you trust has signed those up to #%d only", errInvalid, r.Records, r.Checkpoints.Trusted), "%s", unsigned)
	}
	return hinted(fmt.Errorf("%w: %w", errInvalid, errUntrusted), hintSigner)
}

func (c *cli) verifyProof(in io.Reader, trust []ed25519.PublicKey) error {
	most := min(verify.MaxProofBytes, int64(c.bounds.Memory/proofShare))
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return err
	}
	if int64(len(data)) > most && most < verify.MaxProofBytes {
		return &world.BoundError{Name: "memory", Bound: c.bounds.Memory, What: fmt.Sprintf("a proof of more than %d bytes", most)}
	}
	p, err := verify.CheckProof(data, trust)
	if errors.Is(err, verify.ErrNotProof) {
		return hinted(fmt.Errorf("%w: %w", errInvalid, err), hintBundle)
	}
	if err != nil {
		return err
	}
	if err := c.object("proof", p, func() { c.showProven(p, len(trust) > 0) }); err != nil {
		return err
	}
	switch {
	case !p.OK:
		return hinted(fmt.Errorf("%w: %s", errInvalid, view.Number(len(p.Faults), "fault")), "it proves nothing: ask for another")
	case len(trust) > 0 && !p.Trusted:
		return hinted(fmt.Errorf("%w: %w", errInvalid, errUntrusted), hintSigner)
	}
	return nil
}

// proofShare is what part of the bound of memory a proof may have in bytes.
const proofShare = 16

func (c *cli) showProven(p *verify.Proven, trust bool) {
	if !p.OK {
		c.showFaults(p.Faults)
		return
	}
	facts := [][2]any{{"world", p.World}, {"proven", text.WrapSoft(p.Says, sentenceColumns)}}
	if p.Record != nil {
		facts = append(facts, [2]any{"record", fmt.Sprintf("#%d %s, tick %d", p.Record.ID, p.Record.Kind, p.Record.Time)})
	}
	if r := p.Receipt; r != nil {
		facts = append(facts, [2]any{"receipt", fmt.Sprintf("%s %s, attempt %d: %s", r.Kind, r.Key, r.Attempt, r.Status)},
			[2]any{"answer", view.Describer{Full: c.verbose}.Data(r.Payload)})
	}
	if cell := p.Cell; cell != nil && cell.Present {
		facts = append(facts, [2]any{"state", view.Describer{Full: c.verbose}.Data(cell.State)})
	}
	facts = append(facts, [2]any{"signed up to", fmt.Sprintf("#%d", p.Checkpoint.Size)},
		[2]any{"signed by", strings.Join(p.Signers, "\n")}, [2]any{"verdict", signedVerdict("proven", trust, p.Trusted)})
	c.facts(facts...)
}

// signedVerdict says of what holds whether somebody has signed it whom one trusts; nothing
// of that where asked says that nobody was named whom one trusts.
func signedVerdict(holds string, asked, trusted bool) string {
	switch {
	case trusted:
		return holds + ", signer trusted"
	case asked:
		return holds + ", signer not trusted"
	}
	return holds
}
