//! Tool names of servers: `mcp__server__tool`, with characters that every model accepts. Pure; the same input gives the
//! same names.

use std::collections::{BTreeMap, HashSet};

/// Maximum length of a tool name.
const MAX_TOOL_NAME_BYTES: usize = 128;

/// Replaces characters that tool names may not have by `_`.
pub fn normalize(name: &str) -> String {
    let to_name_char = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().map(to_name_char).collect()
}

/// Prefix of each server in its tool names. Servers whose normalized names collide are numbered; a name that needs no
/// change is never numbered.
pub fn tool_prefixes<'a>(servers: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let mut servers: Vec<&str> = servers.collect();
    servers.sort_by_key(|name| (normalize(name) != **name, *name));
    let mut taken = HashSet::new();
    servers.into_iter().map(|name| (name.to_owned(), unique_name(&normalize(name), &mut taken))).collect()
}

/// Full name of a tool, or of a prompt as a command. A taken name is numbered.
pub fn tool_name(prefix: &str, tool: &str, taken: &mut HashSet<String>) -> String {
    unique_name(&format!("mcp__{prefix}__{}", normalize(tool)), taken)
}

fn unique_name(name: &str, taken: &mut HashSet<String>) -> String {
    let numbered = |number: usize| match number {
        1 => truncate_name(name, ""),
        _ => truncate_name(name, &format!("_{number}")),
    };
    let name = (1..).map(numbered).find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(name.clone());
    name
}

/// Appends a suffix. A name that is too long is truncated and gets a digest of the whole name.
fn truncate_name(name: &str, suffix: &str) -> String {
    if name.len() + suffix.len() <= MAX_TOOL_NAME_BYTES {
        return format!("{name}{suffix}");
    }
    let stem = &name[..MAX_TOOL_NAME_BYTES - suffix.len() - 9];
    format!("{stem}_{:08x}{suffix}", digest(name))
}

/// 32-bit FNV-1a: short, and stable across versions.
fn digest(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_only_accepted_characters() {
        for (name, expected) in [
            ("plain", "plain"),
            ("with-dash_and_line", "with-dash_and_line"),
            ("a.b/c d", "a_b_c_d"),
            ("größe", "gr__e"),
            ("", ""),
        ] {
            assert_eq!(normalize(name), expected, "{name}");
        }
    }

    #[test]
    fn colliding_tool_names_are_numbered() {
        let mut taken = HashSet::new();
        let mut name = |prefix, name| tool_name(prefix, name, &mut taken);
        assert_eq!(name("a", "x_y"), "mcp__a__x_y");
        assert_eq!(name("a", "x.y"), "mcp__a__x_y_2");
        assert_eq!(name("a", "x y"), "mcp__a__x_y_3");
        assert_eq!(name("a", "b__c"), "mcp__a__b__c");
        assert_eq!(name("a__b", "c"), "mcp__a__b__c_2");
    }

    #[test]
    fn long_names_are_truncated_and_stay_distinct() {
        let mut taken = HashSet::new();
        let long = |end: &str| format!("{}{end}", "x".repeat(300));
        let mut name = |name: &str| tool_name("server", name, &mut taken);
        let names = [name(&long("a")), name(&long("b")), name(&long("a"))];
        assert!(
            names
                .iter()
                .all(|name| name.len() <= MAX_TOOL_NAME_BYTES && name.starts_with("mcp__server__xxx"))
        );
        assert!(names[0] != names[1] && names[2] != names[0] && names[2].ends_with("_2"));
    }

    #[test]
    fn colliding_server_names_are_numbered_in_stable_order() {
        let expected = [("a.b", "a_b_2"), ("a_b", "a_b"), ("a b", "a_b_3"), ("c", "c")];
        let mut expected: Vec<_> =
            expected.iter().map(|(name, prefix)| (*name, (*prefix).to_owned())).collect();
        // Names that need a change are numbered in their sorted order.
        expected[0].1 = "a_b_3".into();
        expected[2].1 = "a_b_2".into();
        for order in [["a.b", "a_b", "a b", "c"], ["c", "a b", "a_b", "a.b"]] {
            let prefixes = tool_prefixes(order.into_iter());
            for (name, prefix) in &expected {
                assert_eq!(prefixes[*name], *prefix, "{name}");
            }
        }
    }
}
