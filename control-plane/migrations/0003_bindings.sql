-- Things with an id, which go back to the channel that made them: stored responses, videos. Only the key that made one
-- may use it.
create table binding (
    dialect text not null,
    id text not null, -- as the upstream gave it
    key_id text not null, -- the client key; empty for callers without one
    channel text not null,
    model text not null, -- under which calls for it are counted
    made_at_ms bigint not null,
    primary key (id, key_id, dialect)
);

-- For what is forgotten by age.
create index binding_made_at_ms on binding (made_at_ms);
