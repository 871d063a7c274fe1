-- +goose Up
-- Ids are ordered by their bytes, whatever the database's locale says: lists of several stores are one by
-- that, and no upgrade of the server's library of locales changes what an index means.
ALTER TABLE worldkernel.world ALTER COLUMN id TYPE text COLLATE "C";
