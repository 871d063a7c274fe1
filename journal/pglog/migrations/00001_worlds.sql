-- +goose Up
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
    lease_until timestamptz NOT NULL
);

-- Half of each page stays free: a head moves within its page, and no index is written.
CREATE TABLE worldkernel.world (
    wid    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id     text NOT NULL UNIQUE,
    state  text NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'made', 'moved')),
    node   text,
    run    uuid,
    busy   boolean NOT NULL DEFAULT false, -- it was not at rest when its last owner left
    epoch  bigint NOT NULL DEFAULT 0,
    token  uuid NOT NULL,
    head   bigint NOT NULL DEFAULT 0,
    root   bytea NOT NULL,
    sealed bigint NOT NULL DEFAULT 0, -- the epoch of the seal
    seal   bytea NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX ON worldkernel.world (node, run);

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
-- What is packed already is not packed again by the server.
ALTER TABLE worldkernel.frame ALTER COLUMN body SET STORAGE EXTERNAL;

-- +goose StatementBegin
DO $$
BEGIN
    FOR n IN 0..15 LOOP
        EXECUTE format('CREATE TABLE worldkernel.frame_%s PARTITION OF worldkernel.frame FOR VALUES WITH (MODULUS 16, REMAINDER %s)', n, n);
        EXECUTE format('ALTER TABLE worldkernel.frame_%s ALTER COLUMN body SET STORAGE EXTERNAL', n);
    END LOOP;
END $$;
-- +goose StatementEnd

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
