//! Valid and invalid settings files.

use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn every_value_has_its_line() {
    let text = "{\n  \"permissions\": {\n    \"deny\": [\"A\",\n      \"B\"]},\n  \"a/b~c\": 1}";
    let document = parse_document(text, "s").unwrap();
    let rows = [
        ("/permissions", 2),
        ("/permissions/deny", 3),
        ("/permissions/deny/0", 3),
        ("/permissions/deny/1", 4),
        ("/a~1b~0c", 5),
    ];
    for (pointer, line) in rows {
        assert_eq!(document.line(pointer), Some(line), "{pointer}");
    }
    assert_eq!(document.line("/none"), None);
    assert_eq!(document.values["permissions"]["deny"], json!(["A", "B"]));
}

#[test]
fn invalid_json_is_reported_with_position_and_remedy() {
    let rows = [
        ("nothing at all", "", "line 1, column 0", "Write {} into it"),
        ("a comment", "{\n  // no\n}", "line 2, column 3", "no comments"),
        ("a comma too many", "{\"a\": 1,}", "line 1, column 9", "no comma"),
        ("a text that ends early", "{\"a\": [", "line 1, column 7", "plain JSON"),
        ("something after the end", "{} x", "line 1, column 4", "plain JSON"),
        ("a list", "[1]", "line 1, column 1", "Settings are written"),
        ("a key that stands twice", "{\"a\":{\"b\":1,\n \"b\":2}}", "line 2, column 2", "Merge the two"),
    ];
    for (name, text, position, remedy) in rows {
        let error = parse_document(text, "the file").unwrap_err().to_string();
        assert!(
            error.contains("the file") && error.contains(position) && error.contains(remedy),
            "{name}: {error}"
        );
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = format!("{{\"a\":{}", "[".repeat(1_000_000));
    assert!(matches!(parse_document(&deep, "s"), Err(SettingsError::Malformed { .. })));
}

#[test]
fn byte_order_mark_is_skipped() {
    assert_eq!(parse_document("\u{feff}{\"a\":1}", "s").unwrap().values["a"], 1);
}

#[test]
fn missing_file_is_not_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(read_file(&dir.path().join("none.json")).unwrap(), None);
    fs::write(dir.path().join("f"), "").unwrap();
    assert_eq!(read_file(&dir.path().join("f/settings.json")).unwrap(), None);
}

#[test]
fn special_and_unreadable_files_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("dir")).unwrap();
    nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("pipe", at("to-a-pipe")).unwrap();
    symlink("nowhere", at("broken")).unwrap();
    symlink("round", at("round")).unwrap();
    symlink("gone", at("broken-dir")).unwrap();
    fs::write(at("latin"), b"{\"a\":\n \"\xe9\"}").unwrap();
    fs::write(at("large"), vec![b' '; 2 * 1024 * 1024 + 1]).unwrap();
    let rows = [
        ("dir", "a directory"),
        ("pipe", "a named pipe"),
        ("to-a-pipe", "a named pipe"),
        ("broken", "broken link"),
        ("round", "symbolic links"),
        ("broken-dir/settings.json", "broken link"),
        ("latin", "line 2, column 3 is not UTF-8"),
        ("large", "2 MiB"),
    ];
    for (name, cause) in rows {
        let error = read_file(&at(name)).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(cause), "{name}: {error}");
    }
    assert!(read_file(Path::new("/dev/zero")).unwrap_err().to_string().contains("a device"));
}

#[test]
fn symlink_to_regular_file_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("real.json"), "{\"model\":\"m\"}").unwrap();
    symlink("real.json", dir.path().join("link.json")).unwrap();
    assert_eq!(read_file(&dir.path().join("link.json")).unwrap().unwrap().values["model"], "m");
}

/// Any value, including unusual texts and numbers.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn written_json_is_read_back(value in any_value(), pretty in any::<bool>()) {
        let value = json!({"value": value});
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        prop_assert_eq!(Value::Object(parse_document(&text, "s").unwrap().values), serde_json::from_str::<Value>(&text).unwrap());
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>(), pieces in "[{}\\[\\]:,\" \n1ae.+/*-]{0,40}") {
        let _ = parse_document(&text, "s");
        if let Ok(read) = parse_document(&pieces, "s") {
            prop_assert_eq!(Value::Object(read.values), serde_json::from_str::<Value>(&pieces).unwrap());
        }
    }
}
