-- Which control plane does the periodic work of all. Times are the database's own; each write of that work names the
-- epoch under which it is done, and is nothing once another one has begun.
create table leader (
    id bigint primary key check (id = 1),
    holder text not null, -- the process; empty when there was none yet
    epoch bigint not null, -- grows whenever the lease is taken anew
    until_ms bigint not null
);

insert into leader (id, holder, epoch, until_ms) values (1, '', 0, 0);
