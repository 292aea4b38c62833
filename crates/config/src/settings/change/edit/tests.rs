//! Texts before and after a change, byte by byte, and a comparison with the same change applied to parsed values.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn allow_rules(action: ListAction, entries: &[&str]) -> SettingsChange {
    let entries = entries.iter().map(|entry| (*entry).to_owned()).collect();
    SettingsChange::List { list: PermissionList::Rules(PermissionBehavior::Allow), action, entries }
}

#[test]
fn only_the_changed_part_is_rewritten() {
    assert_rows(vec![
        (
            "the first rule of a new file",
            "{}\n",
            allow_rules(ListAction::Add, &["Bash(m1 *)"]),
            Some("{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(m1 *)\"\n    ]\n  }\n}\n"),
        ),
        (
            "odd spacing, order and indentation stay",
            "{ \"z\":1,\n\t\"permissions\":\t{\"deny\":[ ],\"allow\" : [\"A\"] } ,\"a\": {\"x\":[1,2]}}",
            allow_rules(ListAction::Add, &["B"]),
            Some(
                "{ \"z\":1,\n\t\"permissions\":\t{\"deny\":[ ],\"allow\" : [\"A\", \"B\"] } ,\"a\": {\"x\":[1,2]}}",
            ),
        ),
        (
            "a list of lines grows by a line",
            "{\n    \"permissions\": {\n        \"allow\": [\n            \"A\"\n        ]\n    }\n}\n",
            allow_rules(ListAction::Add, &["B"]),
            Some(
                "{\n    \"permissions\": {\n        \"allow\": [\n            \"A\",\n            \"B\"\n        ]\n    }\n}\n",
            ),
        ),
        (
            "line ends of another system stay",
            "{\r\n  \"permissions\": {\r\n    \"allow\": [\r\n      \"A\"\r\n    ]\r\n  }\r\n}\r\n",
            allow_rules(ListAction::Add, &["B"]),
            Some(
                "{\r\n  \"permissions\": {\r\n    \"allow\": [\r\n      \"A\",\r\n      \"B\"\r\n    ]\r\n  }\r\n}\r\n",
            ),
        ),
        (
            "how other texts and numbers are written stays",
            "{\"n\": 1.0e3, \"s\": \"\\u00e9\", \"permissions\": {\"allow\": [\"\\u0041\"]}}",
            allow_rules(ListAction::Add, &["A", "B"]),
            Some("{\"n\": 1.0e3, \"s\": \"\\u00e9\", \"permissions\": {\"allow\": [\"\\u0041\", \"B\"]}}"),
        ),
    ]);
}

/// Name, text before, change, text after (`None` if nothing changes).
type Row = (&'static str, &'static str, SettingsChange, Option<&'static str>);

fn assert_rows(rows: Vec<Row>) {
    for (name, before, change, after) in rows {
        assert_eq!(apply_change(before, &change).unwrap().as_deref(), after, "{name}");
    }
}

#[test]
fn entries_are_added_once_and_equal_rules_match() {
    assert_rows(vec![
        (
            "a rule that is there is not added",
            "{\"permissions\":{\"allow\":[\"A\"]}}",
            allow_rules(ListAction::Add, &["A"]),
            None,
        ),
        (
            "an equal rule is not added",
            "{\"permissions\":{\"allow\":[\"Bash(*)\"]}}",
            allow_rules(ListAction::Add, &["Bash"]),
            None,
        ),
        (
            "a rule given twice is added once",
            "{\"permissions\":{\"allow\":[\"A\"]}}",
            allow_rules(ListAction::Add, &["B", "B"]),
            Some("{\"permissions\":{\"allow\":[\"A\", \"B\"]}}"),
        ),
        (
            "equal rules are removed",
            "{\"permissions\":{\"allow\":[\"A\", \"Bash\", \"B\"]}}",
            allow_rules(ListAction::Remove, &["Bash(*)"]),
            Some("{\"permissions\":{\"allow\":[\"A\", \"B\"]}}"),
        ),
        (
            "what is not there is not removed",
            "{\"permissions\":{\"allow\":[\"A\"]}}",
            allow_rules(ListAction::Remove, &["B"]),
            None,
        ),
        ("nothing is made to remove from", "{}", allow_rules(ListAction::Remove, &["B"]), None),
        ("nothing is made to be empty", "{}", allow_rules(ListAction::Replace, &[]), None),
        (
            "a list is replaced, and the blank before what stays is its own",
            "{\"permissions\":{\"allow\":[\"A\", \"B\"], \"deny\":[\"A\"]}}",
            allow_rules(ListAction::Replace, &["B", "C"]),
            Some("{\"permissions\":{\"allow\":[ \"B\", \"C\"], \"deny\":[\"A\"]}}"),
        ),
    ]);
}

#[test]
fn single_values_are_set() {
    let mode = SettingsChange::Mode(PermissionMode::Plan);
    let style = SettingsChange::Value { key: "outputStyle".into(), value: json!("brief") };
    assert_rows(vec![
        (
            "a mode",
            "{\"permissions\":{\"defaultMode\":\"default\"}}",
            mode.clone(),
            Some("{\"permissions\":{\"defaultMode\":\"plan\"}}"),
        ),
        ("the mode it has", "{\"permissions\":{\"defaultMode\":\"plan\"}}", mode, None),
        (
            "a value",
            "{\n  \"model\": \"m\"\n}\n",
            style,
            Some("{\n  \"model\": \"m\",\n  \"outputStyle\": \"brief\"\n}\n"),
        ),
    ]);
}

#[test]
fn key_of_another_type_is_never_overwritten() {
    for text in
        ["[]", "{\"permissions\": 5}", "{\"permissions\": {\"allow\": \"A\"}}", "{\"permissions\": null}"]
    {
        for action in [ListAction::Add, ListAction::Replace] {
            assert!(apply_change(text, &allow_rules(action, &["B"])).is_err(), "{text}");
        }
    }
}

#[test]
fn updates_become_changes_and_invalid_rules_are_returned() {
    let rule = |name: &str, content: Option<&str>| RuleValue {
        tool_name: name.into(),
        rule_content: content.map(String::from),
    };
    let update: PermissionUpdate = serde_json::from_value(json!({
        "type": "addRules", "behavior": "allow", "destination": "localSettings",
        "rules": [{"toolName": "Bash", "ruleContent": "m1 *"}, {"toolName": "no name"}],
    }))
    .unwrap();
    assert_eq!(
        SettingsChange::from_update(&update),
        (allow_rules(ListAction::Add, &["Bash(m1 *)"]), vec![rule("no name", None)])
    );
    let directories = PermissionUpdate::AddDirectories {
        directories: vec!["/x".into()],
        destination: whimbrel_wire::permission::Destination::LocalSettings,
    };
    let change = SettingsChange::List {
        list: PermissionList::Directories,
        action: ListAction::Add,
        entries: vec!["/x".into()],
    };
    assert_eq!(SettingsChange::from_update(&directories), (change, vec![]));
}

/// Applies the change to parsed values.
fn edit_values(mut value: Value, action: ListAction, entries: &[String]) -> Value {
    let old: Vec<Value> = value["permissions"]["allow"].as_array().cloned().unwrap_or_default();
    let named = |item: &Value| entries.iter().any(|entry| item.as_str() == Some(entry));
    let mut new: Vec<Value> = match action {
        ListAction::Add => old.clone(),
        ListAction::Remove => old.iter().filter(|item| !named(item)).cloned().collect(),
        ListAction::Replace => old.iter().filter(|item| named(item)).cloned().collect(),
    };
    for entry in entries {
        if action != ListAction::Remove && !new.iter().any(|item| item.as_str() == Some(entry)) {
            new.push(entry.as_str().into());
        }
    }
    if new != old {
        value["permissions"]["allow"] = new.into();
    }
    value
}

fn rule_names() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("[A-D]x", 0..4)
}

/// Any other content of a settings file, including unusual texts.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,6}|[\"\\\\/\u{0}-\u{1f}]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[a-z\"\\\\]{1,3}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn nested_entry_is_set_and_removed() {
    let entry = |path: &[&str], value: Option<Value>| SettingsChange::Entry {
        path: path.iter().map(|key| (*key).to_owned()).collect(),
        value,
    };
    let path = ["projects", "/a", "mcpServers", "one"];
    let text = "{\"n\": 1.0e3, \"projects\": {\"/b\": {\"x\":[1,2]}}}";
    let added = apply_change(text, &entry(&path, Some(json!({"command": "c"})))).unwrap().unwrap();
    // An object on one line may be split into several; its other content is kept verbatim.
    assert!(added.starts_with("{\"n\": 1.0e3, \"projects\": {"), "{added}");
    assert!(added.contains("\"/b\": {\"x\":[1,2]},"), "{added}");
    let read: Value = serde_json::from_str(&added).unwrap();
    assert_eq!(read["projects"]["/a"], json!({"mcpServers": {"one": {"command": "c"}}}));
    assert_eq!(
        apply_change(&added, &entry(&path, Some(json!({"command": "c"})))),
        Ok(None),
        "it says so already"
    );
    let removed = apply_change(&added, &entry(&path, None)).unwrap().unwrap();
    let read: Value = serde_json::from_str(&removed).unwrap();
    assert_eq!(read["projects"]["/a"], json!({"mcpServers": {}}));
    assert_eq!(
        apply_change(text, &entry(&path, None)),
        Ok(None),
        "what is not there cannot go, and nothing is made"
    );
    let blocked = apply_change("{\"projects\": 5}", &entry(&path, Some(json!(1)))).unwrap_err();
    assert!(blocked.contains("\"projects\" is not an object"), "{blocked}");
}

proptest! {
    #[test]
    fn text_edit_equals_value_edit(
        before in any_value(), rules_there in proptest::option::of(rule_names()), after in any_value(), entries in rule_names(),
        action in prop_oneof![Just(ListAction::Add), Just(ListAction::Remove), Just(ListAction::Replace)], pretty in any::<bool>(),
    ) {
        let mut value = json!({"before": before});
        if let Some(rules) = rules_there {
            value["permissions"] = json!({"deny": ["D"], "allow": rules});
        }
        value["zafter"] = after;
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let change = SettingsChange::List { list: PermissionList::Rules(PermissionBehavior::Allow), action, entries: entries.clone() };
        let changed = apply_change(&text, &change).unwrap().unwrap_or(text);
        let read: Value = serde_json::from_str(&changed).unwrap();
        prop_assert_eq!(read, edit_values(value, action, &entries));
    }
}

#[test]
fn only_valid_rules_are_written() {
    use PermissionBehavior::{Allow, Ask, Deny};
    let rows = [
        ("Bash", None, Allow, Some("Bash")),
        ("Bash", Some("m1 *"), Allow, Some("Bash(m1 *)")),
        ("Read", Some("//a/(b)\\c"), Allow, Some("Read(//a/\\(b\\)\\\\c)")),
        ("mcp__a__b", None, Deny, Some("mcp__a__b")),
        ("Task", Some("explore"), Deny, Some("Agent(explore)")),
        ("Bash", Some(""), Deny, Some("Bash")),
        ("Bash", Some(""), Allow, None),
        ("", None, Deny, None),
        ("Bash(x", None, Allow, None),
        ("a b", None, Allow, None),
        ("Ba*", None, Allow, None),
        ("Ba*", None, Deny, Some("Ba*")),
        ("Edit", Some("!x"), Deny, None),
        ("mcp__a__", None, Ask, None),
    ];
    for (name, content, behavior, expected) in rows {
        let rule = RuleValue { tool_name: name.into(), rule_content: content.map(String::from) };
        assert_eq!(render_rule(&rule, behavior, ListAction::Add).as_deref(), expected, "{name} {content:?}");
    }
}

#[test]
fn rules_are_compared_by_meaning() {
    let rows = [
        ("Bash(x)", " Bash(x) ", true),
        ("Bash", "Bash(*)", true),
        ("Task(explore)", "Agent(explore)", true),
        ("SlashCommand(x)", "Skill(x)", true),
        ("Read(a\\(b\\))", "Read(a(b))", true),
        ("Bash(x)", "Bash(X)", false),
        ("Bash(x)", "Bash(x )", true),
        ("Bash(x:*)", "Bash(x *)", true),
        ("Bash", "Bash(x)", false),
        ("Bash(x", "Bash(x", true),
        ("Bash(x", "Bash(y", false),
    ];
    for (one, other, expected) in rows {
        assert_eq!(
            PermissionList::Rules(PermissionBehavior::Allow).is_same_entry(one, other),
            expected,
            "{one} {other}"
        );
    }
}
