-- +goose Up
-- The keyrings of worlds, sealed with a passphrase that no server knows.
CREATE TABLE worldkernel.keyring (
    wid    bigint PRIMARY KEY,
    sealed bytea NOT NULL
);
