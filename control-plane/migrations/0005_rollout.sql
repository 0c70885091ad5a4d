-- How each revision reaches, or reached, the fleet. The newest one counts. Every change is made over the version that
-- was read, so that of several who make one, one does.
create table rollout (
    revision bigint primary key,
    base bigint not null, -- the newest revision that the whole fleet may run; nodes of no open stage get it
    version bigint not null,
    is_under_way boolean not null,
    body text not null -- JSON: stages, members, state
);

-- Requests of a node by model and by the beginning of their window, for minutes: what rollouts are judged by.
create table node_count (
    at_ms bigint not null,
    node_id text not null,
    model text not null,
    served bigint not null,
    failed bigint not null, -- exhausted or cut
    primary key (at_ms, node_id, model)
);
