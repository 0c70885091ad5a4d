-- Credentials of channels, sealed with a key that is not in this database.
create table secret (
    name text primary key,
    version bigint not null, -- of the list when this value was set; never used twice
    key_id text not null, -- names the key; says nothing of it
    sealed bytea not null, -- nonce and ciphertext; name and version are authenticated with it
    created_at_ms bigint not null,
    created_by text not null,
    changed_at_ms bigint not null,
    changed_by text not null
);

insert into part (kind, version) values ('secrets', 1);
