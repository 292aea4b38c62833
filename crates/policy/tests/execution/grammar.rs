//! Grammar of commands: from plain ones to unusual syntax, mostly commands that may be allowed.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::fragments::{
    ASSIGNMENTS, DISGUISED_PROGRAMS, EXPANSIONS, GLOBS, NOISE, PATHS, PLAIN, PREFIXES, PROGRAMS, QUOTED,
    REDIRECTS, UNUSUAL_WRAPPINGS, WRAPPINGS,
};

/// Returns true if every path in the text is a known one, so that the command cannot reach anything else.
pub(crate) fn uses_only_known_paths(command: &str) -> bool {
    let rest = PATHS.iter().fold(command.to_owned(), |text, path| text.replace(path, ""));
    !rest.contains('/')
}

fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = String> + Clone {
    select(texts).prop_map(str::to_owned)
}

fn words() -> impl Strategy<Value = String> + Clone {
    let word = prop_oneof![
        30 => one_of(PLAIN),
        6 => one_of(QUOTED),
        2 => one_of(GLOBS),
        1 => one_of(EXPANSIONS),
    ];
    let joined = (one_of(PLAIN), one_of(QUOTED)).prop_map(|(a, b)| a + &b);
    prop_oneof![20 => word, 1 => joined]
}

fn blanks() -> impl Strategy<Value = String> + Clone {
    prop_oneof![30 => Just(" ".to_owned()), 2 => Just("  ".to_owned()), 1 => Just("\t".to_owned()), 1 => Just(" \\\n".to_owned())]
}

/// A simple command with assignments, prefixes and redirects.
fn simple_commands() -> impl Strategy<Value = String> {
    let program = prop_oneof![14 => one_of(PROGRAMS), 1 => one_of(DISGUISED_PROGRAMS)];
    let few = |strategy: BoxedStrategy<String>, weight: u32| prop_oneof![weight => Just(Vec::new()), 1 => vec(strategy, 1..3)];
    let assignments = few(one_of(ASSIGNMENTS).boxed(), 6);
    let prefixes = few(one_of(PREFIXES).boxed(), 3);
    let redirects = few(one_of(REDIRECTS).boxed(), 4);
    (assignments, prefixes, program, vec((blanks(), words()), 0..4), redirects, any::<prop::sample::Index>())
        .prop_map(|(assignments, prefixes, program, words, redirects, position)| {
            let mut pieces: Vec<String> =
                words.iter().map(|(blank, word)| format!("{blank}{word}")).collect();
            for redirect in redirects {
                let index = position.index(pieces.len() + 1);
                pieces.insert(index, format!(" {redirect}"));
            }
            let assignments: String = assignments.iter().map(|text| format!("{text} ")).collect();
            format!("{assignments}{}{program}{}", prefixes.concat(), pieces.concat())
        })
}

fn wrap(inner: &str, outer: &str) -> String {
    outer.replace('@', inner)
}

fn compound_commands() -> impl Strategy<Value = String> {
    let outer = prop_oneof![5 => select(WRAPPINGS), 1 => select(UNUSUAL_WRAPPINGS)];
    let wrapped = (
        simple_commands(),
        prop_oneof![3 => vec(outer.clone(), 0..1), 3 => vec(outer.clone(), 1..2), 1 => vec(outer, 2..4)],
    )
        .prop_map(|(inner, wrappers)| wrappers.iter().fold(inner, |inner, outer| wrap(&inner, outer)));
    let operator = select(vec![" && ", "; ", " | ", "\n", " || ", ";", "&&", "|"]);
    let two = (simple_commands(), operator, simple_commands())
        .prop_map(|(a, operator, b)| format!("{a}{operator}{b}"));
    prop_oneof![4 => wrapped, 1 => two]
}

/// Any command.
pub(crate) fn commands() -> impl Strategy<Value = String> {
    let noise = vec((any::<prop::sample::Index>(), select(NOISE)), 1..4);
    let noise = prop_oneof![3 => Just(Vec::new()), 2 => noise];
    (compound_commands(), noise).prop_map(|(command, noise)| {
        let mut text: Vec<char> = command.chars().collect();
        for (position, piece) in noise {
            let index = position.index(text.len() + 1);
            text.splice(index..index, piece.chars());
        }
        text.into_iter().collect()
    })
}

#[test]
fn only_known_paths_may_run() {
    for known in ["tool src/b.txt > /dev/null", "cat ../outside/data.txt", "tool a"] {
        assert!(uses_only_known_paths(known), "{known}");
    }
    for unknown in ["tool > /x", "cat /etc/passwd", "tool > $y/x", "tool ../../x", "/bin/tool"] {
        assert!(!uses_only_known_paths(unknown), "{unknown}");
    }
}
