-- What a store consists of. All of it is made in one transaction, or nothing.
CREATE SCHEMA IF NOT EXISTS worldkernel;

CREATE TABLE worldkernel.meta (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL,
    store   uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO worldkernel.meta (version) VALUES (1);

-- A process that owns worlds. A run is one life of it.
CREATE TABLE worldkernel.node (
    node        text PRIMARY KEY,
    run         uuid NOT NULL,
    lease_until timestamptz NOT NULL,
    gives       boolean NOT NULL DEFAULT false, -- whether it gives up worlds that another wants: nodes do, and who runs one world does not
    url         text NOT NULL DEFAULT '', -- where it answers
    url_until   bigint NOT NULL DEFAULT 0, -- until when, by the node's own clock: microseconds since 1970
    seal        bytea NOT NULL DEFAULT '', -- the node's, over both
    version     text NOT NULL DEFAULT '', -- of the program
    resting     text NOT NULL DEFAULT '' -- the worlds that rest there because they cannot go on, a line each
);

-- Half of each page stays free: a head moves within its page, and no index is written. Ids are ordered by
-- their bytes, whatever the database's locale says: lists of several stores are one by that, and no upgrade
-- of the server's library of locales changes what an index means.
CREATE TABLE worldkernel.world (
    wid    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id     text COLLATE "C" NOT NULL UNIQUE,
    state  text NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'made', 'moved')),
    node   text,
    run    uuid,
    due    timestamptz, -- when it goes on by itself while nobody owns it; NULL: when it is asked for
    wanted text, -- the node that is to have it next
    epoch  bigint NOT NULL DEFAULT 0,
    token  uuid NOT NULL,
    head   bigint NOT NULL DEFAULT 0,
    root   bytea NOT NULL,
    sealed bigint NOT NULL DEFAULT 0, -- the epoch of the seal
    seal   bytea NOT NULL,
    -- Where it was moved to, for people and for who asks whether it was they; and what is remembered of it
    -- while it is made again: what the row is put back to where that does not come to its end.
    moved_to    text,
    left_head   bigint,
    left_root   bytea,
    left_sealed bigint,
    left_seal   bytea,
    copies      text NOT NULL DEFAULT '' -- by which other places know that it is the world that they gave away
) WITH (fillfactor = 50);
CREATE INDEX ON worldkernel.world (node, run);
CREATE INDEX world_due ON worldkernel.world (due) WHERE node IS NULL AND due IS NOT NULL;
CREATE INDEX world_wanted ON worldkernel.world (wanted) WHERE wanted IS NOT NULL;

-- Bodies are packed already: the server does not pack them again.
CREATE TABLE worldkernel.frame (
    wid   bigint NOT NULL,
    first bigint NOT NULL,
    last  bigint NOT NULL,
    epoch bigint NOT NULL,
    was   bytea NOT NULL, -- the chain root before the first record
    body  bytea NOT NULL,
    PRIMARY KEY (wid, first),
    CHECK (last >= first)
) PARTITION BY HASH (wid);
ALTER TABLE worldkernel.frame ALTER COLUMN body SET STORAGE EXTERNAL;
DO $$
BEGIN
    FOR n IN 0..15 LOOP
        EXECUTE format('CREATE TABLE worldkernel.frame_%s PARTITION OF worldkernel.frame FOR VALUES WITH (MODULUS 16, REMAINDER %s)', n, n);
        EXECUTE format('ALTER TABLE worldkernel.frame_%s ALTER COLUMN body SET STORAGE EXTERNAL', n);
    END LOOP;
END $$;

CREATE TABLE worldkernel.blob (
    wid  bigint NOT NULL,
    hash bytea NOT NULL,
    body bytea, -- NULL: redacted
    PRIMARY KEY (wid, hash)
);
ALTER TABLE worldkernel.blob ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE worldkernel.note (
    wid  bigint NOT NULL,
    size bigint NOT NULL,
    note bytea NOT NULL,
    PRIMARY KEY (wid, size)
);

CREATE TABLE worldkernel.image (
    wid   bigint PRIMARY KEY,
    id    uuid NOT NULL, -- of its parts
    at    bigint NOT NULL,
    root  bytea NOT NULL,
    tree  bytea NOT NULL,
    parts bigint NOT NULL,
    sum   bytea NOT NULL -- a seal over head, tree and all parts
);

CREATE TABLE worldkernel.image_part (
    wid  bigint NOT NULL,
    id   uuid NOT NULL,
    n    bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (wid, id, n)
);
ALTER TABLE worldkernel.image_part ALTER COLUMN body SET STORAGE EXTERNAL;

-- Attempts of effects, from when they are begun until the journal has their results. A row is
-- written two or three times: what stays free of a page keeps it there.
CREATE TABLE worldkernel.attempt (
    wid         bigint NOT NULL,
    key         bytea NOT NULL,
    number      bigint NOT NULL,
    nonce       bytea NOT NULL, -- of the run of a host that has begun it
    holder      text NOT NULL, -- the worker that it is lent to; empty: nobody
    lease_until timestamptz, -- of the worker, or of the owner where that performs it
    result      bytea, -- NULL: there is none yet
    PRIMARY KEY (wid, key, number)
) WITH (fillfactor = 70);

-- The keyrings of worlds, sealed with a passphrase that no server knows.
CREATE TABLE worldkernel.keyring (
    wid    bigint PRIMARY KEY,
    sealed bytea NOT NULL
);
