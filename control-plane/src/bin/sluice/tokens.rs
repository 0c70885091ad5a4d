//! `sluice tokens`: what nodes enrol with. A token itself is seen once, when it is made.

use std::collections::BTreeMap;

use serde::Serialize;

use common::pb::admin as pb;

use crate::args::{ConnectArgs, Format, TokensCommand};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, clean, table, time};

#[derive(Serialize)]
struct CreatedJson<'a> {
    id: &'a str,
    token: &'a str,
    expires_at_ms: i64,
}

#[derive(Serialize)]
struct TokensJson<'a> {
    tokens: Vec<TokenJson<'a>>,
}

#[derive(Serialize)]
struct TokenJson<'a> {
    id: &'a str,
    labels: BTreeMap<&'a str, &'a str>,
    uses_max: u64,
    uses: u64,
    created_at_ms: i64,
    expires_at_ms: i64,
    revoked_at_ms: Option<i64>,
}

/// Runs a command of the group.
pub async fn run(command: TokensCommand, connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    let conn = &Connection::open(connect).await?;
    match command {
        TokensCommand::Create { ttl, uses, labels } => {
            let labels = common::label::collect(labels).map_err(|fault| Fault::error(fault.to_string()))?;
            let labels = labels.into_iter().collect();
            let request = pb::CreateTokenRequest { ttl_seconds: ttl.as_secs().max(1), uses, labels };
            let call = conn.answer(conn.tokens().create_token(request)).await;
            print_created(&call.map_err(|status| conn.fault(&status))?, output)?;
            Ok(Exit::Done)
        }
        TokensCommand::List => list(conn, output).await,
        TokensCommand::Revoke { id } => revoke(id, conn, output).await,
    }
}

async fn list(conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let call = conn.answer(conn.tokens().list_tokens(pb::ListTokensRequest {})).await;
    let answer = call.map_err(|status| conn.fault(&status))?;
    if output.format() == Format::Json {
        output.json(&TokensJson { tokens: answer.tokens.iter().map(token_json).collect() })?;
    } else if answer.tokens.is_empty() {
        output.text("no tokens\n")?;
    } else {
        output.text(&tokens_table(&answer.tokens))?;
    }
    Ok(Exit::Done)
}

async fn revoke(id: String, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let call = conn.answer(conn.tokens().revoke_token(pb::RevokeTokenRequest { id })).await;
    let token = call.map_err(|status| conn.fault(&status))?.token.unwrap_or_default();
    if output.format() == Format::Json {
        output.json(&token_json(&token))?;
    } else {
        output.text(&format!("revoked token {}\n", clean(&token.id)))?;
    }
    Ok(Exit::Done)
}

fn print_created(answer: &pb::CreateTokenResponse, output: &mut Output) -> Result<(), Fault> {
    let token = answer.token.clone().unwrap_or_default();
    if output.format() == Format::Json {
        let expires_at_ms = token.expires_at_ms;
        return Ok(output.json(&CreatedJson { id: &token.id, token: &answer.secret, expires_at_ms })?);
    }
    output.text(&format!(
        "id       {}\nexpires  {}\ntoken    {}\n",
        clean(&token.id),
        time(token.expires_at_ms),
        clean(&answer.secret)
    ))?;
    Ok(output.note("keep the token now: it cannot be shown again")?)
}

fn tokens_table(tokens: &[pb::Token]) -> String {
    let rows = tokens.iter().map(|token| {
        let revoked = revoked(token).map_or_else(|| "-".to_owned(), time);
        let labels: BTreeMap<_, _> = token.labels.iter().collect();
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let labels = if labels.is_empty() { "-".to_owned() } else { labels.join(",") };
        vec![
            cell(&token.id),
            cell(format!("{}/{}", token.uses, token.uses_max)),
            cell(labels),
            cell(time(token.created_at_ms)),
            cell(time(token.expires_at_ms)),
            cell(revoked),
        ]
    });
    table(&["ID", ">USED", "LABELS", "CREATED", "EXPIRES", "REVOKED"], rows)
}

fn token_json(token: &pb::Token) -> TokenJson<'_> {
    TokenJson {
        id: &token.id,
        labels: token.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        uses_max: token.uses_max,
        uses: token.uses,
        created_at_ms: token.created_at_ms,
        expires_at_ms: token.expires_at_ms,
        revoked_at_ms: revoked(token),
    }
}

fn revoked(token: &pb::Token) -> Option<i64> {
    (token.revoked_at_ms != 0).then_some(token.revoked_at_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Captured, plain};

    fn token() -> pb::Token {
        pb::Token {
            id: "token-1".to_owned(),
            labels: [("zone".to_owned(), "eu".to_owned())].into(),
            uses_max: 5,
            uses: 2,
            created_at_ms: 1_796_046_279_000,
            expires_at_ms: 1_796_049_879_000,
            revoked_at_ms: 0,
        }
    }

    #[test]
    fn a_new_token_is_shown_once_with_its_id_and_its_end() {
        let answer = pb::CreateTokenResponse { token: Some(token()), secret: "enrol-abc".to_owned() };
        let (mut output, captured) = Captured::new(Format::Json);
        print_created(&answer, &mut output).unwrap();
        let json = "{\"id\": \"token-1\", \"token\": \"enrol-abc\", \"expires_at_ms\": 1796049879000}\n";
        assert_eq!(captured.out(), json);
        let (mut output, captured) = Captured::new(Format::Table);
        print_created(&answer, &mut output).unwrap();
        assert!(captured.out().contains("token    enrol-abc\n"), "{}", captured.out());
        assert!(captured.err().contains("cannot be shown again"));
    }

    #[test]
    fn a_list_says_what_is_left_of_each_token() {
        let want = "\
ID       USED  LABELS   CREATED               EXPIRES               REVOKED
token-1   2/5  zone=eu  2026-11-30T13:44:39Z  2026-11-30T14:44:39Z  -
";
        assert_eq!(plain(&tokens_table(&[token()])), want);
        let json = serde_json::to_value(token_json(&token())).unwrap();
        assert_eq!(
            (&json["labels"]["zone"], &json["revoked_at_ms"]),
            (&"eu".into(), &serde_json::Value::Null)
        );
    }
}
