//! `sluice ca`: the authorities that sign the nodes' certificates, and the change from one to the next.

use serde::Serialize;

use common::pb::admin as pb;

use crate::args::{AuthorityCommand, ConnectArgs, Format};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, clean, table, time};

/// So much of an id is enough for people.
const ID_SHOWN: usize = 16;

#[derive(Serialize)]
struct AuthoritiesJson<'a> {
    authorities: Vec<AuthorityJson<'a>>,
}

#[derive(Serialize)]
struct AuthorityJson<'a> {
    id: &'a str,
    is_signing: bool,
    expires_at_ms: i64,
    live_certificates: u64,
    certificate_pem: &'a str,
}

/// Runs a command of the group.
pub async fn run(
    command: AuthorityCommand,
    connect: &ConnectArgs,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let conn = &Connection::open(connect).await?;
    let authorities = match command {
        AuthorityCommand::List => {
            let call = conn.answer(conn.authorities().list_authorities(pb::ListAuthoritiesRequest {})).await;
            call.map_err(|status| conn.fault(&status))?.authorities
        }
        AuthorityCommand::Rotate => {
            let call = conn.answer(conn.authorities().rotate_authority(pb::RotateAuthorityRequest {})).await;
            call.map_err(|status| conn.fault(&status))?.authorities
        }
    };
    print(&authorities, output)?;
    Ok(Exit::Done)
}

fn print(authorities: &[pb::Authority], output: &mut Output) -> Result<(), Fault> {
    if output.format() == Format::Json {
        let authorities = authorities.iter().map(|authority| AuthorityJson {
            id: &authority.id,
            is_signing: authority.is_signing,
            expires_at_ms: authority.expires_at_ms,
            live_certificates: authority.live_certificates,
            certificate_pem: &authority.certificate_pem,
        });
        return Ok(output.json(&AuthoritiesJson { authorities: authorities.collect() })?);
    }
    if authorities.is_empty() {
        return Ok(output.text("no authority: nodes show the token that all of them share\n")?);
    }
    let rows = authorities.iter().map(|authority| {
        let does = if authority.is_signing { "signs" } else { "trusted" };
        let id = clean(&authority.id);
        vec![
            cell(id.get(..ID_SHOWN).unwrap_or(&id)),
            cell(does),
            cell(authority.live_certificates.to_string()),
            cell(time(authority.expires_at_ms)),
        ]
    });
    Ok(output.text(&table(&["AUTHORITY", "STATE", ">LIVE CERTIFICATES", "EXPIRES"], rows))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Captured, plain};

    #[test]
    fn a_list_tells_who_signs_and_who_is_still_needed() {
        let authority = |id: &str, is_signing, live_certificates| pb::Authority {
            id: id.repeat(64),
            is_signing,
            expires_at_ms: 1_796_046_279_000,
            live_certificates,
            certificate_pem: "PEM".to_owned(),
        };
        let both = [authority("a", true, 0), authority("b", false, 12)];
        let (mut output, captured) = Captured::new(Format::Table);
        print(&both, &mut output).unwrap();
        let want = "\
AUTHORITY         STATE    LIVE CERTIFICATES  EXPIRES
aaaaaaaaaaaaaaaa  signs                    0  2026-11-30T13:44:39Z
bbbbbbbbbbbbbbbb  trusted                 12  2026-11-30T13:44:39Z
";
        assert_eq!(plain(&captured.out()), want);
        let (mut output, captured) = Captured::new(Format::Json);
        print(&both, &mut output).unwrap();
        let json: serde_json::Value = serde_json::from_str(&captured.out()).unwrap();
        assert_eq!(
            (&json["authorities"][1]["live_certificates"], &json["authorities"][0]["is_signing"]),
            (&12.into(), &true.into())
        );
    }
}
