//! `/admin/catalog`: the history of revisions, the document of one, and what changes in meaning from one to another. A document
//! names where credentials are; none stands in it.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use common::pb::admin as pb;
use pb::catalog_service_server::CatalogService as _;
use serde::Deserialize;

use super::super::html::Html;
use super::fault::Fault;
use super::frame::{self, Updates};
use super::{Desk, Visit, moment};

/// So many revisions stand on one page.
const LISTED: u32 = 50;

/// The query string of the history.
#[derive(Debug, Deserialize)]
pub struct AskHistory {
    /// Only revisions below this one.
    #[serde(default)]
    before: u64,
}

/// The query string of a comparison.
#[derive(Debug, Deserialize)]
pub struct AskDiff {
    from: u64,
    to: u64,
}

/// The history.
pub async fn history(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
    ask: Result<Query<AskHistory>, QueryRejection>,
) -> Result<Response, Fault> {
    let Query(AskHistory { before }) = ask.map_err(|fault| Fault::invalid(fault.body_text()))?;
    let ask = pb::ListRevisionsRequest { limit: LISTED, before };
    let request = desk.request(&visit, "CatalogService/ListRevisions", ask)?;
    let revisions = desk.admin.list_revisions(request).await?.into_inner().revisions;
    let view = |html: &mut Html| {
        let (Some(newest), Some(oldest)) = (revisions.first(), revisions.last()) else {
            return html.leaf(
                "p",
                &[],
                if before == 0 { "No revision was applied yet." } else { "There is none before." },
            );
        };
        let head = ["Revision", "Applied", "Author", "Message", "Changes"];
        frame::table(html, "history-box", "Revisions, the newest first", &head, |html| {
            revisions.iter().for_each(|revision| row(html, revision));
        });
        if oldest.number > 1 {
            let place = format!("/admin/catalog?before={}", oldest.number);
            html.node("p", &[], |html| html.leaf("a", &[("href", &place)], "Older revisions"));
        }
        frame::section(html, "compare", "Compare two revisions", |html| {
            html.node("form", &[("action", "/admin/catalog/diff"), ("class", "ask")], |html| {
                let (from, to) =
                    (newest.number.saturating_sub(1).max(1).to_string(), newest.number.to_string());
                for (name, label, value) in [("from", "From revision", from), ("to", "to revision", to)] {
                    html.leaf("label", &[("for", name)], label);
                    html.void(
                        "input",
                        &[
                            ("type", "number"),
                            ("min", "1"),
                            ("id", name),
                            ("name", name),
                            ("value", &value),
                            ("required", ""),
                        ],
                    );
                }
                html.leaf("button", &[("type", "submit")], "Compare");
            });
        });
    };
    Ok(frame::page(&visit, "Catalog", Updates::Never, view, |_| ()))
}

fn row(html: &mut Html, revision: &pb::Revision) {
    let number = revision.number;
    html.node("tr", &[], |html| {
        html.node("th", &[("scope", "row")], |html| {
            html.leaf("a", &[("href", &format!("/admin/catalog/{number}"))], &number.to_string());
        });
        html.leaf("td", &[], &applied(revision));
        html.leaf("td", &[], &revision.author);
        html.leaf(
            "td",
            &[("class", "long")],
            if revision.message.is_empty() { "–" } else { &revision.message },
        );
        html.node("td", &[], |html| match number {
            0 | 1 => html.text("the first"),
            _ => {
                let place = format!("/admin/catalog/diff?from={}&to={number}", number - 1);
                html.leaf("a", &[("href", &place)], &format!("since {}", number - 1));
            }
        });
    });
}

fn applied(revision: &pb::Revision) -> String {
    moment(revision.created_at_ms)
}

/// The document of one revision.
pub async fn document(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
    number: Result<Path<u64>, PathRejection>,
) -> Result<Response, Fault> {
    let Path(number) = number.map_err(|_| Fault::not_found())?;
    let request =
        desk.request(&visit, "CatalogService/GetCatalog", pb::GetCatalogRequest { revision: number })?;
    let pb::GetCatalogResponse { revision, document } = desk.admin.get_catalog(request).await?.into_inner();
    let revision = revision.unwrap_or_default();
    let view = |html: &mut Html| {
        frame::facts(
            html,
            [
                ("Applied", applied(&revision)),
                ("Author", revision.author.clone()),
                ("Message", revision.message.clone()),
                ("SHA-256 of the document", revision.sha256.clone()),
            ],
        );
        html.node("p", &[], |html| {
            if revision.number > 1 {
                let before = revision.number - 1;
                let place = format!("/admin/catalog/diff?from={before}&to={}", revision.number);
                html.leaf("a", &[("href", &place)], &format!("What changed since revision {before}"));
                html.text(" · ");
            }
            html.leaf("a", &[("href", "/admin/catalog")], "All revisions");
        });
        let attributes = [
            ("class", "document"),
            ("id", "document"),
            ("role", "group"),
            ("aria-label", "Document"),
            ("tabindex", "0"),
        ];
        html.leaf("pre", &attributes, &String::from_utf8_lossy(&document));
    };
    Ok(frame::page(&visit, &format!("Revision {}", revision.number), Updates::Never, view, |_| ()))
}

/// What changes from one revision to another.
pub async fn diff(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
    ask: Result<Query<AskDiff>, QueryRejection>,
) -> Result<Response, Fault> {
    let Query(AskDiff { from, to }) = ask.map_err(|fault| Fault::invalid(fault.body_text()))?;
    let ask = pb::DiffCatalogRequest { from, to: Some(pb::diff_catalog_request::To::Revision(to)) };
    let request = desk.request(&visit, "CatalogService/DiffCatalog", ask)?;
    let answer = desk.admin.diff_catalog(request).await?.into_inner();
    let (from, to) = (answer.from, answer.to);
    let view = |html: &mut Html| {
        html.node("p", &[], |html| {
            let back = format!("/admin/catalog/diff?from={to}&to={from}");
            html.leaf("a", &[("href", &back)], "The other way round");
            html.text(" · ");
            html.leaf("a", &[("href", "/admin/catalog")], "All revisions");
        });
        if answer.changes.is_empty() {
            return html.leaf("p", &[], "Both mean the same.");
        }
        let head = ["What", "Before", "After"];
        frame::table(html, "changes-box", "What changes in meaning", &head, |html| {
            for pb::Change { path, before, after } in &answer.changes {
                html.node("tr", &[], |html| {
                    html.leaf("th", &[("scope", "row")], path);
                    value(html, before.as_deref(), "before");
                    value(html, after.as_deref(), "after");
                });
            }
        });
    };
    Ok(frame::page(&visit, &format!("Revision {from} → {to}"), Updates::Never, view, |_| ()))
}

fn value(html: &mut Html, value: Option<&str>, class: &str) {
    match value {
        Some(value) => html.leaf("td", &[("class", class)], value),
        None => html.leaf("td", &[("class", "none")], "nothing"),
    }
}
