-- Nodes that an operator keeps on a revision, whatever the rollouts say.
create table node_pin (
    node_id text primary key,
    revision bigint not null,
    author text not null, -- name of who pinned it
    reason text not null, -- '' for none
    pinned_at_ms bigint not null
);

insert into part (kind, version) values ('pins', 1);
