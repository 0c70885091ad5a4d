//! Changes a request body in places and copies nothing of it: what goes up are slices of the caller's buffer and the
//! replacements between them. Every byte outside an edit stays as the caller wrote it.

use std::ops::Range;

use bytes::Bytes;

/// One change of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What gives way; an empty span is an insertion.
    pub span: Range<usize>,
    /// What stands there instead.
    pub with: Bytes,
}

/// How a request says the name of its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a JSON string, quotes included. What stands in front of the name, as Google's `models/`, stays.
    String,
    /// Not at all: it becomes the first member of the object, where the one empty span is.
    Missing {
        /// No other member follows.
        is_only: bool,
    },
    /// As it is, without quotes: the value of a form's field.
    Bare,
}

/// The edits that put the upstream's name of a model in place of the one that was `asked` for.
pub fn renaming(
    body: &[u8],
    spans: &[Range<usize>],
    form: Form,
    upstream_model: &str,
    asked: &str,
) -> Vec<Edit> {
    let is_missing = matches!(form, Form::Missing { .. });
    if upstream_model == asked && !is_missing {
        return Vec::new();
    }
    let edit = |span: &Range<usize>| {
        let with = match form {
            Form::String => renamed(body.get(span.clone()).unwrap_or_default(), upstream_model, asked),
            Form::Missing { is_only } => member(upstream_model, is_only),
            Form::Bare => upstream_model.into(),
        };
        Edit { span: span.clone(), with: with.into() }
    };
    spans.iter().map(edit).collect()
}

/// The edited body, part by part and in order; none of them is empty. The edits may come in any order and do not
/// overlap.
pub fn apply(body: &Bytes, mut edits: Vec<Edit>) -> Vec<Bytes> {
    edits.sort_by_key(|edit| edit.span.start);
    let mut parts = Vec::with_capacity(2 * edits.len() + 1);
    let mut done = 0;
    for Edit { span, with } in edits {
        if span.start < done || span.end < span.start || span.end > body.len() {
            debug_assert!(false, "edits lie in the body and do not overlap");
            continue;
        }
        parts.push(body.slice(done..span.start));
        parts.push(with);
        done = span.end;
    }
    parts.push(body.slice(done..));
    parts.retain(|part| !part.is_empty());
    parts
}

fn renamed(token: &[u8], upstream_model: &str, asked: &str) -> Vec<u8> {
    let said: String = serde_json::from_slice(token).unwrap_or_default();
    quoted(&[said.strip_suffix(asked).unwrap_or_default(), upstream_model].concat())
}

fn member(model: &str, is_only: bool) -> Vec<u8> {
    let comma: &[u8] = if is_only { b"" } else { b"," };
    [b"\"model\":", quoted(model).as_slice(), comma].concat()
}

fn quoted(text: &str) -> Vec<u8> {
    // A string always has a JSON form.
    serde_json::to_vec(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edit(span: Range<usize>, with: &'static str) -> Edit {
        Edit { span, with: Bytes::from_static(with.as_bytes()) }
    }

    #[test]
    fn what_stands_in_front_of_the_name_stays() {
        let body = Bytes::from_static(br#"{"a":"models/m","b":"m"}"#);
        let edits = renaming(&body, &[5..15, 20..23], Form::String, "up\"/2", "m");
        assert_eq!(apply(&body, edits).concat(), &br#"{"a":"models/up\"/2","b":"up\"/2"}"#[..]);
    }

    #[test]
    fn a_missing_name_is_put_there_even_if_nothing_is_renamed() {
        let body = Bytes::from_static(b"{\"x\":1}");
        let missing = Form::Missing { is_only: false };
        let edits = renaming(&body, std::slice::from_ref(&(1..1)), missing, "m", "m");
        assert_eq!(apply(&body, edits).concat(), b"{\"model\":\"m\",\"x\":1}");
    }

    #[test]
    fn edits_of_any_order_are_made_where_they_belong_and_nothing_is_copied() {
        let body = Bytes::from_static(b"0123456789");
        let parts = apply(&body, vec![edit(8..10, "z"), edit(0..0, "a"), edit(3..5, "")]);
        assert_eq!(parts, ["a", "012", "567", "z"]);
        assert_eq!(parts[1].as_ptr(), body.as_ptr());
        assert_eq!(parts[2].as_ptr(), body[5..].as_ptr());
        let [whole] = apply(&body, Vec::new()).try_into().unwrap();
        assert_eq!((whole.as_ptr(), whole.len()), (body.as_ptr(), body.len()));
        assert_eq!(apply(&Bytes::new(), Vec::new()), Vec::<Bytes>::new());
    }

    proptest! {
        #[test]
        fn the_parts_are_the_body_with_the_edits_made(
            body in proptest::collection::vec(any::<u8>(), 0..64),
            cuts in proptest::collection::vec((0usize..64, ".{0,4}"), 0..6),
        ) {
            let mut places: Vec<usize> = cuts.iter().map(|(at, _)| *at % (body.len() + 1)).collect();
            places.sort_unstable();
            let spans: Vec<Range<usize>> = places.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
            let mut expected = body.clone();
            for (span, (_, with)) in spans.iter().zip(&cuts).rev() {
                expected.splice(span.clone(), with.bytes());
            }
            let edits = spans.into_iter().zip(&cuts);
            let edits = edits.map(|(span, (_, with))| Edit { span, with: with.clone().into() }).collect();
            prop_assert_eq!(apply(&Bytes::from(body), edits).concat(), expected);
        }
    }
}
