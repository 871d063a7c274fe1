-- +goose Up
-- Ids are ordered by their bytes, whatever the database's locale says: lists of several stores are one by
-- that, and no upgrade of the server's library of locales changes what an index means.
ALTER TABLE worldkernel.world ALTER COLUMN id TYPE text COLLATE "C";

-- Whether a process gives up worlds that another wants: nodes do, and who runs one world does not.
ALTER TABLE worldkernel.node ADD COLUMN gives boolean NOT NULL DEFAULT false;
