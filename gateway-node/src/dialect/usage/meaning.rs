//! What the members of a usage object mean, dialect by dialect: which number holds which other one in it, and how the
//! lookalikes of a dialect differ from it. Pure.

use std::fmt;

use common::limits::USAGE_COUNT_MAX;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Usage;

/// The dialects of OpenAI: what was cached and what was reasoned stand inside the numbers of tokens.
pub fn openai(object: &[u8], known: &Usage) -> Usage {
    let mut said = Said::default();
    each(object, &mut |within, name, count| {
        let place = match (within, name) {
            // Of servers that write both names, one is often zero.
            ("", "prompt_tokens" | "input_tokens") => &mut said.input,
            ("", "completion_tokens" | "output_tokens") => &mut said.output,
            ("", "total_tokens") => &mut said.total,
            ("prompt_tokens_details" | "input_tokens_details", "cached_tokens")
            | ("", "cached_tokens" | "prompt_cache_hit_tokens" | "cache_read_input_tokens") => {
                &mut said.cached
            }
            (
                "prompt_tokens_details" | "input_tokens_details",
                "cache_write_tokens" | "cache_creation_tokens",
            )
            | ("", "cache_creation_input_tokens") => &mut said.cache_write,
            ("completion_tokens_details" | "output_tokens_details", "reasoning_tokens")
            | ("", "reasoning_tokens") => &mut said.reasoning,
            ("billed_units" | "tokens", "input_tokens") => &mut said.input,
            ("billed_units" | "tokens", "output_tokens") => &mut said.output,
            ("" | "billed_units", "search_units") => &mut said.searches,
            ("", "seconds") => &mut said.seconds,
            _ => return,
        };
        *place = place.max(count);
    });
    said.usage(known)
}

/// Google's own API: thoughts and the results of tools stand beside the tokens of prompt and answer.
pub fn gemini(object: &[u8], known: &Usage) -> Usage {
    let mut said = Said::default();
    let mut by_tools = 0.0;
    each(object, &mut |within, name, count| {
        let place = match (within, name) {
            ("", "promptTokenCount") => &mut said.input,
            ("", "cachedContentTokenCount") => &mut said.cached,
            ("", "toolUsePromptTokenCount") => &mut by_tools,
            ("", "candidatesTokenCount" | "responseTokenCount") => &mut said.output,
            ("", "thoughtsTokenCount") => &mut said.reasoning,
            ("", "totalTokenCount") => &mut said.total,
            _ => return,
        };
        *place = count;
    });
    said.input += by_tools;
    // Unless their sum says that the thoughts are among the candidates.
    if said.total != said.input + said.output || said.reasoning > said.output {
        said.output += said.reasoning;
    }
    said.usage(known)
}

/// Messages: what was cached stands beside the other input. The events of a stream count up, and one that says how many
/// `input_tokens` there are says the whole input anew: lookalikes begin with a guess, or with one number for all.
pub fn anthropic(object: &[u8], known: &Usage) -> Usage {
    let (mut fresh, mut cached, mut written, mut output) = (None, None, None, None);
    let (mut parts_written, mut reasoning, mut searches) = (0.0, 0.0, 0.0);
    each(object, &mut |within, name, count| match (within, name) {
        ("", "input_tokens") => fresh = Some(count),
        ("", "cache_read_input_tokens") => cached = Some(count),
        ("", "cache_creation_input_tokens") => written = Some(count),
        ("cache_creation", _) => parts_written += count,
        ("", "output_tokens") => output = Some(count),
        ("output_tokens_details", "thinking_tokens" | "reasoning_tokens") => reasoning = count,
        ("server_tool_use", "web_search_requests") => searches = count,
        _ => {}
    });
    let written = written.or_else(|| (parts_written > 0.0).then_some(parts_written)).map(whole);
    let cached = cached.map(whole);
    let [old_cached, old_written] = match fresh {
        Some(_) => [0, 0],
        None => [known.cached_input, known.cache_write],
    };
    let known_fresh = known.input.saturating_sub(known.cached_input + known.cache_write);
    let fresh = fresh.map_or(known_fresh, whole);
    let (cached_input, cache_write) = (cached.unwrap_or(old_cached), written.unwrap_or(old_written));
    let mut usage = *known;
    if fresh + cached_input + cache_write > 0 {
        usage = Usage { input: fresh + cached_input + cache_write, cached_input, cache_write, ..usage };
    }
    if let Some(output) = output.map(whole).filter(|output| *output > 0) {
        usage.output = output;
    }
    usage.reasoning = usage.reasoning.max(whole(reasoning)).min(usage.output);
    usage.searches = usage.searches.max(whole(searches));
    usage
}

/// The numbers of one object, as they stand there. Whole numbers below [`USAGE_COUNT_MAX`] are exact.
#[derive(Debug, Default)]
struct Said {
    input: f64,
    cached: f64,
    cache_write: f64,
    output: f64,
    reasoning: f64,
    total: f64,
    searches: f64,
    seconds: f64,
}

impl Said {
    /// What they say; what was known if that is nothing.
    fn usage(mut self, known: &Usage) -> Usage {
        // Where tokens come in only there is often but a total.
        if self.input == 0.0 {
            self.input = (self.total - self.output).max(0.0);
        }
        // Some count as Anthropic does. A part that is larger than its whole stands beside it.
        if self.cached + self.cache_write > self.input {
            self.input += self.cached + self.cache_write;
        }
        // xAI counts the reasoning beside the completion; the total tells.
        let is_beside = self.total == self.input + self.output + self.reasoning;
        if self.reasoning > self.output || (is_beside && self.reasoning > 0.0) {
            self.output += self.reasoning;
        }
        let usage = Usage {
            input: whole(self.input),
            cached_input: whole(self.cached),
            cache_write: whole(self.cache_write),
            output: whole(self.output),
            reasoning: whole(self.reasoning),
            searches: whole(self.searches),
            audio_ms: whole(self.seconds * 1000.0),
        };
        if usage == Usage::default() { *known } else { usage }
    }
}

/// Rounded up: some write whole numbers as decimals.
fn whole(count: f64) -> u64 {
    count.ceil() as u64
}

/// Every number at the top of an object and in the objects there, with the name of the object around it.
fn each(object: &[u8], on_count: &mut dyn FnMut(&str, &str, f64)) {
    let seed = Members { within: "", depth: 0, on_count };
    // What came before a fault was read; the rest is not there.
    let _is_whole = seed.deserialize(&mut serde_json::Deserializer::from_slice(object)).is_ok();
}

struct Members<'n, 'f> {
    within: &'n str,
    depth: u8,
    on_count: &'f mut dyn FnMut(&str, &str, f64),
}

impl<'de> DeserializeSeed<'de> for Members<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// A value that stands under `within` in an object: only objects have members, only numbers count.
impl<'de> Visitor<'de> for Members<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(Name)? {
            if self.depth > 1 {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            map.next_value_seed(Value {
                within: self.within,
                name: name.unwrap_or_default(),
                depth: self.depth,
                on_count: &mut *self.on_count,
            })?;
        }
        Ok(())
    }
}

struct Value<'n, 'f> {
    within: &'n str,
    name: &'n str,
    depth: u8,
    on_count: &'f mut dyn FnMut(&str, &str, f64),
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_f64<E: de::Error>(self, count: f64) -> Result<(), E> {
        if (0.0..=USAGE_COUNT_MAX).contains(&count) {
            (self.on_count)(self.within, self.name, count);
        }
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> Result<(), E> {
        self.visit_f64(count as f64)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        Members { within: self.name, depth: self.depth + 1, on_count: self.on_count }.visit_map(map)
    }
}

/// The name of a member, where it stands there without escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<&'de str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E: de::Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Some(name))
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}
