-- +goose Up
-- Attempts of effects, from when they are begun until the journal has their results. A row is
-- written two or three times: what stays free of a page keeps it there.
CREATE TABLE worldkernel.attempt (
    wid         bigint NOT NULL,
    key         bytea NOT NULL,
    number      bigint NOT NULL,
    nonce       bytea NOT NULL, -- of the run of a host that has begun it
    holder      text NOT NULL, -- the worker that it is lent to; empty: nobody
    lease_until timestamptz, -- of the worker
    result      bytea, -- NULL: there is none yet
    PRIMARY KEY (wid, key, number)
) WITH (fillfactor = 70);
