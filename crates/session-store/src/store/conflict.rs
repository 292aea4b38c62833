//! Detects that a transcript was continued by another writer. Pure.

use whimbrel_wire::RawJson;

use super::{StoreError, uuid_of};

/// Checks whether lines may follow the last line with a uuid in a transcript. The writer expects that line to be
/// `expected`. Lines that the transcript has already are a repeated delivery, and the rest must follow them.
///
/// `last` is the uuid of the last such line, and `is_stored` says whether a line with a uuid is in the transcript.
pub fn check_last_entry<E: From<StoreError>>(
    entries: &[RawJson],
    expected: Option<&str>,
    last: Option<&str>,
    mut is_stored: impl FnMut(&str) -> Result<bool, E>,
) -> Result<(), E> {
    if last == expected {
        return Ok(());
    }
    let mut before = expected.map(str::to_owned);
    for uuid in entries.iter().filter_map(uuid_of) {
        if is_stored(&uuid)? {
            before = Some(uuid);
        } else if before.as_deref() == last {
            return Ok(());
        } else {
            let (expected, found) = (before, last.map(str::to_owned));
            return Err(StoreError::Conflict { expected, found }.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_lines_after_the_expected_one_are_accepted() {
        type Row<'a> = (&'a str, &'a [&'a str], Option<&'a str>, &'a [&'a str], bool);
        let rows: [Row<'_>; 9] = [
            ("first lines", &[], None, &["a"], true),
            ("next lines", &["a"], Some("a"), &["b", "c"], true),
            ("nothing new", &["a", "x"], Some("a"), &[], true),
            ("only metadata", &["a", "x"], Some("a"), &[""], true),
            ("another one was faster", &["a", "x"], Some("a"), &["b"], false),
            ("an unknown session exists", &["x"], None, &["a"], false),
            ("the transcript is gone", &[], Some("a"), &["b"], false),
            ("a repeated delivery", &["a", "b", "c"], Some("a"), &["b", "c"], true),
            ("a repeated delivery with more", &["a", "b"], Some("a"), &["b", "c"], true),
        ];
        let check = |stored: &[&str], expected: Option<&str>, names: &[&str]| {
            let line = |name: &&str| match *name {
                "" => RawJson::from_value(&json!({"type": "tag"})).unwrap(),
                name => RawJson::from_value(&json!({"uuid": name})).unwrap(),
            };
            let entries: Vec<RawJson> = names.iter().map(line).collect();
            let is_stored = |uuid: &str| Ok::<_, StoreError>(stored.contains(&uuid));
            check_last_entry(&entries, expected, stored.last().copied(), is_stored)
        };
        for (name, stored, expected, entries, accepted) in rows {
            assert_eq!(check(stored, expected, entries).is_ok(), accepted, "{name}");
        }
        assert!(check(&["a", "b", "x"], Some("a"), &["b", "c"]).is_err(), "another one came in between");
    }
}
