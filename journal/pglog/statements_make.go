package pglog

import "fmt"

// What is asked of the server where worlds are made and moved: as in statements.go.
const (
	// sqlCreate makes a world. Its token is the maker's, who can so find its own.
	sqlCreate = `
INSERT INTO worldkernel.world (id, token, root, seal, state, copies) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET epoch = world.epoch WHERE world.token = excluded.token
RETURNING wid`

	// sqlMakeOver begins to make a world that was moved away ($5, $6, $7: at a head, and where to) in its place, with
	// the maker's token, and puts aside what is remembered of it. What the move has left goes.
	sqlMakeOver = `
WITH those AS (
	UPDATE worldkernel.world SET state = 'made', token = $2, head = 0, root = $3, sealed = 0, seal = $4, copies = $8,
		left_head = head, left_root = root, left_sealed = sealed, left_seal = seal, node = NULL, run = NULL, due = NULL, wanted = NULL
	WHERE wid = $1 AND state = 'moved' AND head = $5 AND root = $6 AND coalesce(moved_to, '') = $7 RETURNING wid
), ` + sqlAll + `
SELECT wid FROM those UNION SELECT wid FROM worldkernel.world WHERE wid = $1 AND token = $2`

	// sqlUnmake takes away a world that was being made, with all that it has, if it still is and nobody has claimed
	// it. One that was made over what was moved away is that again; who made it has its token no more.
	sqlUnmake = `
WITH back AS (
	UPDATE worldkernel.world SET state = 'moved', token = gen_random_uuid(), node = NULL, run = NULL,
		head = left_head, root = left_root, sealed = left_sealed, seal = left_seal,
		left_head = NULL, left_root = NULL, left_sealed = NULL, left_seal = NULL
	WHERE wid = $1 AND token = $2 AND state = 'made' AND left_head IS NOT NULL RETURNING wid
), gone AS (
	DELETE FROM worldkernel.world WHERE wid = $1 AND token = $2 AND state = 'made' AND left_head IS NULL RETURNING wid
), those AS (
	SELECT wid FROM back UNION ALL SELECT wid FROM gone
), ` + sqlAll + `
SELECT wid FROM those`

	// sqlAll deletes all that worlds have beside their rows.
	sqlAll = `frames AS (
	DELETE FROM worldkernel.frame t USING those WHERE t.wid = those.wid
), blobs AS (
	DELETE FROM worldkernel.blob t USING those WHERE t.wid = those.wid
), notes AS (
	DELETE FROM worldkernel.note t USING those WHERE t.wid = those.wid
), images AS (
	DELETE FROM worldkernel.image t USING those WHERE t.wid = those.wid
), parts AS (
	DELETE FROM worldkernel.image_part t USING those WHERE t.wid = those.wid
), attempts AS (
	DELETE FROM worldkernel.attempt t USING those WHERE t.wid = those.wid
), keyrings AS (
	DELETE FROM worldkernel.keyring t USING those WHERE t.wid = those.wid
)`

	// sqlNextFrame finds where the frame begins that the record after one lies in, or will, and the chain
	// root before it.
	sqlNextFrame = `
SELECT first, was FROM worldkernel.frame WHERE wid = $1 AND first <= $2 + 1 AND last > $2
UNION ALL SELECT head + 1, root FROM worldkernel.world WHERE wid = $1 AND head = $2`

	// sqlInheritFrames has a world that is being made, and has no head yet, get some frames of another
	// ($3), after one record and up to another. It answers with the last record of them; 0: there are no more.
	sqlInheritFrames = `
WITH mine AS (
	SELECT wid, epoch FROM worldkernel.world WHERE wid = $1 AND token = $2 AND state = 'made' AND head = 0 FOR KEY SHARE
), page AS (
	SELECT * FROM worldkernel.frame WHERE wid = $3 AND first > $4 AND last <= $5 ORDER BY first LIMIT $6
), put AS (
	INSERT INTO worldkernel.frame (wid, first, last, epoch, was, body)
	SELECT mine.wid, page.first, page.last, mine.epoch, page.was, page.body FROM mine, page
	ON CONFLICT (wid, first) DO NOTHING
)
SELECT coalesce((SELECT max(last) FROM page), 0) FROM mine`

	// sqlInheritBlobs is the same of contents, after one hash. It answers with the last hash; NULL: there are no more.
	sqlInheritBlobs = `
WITH mine AS (
	SELECT wid FROM worldkernel.world WHERE wid = $1 AND token = $2 AND state = 'made' AND head = 0 FOR KEY SHARE
), page AS (
	SELECT * FROM worldkernel.blob WHERE wid = $3 AND hash > $4 ORDER BY hash LIMIT $5
), put AS (
	INSERT INTO worldkernel.blob (wid, hash, body) SELECT mine.wid, page.hash, page.body FROM mine, page
	ON CONFLICT (wid, hash) DO NOTHING
)
SELECT (SELECT hash FROM page ORDER BY hash DESC LIMIT 1) FROM mine`

	// sqlInherited gives it its head, if its frames have all records up to that, and says whether they have.
	sqlInherited = `
WITH mine AS (
	SELECT w.wid, (w.head = 0 OR w.head = $3 AND w.root = $4)
	       AND (SELECT coalesce(sum(last - first + 1), 0) FROM worldkernel.frame WHERE wid = $1) = $3 AS whole
	FROM worldkernel.world w WHERE w.wid = $1 AND w.token = $2 AND w.state = 'made' FOR UPDATE OF w
), put AS (
	UPDATE worldkernel.world w SET head = $3, root = $4, seal = $5, sealed = w.epoch
	FROM mine WHERE w.wid = mine.wid AND mine.whole
)
SELECT whole FROM mine`

	// sqlPublish makes a world live that was made. That it had moved away is over.
	sqlPublish = `
UPDATE worldkernel.world SET state = 'live', moved_to = NULL, left_head = NULL, left_root = NULL, left_sealed = NULL, left_seal = NULL
WHERE wid = $1 AND token = $2 AND state <> 'moved' RETURNING wid`

	// sqlMoveAway ends a world that lives elsewhere from now on.
	sqlMoveAway = `
UPDATE worldkernel.world SET state = 'moved', moved_to = $3 WHERE wid = $1 AND token = $2 RETURNING wid`

	// sqlForward names another place that a world is in which was moved away.
	sqlForward = `
UPDATE worldkernel.world SET moved_to = $3 WHERE id = $1 AND state = 'moved' AND moved_to IN ($2, $3) RETURNING wid`

	// sqlEmptyOf takes away some rows of a world, if it was moved away, and counts them.
	sqlEmptyOf = `
WITH gone AS (
	DELETE FROM worldkernel.%[1]s WHERE wid = $1 AND (wid, %[2]s) IN (
		SELECT t.wid, t.%[2]s FROM worldkernel.%[1]s t JOIN worldkernel.world w ON w.wid = t.wid
		WHERE t.wid = $1 AND w.state = 'moved' LIMIT $2
	) RETURNING 1
)
SELECT count(*) FROM gone`
)

// sqlEmpty takes away all that a world has that was moved away.
func sqlEmpty() (all []string) {
	for _, t := range [][2]string{
		{"frame", "first"}, {"blob", "hash"}, {"note", "size"}, {"image", "id"}, {"image_part", "n"}, {"attempt", "key"}, {"keyring", "sealed"},
	} {
		all = append(all, fmt.Sprintf(sqlEmptyOf, t[0], t[1]))
	}
	return all
}
