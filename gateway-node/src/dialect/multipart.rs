//! Finds `model` and `stream` in a form (`multipart/form-data`, RFC 7578) without copying it and without a tree of it.
//! What readers of forms are known to take in different ways is refused: else an upstream could find another model in
//! a form than the one that was found here. No byte is looked at more often than a fixed number of times.

mod parts;

use http::{HeaderMap, header};

use super::openai_audio::{self, WORD_FORMATS};
use super::scan::{self, ScanFault, Scanned};
use super::splice::Form;
use parts::{Field, Parameters, Parts};

/// Finds what the walk needs to know of a request that is a form, or a JSON document where its type does not say so.
pub fn scan(headers: &HeaderMap, body: &[u8]) -> Result<Scanned, ScanFault> {
    scan_or(headers, body, None)
}

/// The same where a document that names no model means `unnamed`. A form always names one.
pub fn scan_or(headers: &HeaderMap, body: &[u8], unnamed: Option<&str>) -> Result<Scanned, ScanFault> {
    let content_type = content_type(headers)?;
    if is_multipart(content_type) {
        return scan_form(content_type, body);
    }
    let is_json = media(content_type).ends_with("json") || body.trim_ascii_start().starts_with(b"{");
    if is_json || body.trim_ascii().is_empty() {
        let scanned = scan::scan_or(body, unnamed)?;
        return Ok(Scanned { wants_text: openai_audio::wants_words(body), ..scanned });
    }
    Err(ScanFault::Type("must be multipart/form-data with a boundary, or application/json"))
}

/// Finds it in a form. Of a field that stands there more than once, each time with the same value, every place is given.
pub fn scan_form(content_type: &str, body: &[u8]) -> Result<Scanned, ScanFault> {
    let delimiter = delimiter(content_type)?;
    if body.trim_ascii().is_empty() {
        return Err(ScanFault::Empty);
    }
    let mut model: Option<&str> = None;
    let mut model_spans = Vec::new();
    let mut stream: Option<bool> = None;
    let mut format: Option<&str> = None;
    let mut parts = Parts::new(&delimiter, body);
    while let Some(part) = parts.next_part()? {
        let Some(field) = part.field()? else { continue };
        match field.name {
            b"model" => {
                let value = field.text("model").and_then(|value| match value {
                    "" => Err(field.fault("model", "a text that is not empty")),
                    value => Ok(value),
                })?;
                first_or_same(&mut model, value, "model", &field)?;
                model_spans.push(field.value.clone());
            }
            b"stream" => {
                let is_stream = match field.text("stream")? {
                    value if value.eq_ignore_ascii_case("true") || value == "1" => true,
                    value if value.eq_ignore_ascii_case("false") || matches!(value, "0" | "") => false,
                    _ => return Err(field.fault("stream", "true or false")),
                };
                first_or_same(&mut stream, is_stream, "stream", &field)?;
            }
            // Whether there is such a format, the upstream says.
            b"response_format" => format = field.text("response_format").ok().or(format),
            _ => {}
        }
    }
    Ok(Scanned {
        model: model.ok_or(ScanFault::NoModel)?.to_owned(),
        model_spans,
        model_form: Form::Bare,
        stream: stream.unwrap_or(false),
        stream_options: Vec::new(),
        wants_text: format.is_some_and(|format| WORD_FORMATS.contains(&format)),
    })
}

/// Whether a name, put in the place of a field's value, would be read as the line that divides the parts.
pub fn divides(headers: &HeaderMap, name: &str) -> bool {
    let delimiter = content_type(headers).and_then(delimiter);
    delimiter.is_ok_and(|delimiter| name.as_bytes().starts_with(&delimiter))
}

/// The one content type, or none. Of two an upstream might read the other.
fn content_type(headers: &HeaderMap) -> Result<&str, ScanFault> {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    match (types.next(), types.next()) {
        (_, Some(_)) => Err(ScanFault::Type("stands in the request twice")),
        (Some(one), None) => one.to_str().map_err(|_| ScanFault::Type("has bytes in it that are not ASCII")),
        (None, None) => Ok(""),
    }
}

fn first_or_same<T: PartialEq>(
    known: &mut Option<T>,
    value: T,
    param: &'static str,
    field: &Field<'_>,
) -> Result<(), ScanFault> {
    if known.as_ref().is_some_and(|first| *first != value) {
        return Err(ScanFault::Contradiction { param, place: field.place() });
    }
    *known = Some(value);
    Ok(())
}

/// A content type without its parameters.
pub(super) fn media(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_multipart(content_type: &str) -> bool {
    media(content_type).starts_with("multipart/")
}

/// How the line begins that divides the parts: two hyphens and the boundary.
fn delimiter(content_type: &str) -> Result<Vec<u8>, ScanFault> {
    if media(content_type) != "multipart/form-data" {
        return Err(ScanFault::Type("must be multipart/form-data where the body has parts"));
    }
    let mut boundary = None;
    for parameter in Parameters::behind(content_type.as_bytes()) {
        let parameter = parameter.map_err(ScanFault::Type)?;
        if parameter.is_named("boundary") && boundary.replace(parameter.value).is_some() {
            return Err(ScanFault::Type("names more than one boundary"));
        }
    }
    let boundary = boundary.filter(|boundary| !boundary.is_empty());
    let boundary = boundary.ok_or(ScanFault::Type("names no boundary"))?;
    let is_fit = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if !boundary.iter().all(is_fit) || boundary.ends_with(b" ") {
        return Err(ScanFault::Type("names a boundary with characters that none may have"));
    }
    Ok([b"--", boundary].concat())
}

#[cfg(test)]
mod tests;
