//! `sluice keys`: create, list, revoke. A key itself is seen once, when it is made.

use serde::Serialize;

use common::pb::admin as pb;

use crate::args::{ConnectArgs, Format, KeysCommand};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, clean, table, time};

#[derive(Serialize)]
struct CreatedJson<'a> {
    id: &'a str,
    key: &'a str,
}

#[derive(Serialize)]
struct KeysJson<'a> {
    keys: Vec<KeyJson<'a>>,
}

#[derive(Serialize)]
struct KeyJson<'a> {
    id: &'a str,
    name: &'a str,
    created_at_ms: i64,
    revoked_at_ms: Option<i64>,
}

/// Runs a command of the group.
pub async fn run(command: KeysCommand, connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    let conn = &Connection::open(connect).await?;
    match command {
        KeysCommand::Create { name } => create(name, conn, output).await,
        KeysCommand::List => list(conn, output).await,
        KeysCommand::Revoke { id } => revoke(id, conn, output).await,
    }
}

async fn create(name: String, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let request = pb::CreateKeyRequest { name };
    let answer = conn.answer(conn.keys().create_key(request)).await.map_err(|s| conn.fault(&s))?;
    print_created(&answer, output)?;
    Ok(Exit::Done)
}

async fn list(conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let answer =
        conn.answer(conn.keys().list_keys(pb::ListKeysRequest {})).await.map_err(|s| conn.fault(&s))?;
    if output.format() == Format::Json {
        output.json(&KeysJson { keys: answer.keys.iter().map(key_json).collect() })?;
    } else if answer.keys.is_empty() {
        output.text("no keys\n")?;
    } else {
        output.text(&keys_table(&answer.keys))?;
    }
    Ok(Exit::Done)
}

async fn revoke(id: String, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let request = pb::RevokeKeyRequest { id };
    let answer = conn.answer(conn.keys().revoke_key(request)).await.map_err(|s| conn.fault(&s))?;
    let key = answer.key.unwrap_or_default();
    if output.format() == Format::Json {
        output.json(&key_json(&key))?;
    } else {
        output.text(&format!("revoked key {} ({})\n", clean(&key.id), clean(&key.name)))?;
    }
    Ok(Exit::Done)
}

fn print_created(answer: &pb::CreateKeyResponse, output: &mut Output) -> Result<(), Fault> {
    let key = answer.key.clone().unwrap_or_default();
    if output.format() == Format::Json {
        return Ok(output.json(&CreatedJson { id: &key.id, key: &answer.secret })?);
    }
    output.text(&format!(
        "id    {}\nname  {}\nkey   {}\n",
        clean(&key.id),
        clean(&key.name),
        clean(&answer.secret)
    ))?;
    Ok(output.note("keep the key now: it cannot be shown again")?)
}

fn keys_table(keys: &[pb::Key]) -> String {
    let rows = keys.iter().map(|key| {
        let revoked = revoked(key).map_or_else(|| "-".to_owned(), time);
        vec![cell(&key.id), cell(&key.name), cell(time(key.created_at_ms)), cell(revoked)]
    });
    table(&["ID", "NAME", "CREATED", "REVOKED"], rows)
}

fn key_json(key: &pb::Key) -> KeyJson<'_> {
    let pb::Key { id, name, created_at_ms, .. } = key;
    KeyJson { id, name, created_at_ms: *created_at_ms, revoked_at_ms: revoked(key) }
}

fn revoked(key: &pb::Key) -> Option<i64> {
    (key.revoked_at_ms != 0).then_some(key.revoked_at_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Captured, plain};

    fn key(revoked_at_ms: i64) -> pb::Key {
        pb::Key {
            id: "k1".to_owned(),
            name: "app".to_owned(),
            created_at_ms: 1_796_046_279_000,
            revoked_at_ms,
        }
    }

    #[test]
    fn a_new_key_is_shown_with_its_id_alone_in_json() {
        let (mut output, captured) = Captured::new(Format::Json);
        let answer = pb::CreateKeyResponse { key: Some(key(0)), secret: "sk-abc".to_owned() };
        print_created(&answer, &mut output).unwrap();
        assert_eq!(captured.out(), "{\"id\": \"k1\", \"key\": \"sk-abc\"}\n");
    }

    #[test]
    fn a_new_key_is_shown_with_a_warning_that_this_is_the_only_time() {
        let (mut output, captured) = Captured::new(Format::Table);
        let answer = pb::CreateKeyResponse { key: Some(key(0)), secret: "sk-abc".to_owned() };
        print_created(&answer, &mut output).unwrap();
        assert_eq!(captured.out(), "id    k1\nname  app\nkey   sk-abc\n");
        assert!(captured.err().contains("cannot be shown again"));
    }

    #[test]
    fn a_list_tells_valid_keys_from_revoked_ones() {
        let want = "\
ID  NAME  CREATED               REVOKED
k1  app   2026-11-30T13:44:39Z  -
k1  app   2026-11-30T13:44:39Z  2026-11-30T13:44:40Z
";
        assert_eq!(plain(&keys_table(&[key(0), key(1_796_046_280_000)])), want);
        let json = serde_json::to_value(key_json(&key(0))).unwrap();
        assert_eq!(json["revoked_at_ms"], serde_json::Value::Null);
    }
}
