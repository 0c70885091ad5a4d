//! What a channel says of its upstream: `profile`, `auth`, `path`, `overrides`, `limits`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::catalog::field;
use crate::catalog::keys::{AUTH, OVERRIDE};
use crate::catalog::read::{Value, path_to};
use crate::catalog::site::{Place, Report, Site, Table};
use crate::class::FailureClass;
use crate::dialect::Dialect;
use crate::profile::{Auth, Limits, Override, PROFILES, Profile};

/// The longest code, and part of a message, of a rule.
const RULE_TEXT_BYTES_MAX: usize = 256;
/// Each error of a channel is held against all of them.
const RULES_MAX: usize = 100;

pub(super) fn profile(channel: &Table<'_>, report: &mut Report) -> Option<&'static Profile> {
    let site = channel.site("profile")?;
    let name = site.text(report)?;
    let profile = Profile::find(name);
    if profile.is_none() {
        let names = PROFILES.iter().map(|profile| profile.name);
        report.unknown(&site.place, format!("no such profile {name:?}"), name, names);
    }
    profile
}

pub(super) fn auth(channel: &Table<'_>, report: &mut Report) -> Option<Auth> {
    let site = channel.site("auth")?;
    let Value::Text(name) = &site.node.value else {
        return placed(&site, report);
    };
    let named = Auth::NAMED.into_iter().find(|(known, _)| known == name).map(|(_, auth)| auth);
    match &named {
        None => {
            let names = Auth::NAMED.map(|(name, _)| name);
            let message = format!(
                "must be one of \"{}\", or a table such as {{ header = \"X-Key\" }} or {{ query = \"key\" }}, not {name:?}",
                names.join("\", \"")
            );
            report.unknown(&site.place, message, name, names);
        }
        Some(Auth::None) if channel.site("credential").is_some() => {
            report.fault(
                &site.place,
                "\"none\" shows nothing, and the channel has a credential: leave one of them out",
            );
        }
        Some(_) => {}
    }
    named
}

/// A header or a parameter of the author's own.
fn placed(site: &Site<'_>, report: &mut Report) -> Option<Auth> {
    let table = site.table(&AUTH, report)?;
    let prefix = table.site("prefix");
    match (table.site("header"), table.site("query")) {
        (Some(header), None) => {
            let name = checked(&header, field::auth_header, report);
            let prefix = match prefix {
                Some(site) => checked(&site, field::auth_prefix, report)?,
                None => String::new(),
            };
            Some(Auth::Header { name: Cow::Owned(name?), prefix: Cow::Owned(prefix) })
        }
        (None, Some(query)) => {
            if let Some(prefix) = prefix {
                report.fault(
                    &prefix.place,
                    "stands before a credential in a header, and this one is in the query",
                );
            }
            let name = checked(&query, field::auth_parameter, report)?;
            Some(Auth::Query { name: Cow::Owned(name) })
        }
        _ => site.refuse("must name either a `header` or a parameter of the `query`", report),
    }
}

fn checked(
    site: &Site<'_>,
    check: impl Fn(&str) -> Result<String, field::Refused>,
    report: &mut Report,
) -> Option<String> {
    check(site.text(report)?).map_or_else(|refused| site.refuse(refused, report), Some)
}

/// One template for every dialect that the channel speaks, or a table of them by dialect.
pub(super) fn paths(
    channel: &Table<'_>,
    speaks: &[Dialect],
    report: &mut Report,
) -> BTreeMap<Dialect, String> {
    let mut paths = BTreeMap::new();
    let Some(site) = channel.site("path") else { return paths };
    if !matches!(site.node.value, Value::Table(_)) {
        let Some(template) = site.text(report) else { return paths };
        if is_path(&site.place, template, speaks, report) {
            paths.extend(speaks.iter().map(|dialect| (*dialect, template.to_owned())));
        }
        return paths;
    }
    let Some(table) = site.entries(report) else { return paths };
    for (name, site) in table.sites() {
        let Some(template) = site.text(report) else { continue };
        match name.parse::<Dialect>() {
            Err(unknown) => {
                let names = Dialect::ALL.iter().map(|dialect| dialect.as_str());
                report.unknown(&site.place, unknown.to_string(), name, names);
            }
            Ok(dialect) if !speaks.contains(&dialect) => {
                report.warn(&site.place, format!("is never used, for the channel does not speak {dialect}"));
            }
            Ok(dialect) => {
                if is_path(&site.place, template, &[dialect], report) {
                    paths.insert(dialect, template.to_owned());
                }
            }
        }
    }
    paths
}

fn is_path(at: &Place, template: &str, dialects: &[Dialect], report: &mut Report) -> bool {
    if let Err(refused) = field::path(template) {
        report.fault(at, refused);
        return false;
    }
    if template.contains("{operation}") || dialects.is_empty() {
        return true;
    }
    let why = match dialects {
        [dialect] if dialect.has_one_path() => return true,
        [dialect] => format!("{dialect} has several operations"),
        _ => "the channel speaks several dialects".to_owned(),
    };
    report.fault(
        at,
        format!("must hold {{operation}}, the dialect's own path: {why}, and all of them would go there"),
    );
    false
}

pub(super) fn limits(channel: &Table<'_>, report: &mut Report) -> Option<Limits> {
    let site = channel.site("limits")?;
    let text = site.text(report)?;
    let limits = Limits::ALL.into_iter().find(|limits| limits.as_str() == text);
    if limits.is_none() {
        let message = format!("must be \"route\" or \"channel\", not {text:?}");
        report.unknown(&site.place, message, text, Limits::ALL.map(Limits::as_str));
    }
    limits
}

pub(super) fn overrides(channel: &Table<'_>, report: &mut Report) -> Vec<Override> {
    let mut rules: Vec<Override> = Vec::new();
    let Some(list) = channel.site("overrides") else { return rules };
    let Some(sites) = list.list(report) else { return rules };
    if sites.len() > RULES_MAX {
        report.fault(&list.place, format!("are {}: at most {RULES_MAX}", sites.len()));
    }
    // Where each rule stands that is no fault.
    let mut indices = Vec::new();
    for (i, site) in sites.iter().enumerate().take(RULES_MAX) {
        let Some(rule) = rule(site, report) else { continue };
        if let Some(first) = rules.iter().position(|earlier| earlier.covers(&rule)) {
            let first: usize = indices[first];
            report
                .warn(&site.place, format!("is never reached: overrides[{first}] takes all that it matches"));
        } else if !rule.can_match() {
            let message = format!(
                "never matches: for {}, which takes out more than this request, a message counts up to the first quote, \
                 bracket or colon, because what callers wrote stands behind it",
                rule.class
            );
            report.warn(&site.place, message);
        }
        indices.push(i);
        rules.push(rule);
    }
    rules
}

fn rule(site: &Site<'_>, report: &mut Report) -> Option<Override> {
    let table = site.table(&OVERRIDE, report)?;
    let faults = report.faults.len();
    let status = table.site("status").and_then(|site| status(&site, report));
    let code = table.site("code").and_then(|site| match &site.node.value {
        Value::Number(number) => Some(number.clone()),
        _ => rule_text(&site, report),
    });
    let message = table.site("message").and_then(|site| rule_text(&site, report));
    let class = table.required("class", report).and_then(|site| class(&site, report));
    if status.is_none() && code.is_none() && message.is_none() && report.faults.len() == faults {
        return site.refuse("matches every error; give at least one of status, code and message", report);
    }
    if report.faults.len() > faults {
        return None;
    }
    Some(Override { status, code: code.map(Cow::Owned), message: message.map(Cow::Owned), class: class? })
}

fn status(site: &Site<'_>, report: &mut Report) -> Option<u16> {
    let status = site.count(u64::MAX, report)?;
    match u16::try_from(status) {
        Ok(status @ 300..600) => Some(status),
        _ => site.refuse(
            "must be the status of an error, from 300 to 599; an error inside a 200 has its own",
            report,
        ),
    }
}

fn rule_text(site: &Site<'_>, report: &mut Report) -> Option<String> {
    let text = site.text(report)?;
    if text.trim().is_empty() || text.len() > RULE_TEXT_BYTES_MAX {
        return site.refuse(format!("must have 1 to {RULE_TEXT_BYTES_MAX} bytes"), report);
    }
    Some(text.to_owned())
}

fn class(site: &Site<'_>, report: &mut Report) -> Option<FailureClass> {
    let name = site.text(report)?;
    let allowed = Override::CLASSES.map(FailureClass::as_str);
    match name.parse::<FailureClass>() {
        Ok(class) if Override::CLASSES.contains(&class) => Some(class),
        Ok(_) => {
            let message =
                format!("{name:?} is nothing that an upstream can say; there are {}", allowed.join(", "));
            site.refuse(message, report)
        }
        Err(unknown) => {
            report.unknown(&site.place, unknown.to_string(), name, allowed);
            None
        }
    }
}

/// What the profile, `headers` and `query` make of what is given beside them.
pub(super) fn together(table: &Table<'_>, channel: &super::Channel, report: &mut Report) {
    let key = |key: &str| {
        let place = &table.place;
        table.site(key).map_or_else(|| place.clone(), |site| site.place)
    };
    let taken = match channel.auth() {
        Some(Auth::Header { name, .. }) if channel.headers.contains_key(name.as_ref()) => Some("headers"),
        Some(Auth::Query { name }) if channel.query().contains_key(name.as_ref()) => Some("query"),
        _ => None,
    };
    if let Some(taken) = taken {
        report.fault(&key("auth"), format!("the credential goes where `{taken}` puts something else"));
    }
    if channel.auth.as_ref().is_some_and(|auth| *auth != Auth::None) && channel.credential.is_none() {
        report.warn(&key("auth"), "is never used, for the channel has no credential");
    }
    let Some(profile) = channel.profile else { return };
    let name = profile.name;
    let is_appended =
        |dialect: &Dialect| !channel.paths.contains_key(dialect) && profile.path(*dialect).is_some();
    let end = profile.appended.iter().find(|end| channel.base_url.ends_with(**end));
    if let Some(end) = end.filter(|_| channel.dialects.iter().any(is_appended)) {
        let message =
            format!("ends in {end}, which the profile \"{name}\" appends by itself: {}", profile.base_url);
        report.warn(&key("base_url"), message);
    }
    for dialect in &channel.dialects {
        if !profile.speaks.is_empty()
            && !profile.speaks.contains(dialect)
            && !channel.paths.contains_key(dialect)
        {
            let message = format!("\"{name}\" is not known to speak {dialect}; if it does, give its `path`");
            report.warn(&key("dialects"), message);
        }
    }
    if channel.include_usage && profile.refuses_unknown_fields {
        let message =
            format!("\"{name}\" refuses requests with a field that it does not know, and this adds one");
        report.warn(
            &Place { path: path_to(&table.place.path, "include_usage"), ..key("include_usage") },
            message,
        );
    }
    let version = channel.query().get("api-version").cloned().unwrap_or_default();
    if name == "azure-openai"
        && channel.dialects.contains(&Dialect::OpenaiResponses)
        && !Profile::azure_has_responses(&version)
    {
        let message = format!(
            "openai-responses needs query.api-version = \"2025-03-01-preview\" or later, not {version:?}; or the profile \
             \"azure-openai-v1\", which has no versions"
        );
        report.warn(&key("dialects"), message);
    }
}
