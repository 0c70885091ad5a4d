//! A badge of a model: what its callers saw over a span, as a small picture for other pages.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};

use super::api::refused;
use super::html::Html;
use super::rates::{Tone, tone};
use super::view::Views;
use crate::observed::percent;

/// Wide enough for a character, about.
const CHARACTER: usize = 7;
const PAD: usize = 12;
const HEIGHT: &str = "20";

/// Answers with the badge of a model, of the last 24 hours.
pub async fn show(State(views): State<Arc<Views>>, Path(name): Path<String>) -> Response {
    let Some(name) = name.strip_suffix(".svg") else {
        return (StatusCode::NOT_FOUND, "a badge is at /badge/MODEL.svg\n").into_response();
    };
    let view = match views.look().await {
        Ok(view) => view,
        Err(error) => return refused(&error),
    };
    let Some(model) = view.model(2, name).filter(|model| !model.model.is_empty()) else {
        return (StatusCode::NOT_FOUND, "no such model\n").into_response();
    };
    let (served, failed) = (model.requests.served, model.requests.failed());
    let said = percent(served, failed).map_or("no data".to_owned(), |rate| format!("{rate} in 24 h"));
    let svg = draw(&model.model, &said, tone(model.requests.success_rate()));
    ([(CONTENT_TYPE, "image/svg+xml")], svg).into_response()
}

fn draw(name: &str, said: &str, tone: Option<Tone>) -> String {
    let wide = |text: &str| text.chars().count() * CHARACTER + PAD;
    let (left, right) = (wide(name), wide(said));
    let [all, left, right, name_at, said_at] =
        [left + right, left, right, left / 2, left + right / 2].map(|n| n.to_string());
    // White on each of them can be read.
    let colour = match tone {
        None => "#57606a",
        Some(Tone::Well) => "#1a7f37",
        Some(Tone::Fair) => "#8a5d00",
        Some(Tone::Bad) => "#b3211c",
    };
    let label = format!("{name}: {said}");
    let root = [
        ("xmlns", "http://www.w3.org/2000/svg"),
        ("width", all.as_str()),
        ("height", HEIGHT),
        ("role", "img"),
        ("aria-label", &label),
    ];
    Html::xml("svg", &root, |svg| {
        svg.leaf("title", &[], &label);
        for (x, width, fill) in [("0", &left, "#24292f"), (&*left, &right, colour)] {
            svg.leaf("rect", &[("x", x), ("width", width), ("height", HEIGHT), ("fill", fill)], "");
        }
        for (x, text) in [(&name_at, name), (&said_at, said)] {
            let place = [
                ("x", x.as_str()),
                ("y", "14"),
                ("fill", "#ffffff"),
                ("font-family", "system-ui, sans-serif"),
                ("font-size", "11"),
                ("text-anchor", "middle"),
            ];
            svg.leaf("text", &place, text);
        }
    })
}
