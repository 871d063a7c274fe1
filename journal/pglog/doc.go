// Package pglog keeps the journals of many worlds in one PostgreSQL database: [journal.Log] over pgx.
// A [Store] is a process' pool of connections to it, and a [World] one world in it. It is a part of
// worldctl, and not an API.
//
// What is kept, in the schema worldkernel (schema.sql):
//
//	meta        the schema's version, and a name of the store that no other has
//	node        the processes that own worlds, and until when they are taken to be alive
//	world       a row a world: its owner, epoch and token, its head, and a seal over that
//	frame       its records, many in a row
//	blob        its contents by their hashes; without a body: redacted
//	note        its signed checkpoints
//	image       its last image, in parts
//	attempt     its attempts of effects, until the journal has their results
//
// A frame is the chain root before its first record, and a body: each record as its length
// (uvarint), its bytes, and the first 8 bytes of the chain root with it, packed. Packed bytes
// begin with 0, and are what follows, or with 1, and are what follows as zstd. Who has a frame
// can check it alone, against the frames beside it, and the last one against the head.
//
// A seal is HMAC-SHA256 under a key of the world, which the database never sees, over
//
//	"worldkernel seal 1" ‖ 0 ‖ world id ‖ 0 ‖ epoch ‖ head ‖ root
//
// with both numbers as 8 bytes, big endian. That of an image is over
//
//	"worldkernel image 1" ‖ 0 ‖ world id ‖ 0 ‖ at ‖ root ‖ length of tree ‖ tree ‖ its parts
//
// Who can write to the database, and has not the key,
// can put a world back to a head or an image that it had, and to no other.
//
// A node that others reach seals where that is with a key of the store's nodes, which the database never
// sees either ([Options]), over
//
//	"worldkernel node 1" ‖ 0 ‖ id of the store ‖ 0 ‖ node ‖ 0 ‖ run ‖ until ‖ url
//
// with the run as its 16 bytes, and until, the end of the lease by the node's clock in microseconds since
// 1970, as 8. It is sealed anew with each lease; an older one is believed for a minute more.
//
// # What fences
//
// An append inserts frames where, in the same statement, it moved the world's head from the one
// before them, with the current token, under the lock of the world's row. So of two that go on
// from one head one takes effect, whatever else is late, doubled or believed lost, and an owner
// whose token was replaced changes nothing any more. Epochs count owners; they fence nothing,
// because a database that was restored gives out the same ones again.
//
// # What is known
//
// Durable is what the server has answered with its row, without a warning. Everything else, a
// lost connection, a timeout, an error, a wait for a standby that was cancelled, is unknown, and
// found out by a write of the same row (statement confirm), which waits for the same standbys:
// the token is gone, then the world has another owner; the head is the new one, then all is
// durable; it is the old one, then the same is sent again; or it is any other, then the database
// is not the one that acknowledged what it did, and the world stops with journal.ErrRewound.
//
// No statement needs more than one transaction to itself, so that poolers of transactions can be
// between: nothing is prepared, listened for, or locked longer.
package pglog
