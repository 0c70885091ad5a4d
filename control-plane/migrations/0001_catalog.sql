-- The one row that says which database this is. Nodes refuse a lower revision of an epoch and obey another epoch.
create table plane (
    id bigint primary key check (id = 1),
    epoch bigint not null,
    created_at_ms bigint not null
);

-- Revisions of the catalog: numbered from 1 without gaps, never changed. The snapshot is what nodes load,
-- compiled when the revision was made and passed on as it is.
create table revision (
    number bigint primary key check (number >= 1),
    sha256 bytea not null, -- of the document
    document bytea not null,
    snapshot_sha256 bytea not null, -- of the encoded snapshot before compression
    snapshot_zstd bytea not null,
    author text not null,
    message text not null,
    created_at_ms bigint not null
);

-- Keys that applications call with. Only the digest is kept.
create table client_key (
    id text primary key,
    name text not null,
    sha256 bytea not null unique,
    created_at_ms bigint not null,
    revoked_at_ms bigint -- null while the key is valid
);

-- Versions of those parts of a target that are no catalog revision; each change of the part adds one.
create table part (
    kind text primary key,
    version bigint not null
);

insert into part (kind, version) values ('keys', 1);
