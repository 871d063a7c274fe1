-- +goose Up
-- Where a world was moved to, for people and for who asks whether it was they.
ALTER TABLE worldkernel.world ADD COLUMN moved_to text;
