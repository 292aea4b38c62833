//! Where commands go and work: all that `cd` and its like may be given, and the directory that a wrapper chooses.

use super::facts::plain_name;
use super::given::{Known, NOTHING, read};
use super::{Value, Word};

/// A directory that nobody knows before the command runs.
const UNKNOWN: Value = Value::Unknown { before: String::new(), after: String::new(), guarded: false };

/// Where `cd` and its like may lead: each operand, whatever options stand before it.
pub(super) fn destinations(words: &[Word]) -> Vec<Value> {
    let Some((name, arguments)) = named(words) else { return Vec::new() };
    if !matches!(name.as_str(), "cd" | "chdir" | "pushd" | "popd") {
        return Vec::new();
    }
    let given = read(arguments, &NOTHING);
    let operands = given.operands.iter().map(|value| match value.literal() {
        // Back to where the shell was, which may be before this command.
        Some("-") => UNKNOWN,
        Some(text) if text.starts_with('+') => UNKNOWN,
        _ => (*value).clone(),
    });
    let found: Vec<Value> = operands.collect();
    if found.is_empty() { vec![UNKNOWN] } else { found }
}

/// Programs that work in a directory of their choice, with their options; those that are "read" name it.
const CHOOSING: &[(&str, Known)] = &[
    ("env", Known { flags: "i0v", values: "uS", reads: &["-C", "--chdir"], ..NOTHING }),
    ("sudo", Known { values: "aCcghpRrTtUu", reads: &["-D", "--chdir"], ..NOTHING }),
    ("systemd-run", Known { values: "puEHM", reads: &["--working-directory"], ..NOTHING }),
    ("unshare", Known { values: "RSG", reads: &["-w", "--wd"], ..NOTHING }),
    ("nsenter", Known { values: "tSGr", reads: &["-w", "--wd"], ..NOTHING }),
    ("git", Known { values: "c", reads: &["-C", "--work-tree"], ..NOTHING }),
    ("make", Known { values: "fIojlW", reads: &["-C", "--directory"], ..NOTHING }),
    ("tar", Known { values: "fTXbgIKLNV", reads: &["-C", "--directory"], ..NOTHING }),
];

/// The directories that a program is told to work in.
pub(super) fn chosen(words: &[Word]) -> Vec<Value> {
    named(words).map(|(name, arguments)| chosen_by(&name, arguments)).unwrap_or_default()
}

/// As `chosen`, by the plain name and the arguments.
pub(super) fn chosen_by(name: &str, arguments: &[Word]) -> Vec<Value> {
    let Some((_, known)) = CHOOSING.iter().find(|(listed, _)| *listed == name) else { return Vec::new() };
    read(arguments, known).reads
}

/// What a builtin sets `CDPATH` to; not known if it names the variable in another way.
pub(super) fn cd_path(words: &[Word]) -> Vec<Value> {
    let arguments = words.get(1..).unwrap_or_default();
    let mentions = arguments.iter().filter(|word| word.raw.contains("CDPATH"));
    let value = |word: &Word| match word.value.literal().and_then(|text| text.split_once("CDPATH=")) {
        Some((_, value)) => Value::Literal(value.to_owned()),
        None => UNKNOWN,
    };
    mentions.map(value).collect()
}

fn named(words: &[Word]) -> Option<(String, &[Word])> {
    let (first, arguments) = words.split_first()?;
    Some((plain_name(first.value.literal()?), arguments))
}

#[cfg(test)]
mod tests {
    use super::super::{Script, Surroundings, Value, analyse};

    fn script(text: &str) -> Script {
        analyse(text, &Surroundings { home: "/home/u" })
    }

    fn literals(values: &[Value]) -> Vec<&str> {
        values.iter().map(|value| value.literal().unwrap_or("?")).collect()
    }

    #[test]
    fn whatever_form_a_change_of_directory_has_its_targets_are_kept() {
        let rows: [(&str, &[&str]); 14] = [
            ("cd a", &["a"]),
            ("cd -P a", &["a"]),
            ("cd -- a", &["a"]),
            ("cd -L -e a", &["a"]),
            ("time cd a; ls", &["a"]),
            ("time -p cd a", &["a"]),
            ("FOO=1 cd a", &["a"]),
            ("\\cd a", &["a"]),
            ("builtin cd a", &["a"]),
            ("cd a/{b,c}", &["a/b", "a/c"]),
            ("eval 'cd a'", &["a"]),
            ("pushd a", &["a"]),
            ("cd", &["?"]),
            ("cd -", &["?"]),
        ];
        for (text, expected) in rows {
            let found = script(text).directories;
            let mut found = literals(&found);
            found.dedup();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_wrapper_may_choose_the_directory() {
        for text in [
            "env -C a cat x",
            "env -iC a cat x",
            "env -Ca cat x",
            "env --chdir=a cat x",
            "env --chd a cat x",
            "sudo -nD a cat x",
            "nice env -C a cat x",
            "git -C a show",
            "tar -xC a -f b",
        ] {
            assert_eq!(literals(&script(text).elsewhere).first(), Some(&"a"), "{text}");
        }
        assert_eq!(script("cat -C a").elsewhere, []);
    }

    #[test]
    fn the_search_path_of_directories_is_kept() {
        for text in ["CDPATH=a cd b", "export CDPATH=a; cd b", "declare -x CDPATH=a"] {
            assert_eq!(literals(&script(text).cd_path), ["a"], "{text}");
        }
        assert_eq!(literals(&script("read CDPATH").cd_path), ["?"]);
        assert_eq!(script("cd b").cd_path, []);
    }
}
