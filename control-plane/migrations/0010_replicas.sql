-- Control planes that share this database. One that was not heard of for seconds is gone, and so are its streams.
create table control_plane (
    id text primary key, -- the process
    name text not null, -- for people: its machine and the port of its fleet listener
    version text not null,
    started_at_ms bigint not null,
    seen_at_ms bigint not null -- by the clock of the database
);

-- At which control plane a node's stream is open: the process; '' for none; null where nobody has said it.
alter table node add column control_plane text;
alter table node add column streaming_since_ms bigint;
-- JSON: two processes that were found to speak as this node.
alter table node add column cloned text;
-- The version of the list of nodes with which the row was last written, so that others read what changed.
alter table node add column list_version bigint;

insert into part (kind, version) values ('nodes', 1);
