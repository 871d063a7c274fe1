-- +goose Up
-- What is remembered of a world that was moved away, with moved_to, while it is made again: what the
-- row is put back to where that does not come to its end. And by which other places know that it is
-- the world that they gave away.
ALTER TABLE worldkernel.world ADD COLUMN left_head bigint, ADD COLUMN left_root bytea,
    ADD COLUMN left_sealed bigint, ADD COLUMN left_seal bytea, ADD COLUMN copies text NOT NULL DEFAULT '';
