//! Programs of neighbouring versions talk to each other: whatever one writes today, the schema of a released version reads
//! as it would have read it then, and the other way round. Every message of that version, with every field filled.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::unreachable, reason = "a test")]

use std::path::{Path, PathBuf};

use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value,
};

fn tests() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/released")
}

/// The schemas of a folder, all its files together.
fn pool(root: &Path) -> DescriptorPool {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "proto") {
                files.push(path);
            }
        }
    }
    assert!(!files.is_empty(), "no schema in {}", root.display());
    DescriptorPool::from_file_descriptor_set(protox::compile(files, [root]).unwrap()).unwrap()
}

/// A message with every field set to something that is not its default. Of a oneof the last one stays.
fn fill(descriptor: &MessageDescriptor, only: Option<&FieldDescriptor>, depth: usize) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    for field in descriptor.fields().filter(|field| only.is_none_or(|only| only == field)) {
        let single = |kind: &Kind| value_of(kind, field.number(), depth);
        let value = if field.is_map() {
            let Kind::Message(entry) = field.kind() else { unreachable!("a map has entries") };
            let inner = value_of(&entry.map_entry_value_field().kind(), field.number(), depth);
            let Some(inner) = inner else { continue };
            Some(Value::Map([(MapKey::String("key".to_owned()), inner)].into()))
        } else if field.is_list() {
            single(&field.kind()).map(|one| Value::List(vec![one.clone(), one]))
        } else {
            single(&field.kind())
        };
        if let Some(value) = value {
            message.set_field(&field, value);
        }
    }
    message
}

fn value_of(kind: &Kind, number: u32, depth: usize) -> Option<Value> {
    Some(match kind {
        Kind::Double => Value::F64(f64::from(number) + 0.5),
        Kind::Float => Value::F32(1.5),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(number.cast_signed() + 1),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(i64::from(number) + 1),
        Kind::Uint32 | Kind::Fixed32 => Value::U32(number + 1),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(u64::from(number) + 1),
        Kind::Bool => Value::Bool(true),
        Kind::String => Value::String(format!("text {number}")),
        Kind::Bytes => Value::Bytes(vec![1, 2, 3].into()),
        // The highest that is known: to an older schema it may be none of its values.
        Kind::Enum(of) => Value::EnumNumber(of.values().map(|value| value.number()).max()?),
        Kind::Message(_) if depth == 0 => return None,
        Kind::Message(of) => Value::Message(fill(of, None, depth - 1)),
    })
}

/// Whether every field that both schemas know has the same value on both sides.
fn agree(known: &MessageDescriptor, a: &DynamicMessage, b: &DynamicMessage) -> Result<(), String> {
    for field in known.fields() {
        let (a, b) = (a.get_field_by_number(field.number()), b.get_field_by_number(field.number()));
        let (Some(a), Some(b)) = (a, b) else {
            return Err(format!("{} is gone", field.full_name()));
        };
        same(&field.kind(), &a, &b).map_err(|why| format!("{}: {why}", field.full_name()))?;
    }
    Ok(())
}

fn same(kind: &Kind, a: &Value, b: &Value) -> Result<(), String> {
    match (kind, a, b) {
        (_, Value::List(a), Value::List(b)) if a.len() == b.len() => {
            a.iter().zip(b).try_for_each(|(a, b)| same(kind, a, b))
        }
        (_, Value::Map(a), Value::Map(b)) => {
            let (a, b): (Vec<_>, Vec<_>) = (a.keys().collect(), b.keys().collect());
            if a == b { Ok(()) } else { Err("other keys".to_owned()) }
        }
        (Kind::Message(of), Value::Message(a), Value::Message(b)) => agree(of, a, b),
        _ if a == b => Ok(()),
        _ => Err(format!("{a:?} became {b:?}")),
    }
}

#[test]
fn every_message_of_a_released_version_is_understood_in_both_directions() {
    let today = pool(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../proto"));
    let mut versions = 0;
    for entry in std::fs::read_dir(tests()).unwrap() {
        let folder = entry.unwrap().path();
        let released = pool(&folder);
        versions += 1;
        let mut messages = 0;
        for old in released.all_messages().filter(|message| !message.is_map_entry()) {
            let name = old.full_name();
            let new = today.get_message_by_name(name).unwrap_or_else(|| panic!("{name} is gone"));
            messages += 1;
            // All at once, then each by itself, so that every branch of a oneof has its turn.
            let fields = |of: &MessageDescriptor| {
                std::iter::once(None).chain(of.fields().map(Some)).collect::<Vec<_>>()
            };
            for (writer, reader) in [(&new, &old), (&old, &new)] {
                for only in fields(writer) {
                    let written = fill(writer, only.as_ref(), 4);
                    let bytes = prost::Message::encode_to_vec(&written);
                    let read = DynamicMessage::decode(reader.clone(), bytes.as_slice());
                    let read = read.unwrap_or_else(|error| panic!("{name}: {error}"));
                    // A branch of a oneof that the reader does not know leaves none set.
                    if let Err(why) = agree(&old, &written, &read) {
                        panic!("{}: {why}", folder.display());
                    }
                }
            }
        }
        assert!(messages > 30, "only {messages} messages in {}", folder.display());
    }
    assert!(versions > 0, "no released version is kept");
}
