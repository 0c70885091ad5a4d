//! Names for sets of forms, so that a row does not list nineteen of them.

use std::collections::BTreeSet;

use super::forms::{FORMS, Form, Way};
use super::says::Speech;

type Set = BTreeSet<usize>;

/// In which forms, in as few words as there are for it.
pub fn named(forms: &Set) -> String {
    let mut left = forms.clone();
    let mut names = Vec::new();
    for (name, set) in known() {
        if !set.is_empty() && set.is_subset(&left) {
            left.retain(|form| !set.contains(form));
            names.push(name);
        }
    }
    names.extend(left.into_iter().map(|form| format!("{} {}", FORMS[form].dialect, FORMS[form].name)));
    names.join(", ")
}

/// The sets that have a name, the larger ones first.
fn known() -> Vec<(String, Set)> {
    let of = |is_in: &dyn Fn(&Form) -> bool| -> Set {
        let is_usual = |form: &Form| !form.is_held && form.way == Way::Chain;
        let forms = FORMS.iter().enumerate().filter(|(_, form)| is_usual(form) && is_in(form));
        forms.map(|(index, _)| index).collect()
    };
    let is_stream = |form: &Form| form.stream().is_some();
    let is_openai = |form: &Form| form.speech == Speech::OpenAi;
    let is_events = |form: &Form| is_stream(form) && !form.is_array();
    let is_document = |form: &Form| !is_stream(form) && !form.is_sound();
    let held: Set = (0..FORMS.len()).filter(|form| FORMS[*form].is_held).collect();
    let also = |set: Set| -> Set { set.union(&held).copied().collect() };
    let by_way = |is_in: &dyn Fn(&Form) -> bool| -> Set {
        let forms = FORMS.iter().enumerate().filter(|(_, form)| form.way != Way::Chain && is_in(form));
        forms.map(|(index, _)| index).collect()
    };
    let of_things = by_way(&|_| true);
    let mut sets = vec![
        (
            "all, also of things with an id".to_owned(),
            also(of(&|_| true)).union(&of_things).copied().collect(),
        ),
        ("all".to_owned(), also(of(&|_| true))),
        ("all but streams held to their end".into(), of(&|_| true)),
        ("all but sound".into(), also(of(&|form| !form.is_sound()))),
        ("all streams".into(), also(of(&is_stream))),
        ("all streams of events".into(), also(of(&is_events))),
        ("streams".into(), of(&is_stream)),
        ("streams of events".into(), of(&is_events)),
        ("streams held to their end".into(), held.clone()),
        ("whole answers".into(), of(&|form| !is_stream(form))),
        ("documents".into(), of(&is_document)),
        ("OpenAI's dialects".into(), of(&is_openai)),
        ("OpenAI's streams".into(), of(&|form| is_openai(form) && is_stream(form))),
        ("OpenAI's whole answers".into(), of(&|form| is_openai(form) && !is_stream(form))),
    ];
    sets.extend([
        ("all of things with an id".to_owned(), of_things),
        ("all of things with an id but content".into(), by_way(&|form| !form.is_sound())),
        ("what one channel alone may answer".into(), by_way(&|form| form.way.is_bound())),
        ("calls by id".into(), by_way(&|form| form.way == Way::ById)),
        ("calls by id but content".into(), by_way(&|form| form.way == Way::ById && !form.is_sound())),
    ]);
    for form in FORMS.iter().filter(|form| form.way == Way::Chain) {
        let dialect = form.dialect;
        let mut add = |name: String, set| {
            if !sets.iter().any(|(known, _)| *known == name) {
                sets.push((name, set));
            }
        };
        add(dialect.to_owned(), of(&|form| form.dialect == dialect));
        add(format!("{dialect} streamed"), of(&|form| form.dialect == dialect && is_stream(form)));
        add(format!("{dialect} whole"), of(&|form| form.dialect == dialect && !is_stream(form)));
    }
    sets
}
