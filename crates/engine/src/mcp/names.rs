//! What tools of servers are called: `mcp__server__tool`, in signs that every model takes. Pure, and the same names come
//! out for the same servers and tools.

use std::collections::{BTreeMap, HashSet};

/// The longest name of a tool that a model takes.
const MAX_TOOL_NAME_BYTES: usize = 128;

/// A name in signs that a tool's name may have.
pub fn normalize(name: &str) -> String {
    let sign = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    name.chars().map(sign).collect()
}

/// How each server stands in the names of its tools. Servers whose names would look alike are numbered; one whose name
/// needs no change keeps it.
pub fn tool_prefixes<'a>(servers: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let mut servers: Vec<&str> = servers.collect();
    servers.sort_by_key(|name| (normalize(name) != **name, *name));
    let mut taken = HashSet::new();
    servers.into_iter().map(|name| (name.to_owned(), unique_name(&normalize(name), &mut taken))).collect()
}

/// The whole name of a tool, or of a prompt as a command. A name that is taken is numbered.
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

/// A name with its ending. One that is too long is cut, and a number that stands for the whole is put in.
fn truncate_name(name: &str, ending: &str) -> String {
    if name.len() + ending.len() <= MAX_TOOL_NAME_BYTES {
        return format!("{name}{ending}");
    }
    let kept = &name[..MAX_TOOL_NAME_BYTES - ending.len() - 9];
    format!("{kept}_{:08x}{ending}", digest(name))
}

/// The 32-bit FNV-1a digest: short, and the same in every version of the program.
fn digest(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_only_signs_that_models_take() {
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
    fn tools_that_look_alike_are_numbered() {
        let mut taken = HashSet::new();
        let mut name = |prefix, name| tool_name(prefix, name, &mut taken);
        assert_eq!(name("a", "x_y"), "mcp__a__x_y");
        assert_eq!(name("a", "x.y"), "mcp__a__x_y_2");
        assert_eq!(name("a", "x y"), "mcp__a__x_y_3");
        assert_eq!(name("a", "b__c"), "mcp__a__b__c");
        assert_eq!(name("a__b", "c"), "mcp__a__b__c_2");
    }

    #[test]
    fn long_names_are_cut_and_still_differ() {
        let mut taken = HashSet::new();
        let long = |end: &str| format!("{}{end}", "x".repeat(300));
        let mut name = |name: &str| tool_name("server", name, &mut taken);
        let names = [name(&long("a")), name(&long("b")), name(&long("a"))];
        assert!(names.iter().all(|name| name.len() <= MAX_TOOL_NAME_BYTES && name.starts_with("mcp__server__xxx")));
        assert!(names[0] != names[1] && names[2] != names[0] && names[2].ends_with("_2"));
    }

    #[test]
    fn servers_that_look_alike_are_told_apart_whatever_their_order() {
        let expected = [("a.b", "a_b_2"), ("a_b", "a_b"), ("a b", "a_b_3"), ("c", "c")];
        let mut expected: Vec<_> =
            expected.iter().map(|(name, prefix)| (*name, (*prefix).to_owned())).collect();
        // Those that need a change come in the order of their names.
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
