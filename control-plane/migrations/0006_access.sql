-- What was changed, by whom, from where: appended in the transaction of the change, never altered. The digest of an
-- entry covers its columns and the digest of the entry before it.
create table audit (
    seq bigint primary key check (seq >= 1), -- from 1, without gaps
    at_ms bigint not null,
    actor text not null, -- name of who did it; 'sluice' for what the control plane did by itself
    role text not null,
    credential text not null, -- what the actor showed: never the secret
    origin text not null, -- address that the call came from
    action text not null,
    object text not null,
    before_value text, -- JSON
    after_value text, -- JSON
    revision bigint not null, -- that came of it; 0 when none did
    sha256 bytea not null
);

-- For what is listed by time.
create index audit_at_ms on audit (at_ms);

-- The one row that entries are claimed by: the newest entry's number and digest. Who has updated it appends alone until
-- the end of the transaction.
create table audit_head (
    id bigint primary key check (id = 1),
    seq bigint not null,
    sha256 bytea not null
);

-- Tokens that operators and programs call with. Only the digest is kept.
create table admin_token (
    id text primary key,
    name text not null,
    role text not null, -- viewer, operator or admin
    sha256 bytea not null unique,
    created_at_ms bigint not null,
    created_by text not null,
    expires_at_ms bigint, -- null: never
    revoked_at_ms bigint, -- null while nobody has revoked it
    last_used_at_ms bigint -- about; null before the first use
);

insert into part (kind, version) values ('access', 1);
