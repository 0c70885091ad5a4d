//! Where a dialect's operations lie behind a channel's `base_url`: a template with `{operation}` for the dialect's own
//! path and `{model}` for the upstream's name of the model. Pure.

use std::borrow::Cow;

use crate::dialect::percent::encoded;

/// A template, taken apart once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Operation,
    Model,
}

impl Template {
    /// Reads a template; what is wrong with it is said in words.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            let (name, behind) = behind.split_once('}').ok_or("a { without its }")?;
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(match name {
                "operation" => Piece::Operation,
                "model" => Piece::Model,
                _ => return Err("only {operation} and {model} stand for something"),
            });
            rest = behind;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        let template = Template(pieces);
        let filled = template.fill("/x", "x");
        let is_path =
            filled.starts_with('/') && filled.parse::<http::Uri>().is_ok_and(|uri| uri.path() == filled);
        if is_path { Ok(template) } else { Err("no path") }
    }

    /// The path of an operation whose own path is `own`.
    pub fn fill(&self, own: &str, upstream_model: &str) -> String {
        let mut path = String::with_capacity(own.len() + upstream_model.len() + 48);
        for piece in &self.0 {
            path.push_str(&match piece {
                Piece::Text(text) => Cow::Borrowed(text.as_str()),
                Piece::Operation => Cow::Borrowed(own),
                Piece::Model => Cow::Owned(encoded(upstream_model)),
            });
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_with_the_operation_and_the_encoded_name_of_the_model() {
        let own = "/chat/completions";
        for (template, path) in [
            ("{operation}", "/chat/completions"),
            ("/openai/v1{operation}", "/openai/v1/chat/completions"),
            ("/openai/deployments/{model}{operation}", "/openai/deployments/a%20b%3F/chat/completions"),
            ("/v3/chat", "/v3/chat"),
            ("/{model}/{model}/x", "/a%20b%3F/a%20b%3F/x"),
        ] {
            assert_eq!(Template::parse(template).unwrap().fill(own, "a b?"), path, "{template}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in
            ["", "x", "/{m}", "/{model", "/a?b{operation}", "/a#b", "/a b", "{model}", "//x/{operation"]
        {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_the_catalog_takes_for_a_path_is_one_here(text in "(/|\\{operation\\})[a-z/{}%2.~:@-]{0,8}(\\{model\\}|\\{operation\\})?") {
            let document = format!(
                "[channels.a]\ndialects = [\"openai-chat\"]\nbase_url = \"https://a\"\npath = {text:?}\n\
                 [models.m]\nroutes = [{{ channel = \"a\", cost.order = 1 }}]\n"
            );
            if let Ok(checked) = common::catalog::parse(document.as_bytes()) {
                for path in &checked.catalog.compile(1).channels[0].paths {
                    proptest::prop_assert!(Template::parse(&path.template).is_ok(), "{}", path.template);
                }
            }
        }
    }
}
