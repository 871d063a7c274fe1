package host_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// outbox drops notes into a directory: an adapter, and a verifier that can tell
// whether one was dropped, because its file has the name of its key.
type outbox struct{ dir string }

func newOutbox(s host.Setup) (*outbox, error) {
	var config struct {
		Dir string `cbor:"dir"`
	}
	if err := s.Decode(&config); err != nil { // a key that config has and the struct has not is an error
		return nil, err
	}
	return &outbox{filepath.Join(s.Dir, config.Dir)}, nil
}

func (o *outbox) file(call host.Call) string { return filepath.Join(o.dir, call.Permit.Key.String()) }

// Perform makes one attempt, and says no more than it knows.
func (o *outbox) Perform(_ context.Context, call host.Call) (host.Result, error) {
	var note struct {
		Text string `cbor:"text"`
	}
	if err := call.Decode(&note); err != nil {
		return host.Refused(err), nil
	}
	f, err := os.OpenFile(o.file(call), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		failed := host.Refused(err)
		failed.Class = receipt.OutcomeRetryableFailure
		return failed, nil
	}
	_, err = f.WriteString(note.Text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return host.Result{}, err // half a note, or a whole one: in doubt
	}
	done, err := host.OK(len(note.Text))
	done.Cost.Bytes = uint64(len(note.Text))
	done.StateChange = &receipt.StateChange{Resource: o.file(call), ContentHash: sha256.Sum256([]byte(note.Text))}
	return done, err
}

// Verify tells whether an attempt in doubt happened.
func (o *outbox) Verify(_ context.Context, call host.Call) (receipt.Found, error) {
	switch info, err := os.Stat(o.file(call)); {
	case errors.Is(err, fs.ErrNotExist):
		return receipt.Found{Verdict: receipt.NotHappened, Reason: "there is no such note"}, nil
	case err != nil:
		return receipt.Found{}, err // nobody can tell: a person decides
	default:
		size, err := reducer.Encode(info.Size())
		return receipt.Found{Verdict: receipt.Happened, Payload: size, Reason: "the note is there"}, err
	}
}

// Confirm tells whether the outside still is what a receipt says.
func (o *outbox) Confirm(_ context.Context, _ host.Call, r *receipt.Receipt) (receipt.Found, error) {
	text, err := os.ReadFile(r.StateChange.Resource)
	if err == nil && sha256.Sum256(text) == r.StateChange.ContentHash {
		return receipt.Found{Verdict: receipt.Happened, Reason: "the note is as it was"}, nil
	}
	return receipt.Found{Verdict: receipt.NotHappened, Reason: "the note is gone, or another one"}, nil
}

// An adapter of one's own is a factory with a name. A program that embeds a
// world hands it to local.Options; here the host is asked itself.
func ExampleAdapter() {
	dir, err := os.MkdirTemp("", "outbox-")
	check(err)
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	keys, err := receipt.NewKeyring("town", []receipt.Epoch{{Number: 1, Secret: make([]byte, receipt.SecretBytes)}})
	check(err)
	config := must(reducer.Encode(map[string]any{"dir": "."}))
	h, err := host.New(host.Config{
		World: "town", Keys: keys, Dir: dir, EffectLog: filepath.Join(dir, "effects"),
		Manifest: &manifest.Manifest{Effects: map[string]manifest.Effect{
			"note.drop": {Adapter: "outbox", Config: config, Verify: &manifest.Verify{Adapter: "outbox", Config: config}},
		}},
		Adapters:  map[string]host.Factory{"outbox": func(s host.Setup) (host.Adapter, error) { return newOutbox(s) }},
		Verifiers: map[string]host.VerifierFactory{"outbox": func(s host.Setup) (host.Verifier, error) { return newOutbox(s) }},
	})
	check(err)
	params := must(reducer.Encode(map[string]any{"text": "gone to lunch"}))
	const step = "desk/ada@1.0~0000000000000000"
	permit := receipt.Permit{Attempt: 1, Intent: receipt.Intent{
		Key: receipt.NewKey("town", step, "note.drop", params), Step: step, Cell: "desk/ada", Kind: "note.drop", Params: params,
	}}

	r := must(receipt.Decode(answer(h, receipt.Perform, permit).Receipt))
	fmt.Println(r.Status, r.Outcome(), must(reducer.Decode[int](r.Payload)))
	found := answer(h, receipt.Verify, permit).Found
	fmt.Println(found.Verdict+":", found.Reason)
	check(h.Close())
	// Output:
	// ok side_effect_committed 13
	// happened: the note is there
}

// answer has the host do one piece of work, and waits for it.
func answer(h *host.Host, work receipt.Work, p receipt.Permit) receipt.Answer {
	h.Start([]receipt.Task{{Work: work, Permit: p}})
	check(h.Wait(context.Background()))
	return must(h.Answers())[0]
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
