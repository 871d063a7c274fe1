package pglog

// All that is ever asked of the server, but for what schema.sql creates. Each is a transaction
// of its own. Those that change a world have its token in their condition, and answer with a row
// if they took effect. What is told to be durable was written, even where it was there: a
// statement that writes nothing waits for no standby.
const (
	// sqlServer reads how the server is set up, and whether it holds a store. A schema that is empty
	// was made for one.
	sqlServer = `
SELECT current_setting('server_version_num')::int,
       current_setting('fsync') = 'on',
       current_setting('full_page_writes') = 'on',
       current_setting('synchronous_commit'),
       pg_is_in_recovery(),
       current_setting('transaction_read_only') = 'on',
       current_setting('server_encoding'),
       EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace('worldkernel')),
       CASE WHEN to_regnamespace('worldkernel') IS NULL THEN false
            WHEN NOT has_schema_privilege('worldkernel', 'USAGE') THEN NULL
            ELSE to_regclass('worldkernel.meta') IS NOT NULL END`

	sqlMeta = `SELECT version, store::text FROM worldkernel.meta`

	// sqlFault names what of a world's row (w) cannot be so, or is longer than it ever was; NULL: nothing. No
	// statement sends such a row to who asks. 8192 is maxText.
	sqlFault = `CASE
	WHEN w.state IS NULL OR w.state NOT IN ('live', 'made', 'moved') THEN 'the state'
	WHEN w.token IS NULL THEN 'the token'
	WHEN w.epoch IS NULL OR w.epoch < 0 OR w.epoch >= 1::bigint << 62 THEN 'the epoch'
	WHEN w.head IS NULL OR w.head < 0 THEN 'the head'
	WHEN octet_length(w.root) IS DISTINCT FROM 32 THEN 'the root'
	WHEN w.sealed IS NULL OR w.sealed < 0 OR w.sealed > w.epoch THEN 'the epoch of the seal'
	WHEN octet_length(w.seal) IS DISTINCT FROM 32 THEN 'the seal'
	WHEN octet_length(w.node) > 8192 THEN 'the node'
	WHEN octet_length(w.wanted) > 8192 THEN 'the node that is to have it'
	WHEN octet_length(w.moved_to) > 8192 OR w.state = 'moved' AND w.moved_to IS NULL THEN 'where it moved to'
	WHEN octet_length(w.copies) > 8192 OR w.copies IS NULL THEN 'the copies'
	WHEN w.state = 'made' AND w.left_head IS NOT NULL AND (w.left_head < 0 OR octet_length(w.left_root) IS DISTINCT FROM 32
		OR octet_length(w.left_seal) IS DISTINCT FROM 32 OR w.left_sealed IS NULL OR w.left_sealed < 0) THEN 'what it was when it moved away'
END`

	// sqlLive is so of a world (w) that lives, and may be owned.
	sqlLive = `w.state = 'live' AND ` + sqlFault + ` IS NULL`

	// sqlList lists worlds after one, by their ids; of some ids ($3), or all. What is due at any time
	// that has come is due at once.
	sqlList = `
SELECT r.id, coalesce(w.state, 'damaged'), coalesce(w.epoch, 0), coalesce(w.head, 0), coalesce(w.root, ''),
       CASE WHEN w.due <= now() THEN '-infinity' ELSE w.due END, coalesce(w.node, ''), n.run IS NOT NULL,
       (SELECT count(*) FROM worldkernel.attempt a WHERE a.wid = w.wid AND a.result IS NULL), coalesce(w.moved_to, ''), coalesce(r.fault, '')
FROM (SELECT w.id, w.wid, ` + sqlFault + ` AS fault FROM worldkernel.world w
	WHERE w.id > $1 AND ($3::text[] IS NULL OR w.id = ANY ($3)) ORDER BY w.id LIMIT $2) r
LEFT JOIN worldkernel.world w ON w.wid = r.wid AND r.fault IS NULL
LEFT JOIN worldkernel.node n ON n.node = w.node AND n.run = w.run AND n.lease_until > now()
ORDER BY r.id`

	// sqlWorld looks at a world.
	sqlWorld = `
SELECT w.wid, w.state, w.token, w.head, w.root, w.sealed, w.seal, coalesce(w.node, ''), n.run IS NOT NULL,
       w.state = 'moved' OR w.state = 'made' AND w.left_head IS NOT NULL,
       CASE w.state WHEN 'made' THEN coalesce(w.left_head, w.head) ELSE w.head END,
       CASE w.state WHEN 'made' THEN coalesce(w.left_root, w.root) ELSE w.root END,
       coalesce(w.moved_to, ''), w.copies
FROM worldkernel.world w
LEFT JOIN worldkernel.node n ON n.node = w.node AND n.run = w.run AND n.lease_until > now()
WHERE w.id = $1 AND ` + sqlFault + ` IS NULL`

	// sqlWorldFault says why sqlWorld has no row.
	sqlWorldFault = `SELECT coalesce(` + sqlFault + `, '') FROM worldkernel.world w WHERE w.id = $1`

	// sqlClaim replaces the token that was looked at, so that it takes effect once however often
	// and late it arrives, and answers with the epoch. An owner that lives keeps the world, unless
	// it is taken ($6). It waits for who holds the row.
	sqlClaim = `
WITH was AS (
	SELECT w.wid, w.token, n.run IS NOT NULL AS lives
	FROM worldkernel.world w
	LEFT JOIN worldkernel.node n ON n.node = w.node AND n.run = w.run AND n.lease_until > now()
	WHERE w.wid = $1 AND w.token IN ($2, $5) AND (w.state = 'live' OR w.state = 'made' AND $7) FOR UPDATE OF w
)
UPDATE worldkernel.world w
SET epoch = w.epoch + (w.token <> $2)::int, token = $2, node = $3, run = $4, due = NULL, wanted = NULL
FROM was WHERE w.wid = was.wid AND (NOT was.lives OR $6 OR was.token = $2)
RETURNING w.epoch, w.head, w.root, w.sealed, w.seal`

	// sqlRelease gives a world up: its token is nobody's. A due time is in microseconds; 0 is at once.
	sqlRelease = `
UPDATE worldkernel.world SET node = NULL, run = NULL, token = gen_random_uuid(),
       due = CASE WHEN state <> 'live' THEN NULL WHEN $3::bigint = 0 THEN now() ELSE timestamptz 'epoch' + $3 * interval '1 microsecond' END
WHERE wid = $1 AND token = $2 RETURNING wid`

	// sqlNode enters a run of a node, or prolongs it; without a row another has the name.
	sqlNode = `
INSERT INTO worldkernel.node (node, run, lease_until, url, version, gives, url_until, seal, resting) VALUES ($1, $2, now() + $3, $5, $6, $7, $8, $9, $10)
ON CONFLICT (node) DO UPDATE SET run = excluded.run, lease_until = excluded.lease_until, url = excluded.url,
	url_until = excluded.url_until, seal = excluded.seal, version = excluded.version, gives = excluded.gives,
	resting = excluded.resting
WHERE node.run = excluded.run OR $4 RETURNING node`

	// sqlAddress is where a node (n) answers, with what proves it; see address.
	sqlAddress = `n.run, CASE WHEN octet_length(n.url) <= 8192 THEN n.url ELSE '' END, coalesce(n.url_until, 0),
       CASE WHEN octet_length(n.seal) = 32 THEN n.seal ELSE '' END`

	// sqlNodes lists the nodes, with how long their leases last, and how many worlds they own.
	sqlNodes = `
SELECT n.node, ` + sqlAddress + `, CASE WHEN octet_length(n.version) <= 8192 THEN n.version ELSE '' END,
       CASE WHEN octet_length(n.resting) <= 8192 THEN n.resting ELSE '' END, (extract(epoch FROM n.lease_until - now()) * 1000000)::bigint,
       (SELECT count(*) FROM worldkernel.world w WHERE w.node = n.node AND w.run = n.run)
FROM worldkernel.node n ORDER BY n.node`

	// sqlOwner looks who is to be asked about a world.
	sqlOwner = `
SELECT w.state, coalesce(w.node, ''), coalesce(w.run = $2, false), n.run IS NOT NULL, coalesce(n.gives, false),
       ` + sqlAddress + `,
       CASE WHEN octet_length(w.moved_to) <= 8192 THEN w.moved_to ELSE '' END,
       EXISTS (SELECT FROM worldkernel.node x WHERE x.node = w.wanted AND x.node <> $3 AND x.lease_until > now())
FROM worldkernel.world w
LEFT JOIN worldkernel.node n ON n.node = w.node AND n.run = w.run AND n.lease_until > now()
WHERE w.id = $1 AND ` + sqlFault + ` IS NULL`

	// sqlMine lists the worlds of a run of a node, with the node that is to have them next.
	sqlMine = `SELECT id, CASE WHEN octet_length(wanted) <= 8192 THEN wanted ELSE '' END FROM worldkernel.world WHERE node = $1 AND run = $2 ORDER BY id`

	// sqlClaimDue claims worlds that nobody owns who lives, and that are due, or wanted by this
	// node ($1, its run $2): with a token ($3) that it answers to again where an answer was lost.
	// What others claim at the same time it leaves to them, and what is damaged to who asks for it. That an
	// owner has died is to be believed if $6 is so. If $7 is, only what is wanted is claimed. What was given up
	// to another node is left to it for a while: it would come back to who gave it, were that one faster. What
	// has been due for longest comes first: where there is more than nodes can open, a world would wait for ever
	// for others that come and go.
	sqlClaimDue = `
WITH found AS (
	(SELECT w.wid, w.token FROM worldkernel.world w
	 WHERE w.node IS NULL AND w.due <= now() AND NOT $7 AND w.id <> ALL ($5::text[]) AND ` + sqlLive + `
	 AND NOT (w.due > now() - interval '10 s'
	          AND EXISTS (SELECT FROM worldkernel.node x WHERE x.node = w.wanted AND x.node <> $1 AND x.lease_until > now()))
	 ORDER BY w.due LIMIT $4)
	UNION
	(SELECT w.wid, w.token FROM worldkernel.world w WHERE w.node IS NULL AND w.wanted = $1 AND w.id <> ALL ($5::text[]) AND ` + sqlLive + ` LIMIT $4)
	UNION
	(SELECT w.wid, w.token FROM worldkernel.world w
	 LEFT JOIN worldkernel.node n ON n.node = w.node AND n.run = w.run AND n.lease_until > now()
	 WHERE w.node IS NOT NULL AND n.run IS NULL AND (w.node <> $1 OR w.run <> $2) AND $6 AND NOT $7 AND w.id <> ALL ($5::text[]) AND ` + sqlLive + ` LIMIT $4)
	UNION
	(SELECT wid, token FROM worldkernel.world WHERE node = $1 AND run = $2 AND token = $3)
), free AS (
	SELECT w.wid, w.node IS NOT NULL AND w.token <> $3 AS taken FROM worldkernel.world w JOIN found ON found.wid = w.wid AND found.token = w.token
	WHERE ` + sqlLive + `
	LIMIT $4 FOR UPDATE OF w SKIP LOCKED
)
UPDATE worldkernel.world w
SET epoch = w.epoch + (w.token <> $3)::int, token = $3, node = $1, run = $2, due = NULL, wanted = NULL
FROM free WHERE w.wid = free.wid
RETURNING w.id, w.wid, w.epoch, w.head, w.root, w.sealed, w.seal, free.taken`

	// sqlWant has one of another node's worlds be given to this one.
	sqlWant = `
UPDATE worldkernel.world SET wanted = $1 WHERE wid = (
	SELECT wid FROM worldkernel.world WHERE node = $2 AND wanted IS NULL AND state = 'live' LIMIT 1 FOR UPDATE SKIP LOCKED
) RETURNING id`

	// sqlCrowd counts the nodes that live, and the worlds that have an owner, or should.
	sqlCrowd = `
SELECT (SELECT count(*) FROM worldkernel.node WHERE lease_until > now()),
       (SELECT count(*) FROM worldkernel.world WHERE node IS NOT NULL)
       + (SELECT count(*) FROM worldkernel.world WHERE node IS NULL AND due <= now())`

	// sqlFigures counts for who watches.
	sqlFigures = `
SELECT (SELECT count(*) FROM worldkernel.node WHERE lease_until > now()),
       (SELECT count(*) FROM worldkernel.world WHERE state = 'live'),
       (SELECT count(*) FROM worldkernel.world w LEFT JOIN worldkernel.node n ON n.node = w.node AND n.run = w.run AND n.lease_until > now()
        WHERE w.node IS NOT NULL AND n.run IS NULL AND w.state = 'live'),
       (SELECT count(*) FROM worldkernel.world WHERE node IS NULL AND due < now() - interval '1 minute' AND state = 'live'),
       a.begun, a.expired, a.ended
FROM (
	SELECT count(*) FILTER (WHERE a.result IS NULL) AS begun,
	       count(*) FILTER (WHERE a.result IS NULL AND a.lease_until < clock_timestamp()) AS expired,
	       count(*) FILTER (WHERE a.result IS NOT NULL) AS ended
	FROM worldkernel.attempt a JOIN worldkernel.world w ON w.wid = a.wid WHERE w.node = $1 AND w.run = $2
) a`

	// sqlGive has a node that lives be the next owner of a world.
	sqlGive = `
UPDATE worldkernel.world w SET wanted = CASE WHEN w.node IS DISTINCT FROM $2 THEN $2 END
FROM worldkernel.node n WHERE w.id = $1 AND w.state = 'live' AND n.node = $2 AND n.lease_until > now() RETURNING w.wid`

	// sqlLetGo gives up what a run of a node has, and does not know.
	sqlLetGo = `
UPDATE worldkernel.world SET node = NULL, run = NULL, token = gen_random_uuid(), due = now()
WHERE node = $1 AND run = $2 AND id = ANY ($3::text[])`

	sqlNodeEnds = `DELETE FROM worldkernel.node WHERE node = $1 AND run = $2`

	// sqlAppend moves the heads of worlds, and inserts what that takes: of each all or nothing.
	// It answers with those that it moved. Of one world no content may be given twice.
	sqlAppend = `
WITH batch AS (
	SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bytea[], $7::bytea[])
	AS t (wid, token, after, was, head, root, seal)
), moved AS (
	UPDATE worldkernel.world w
	SET head = batch.head, root = batch.root, seal = batch.seal, sealed = w.epoch
	FROM batch
	WHERE w.wid = batch.wid AND w.token = batch.token AND w.head = batch.after AND w.root = batch.was
	RETURNING w.wid, w.epoch
), frames AS (
	INSERT INTO worldkernel.frame (wid, first, last, epoch, was, body)
	SELECT moved.wid, t.first, t.last, moved.epoch, t.was, t.body
	FROM moved JOIN unnest($8::bigint[], $9::bigint[], $10::bigint[], $11::bytea[], $12::bytea[])
	AS t (wid, first, last, was, body) ON t.wid = moved.wid
), blobs AS (
	INSERT INTO worldkernel.blob (wid, hash, body)
	SELECT moved.wid, t.hash, t.body
	FROM moved JOIN unnest($13::bigint[], $14::bytea[], $15::bytea[]) AS t (wid, hash, body) ON t.wid = moved.wid
	ON CONFLICT (wid, hash) DO UPDATE SET body = excluded.body WHERE blob.body IS NULL
)
SELECT wid FROM moved`

	// sqlAppendOne is sqlAppend of one world, one frame and no content, for half the time that it
	// takes the server: that is what an event is.
	sqlAppendOne = `
WITH moved AS (
	UPDATE worldkernel.world w SET head = $5, root = $6, seal = $7, sealed = w.epoch
	WHERE w.wid = $1 AND w.token = $2 AND w.head = $3 AND w.root = $4
	RETURNING w.wid, w.epoch
), frames AS (
	INSERT INTO worldkernel.frame (wid, first, last, epoch, was, body)
	SELECT wid, $8, $9, epoch, $4, $10 FROM moved
)
SELECT wid FROM moved`

	// sqlConfirm finds out, by a write, where an owner's world stands. Confirmed is false where
	// the token is not the owner's: then ours says whether it was when the statement began.
	sqlConfirm = `
WITH mine AS (
	UPDATE worldkernel.world SET epoch = epoch WHERE wid = $1 AND token = $2 RETURNING head, root
)
SELECT w.epoch, w.token = $2 AS ours, mine.head IS NOT NULL AS confirmed, coalesce(mine.head, 0),
       CASE WHEN octet_length(coalesce(mine.root, w.root)) = 32 THEN coalesce(mine.root, w.root) END
FROM worldkernel.world w LEFT JOIN mine ON true WHERE w.wid = $1`

	// sqlFrames reads frames from the one with a record on, up to the one that begins with another.
	// Here as below, NULL is in the place of what is longer than anything that was put.
	sqlFrames = `
SELECT first, last, CASE WHEN octet_length(was) = 32 THEN was END, CASE WHEN octet_length(body) <= $5 THEN body END FROM worldkernel.frame
WHERE wid = $1 AND first <= $3 AND first >= coalesce(
	(SELECT max(f.first) FROM worldkernel.frame f WHERE f.wid = $1 AND f.first <= $2), $2)
ORDER BY first LIMIT $4`

	sqlBlob = `SELECT body IS NULL, CASE WHEN octet_length(body) <= $3 THEN body END FROM worldkernel.blob WHERE wid = $1 AND hash = $2`

	sqlNotes = `
SELECT size, CASE WHEN octet_length(note) <= $5 THEN note END FROM worldkernel.note
WHERE wid = $1 AND size BETWEEN $2 AND $3 ORDER BY size LIMIT $4`

	sqlPutNote = `
WITH mine AS (UPDATE worldkernel.world SET epoch = epoch WHERE wid = $1 AND token = $2 RETURNING wid),
put AS (
	INSERT INTO worldkernel.note (wid, size, note) SELECT wid, $3, $4 FROM mine
	ON CONFLICT (wid, size) DO UPDATE SET note = excluded.note
)
SELECT wid FROM mine`

	sqlKeyring = `SELECT CASE WHEN octet_length(sealed) <= $2 THEN sealed END FROM worldkernel.keyring WHERE wid = $1`

	sqlPutKeyring = `
WITH mine AS (UPDATE worldkernel.world SET epoch = epoch WHERE wid = $1 AND token = $2 RETURNING wid),
put AS (
	INSERT INTO worldkernel.keyring (wid, sealed) SELECT wid, $3 FROM mine
	ON CONFLICT (wid) DO UPDATE SET sealed = excluded.sealed
)
SELECT wid FROM mine`

	// sqlRedact leaves a row without a body, where the world's head is the one that it was looked
	// at with: one that comes late, when a batch has brought the content again, does nothing.
	sqlRedact = `
WITH mine AS (
	UPDATE worldkernel.world SET epoch = epoch WHERE wid = $1 AND token = $2 RETURNING wid, head = $4 AS there
), put AS (
	INSERT INTO worldkernel.blob (wid, hash, body) SELECT wid, $3, NULL FROM mine WHERE there
	ON CONFLICT (wid, hash) DO UPDATE SET body = NULL
)
SELECT there FROM mine`

	// sqlPutPart puts a part where no image leads to it yet. It holds no lock that an append
	// waits for; that it is durable is known with sqlPutImage.
	sqlPutPart = `
WITH mine AS (SELECT wid FROM worldkernel.world WHERE wid = $1 AND token = $2 FOR KEY SHARE),
put AS (
	INSERT INTO worldkernel.image_part (wid, id, n, body) SELECT wid, $3, $4, $5 FROM mine
	ON CONFLICT DO NOTHING
)
SELECT wid FROM mine`

	// sqlPutImage puts an image, whose parts are there, in the place of the one before, which it
	// takes away with all parts that are no part of it. Where a part is missing, or its head is
	// not durable, it does nothing but say so.
	sqlPutImage = `
WITH mine AS (UPDATE worldkernel.world SET epoch = epoch WHERE wid = $1 AND token = $2 RETURNING wid, head),
checked AS (
	SELECT wid, head >= $4 AS durable,
	       (SELECT count(*) FROM worldkernel.image_part p WHERE p.wid = mine.wid AND p.id = $3) = $7 AS whole
	FROM mine
), good AS (
	SELECT wid FROM checked WHERE durable AND whole
), put AS (
	INSERT INTO worldkernel.image (wid, id, at, root, tree, parts, sum)
	SELECT wid, $3, $4, $5, $6, $7, $8 FROM good
	ON CONFLICT (wid) DO UPDATE SET id = excluded.id, at = excluded.at, root = excluded.root, tree = excluded.tree,
		parts = excluded.parts, sum = excluded.sum
), gone AS (
	DELETE FROM worldkernel.image_part p USING good WHERE p.wid = good.wid AND p.id <> $3
)
SELECT durable, whole FROM checked`

	sqlImage = `
SELECT id, at, CASE WHEN octet_length(root) = 32 THEN root END, CASE WHEN octet_length(tree) <= $2 THEN tree END, parts,
       CASE WHEN octet_length(sum) <= $2 THEN sum END FROM worldkernel.image WHERE wid = $1`

	sqlParts = `
SELECT CASE WHEN octet_length(body) <= $3 THEN body END FROM worldkernel.image_part WHERE wid = $1 AND id = $2 ORDER BY n`

	// sqlAttempts reads what is kept of attempts. A lease that is left is in microseconds.
	sqlAttempts = `
SELECT CASE WHEN octet_length(key) = 32 THEN key END, number, CASE WHEN octet_length(nonce) = 16 THEN nonce END,
       CASE WHEN octet_length(holder) <= 8192 THEN holder END,
       (extract(epoch FROM coalesce(lease_until - clock_timestamp(), '0')) * 1000000)::bigint,
       result IS NULL, CASE WHEN octet_length(result) <= $2 THEN result END
FROM worldkernel.attempt WHERE wid = $1`

	// sqlChangeAttempts begins attempts of one run ($3), ends some with results, prolongs leases
	// and forgets some; none is in it twice. It answers with a row, or with one for each that is
	// begun: for it writes those anew that the run had begun, and an answer was lost. Each says how
	// much is left of the lease of the owner's node: what it performs itself has that for its own. Its lock
	// stops no append; sqlClaim waits for it, or it for that, and then the token is another.
	sqlChangeAttempts = `
WITH mine AS (SELECT wid FROM worldkernel.world WHERE wid = $1 AND token = $2 FOR KEY SHARE),
lives AS (
	SELECT n.lease_until FROM worldkernel.world w JOIN worldkernel.node n ON n.node = w.node AND n.run = w.run WHERE w.wid = $1
), begun AS (
	INSERT INTO worldkernel.attempt AS a (wid, key, number, nonce, holder, lease_until)
	SELECT mine.wid, t.key, t.number, $3, t.holder,
	       CASE t.holder WHEN '' THEN (SELECT lease_until FROM lives) ELSE clock_timestamp() + t.lease * interval '1 microsecond' END
	FROM mine, unnest($4::bytea[], $5::bigint[], $6::text[], $7::bigint[]) AS t (key, number, holder, lease)
	ON CONFLICT (wid, key, number) DO UPDATE SET lease_until = excluded.lease_until
	WHERE a.nonce = excluded.nonce AND a.result IS NULL
	RETURNING a.key, a.number
), ended AS (
	INSERT INTO worldkernel.attempt (wid, key, number, nonce, holder, result)
	SELECT mine.wid, t.key, t.number, $3, '', t.result
	FROM mine, unnest($8::bytea[], $9::bigint[], $10::bytea[]) AS t (key, number, result)
	ON CONFLICT (wid, key, number) DO UPDATE SET result = excluded.result
), renewed AS (
	UPDATE worldkernel.attempt a SET lease_until = clock_timestamp() + t.lease * interval '1 microsecond'
	FROM mine, unnest($11::bytea[], $12::bigint[], $13::bigint[]) AS t (key, number, lease)
	WHERE a.wid = mine.wid AND a.key = t.key AND a.number = t.number
), forgotten AS (
	DELETE FROM worldkernel.attempt a
	USING mine, unnest($14::bytea[], $15::bigint[]) AS t (key, number)
	WHERE a.wid = mine.wid AND a.key = t.key AND a.number = t.number
)
SELECT begun.key, begun.number, coalesce((extract(epoch FROM (SELECT lease_until FROM lives) - clock_timestamp()) * 1000000)::bigint, 0)
FROM mine LEFT JOIN begun ON true`

	// sqlCheck finds the worlds whose rows cannot be so, whose frames do not reach from the first record to the head,
	// whose image lacks a part, or that have no keyring.
	sqlCheck = `
SELECT w.id, coalesce(w.fault, ''), coalesce(w.head, 0), coalesce(f.least, 1), coalesce(f.most, 0), coalesce(f.records, 0),
       coalesce(i.parts, 0), coalesce(p.parts, 0), w.keyring
FROM (SELECT w.id, w.wid, w.state, w.head, ` + sqlFault + ` AS fault,
	EXISTS (SELECT FROM worldkernel.keyring k WHERE k.wid = w.wid) AS keyring FROM worldkernel.world w) w
LEFT JOIN LATERAL (
	SELECT min(first) AS least, max(last) AS most, sum(last - first + 1)::bigint AS records
	FROM worldkernel.frame WHERE wid = w.wid
) f ON true
LEFT JOIN worldkernel.image i ON i.wid = w.wid
LEFT JOIN LATERAL (
	SELECT count(*) AS parts FROM worldkernel.image_part WHERE wid = w.wid AND id = i.id
) p ON true
WHERE w.fault IS NOT NULL OR w.state <> 'moved' AND (NOT w.keyring AND w.state = 'live' AND w.head > 0
	OR (coalesce(f.least, 1), coalesce(f.most, 0), coalesce(f.records, 0), coalesce(i.parts, 0)) <> (1, w.head, w.head, coalesce(p.parts, 0)))
ORDER BY w.id`
)
