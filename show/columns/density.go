package columns

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// bucketRecords is how many records are counted together at least.
const bucketRecords = 1 << 10

// bucket counts some records that follow each other.
type bucket struct {
	last   journal.Seq
	from   manifest.Tick // of its first record
	to     manifest.Tick // of its last one
	counts []count
}

type count struct{ what, n uint32 }

func (b *bucket) add(what, n uint32) {
	for i := range b.counts {
		if b.counts[i].what == what {
			b.counts[i].n += n
			return
		}
	}
	b.counts = append(b.counts, count{what, n})
}

// count takes note of a record.
func (x *Index) count(id journal.Seq, time manifest.Tick, what uint32) {
	if (id-1)%bucketRecords == 0 {
		x.counted = append(x.counted, bucket{from: time})
	}
	b := &x.counted[len(x.counted)-1]
	b.last, b.to = id, time
	b.add(what, 1)
}

// Bucket says how many records of what there are among some that follow each other.
type Bucket struct {
	First  journal.Seq       `json:"first"`
	Last   journal.Seq       `json:"last"`
	From   manifest.Tick     `json:"from"` // the tick of the first one
	To     manifest.Tick     `json:"to"`   // and of the last one
	Counts map[string]uint64 `json:"counts"`
}

// Density counts all records that were read in at most so many buckets, which must be 1
// at least. All but the last have equally many, a multiple of 1,024.
func (x *Index) Density(buckets int) []Bucket {
	x.mu.RLock()
	defer x.mu.RUnlock()
	each := max(1, (len(x.counted)+buckets-1)/buckets)
	out := []Bucket{}
	for at := 0; at < len(x.counted); at += each {
		var sum bucket
		some := x.counted[at:min(at+each, len(x.counted))]
		for i := range some {
			for _, c := range some[i].counts {
				sum.add(c.what, c.n)
			}
		}
		b := Bucket{
			First: journal.Seq(at)*bucketRecords + 1, Last: some[len(some)-1].last,
			From: some[0].from, To: some[len(some)-1].to, Counts: make(map[string]uint64, len(sum.counts)),
		}
		for _, c := range sum.counts {
			b.Counts[x.whats.list[c.what]] = uint64(c.n)
		}
		out = append(out, b)
	}
	return out
}
