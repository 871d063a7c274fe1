-- +goose Up
-- What others have to know of a node: where it answers, and of which version it is.
ALTER TABLE worldkernel.node ADD COLUMN url text NOT NULL DEFAULT '', ADD COLUMN version text NOT NULL DEFAULT '';

-- When a world that nobody owns goes on by itself (NULL: when it is asked for), and which node is
-- to have it next.
ALTER TABLE worldkernel.world ADD COLUMN due timestamptz, ADD COLUMN wanted text;
UPDATE worldkernel.world SET due = '-infinity' WHERE busy;
ALTER TABLE worldkernel.world DROP COLUMN busy;
CREATE INDEX world_due ON worldkernel.world (due) WHERE node IS NULL AND due IS NOT NULL;
CREATE INDEX world_wanted ON worldkernel.world (wanted) WHERE wanted IS NOT NULL;
