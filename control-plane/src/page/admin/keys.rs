//! `/admin/keys`: the keys that applications call with. A key itself is nowhere: its hash is kept.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use common::pb::admin as pb;
use pb::key_service_server::KeyService as _;

use super::super::html::Html;
use super::fault::Fault;
use super::frame::{self, Updates};
use super::{Desk, Visit, moment};

/// All keys.
pub async fn list(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
) -> Result<Response, Fault> {
    let request = desk.request(&visit, "KeyService/ListKeys", pb::ListKeysRequest {})?;
    let keys = desk.admin.list_keys(request).await?.into_inner().keys;
    let view = |html: &mut Html| {
        if keys.is_empty() {
            return html.leaf("p", &[], "No key was made yet.");
        }
        frame::table(
            html,
            "keys-box",
            "Keys of applications",
            &["Key", "Name", "Made", "State", "Requests"],
            |html| {
                keys.iter().for_each(|key| row(html, key));
            },
        );
        let said = "Keys are made and revoked by sluice keys: a key is shown once, where it was made.";
        html.leaf("p", &[("class", "quiet")], said);
    };
    Ok(frame::page(&visit, "Keys", Updates::Never, view, |_| ()))
}

fn row(html: &mut Html, key: &pb::Key) {
    html.node("tr", &[], |html| {
        html.leaf("th", &[("scope", "row")], &key.id);
        html.leaf("td", &[], &key.name);
        html.leaf("td", &[], &moment(key.created_at_ms));
        match key.revoked_at_ms {
            0 => html.leaf("td", &[("class", "well")], "valid"),
            at_ms => html.leaf("td", &[("class", "none")], &format!("revoked {}", moment(at_ms))),
        }
        html.node("td", &[], |html| {
            let place = format!("/admin/requests?key={}", frame::encoded(&key.id));
            html.leaf("a", &[("href", &place)], "of the last hour");
        });
    });
}
