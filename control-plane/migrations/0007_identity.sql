-- Tokens by which nodes enrol. Only the digest is kept.
create table enrolment_token (
    id text primary key,
    sha256 bytea not null unique,
    labels text not null, -- JSON object: what every node that enrols with it is labelled
    uses_max bigint not null,
    uses bigint not null,
    created_at_ms bigint not null,
    expires_at_ms bigint not null,
    revoked_at_ms bigint -- null while it is not revoked
);

-- Nodes that have a certificate of their own, and nodes that are revoked. A row speaks of the newest certificate; the
-- key stays the same over renewals.
create table node_identity (
    node_id text primary key,
    key_sha256 bytea not null, -- of the public key; empty: it was revoked before it ever had one
    authority_sha256 bytea not null, -- public key of the authority that signed
    serial text not null,
    token_id text not null, -- with which it enrolled; '': the one that all nodes share
    labels text not null, -- JSON object, from the token
    enrolled_at_ms bigint not null,
    issued_at_ms bigint not null,
    expires_at_ms bigint not null,
    revoked_at_ms bigint -- null while it is not revoked
);

insert into part (kind, version) values ('identities', 1);
