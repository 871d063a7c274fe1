package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

func TestForgedReceiptIsRefused(t *testing.T) {
	p := nth(t, 1)
	s := newOwner(t, storeAt(t))
	s.effects["d"] = manifest.Effect{Adapter: "d"}
	s.adapters["d"] = func(host.Setup) (host.Adapter, error) { return result(receipt.StatusOK, nil), nil }
	owner := s.open(t)
	start(owner, p)
	acquire(t, owner, "w-1", 1)
	for name, c := range map[string]struct {
		change func(*receipt.Receipt)
		why    error
	}{
		"kind":           {func(r *receipt.Receipt) { r.Kind = "x" }, receipt.ErrWrongIntent},
		"params":         {func(r *receipt.Receipt) { r.ParamsHash[0] ^= 1 }, receipt.ErrWrongIntent},
		"capability":     {func(r *receipt.Receipt) { r.Cap = "root" }, receipt.ErrWrongIntent},
		"nonce":          {func(r *receipt.Receipt) { r.Nonce[0] ^= 1 }, receipt.ErrWrongAttempt},
		"world":          {func(r *receipt.Receipt) { r.World = "city" }, receipt.ErrWrongWorld},
		"version":        {func(r *receipt.Receipt) { r.Version = 2 }, receipt.ErrVersion},
		"unknown status": {func(r *receipt.Receipt) { r.Status = "fine" }, receipt.ErrStatus},
		"denied":         {func(r *receipt.Receipt) { r.Status = receipt.StatusDenied }, host.ErrBadReceipt},
		"rejected":       {func(r *receipt.Receipt) { r.Status = receipt.StatusRejected }, host.ErrBadReceipt},
		"outcome of ok":  {func(r *receipt.Receipt) { r.Class = receipt.OutcomePermanentFailure }, host.ErrBadReceipt},
		"outcome":        {func(r *receipt.Receipt) { r.Class = receipt.OutcomeCompensated }, receipt.ErrClass},
		"deterministic":  {func(r *receipt.Receipt) { r.Kind = "d" }, host.ErrBadReceipt},
		"size":           {func(r *receipt.Receipt) { r.ExternalRef = string(make([]byte, 9<<20)) }, receipt.ErrOverSize},
	} {
		err := owner.Commit("w-1", fromElsewhere(t, p, c.change), 0)
		require.ErrorIs(t, err, host.ErrBadReceipt, name)
		require.ErrorIs(t, err, c.why, name)
	}
	for name, change := range map[string]func(*receipt.Receipt){
		"key":     func(r *receipt.Receipt) { r.Key.Hash[0] ^= 1 },
		"attempt": func(r *receipt.Receipt) { r.Attempt++ },
	} {
		require.ErrorIs(t, owner.Commit("w-1", fromElsewhere(t, p, change), 0), host.ErrUnknownAttempt, name)
	}
	bad := fromElsewhere(t, p)
	r, err := receipt.Decode(bad)
	require.NoError(t, err)
	r.Payload = canon.AppendText(nil, "more than was signed")
	bad, err = r.Encode()
	require.NoError(t, err)
	require.ErrorIs(t, owner.Commit("w-1", bad, 0), receipt.ErrBadHash)
	require.ErrorIs(t, owner.Commit("w-1", append(fromElsewhere(t, p), 0), 0), receipt.ErrNotCanonical)
	require.ErrorIs(t, owner.Commit("w-1", nil, 0), receipt.ErrNotCanonical)

	none(t, owner)
	require.Empty(t, owner.Stored(), "none has come through")
	require.NoError(t, owner.Renew("w-1", p.Key, 1, p.Nonce), "nor ended anything")
	require.NoError(t, owner.Commit("w-1", fromElsewhere(t, p), 0))
	require.Equal(t, data(t, `"done"`), decoded(t, next(t, owner)).Payload)
}

func TestOnlyTheHolderCommits(t *testing.T) {
	owner := newOwner(t, storeAt(t)).open(t)
	start(owner, nth(t, 1), nth(t, 2))
	acquire(t, owner, "w-1", 1)
	require.ErrorIs(t, owner.Commit("w-2", fromElsewhere(t, nth(t, 1)), 0), host.ErrNotHeld)
	require.ErrorIs(t, owner.Commit("w-1", fromElsewhere(t, nth(t, 2)), 0), host.ErrNotHeld, "nobody has it")
	require.Empty(t, owner.Stored())
	require.NoError(t, owner.Commit("w-1", fromElsewhere(t, nth(t, 1)), 0))
	require.ErrorIs(t, owner.Commit("w-2", fromElsewhere(t, nth(t, 1)), 0), host.ErrNotHeld)
	require.ErrorIs(t, owner.Renew("w-1", nth(t, 1).Key, 1, nth(t, 1).Nonce), host.ErrNotHeld, "it is done")
	require.Len(t, acquire(t, owner, "w-2", 9), 1)
}

func TestOneResultIsCommittedOnce(t *testing.T) {
	path, p := storeAt(t), nth(t, 1)
	owner, err := newOwner(t, path).new(t)
	require.NoError(t, err)
	start(owner, p)
	acquire(t, owner, "w-1", 1)
	good, other := fromElsewhere(t, p), fromElsewhere(t, p, func(r *receipt.Receipt) { r.Payload = canon.AppendText(nil, "else") })
	errs := make(chan error)
	for range 8 {
		go func() { errs <- owner.Commit("w-1", good, 0) }()
	}
	for range 8 {
		require.NoError(t, <-errs)
	}
	stored := next(t, owner).Receipt
	require.ErrorIs(t, owner.Commit("w-1", other, 0), host.ErrOtherResult)
	require.NoError(t, owner.Close())

	owner = newOwner(t, path).open(t) // died before the journal had it
	require.NoError(t, owner.Commit("w-1", good, 0))
	require.ErrorIs(t, owner.Commit("w-1", other, 0), host.ErrOtherResult)
	none(t, owner)
	require.Equal(t, [][]byte{stored}, owner.Stored())
	start(owner, p)
	require.Equal(t, stored, next(t, owner).Receipt)
	require.Empty(t, acquire(t, owner, "w-1", 1))
}

func TestWorkersDoNotSayWhatTheirCallsCost(t *testing.T) {
	owner := newOwner(t, storeAt(t)).open(t)
	start(owner, nth(t, 1), nth(t, 2))
	acquire(t, owner, "w-1", 2)
	lie := func(r *receipt.Receipt) { r.Cost = receipt.Cost{Calls: 0, Bytes: 5} }
	require.NoError(t, owner.Commit("w-1", fromElsewhere(t, nth(t, 1), lie), 0))
	require.Equal(t, receipt.Cost{Calls: 1, Bytes: 5}, decoded(t, next(t, owner)).Cost)
	unsent := func(r *receipt.Receipt) {
		r.Status, r.Unsent, r.Cost = receipt.StatusError, true, receipt.Cost{Calls: 9}
	}
	require.NoError(t, owner.Commit("w-1", fromElsewhere(t, nth(t, 2), unsent), 0))
	require.Zero(t, decoded(t, next(t, owner)).Cost)
}

// TestAResultThatGrowsOverTheLimitIsAnErrorOfTheEffect holds where the owner's
// key has a longer name than the worker's.
func TestAResultThatGrowsOverTheLimitIsAnErrorOfTheEffect(t *testing.T) {
	p := nth(t, 1)
	said := fromElsewhere(t, p, func(r *receipt.Receipt) { r.Payload = canon.AppendText(nil, string(make([]byte, 2000))) })
	s := newOwner(t, storeAt(t))
	s.limits.Receipt = uint64(len(said))
	more := s.more
	s.more = func(cfg *host.Config) {
		more(cfg)
		var err error
		cfg.Keys, err = receipt.NewKeyring(town, []receipt.Epoch{{Number: 1000, Secret: make([]byte, receipt.SecretBytes)}})
		require.NoError(t, err)
	}
	owner := s.open(t)
	start(owner, p)
	acquire(t, owner, "w-1", 1)
	require.NoError(t, owner.Commit("w-1", said, 0))
	require.NoError(t, owner.Commit("w-1", said, 0))
	r, err := receipt.Decode(next(t, owner).Receipt)
	require.NoError(t, err)
	require.Equal(t, receipt.StatusError, r.Status)
}

// FuzzSign holds that what the owner signs says what the worker said, of this
// world and of an effect that workers perform.
func FuzzSign(f *testing.F) {
	owner := newOwner(f, storeAt(f)).open(f)
	f.Add(fromElsewhere(f, nth(f, 1)))
	f.Add(fromElsewhere(f, nth(f, 2), func(r *receipt.Receipt) {
		r.Status, r.Class, r.Unsent = receipt.StatusTimeout, receipt.OutcomeRetryableFailure, true
		r.StateChange = &receipt.StateChange{Resource: "file:x", ETag: "7"}
	}))
	f.Fuzz(func(t *testing.T, said []byte) {
		signed, err := owner.Sign(said)
		if err != nil {
			require.ErrorIs(t, err, host.ErrBadReceipt)
			require.ErrorIs(t, owner.Commit("w-1", said, 0), host.ErrBadReceipt)
			return
		}
		require.ErrorIs(t, owner.Commit("w-1", said, 0), host.ErrUnknownAttempt)
		want, err := receipt.Decode(said)
		require.NoError(t, err)
		got, err := receipt.Decode(signed)
		require.NoError(t, err)
		require.NoError(t, keys(t).Verify(got))
		want.KeyID, want.Hash, want.MAC, want.Cost.Calls = got.KeyID, got.Hash, got.MAC, got.Cost.Calls
		require.Equal(t, want, got)
		again, err := owner.Sign(signed)
		require.NoError(t, err)
		require.Equal(t, signed, again)
	})
}
