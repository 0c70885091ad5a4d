//! The parts of a form, their headers, and the parameters of those. Borrows everything and keeps nothing.
//!
//! ```text
//! preamble CRLF --boundary CRLF headers CRLF CRLF value CRLF --boundary CRLF … CRLF --boundary-- epilogue
//! ```

use std::ops::Range;

use memchr::{memchr, memmem};

use crate::dialect::scan::{Place, ScanFault};

/// The headers of a part are a few short lines: who sends more has forgotten their end.
const HEADERS_MAX: usize = 16 * 1024;

const END_OF_HEADERS: &[u8] = b"\r\n\r\n";

/// A form, part by part.
pub(super) struct Parts<'d, 'b> {
    body: &'b [u8],
    delimiter: memmem::Finder<'d>,
    /// Where the next part begins; `None` before the first.
    at: Option<usize>,
    number: usize,
    is_over: bool,
}

/// What stands between two delimiters.
pub(super) struct Part<'b> {
    body: &'b [u8],
    /// Where it begins in the body.
    start: usize,
    headers: &'b [u8],
    value: Range<usize>,
    number: usize,
}

/// A part that has a name.
pub(super) struct Field<'b> {
    pub(super) name: &'b [u8],
    /// Where its value stands in the body.
    pub(super) value: Range<usize>,
    text: &'b [u8],
    is_file: bool,
    is_encoded: bool,
    number: usize,
}

impl<'d, 'b> Parts<'d, 'b> {
    /// The parts of a body; `delimiter` is how the lines between them begin.
    pub(super) fn new(delimiter: &'d [u8], body: &'b [u8]) -> Self {
        Parts { body, delimiter: memmem::Finder::new(delimiter), at: None, number: 0, is_over: false }
    }

    /// The next part; `None` behind the last one, once the form was closed as it must be.
    pub(super) fn next_part(&mut self) -> Result<Option<Part<'b>>, ScanFault> {
        if self.at.is_none() {
            let first = self.find(0)?;
            let first = first.ok_or_else(|| self.fault("the boundary does not occur in the body", 0))?;
            self.divide(first)?;
        }
        let Some(start) = self.at.filter(|_| !self.is_over) else { return Ok(None) };
        self.number += 1;
        let Some(end) = self.find(start)? else {
            return Err(
                self.fault("it is not closed: the boundary with two hyphens behind it is missing", start)
            );
        };
        // The line end in front of a delimiter belongs to it.
        let part = end.checked_sub(2).and_then(|end| self.body.get(start..end));
        let part = part.ok_or_else(|| self.fault("there is nothing between two boundaries", start))?;
        let (headers, value) = self.open(part, start)?;
        self.divide(end)?;
        Ok(Some(Part { body: self.body, start, headers, value, number: self.number }))
    }

    /// The next delimiter: it begins a line.
    fn find(&self, from: usize) -> Result<Option<usize>, ScanFault> {
        let mut from = from;
        while let Some(rest) = self.body.get(from..) {
            let Some(at) = self.delimiter.find(rest).map(|at| from + at) else { return Ok(None) };
            let before = self.body.get(..at).unwrap_or_default();
            if before.is_empty() || before.ends_with(b"\r\n") {
                return Ok(Some(at));
            }
            if before.ends_with(b"\n") {
                return Err(self.fault("the line before a boundary does not end in CR LF", at));
            }
            // The next one can only begin a later line. To try every byte on the way there would take forever where a
            // boundary is a long row of the same character.
            let Some(line_end) = self.body.get(at..).and_then(|rest| memchr(b'\n', rest)) else {
                return Ok(None);
            };
            from = at + line_end + 1;
        }
        Ok(None)
    }

    /// Takes the delimiter at `at`: another part follows, or the form ends.
    fn divide(&mut self, at: usize) -> Result<(), ScanFault> {
        let behind = at + self.delimiter.needle().len();
        let rest = self.body.get(behind..).unwrap_or_default();
        let (is_last, rest) = rest.strip_prefix(b"--").map_or((false, rest), |rest| (true, rest));
        let padding = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let line = rest.get(padding..).unwrap_or_default();
        match line {
            [] | [b'\r' | b'\n', ..] if is_last => {
                self.is_over = true;
                self.at = Some(behind);
                match self.find(behind)? {
                    Some(again) => Err(self.fault("it goes on behind its end", again)),
                    None => Ok(()),
                }
            }
            [b'\r', b'\n', ..] => {
                self.at = Some(behind + padding + 2);
                Ok(())
            }
            _ => Err(self.fault("a boundary is not followed by CR LF, nor by two hyphens", behind)),
        }
    }

    /// Parts headers from value.
    fn open(&self, part: &'b [u8], start: usize) -> Result<(&'b [u8], Range<usize>), ScanFault> {
        let end = start + part.len();
        if part.starts_with(b"\r\n") {
            return Ok((&[], start + 2..end));
        }
        let head = part.get(..HEADERS_MAX).unwrap_or(part);
        let Some(len) = memmem::find(head, END_OF_HEADERS) else {
            let is_long = head.len() < part.len();
            let what = if is_long {
                "the headers of a part have more than 16 KiB"
            } else {
                "the headers of a part do not end in an empty line"
            };
            return Err(self.fault(what, start));
        };
        Ok((head.get(..len).unwrap_or_default(), start + len + END_OF_HEADERS.len()..end))
    }

    fn fault(&self, what: &'static str, byte: usize) -> ScanFault {
        ScanFault::Form { what, place: Place::Part { part: self.number, byte } }
    }
}

impl<'b> Part<'b> {
    /// The field that it is, if its headers name one.
    pub(super) fn field(&self) -> Result<Option<Field<'b>>, ScanFault> {
        let fault =
            |what| Err(ScanFault::Form { what, place: Place::Part { part: self.number, byte: self.start } });
        if has_bare_line_end(self.headers) {
            return fault("a header of a part does not end in CR LF");
        }
        let (mut name, mut is_file, mut is_encoded, mut is_described) = (None, false, false, false);
        let mut rest = self.headers;
        while !rest.is_empty() {
            let (header, after) = split_header(rest);
            rest = after;
            let Some((of, value)) = memchr(b':', header).and_then(|colon| header.split_at_checked(colon))
            else {
                return fault("a header of a part has no colon");
            };
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            if of.is_empty() || of.iter().any(|byte| !byte.is_ascii_graphic()) {
                return fault("a header of a part has no name, or one with blanks");
            }
            if of.eq_ignore_ascii_case(b"content-disposition") {
                if std::mem::replace(&mut is_described, true) {
                    return fault("a part has two Content-Disposition headers");
                }
                for parameter in Parameters::behind(value) {
                    let parameter = match parameter {
                        Ok(parameter) => parameter,
                        Err(what) => return fault(what),
                    };
                    if parameter.is_named("name") {
                        if name.replace(parameter.value).is_some() {
                            return fault("a part has two names");
                        }
                        if memchr(b'\\', parameter.value).is_some() {
                            return fault("the name of a part has a backslash in it");
                        }
                    } else if parameter.begins_with("name*") {
                        return fault("a part is named by \"name*\": that is not for forms");
                    }
                    is_file |= parameter.is_named("filename") || parameter.begins_with("filename*");
                }
            } else if of.eq_ignore_ascii_case(b"content-type") {
                let is_nested =
                    value.get(..10).is_some_and(|start| start.eq_ignore_ascii_case(b"multipart/"));
                if is_nested {
                    return fault("a part has parts of its own: send each file in a part of the form");
                }
            } else if of.eq_ignore_ascii_case(b"content-transfer-encoding") {
                is_encoded |=
                    ![&b"7bit"[..], b"8bit", b"binary"].iter().any(|plain| value.eq_ignore_ascii_case(plain));
            }
        }
        let text = self.body.get(self.value.clone()).unwrap_or_default();
        let field =
            |name| Field { name, value: self.value.clone(), text, is_file, is_encoded, number: self.number };
        Ok(name.map(field))
    }
}

impl<'b> Field<'b> {
    /// Its value, of a field that is no file.
    pub(super) fn text(&self, param: &'static str) -> Result<&'b str, ScanFault> {
        if self.is_file {
            return Err(self.fault(param, "a text and no file"));
        }
        if self.is_encoded {
            return Err(self.fault(param, "plain text in no transfer encoding"));
        }
        std::str::from_utf8(self.text).map_err(|_| self.fault(param, "valid UTF-8"))
    }

    pub(super) fn fault(&self, param: &'static str, must: &'static str) -> ScanFault {
        ScanFault::Member { param, must, place: self.place() }
    }

    pub(super) fn place(&self) -> Place {
        Place::Part { part: self.number, byte: self.value.start }
    }
}

fn has_bare_line_end(headers: &[u8]) -> bool {
    let mut before = 0;
    headers.iter().zip(headers.iter().skip(1).chain([&0])).any(|(byte, after)| {
        let is_bare = match byte {
            b'\n' => before != b'\r',
            b'\r' => *after != b'\n',
            _ => false,
        };
        before = *byte;
        is_bare
    })
}

/// The first header, with the lines that it goes on in, and the rest.
fn split_header(headers: &[u8]) -> (&[u8], &[u8]) {
    let mut lines = memmem::find_iter(headers, b"\r\n");
    let end = lines.find(|end| !matches!(headers.get(end + 2), Some(b' ' | b'\t')));
    let end = end.unwrap_or(headers.len());
    (headers.get(..end).unwrap_or_default(), headers.get(end + 2..).unwrap_or_default())
}

/// One `name=value` of a header.
pub(super) struct Parameter<'h> {
    name: &'h [u8],
    /// Without its quotes.
    pub(super) value: &'h [u8],
}

impl Parameter<'_> {
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    fn begins_with(&self, name: &str) -> bool {
        self.name.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
    }
}

/// The parameters of a header's value, each behind a semicolon. After a fault there are no more.
pub(super) struct Parameters<'h>(&'h [u8]);

impl<'h> Parameters<'h> {
    /// Those behind the first word of a value.
    pub(super) fn behind(value: &'h [u8]) -> Self {
        Parameters(memchr(b';', value).and_then(|at| value.get(at..)).unwrap_or_default())
    }

    fn read(&mut self) -> Result<Option<Parameter<'h>>, &'static str> {
        let rest = std::mem::take(&mut self.0).trim_ascii_start();
        if !rest.is_empty() && !rest.starts_with(b";") {
            return Err("something other than a semicolon stands behind a parameter");
        }
        let blanks = rest.iter().take_while(|byte| **byte == b';' || byte.is_ascii_whitespace()).count();
        let rest = rest.get(blanks..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        let is_end = |byte: &u8| matches!(byte, b'=' | b';') || byte.is_ascii_whitespace();
        let (name, rest) = rest.split_at(rest.iter().position(is_end).unwrap_or(rest.len()));
        let Some(value) = rest.trim_ascii_start().strip_prefix(b"=") else {
            self.0 = rest;
            return Ok(Some(Parameter { name, value: &[] }));
        };
        let value = value.trim_ascii_start();
        let (value, rest) = match value.strip_prefix(b"\"") {
            Some(quoted) => {
                let end = end_of_quoted(quoted).ok_or("the quotes around a parameter are not closed")?;
                (quoted.get(..end).unwrap_or_default(), quoted.get(end + 1..).unwrap_or_default())
            }
            None => {
                let is_end = |byte: &u8| *byte == b';' || byte.is_ascii_whitespace();
                value.split_at(value.iter().position(is_end).unwrap_or(value.len()))
            }
        };
        self.0 = rest;
        Ok(Some(Parameter { name, value }))
    }
}

impl<'h> Iterator for Parameters<'h> {
    type Item = Result<Parameter<'h>, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// Where the closing quote stands; a backslash takes the next byte's meaning.
fn end_of_quoted(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    text.iter().position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    })
}
