//! `sluice secret`: set, list, delete, rekey. A value is read from stdin or a file, sent, and shown nowhere.

use std::io::{IsTerminal as _, Read};
use std::path::Path;

use serde::Serialize;
use tonic::{Code, Status};
use zeroize::Zeroizing;

use common::pb::admin as pb;
use common::secret::{SECRET_BYTES_MAX, Secret};

use crate::args::{ConnectArgs, Format, SecretCommand};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, clean, plural, table, time};

/// Room for blanks around a value of the greatest length.
const READ_BYTES_MAX: u64 = SECRET_BYTES_MAX as u64 + 1024;

#[derive(Serialize)]
struct SecretsJson<'a> {
    secrets: Vec<SecretJson<'a>>,
}

#[derive(Serialize)]
struct SecretJson<'a> {
    name: &'a str,
    version: u64,
    key_id: &'a str,
    created_at_ms: i64,
    created_by: &'a str,
    changed_at_ms: i64,
    changed_by: &'a str,
    used_by: Vec<UseJson<'a>>,
}

#[derive(Serialize)]
struct UseJson<'a> {
    channel: &'a str,
    revision: u64,
}

#[derive(Serialize)]
struct RekeyedJson<'a> {
    resealed: u32,
    key_id: &'a str,
}

/// Runs a command of the group.
pub async fn run(command: SecretCommand, connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    // Before anything is asked of the server: a pipe may not wait for ever.
    let value = match &command {
        SecretCommand::Set { from_file, .. } => Some(read(from_file.as_deref())?),
        SecretCommand::List | SecretCommand::Delete { .. } | SecretCommand::Rekey => None,
    };
    let conn = &Connection::open(connect).await?;
    match command {
        SecretCommand::Set { name, .. } => set(name, value, conn, output).await,
        SecretCommand::List => list(conn, output).await,
        SecretCommand::Delete { name, force } => delete(name, force, conn, output).await,
        SecretCommand::Rekey => rekey(conn, output).await,
    }
}

fn read(from_file: Option<&Path>) -> Result<Secret, Fault> {
    let name = from_file.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
    let stdin = std::io::stdin();
    if from_file.is_none() && stdin.is_terminal() {
        return Err(Fault::error("stdin is a terminal, which would show the value").help(
            "give a file by --from-file, or pipe the value in: read -rs V; printf %s \"$V\" | sluice secret set NAME",
        ));
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(SECRET_BYTES_MAX + 1024));
    let reading = match from_file {
        Some(path) => {
            std::fs::File::open(path).and_then(|file| file.take(READ_BYTES_MAX).read_to_end(&mut bytes))
        }
        None => stdin.lock().take(READ_BYTES_MAX).read_to_end(&mut bytes),
    };
    reading.map_err(|cause| Fault::error(format!("cannot read {name}: {cause}")))?;
    Secret::parse_bytes(&bytes).map_err(|unusable| Fault::error(format!("the value from {name} {unusable}")))
}

async fn set(
    name: String,
    value: Option<Secret>,
    conn: &Connection,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let value = value.map(|value| value.expose().as_bytes().to_vec()).unwrap_or_default();
    let request = pb::SetSecretRequest { name, value };
    let answer = conn.answer(conn.secrets().set_secret(request)).await.map_err(|s| conn.fault(&s))?;
    let secret = answer.secret.unwrap_or_default();
    if output.format() == Format::Json {
        output.json(&secret_json(&secret))?;
    } else {
        output.text(&format!("secret {} set, version {}\n", clean(&secret.name), secret.version))?;
    }
    Ok(Exit::Done)
}

async fn list(conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let request = pb::ListSecretsRequest {};
    let answer = conn.answer(conn.secrets().list_secrets(request)).await.map_err(|s| conn.fault(&s))?;
    if output.format() == Format::Json {
        output.json(&SecretsJson { secrets: answer.secrets.iter().map(secret_json).collect() })?;
    } else if answer.secrets.is_empty() {
        output.text("no secrets\n")?;
    } else {
        output.text(&secrets_table(&answer.secrets))?;
    }
    Ok(Exit::Done)
}

async fn delete(name: String, force: bool, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let request = pb::DeleteSecretRequest { name, force };
    let answer = conn.answer(conn.secrets().delete_secret(request)).await;
    let answer = answer.map_err(|status| refused(&status, conn))?;
    let secret = answer.secret.unwrap_or_default();
    if output.format() == Format::Json {
        output.json(&secret_json(&secret))?;
    } else {
        output.text(&format!("deleted secret {}\n", clean(&secret.name)))?;
    }
    Ok(Exit::Done)
}

fn refused(status: &Status, conn: &Connection) -> Fault {
    let fault = conn.fault(status);
    if status.code() != Code::FailedPrecondition {
        return fault;
    }
    fault.help("apply a catalog without it and let every node take that, or suspend its channels by --force")
}

async fn rekey(conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let request = pb::RekeySecretsRequest {};
    let answer = conn.answer(conn.secrets().rekey_secrets(request)).await.map_err(|s| conn.fault(&s))?;
    let pb::RekeySecretsResponse { resealed, key_id } = answer;
    if output.format() == Format::Json {
        output.json(&RekeyedJson { resealed, key_id: &key_id })?;
    } else {
        let count = plural(resealed as usize, "secret", "secrets");
        output.text(&format!("{count} sealed anew; all are sealed with key {} now\n", clean(&key_id)))?;
    }
    Ok(Exit::Done)
}

fn secrets_table(secrets: &[pb::Secret]) -> String {
    let rows = secrets.iter().map(|secret| {
        let uses = secret.used_by.iter().map(|one| format!("{} ({})", one.channel, one.revision));
        let uses = uses.collect::<Vec<_>>().join(", ");
        vec![
            cell(&secret.name),
            cell(secret.version.to_string()),
            cell(time(secret.changed_at_ms)),
            cell(&secret.changed_by),
            cell(time(secret.created_at_ms)),
            cell(if uses.is_empty() { "-" } else { &uses }),
        ]
    });
    table(&["NAME", "VERSION", "CHANGED", "BY", "CREATED", "USED BY (REVISION)"], rows)
}

fn secret_json(secret: &pb::Secret) -> SecretJson<'_> {
    let pb::Secret { name, version, key_id, created_at_ms, created_by, changed_at_ms, changed_by, used_by } =
        secret;
    SecretJson {
        name,
        version: *version,
        key_id,
        created_at_ms: *created_at_ms,
        created_by,
        changed_at_ms: *changed_at_ms,
        changed_by,
        used_by: used_by
            .iter()
            .map(|one| UseJson { channel: &one.channel, revision: one.revision })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::plain;

    #[test]
    fn a_list_says_who_set_what_when_and_who_uses_it() {
        let secret = pb::Secret {
            name: "reseller".to_owned(),
            version: 7,
            key_id: "0123456789abcdef".to_owned(),
            created_at_ms: 1_796_046_279_000,
            created_by: "ann".to_owned(),
            changed_at_ms: 1_796_046_280_000,
            changed_by: "bob".to_owned(),
            used_by: vec![pb::SecretUse { channel: "cheap".to_owned(), revision: 42 }],
        };
        let unused = pb::Secret { name: "old".to_owned(), used_by: vec![], ..secret.clone() };
        let want = "\
NAME      VERSION  CHANGED               BY   CREATED               USED BY (REVISION)
reseller  7        2026-11-30T13:44:40Z  bob  2026-11-30T13:44:39Z  cheap (42)
old       7        2026-11-30T13:44:40Z  bob  2026-11-30T13:44:39Z  -
";
        assert_eq!(plain(&secrets_table(&[secret.clone(), unused])), want);
        let json = serde_json::to_value(secret_json(&secret)).unwrap();
        assert_eq!(json["used_by"], serde_json::json!([{"channel": "cheap", "revision": 42}]));
    }

    #[test]
    fn a_value_is_read_from_a_file_without_the_blanks_around_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("value");
        std::fs::write(&path, "sk-hidden\n").unwrap();
        assert_eq!(read(Some(&path)).unwrap().expose(), "sk-hidden");
        for faulty in ["\n", "sk-hidden\nsk-hidden", &"x".repeat(20_000)] {
            std::fs::write(&path, faulty).unwrap();
            let fault = format!("{:?}", read(Some(&path)).unwrap_err());
            assert!(!fault.contains("sk-hidden"), "{fault}");
        }
        assert!(read(Some(&dir.path().join("missing"))).is_err());
    }
}
