//! `sluice access`: who may call the control plane. A token itself is seen once, when it is made.

use serde::Serialize;

use common::pb::admin as pb;

use crate::args::{AccessCommand, AccessRole, ConnectArgs, Format, Ttl};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, clean, table, time};

#[derive(Serialize)]
struct CreatedJson<'a> {
    id: &'a str,
    token: &'a str,
    expires_at_ms: Option<i64>,
}

#[derive(Serialize)]
struct TokensJson<'a> {
    tokens: Vec<TokenJson<'a>>,
}

#[derive(Serialize)]
struct TokenJson<'a> {
    id: &'a str,
    name: &'a str,
    role: &'a str,
    created_at_ms: i64,
    created_by: &'a str,
    expires_at_ms: Option<i64>,
    revoked_at_ms: Option<i64>,
    last_used_at_ms: Option<i64>,
}

#[derive(Serialize)]
struct WhoamiJson<'a> {
    name: &'a str,
    role: &'a str,
    credential: &'a str,
    origin: &'a str,
}

/// Runs a command of the group.
pub async fn run(command: AccessCommand, connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    let conn = &Connection::open(connect).await?;
    match command {
        AccessCommand::Create { name, role, ttl } => {
            let ttl_seconds = match ttl {
                Ttl::Never => 0,
                Ttl::Seconds(seconds) => seconds,
            };
            let role = wire(role).into();
            create(pb::CreateAdminTokenRequest { name, role, ttl_seconds: Some(ttl_seconds) }, conn, output)
                .await
        }
        AccessCommand::List => list(conn, output).await,
        AccessCommand::Revoke { id } => revoke(id, conn, output).await,
        AccessCommand::Whoami => whoami(conn, output).await,
    }
}

async fn create(
    request: pb::CreateAdminTokenRequest,
    conn: &Connection,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let answer = conn.answer(conn.access().create_admin_token(request)).await.map_err(|s| conn.fault(&s))?;
    print_created(&answer, output)?;
    Ok(Exit::Done)
}

async fn list(conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let request = pb::ListAdminTokensRequest {};
    let answer = conn.answer(conn.access().list_admin_tokens(request)).await.map_err(|s| conn.fault(&s))?;
    if output.format() == Format::Json {
        output.json(&TokensJson { tokens: answer.tokens.iter().map(token_json).collect() })?;
    } else if answer.tokens.is_empty() {
        output.text("no tokens but that of the control plane's own file\n")?;
    } else {
        output.text(&tokens_table(&answer.tokens))?;
    }
    Ok(Exit::Done)
}

async fn revoke(id: String, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let request = pb::RevokeAdminTokenRequest { id };
    let answer = conn.answer(conn.access().revoke_admin_token(request)).await.map_err(|s| conn.fault(&s))?;
    let token = answer.token.unwrap_or_default();
    if output.format() == Format::Json {
        output.json(&token_json(&token))?;
    } else {
        output.text(&format!("revoked token {} ({})\n", clean(&token.id), clean(&token.name)))?;
    }
    Ok(Exit::Done)
}

async fn whoami(conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let request = pb::WhoAmIRequest {};
    let answer = conn.answer(conn.access().who_am_i(request)).await.map_err(|s| conn.fault(&s))?;
    let (pb::WhoAmIResponse { name, credential, origin, .. }, role) = (&answer, said(answer.role()));
    if output.format() == Format::Json {
        output.json(&WhoamiJson { name, role, credential, origin })?;
    } else {
        output.text(&format!(
            "{}, {role}, by {} from {}\n",
            clean(name),
            clean(credential),
            clean(origin)
        ))?;
    }
    Ok(Exit::Done)
}

fn print_created(answer: &pb::CreateAdminTokenResponse, output: &mut Output) -> Result<(), Fault> {
    let token = answer.token.clone().unwrap_or_default();
    if output.format() == Format::Json {
        let (id, expires_at_ms) = (&token.id, known(token.expires_at_ms));
        return Ok(output.json(&CreatedJson { id, token: &answer.secret, expires_at_ms })?);
    }
    output.text(&format!(
        "id       {}\nname     {}\nrole     {}\nexpires  {}\ntoken    {}\n",
        clean(&token.id),
        clean(&token.name),
        said(token.role()),
        known(token.expires_at_ms).map_or_else(|| "never".to_owned(), time),
        clean(&answer.secret)
    ))?;
    Ok(output.note("keep the token now: it cannot be shown again")?)
}

fn tokens_table(tokens: &[pb::AdminToken]) -> String {
    let at = |at_ms: i64, none: &str| known(at_ms).map_or_else(|| none.to_owned(), time);
    let rows = tokens.iter().map(|token| {
        vec![
            cell(&token.id),
            cell(&token.name),
            cell(said(token.role())),
            cell(time(token.created_at_ms)),
            cell(&token.created_by),
            cell(at(token.expires_at_ms, "never")),
            cell(at(token.revoked_at_ms, "-")),
            cell(at(token.last_used_at_ms, "-")),
        ]
    });
    table(&["ID", "NAME", "ROLE", "CREATED", "BY", "EXPIRES", "REVOKED", "LAST USED"], rows)
}

fn token_json(token: &pb::AdminToken) -> TokenJson<'_> {
    TokenJson {
        id: &token.id,
        name: &token.name,
        role: said(token.role()),
        created_at_ms: token.created_at_ms,
        created_by: &token.created_by,
        expires_at_ms: known(token.expires_at_ms),
        revoked_at_ms: known(token.revoked_at_ms),
        last_used_at_ms: known(token.last_used_at_ms),
    }
}

fn known(at_ms: i64) -> Option<i64> {
    (at_ms != 0).then_some(at_ms)
}

fn wire(role: AccessRole) -> pb::Role {
    match role {
        AccessRole::Viewer => pb::Role::Viewer,
        AccessRole::Operator => pb::Role::Operator,
        AccessRole::Admin => pb::Role::Admin,
    }
}

fn said(role: pb::Role) -> &'static str {
    match role {
        pb::Role::Viewer => "viewer",
        pb::Role::Operator => "operator",
        pb::Role::Admin => "admin",
        pb::Role::Unspecified => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Captured, plain};

    fn token() -> pb::AdminToken {
        pb::AdminToken {
            id: "tok-1".to_owned(),
            name: "ci".to_owned(),
            role: pb::Role::Operator.into(),
            created_at_ms: 1_796_046_279_000,
            created_by: "admin".to_owned(),
            ..pb::AdminToken::default()
        }
    }

    #[test]
    fn a_new_token_is_shown_once_and_says_what_it_may() {
        let answer = pb::CreateAdminTokenResponse { token: Some(token()), secret: "sla-abc".to_owned() };
        let (mut output, captured) = Captured::new(Format::Table);
        print_created(&answer, &mut output).unwrap();
        let want = "id       tok-1\nname     ci\nrole     operator\nexpires  never\ntoken    sla-abc\n";
        assert_eq!(captured.out(), want);
        assert!(captured.err().contains("cannot be shown again"));
        let (mut output, captured) = Captured::new(Format::Json);
        print_created(&answer, &mut output).unwrap();
        assert_eq!(captured.out(), "{\"id\": \"tok-1\", \"token\": \"sla-abc\", \"expires_at_ms\": null}\n");
    }

    #[test]
    fn a_list_tells_what_each_may_and_until_when() {
        let ended = pb::AdminToken { revoked_at_ms: 1_796_046_280_000, ..token() };
        let want = "\
ID     NAME  ROLE      CREATED               BY     EXPIRES  REVOKED               LAST USED
tok-1  ci    operator  2026-11-30T13:44:39Z  admin  never    -                     -
tok-1  ci    operator  2026-11-30T13:44:39Z  admin  never    2026-11-30T13:44:40Z  -
";
        assert_eq!(plain(&tokens_table(&[token(), ended])), want);
        let json = serde_json::to_value(token_json(&token())).unwrap();
        assert_eq!((&json["role"], &json["expires_at_ms"]), (&"operator".into(), &serde_json::Value::Null));
    }
}
