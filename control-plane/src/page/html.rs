//! Writes HTML. Tags and names of attributes are the program's own; every text and every value of an
//! attribute is escaped, wherever it comes from. Pure.

/// Attributes of an element.
pub type Attributes<'a> = &'a [(&'static str, &'a str)];

/// HTML as it grows.
#[derive(Debug, Default)]
pub struct Html(String);

impl Html {
    /// A whole document.
    pub fn document(head: impl FnOnce(&mut Html), body: impl FnOnce(&mut Html)) -> String {
        let mut html = Html("<!doctype html>\n".to_owned());
        html.node("html", &[("lang", "en")], |html| {
            html.node("head", &[], head);
            html.node("body", &[], body);
        });
        html.0
    }

    /// A document of XML, whose root this is. XML escapes as HTML does.
    pub fn xml(root: &'static str, attributes: Attributes<'_>, inside: impl FnOnce(&mut Html)) -> String {
        let mut xml = Html("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n".to_owned());
        xml.node(root, attributes, inside);
        xml.0
    }

    /// A part of a document.
    #[cfg(test)]
    pub fn part(inside: impl FnOnce(&mut Html)) -> String {
        let mut html = Html::default();
        inside(&mut html);
        html.0
    }

    /// An element with others in it.
    pub fn node(&mut self, tag: &'static str, attributes: Attributes<'_>, inside: impl FnOnce(&mut Html)) {
        self.open(tag, attributes);
        inside(self);
        self.0 += "</";
        self.0 += tag;
        // Behind these a line break would show as a blank.
        self.0 += if matches!(tag, "a" | "small" | "span" | "strong") { ">" } else { ">\n" };
    }

    /// An element with nothing but text in it.
    pub fn leaf(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) {
        self.node(tag, attributes, |html| html.text(text));
    }

    /// An element that has no end: `meta`, `link`.
    pub fn void(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.open(tag, attributes);
        self.0 += "\n";
    }

    /// Text.
    pub fn text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.0 += "&amp;",
                '<' => self.0 += "&lt;",
                '>' => self.0 += "&gt;",
                '"' => self.0 += "&quot;",
                '\'' => self.0 += "&#39;",
                // HTML has no place for these, not even escaped.
                c if c.is_control() && !matches!(c, '\n' | '\t') => self.0.push(char::REPLACEMENT_CHARACTER),
                c => self.0.push(c),
            }
        }
    }

    fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.0 += "<";
        self.0 += tag;
        for (name, value) in attributes {
            self.0 += " ";
            self.0 += name;
            self.0 += "=\"";
            self.text(value);
            self.0 += "\"";
        }
        self.0 += ">";
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(text: &str) -> String {
        let mut html = Html::default();
        html.leaf("p", &[("title", text)], text);
        html.0
    }

    #[test]
    fn text_cannot_become_markup() {
        let want = "<p title=\"&lt;b&gt; &amp; &#39;&quot;\">&lt;b&gt; &amp; &#39;&quot;</p>\n";
        assert_eq!(written("<b> & '\""), want);
        assert_eq!(written("\0\x1b"), "<p title=\"\u{fffd}\u{fffd}\">\u{fffd}\u{fffd}</p>\n");
    }

    proptest! {
        #[test]
        fn whatever_the_text_there_is_one_element_with_one_attribute(text in any::<String>()) {
            let html = written(&text);
            let count = |c| html.matches(c).count();
            prop_assert_eq!((count('<'), count('>'), count('"'), count('\'')), (2, 2, 2, 0));
        }
    }
}
