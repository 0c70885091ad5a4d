//! What all admin pages have: their head, the way to the others, who has logged in, and tables and forms that look the
//! same. Pure.

use axum::response::{Html as Page, IntoResponse as _, Response};

use super::super::html::Html;
use super::Visit;

const PAGES: [(&str, &str); 6] = [
    ("/admin/models", "Models"),
    ("/admin/catalog", "Catalog"),
    ("/admin/rollouts", "Rollouts"),
    ("/admin/nodes", "Nodes"),
    ("/admin/requests", "Requests"),
    ("/admin/keys", "Keys"),
];

/// Whether an open page shows by itself what is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updates {
    /// It is told.
    ByItself,
    /// What it shows does not change.
    Never,
}

/// A page: what there is to see, and below it what can be done. The second part is left alone while somebody writes in it.
pub fn page(
    visit: &Visit,
    title: &str,
    updates: Updates,
    view: impl FnOnce(&mut Html),
    acts: impl FnOnce(&mut Html),
) -> Response {
    let html = Html::document(
        |html| {
            head(html, title);
            if updates == Updates::ByItself {
                html.leaf("script", &[("src", "/assets/live.js"), ("defer", "")], "");
            }
        },
        |html| {
            html.node("header", &[], |html| top(html, visit, updates));
            html.node("main", &[], |html| {
                html.leaf("h1", &[], title);
                html.node("div", &[("id", "view")], view);
                html.node("div", &[("id", "acts")], acts);
            });
        },
    );
    Page(html).into_response()
}

/// What stands in the head of each page.
pub fn head(html: &mut Html, title: &str) {
    html.void("meta", &[("charset", "utf-8")]);
    html.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    html.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    html.leaf("title", &[], &format!("{title} – Sluice"));
    html.void("link", &[("rel", "stylesheet"), ("href", "/assets/sluice.css")]);
    html.void("link", &[("rel", "icon"), ("href", "/assets/sluice.svg")]);
}

fn top(html: &mut Html, visit: &Visit, updates: Updates) {
    html.node("nav", &[("aria-label", "Pages")], |html| {
        html.node("ul", &[("class", "pages")], |html| {
            html.node("li", &[], |html| html.leaf("a", &[("href", "/")], "Status"));
            for (path, name) in PAGES {
                let is_here = visit
                    .path
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
                let here = [("href", path), ("aria-current", "page")];
                html.node("li", &[], |html| html.leaf("a", &here[..if is_here { 2 } else { 1 }], name));
            }
        });
    });
    let caller = visit.caller();
    form(html, visit, "/admin/logout", "leave", |html| {
        html.leaf("span", &[("class", "quiet")], &format!("{} ({})", caller.name, caller.role));
        html.leaf("button", &[("type", "submit")], "Log out");
    });
    if updates == Updates::ByItself {
        // The script says something else here.
        let attributes =
            [("class", "quiet"), ("id", "live"), ("role", "status"), ("data-events", "/admin/events")];
        html.leaf("p", &attributes, "Load this page again to see what is new.");
    }
}

/// A form that changes something; it carries what shows that it is of this session.
pub fn form(html: &mut Html, visit: &Visit, action: &str, class: &str, inside: impl FnOnce(&mut Html)) {
    html.node("form", &[("method", "post"), ("action", action), ("class", class)], |html| {
        html.void(
            "input",
            &[("type", "hidden"), ("name", "form_token"), ("value", &visit.session.form_token)],
        );
        inside(html);
    });
}

/// A section under a heading of its own.
pub fn section(html: &mut Html, id: &str, title: &str, inside: impl FnOnce(&mut Html)) {
    html.node("section", &[("aria-labelledby", id)], |html| {
        html.leaf("h2", &[("id", id)], title);
        inside(html);
    });
}

/// A table, in a box that the keyboard reaches where it is wider than the window. `id` is the box's.
pub fn table(html: &mut Html, id: &str, caption: &str, head: &[&str], rows: impl FnOnce(&mut Html)) {
    let attributes =
        [("class", "scroll"), ("id", id), ("role", "group"), ("aria-label", caption), ("tabindex", "0")];
    html.node("div", &attributes, |html| {
        html.node("table", &[("class", "wide")], |html| {
            html.leaf("caption", &[], caption);
            html.node("thead", &[], |html| {
                html.node("tr", &[], |html| {
                    head.iter().for_each(|name| html.leaf("th", &[("scope", "col")], name));
                });
            });
            html.node("tbody", &[], rows);
        });
    });
}

/// Facts with their names.
pub fn facts<'a>(html: &mut Html, facts: impl IntoIterator<Item = (&'a str, String)>) {
    html.node("dl", &[("class", "summary")], |html| {
        for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
            html.node("div", &[], |html| {
                html.leaf("dt", &[], name);
                html.leaf("dd", &[], &value);
            });
        }
    });
}

/// A name as a part of a path or of a query.
pub fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(byte))
            }
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_name_is_it_is_one_part_of_a_path() {
        for (name, said) in [
            ("gpt-4o", "gpt-4o"),
            ("openai/gpt-4o", "openai%2Fgpt-4o"),
            ("a b?c#d&e=\"<", "a%20b%3Fc%23d%26e%3D%22%3C"),
            ("é", "%C3%A9"),
        ] {
            assert_eq!(encoded(name), said);
        }
    }
}
