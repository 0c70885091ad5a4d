//! Where a request to Google's API names the model of its path once more, so that both say the same to an upstream
//! that has another name for it. Reads without a tree; everything else in the body is the upstream's matter.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::dialect::fields;
use crate::dialect::json::trimmed;
use crate::dialect::scan::{ScanFault, member, span};

/// The places where `model` stands in the body, quotes included, in order. A body that names another one is refused.
pub fn scan(body: &[u8], model: &str) -> Result<Vec<Range<usize>>, ScanFault> {
    let json = |error: &dyn std::fmt::Display| ScanFault::Json(error.to_string());
    if trimmed(body).is_empty() {
        return Err(ScanFault::Empty);
    }
    let text = std::str::from_utf8(body).map_err(|e| json(&e))?;
    let [own, requests, inner, inner_snake] =
        fields::object(text, ["model", "requests", "generateContentRequest", "generate_content_request"])
            .map_err(|e| json(&e))?;
    let mut names = Vec::from_iter(own);
    names.extend(inner.into_iter().chain(inner_snake).filter_map(named_in));
    // What is not of this form is the upstream's to refuse.
    let in_requests =
        requests.and_then(|raw| serde_json::Deserializer::from_str(raw).deserialize_seq(NamesInItems).ok());
    names.extend(in_requests.unwrap_or_default());

    let mut spans = Vec::with_capacity(names.len());
    for raw in names.into_iter().filter(|raw| *raw != "null") {
        let span = span(body, raw);
        let name = serde_json::from_str::<String>(raw).unwrap_or_default();
        if name != model && name.strip_prefix("models/") != Some(model) {
            return Err(member(body, "model", "the model in the path", span.start));
        }
        spans.push(span);
    }
    spans.sort_by_key(|span| span.start);
    Ok(spans)
}

/// The raw `model` of an object.
fn named_in(raw: &str) -> Option<&str> {
    if raw.starts_with('{') { fields::object(raw, ["model"]).ok()?[0] } else { None }
}

/// Keeps what the items of an array name, and not the items: there may be millions.
struct NamesInItems;

impl<'de> Visitor<'de> for NamesInItems {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut names = Vec::new();
        while let Some(item) = items.next_element::<&'de RawValue>()? {
            names.extend(named_in(item.get()));
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(body: &str) -> Result<Vec<&str>, String> {
        let spans = scan(body.as_bytes(), "m").map_err(|fault| fault.to_string())?;
        Ok(spans.into_iter().map(|span| &body[span]).collect())
    }

    #[test]
    fn the_model_is_found_wherever_google_wants_it_again() {
        for (body, names) in [
            (r#"{"contents":[{"parts":[{"text":"\"model\":\"x\""}]}]}"#, &[][..]),
            (r#"{"model":"models/m","content":{"model":"other"}}"#, &["\"models/m\""]),
            (r#"{"model": "m"}"#, &["\"m\""]),
            (r#"{"model":null,"requests":7}"#, &[]),
            (
                r#"{"requests":[{"model":"models/m","content":{}}, {"content":{}} ,{"model":"m"}],"model":"m"}"#,
                &["\"models/m\"", "\"m\"", "\"m\""],
            ),
            (r#"{"requests":[0,"model",{"model":"m"},[{"model":"x"}],null,{"model":null}]}"#, &["\"m\""]),
            (r#"{"generateContentRequest":{"model":"models/m","contents":[]}}"#, &["\"models/m\""]),
            (r#"{"generate_content_request":{"model":"models\/m"}}"#, &["\"models\\/m\""]),
        ] {
            assert_eq!(found(body).unwrap(), names, "{body}");
        }
    }

    #[test]
    fn a_body_that_names_another_model_or_is_no_object_is_refused() {
        for (body, says) in [
            ("", "empty"),
            (" \n", "empty"),
            ("[]", "not valid JSON"),
            (r#"{"contents":["#, "not valid JSON"),
            ("{\"contents\":\n[], \"model\":\"models/n\"}", "the model in the path (line 2, column 13)"),
            (r#"{"requests":[{"model":"n"}]}"#, "the model in the path"),
            (r#"{"model":7}"#, "the model in the path"),
        ] {
            let fault = found(body).unwrap_err();
            assert!(fault.contains(says), "{body}: {fault}");
        }
        assert!(matches!(scan(b"{\"a\":\"\xff\"}", "m"), Err(ScanFault::Json(_))));
    }
}
