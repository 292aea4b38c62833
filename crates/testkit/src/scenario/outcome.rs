//! Outcome of a scenario, and the comparison of two outcomes.

use std::collections::BTreeMap;

use serde_json::Value;

/// Normalized outcome of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioRun {
    /// Frames of the engine.
    pub frames: Vec<Value>,
    /// The messages of each request to the model, without reminders and cache marks.
    pub requests: Vec<Value>,
    /// The files of the workspace afterwards.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The exit code.
    pub exit: i32,
}

impl ScenarioRun {
    /// Describes the first difference from another run; `None` if they are equal.
    pub fn first_difference(&self, other: &Self) -> Option<String> {
        let frames = || diff_values(&self.frames, &other.frames).map(|text| format!("frame {text}"));
        let requests = || diff_values(&self.requests, &other.requests).map(|text| format!("request {text}"));
        let exit =
            || (self.exit != other.exit).then(|| format!("exit code {} against {}", self.exit, other.exit));
        frames().or_else(requests).or_else(|| diff_files(&self.files, &other.files)).or_else(exit)
    }
}

/// Panics with the first difference unless both runs are equal.
pub fn assert_same(a: &ScenarioRun, b: &ScenarioRun) {
    if let Some(difference) = a.first_difference(b) {
        panic!("the runs differ: {difference}");
    }
}

/// Describes the first difference of two lists of values.
pub(super) fn diff_values(a: &[Value], b: &[Value]) -> Option<String> {
    let differing = a.iter().zip(b).position(|(a, b)| a != b);
    if let Some(index) = differing {
        let path = diff_path(&a[index], &b[index]).unwrap_or_default();
        return Some(format!(
            "{} differs at {path}\n  one:   {}\n  other: {}",
            index + 1,
            a[index],
            b[index]
        ));
    }
    let (longer, which) = if a.len() > b.len() { (a, "one") } else { (b, "other") };
    let index = a.len().min(b.len());
    longer.get(index).map(|extra| format!("{} is only in the {which}: {extra}", index + 1))
}

/// Describes the first difference of two sets of files.
pub(super) fn diff_files(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>) -> Option<String> {
    let names = a.keys().chain(b.keys());
    let differing = names.into_iter().find(|name| a.get(*name) != b.get(*name))?;
    let describe = |files: &BTreeMap<String, Vec<u8>>| match files.get(differing) {
        Some(content) => format!("{:?}", String::from_utf8_lossy(content)),
        None => "absent".to_owned(),
    };
    Some(format!("file {differing} differs\n  one:   {}\n  other: {}", describe(a), describe(b)))
}

/// The path of the first differing field, with both values.
fn diff_path(a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(one), Value::Object(other)) => {
            let mut names = one.keys().chain(other.keys());
            let name = names.find(|name| one.get(*name) != other.get(*name))?;
            match (one.get(name), other.get(name)) {
                (Some(one), Some(other)) => diff_path(one, other).map(|rest| format!(".{name}{rest}")),
                (one, _) => {
                    Some(format!(".{name} (only in the {})", if one.is_some() { "one" } else { "other" }))
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let index = one.iter().zip(other).position(|(one, other)| one != other)?;
            diff_path(&one[index], &other[index]).map(|rest| format!("[{index}]{rest}"))
        }
        _ => (a != b).then(|| format!(": {a} against {b}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn first_difference_names_its_path() {
        let table = [
            ("same", json!([1, {"a": 2}]), None),
            ("a field", json!([1, {"a": 3}]), Some("2 differs at .a: 2 against 3")),
            ("a missing field", json!([1, {}]), Some("2 differs at .a (only in the one)")),
            ("a line too few", json!([1]), Some("2 is only in the one: {\"a\":2}")),
            ("a line too many", json!([1, {"a": 2}, 3]), Some("3 is only in the other: 3")),
        ];
        let one = [json!(1), json!({"a": 2})];
        for (name, other, expected) in table {
            let found = diff_values(&one, other.as_array().unwrap());
            assert_eq!(found.as_deref().and_then(|text| text.lines().next()), expected, "{name}");
        }
    }
}
