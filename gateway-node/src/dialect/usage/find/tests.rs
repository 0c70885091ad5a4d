use proptest::prelude::*;
use serde_json::{Map, Value};

use super::*;

const PLACES: Places = &[("", "usage"), ("choices", "usage"), ("x_groq", "usage"), ("", "meta")];

fn found(json: &str, size: usize) -> Vec<Value> {
    let (mut find, mut found) = (Find::new(), Vec::new());
    for piece in json.as_bytes().chunks(size) {
        find.push(piece, PLACES, &mut |object| found.push(serde_json::from_slice(object).unwrap()));
    }
    found
}

/// What a parser sees at the places, in the order of the document.
fn expected(value: &Value, objects: usize, outer: &str, seen: &mut Vec<Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| expected(item, objects, outer, seen)),
        Value::Object(members) => {
            for (name, value) in members {
                let around = if objects == 0 { "" } else { outer };
                let is_place = PLACES.contains(&(around, name.as_str()));
                if is_place && value.is_object() && (objects == 0 || (objects == 1 && !outer.is_empty())) {
                    seen.push(value.clone());
                    continue;
                }
                expected(value, objects + 1, if objects == 0 { name } else { outer }, seen);
            }
        }
        _ => {}
    }
}

fn document() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        Just("usage".to_owned()),
        Just("choices".to_owned()),
        Just("x_groq".to_owned()),
        Just("meta".to_owned()),
        "[a-z\"\\\\{}: é]{0,20}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        "[a-z\"\\\\{}:\\[\\], é]{0,8}".prop_map(Value::from),
        Just(Value::from("usage")),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_found_is_what_a_parser_sees_there_however_the_document_is_cut(
        document in document(),
        is_pretty: bool,
        size in 1..50_usize,
    ) {
        let json = if is_pretty { format!("{document:#}") } else { document.to_string() };
        let mut seen = Vec::new();
        expected(&document, 0, "", &mut seen);
        prop_assert_eq!(&found(&json, size), &seen);
        prop_assert_eq!(found(&json, json.len()), seen);
    }

    #[test]
    fn what_is_no_json_does_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200), size in 1..50_usize) {
        let mut find = Find::new();
        for piece in bytes.chunks(size) {
            find.push(piece, PLACES, &mut |_| {});
        }
        let mut form = Form::Unknown;
        bytes.chunks(size).for_each(|piece| form.each(piece, &mut |_| {}));
    }
}
