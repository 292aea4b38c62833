//! Directories of commands: targets of `cd` and its like, and directories that options such as `env -C` select.

use super::argv::{NO_OPTIONS, OptionSpec, parse_args};
use super::effects::extract_program_name;
use crate::shell::{Word, WordValue};

/// Finds possible targets of `cd` and its like: each operand, whatever options precede it.
pub(crate) fn find_cd_targets(words: &[Word]) -> Vec<WordValue> {
    let Some((name, arguments)) = split_program(words) else { return Vec::new() };
    if !matches!(name.as_str(), "cd" | "chdir" | "pushd" | "popd") {
        return Vec::new();
    }
    let args = parse_args(arguments, &NO_OPTIONS);
    let operands = args.operands.iter().map(|value| match value.as_literal() {
        // The previous directory, which may be one from before this command.
        Some("-") => WordValue::FULLY_UNKNOWN,
        Some(text) if text.starts_with('+') => WordValue::FULLY_UNKNOWN,
        _ => (*value).clone(),
    });
    let found: Vec<WordValue> = operands.collect();
    if found.is_empty() { vec![WordValue::FULLY_UNKNOWN] } else { found }
}

/// Programs with an option for their working directory; the `reads` options name it.
const DIR_OPTIONS: &[(&str, OptionSpec)] = &[
    ("env", OptionSpec { flags: "i0v", values: "uS", reads: &["-C", "--chdir"], ..NO_OPTIONS }),
    ("sudo", OptionSpec { values: "aCcghpRrTtUu", reads: &["-D", "--chdir"], ..NO_OPTIONS }),
    ("systemd-run", OptionSpec { values: "puEHM", reads: &["--working-directory"], ..NO_OPTIONS }),
    ("unshare", OptionSpec { values: "RSG", reads: &["-w", "--wd"], ..NO_OPTIONS }),
    ("nsenter", OptionSpec { values: "tSGr", reads: &["-w", "--wd"], ..NO_OPTIONS }),
    ("git", OptionSpec { values: "c", reads: &["-C", "--work-tree"], ..NO_OPTIONS }),
    ("make", OptionSpec { values: "fIojlW", reads: &["-C", "--directory"], ..NO_OPTIONS }),
    ("tar", OptionSpec { values: "fTXbgIKLNV", reads: &["-C", "--directory"], ..NO_OPTIONS }),
];

/// Finds directories that options of a program select.
pub(crate) fn find_option_directories(words: &[Word]) -> Vec<WordValue> {
    split_program(words)
        .map(|(name, arguments)| find_option_directories_of(&name, arguments))
        .unwrap_or_default()
}

/// Like `find_option_directories`, by program name and arguments.
pub(crate) fn find_option_directories_of(name: &str, arguments: &[Word]) -> Vec<WordValue> {
    let Some((_, known)) = DIR_OPTIONS.iter().find(|(listed, _)| *listed == name) else { return Vec::new() };
    parse_args(arguments, known).reads
}

/// Finds the values that a builtin assigns to `CDPATH`; unknown if it names the variable in another form.
pub(crate) fn find_cd_path_values(words: &[Word]) -> Vec<WordValue> {
    let arguments = words.get(1..).unwrap_or_default();
    let mentions = arguments.iter().filter(|word| word.raw.contains("CDPATH"));
    let value = |word: &Word| match word.value.as_literal().and_then(|text| text.split_once("CDPATH=")) {
        Some((_, value)) => WordValue::Literal(value.to_owned()),
        None => WordValue::FULLY_UNKNOWN,
    };
    mentions.map(value).collect()
}

fn split_program(words: &[Word]) -> Option<(String, &[Word])> {
    let (first, arguments) = words.split_first()?;
    Some((extract_program_name(first.value.as_literal()?), arguments))
}

#[cfg(test)]
mod tests {
    use crate::shell::{CommandAnalysis, ShellContext, WordValue, analyze};

    fn analyze_text(text: &str) -> CommandAnalysis {
        analyze(text, &ShellContext { home: "/home/u" })
    }

    fn literals(values: &[WordValue]) -> Vec<&str> {
        values.iter().map(|value| value.as_literal().unwrap_or("?")).collect()
    }

    #[test]
    fn cd_targets_are_found_in_every_form() {
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
            let found = analyze_text(text).cd_directories;
            let mut found = literals(&found);
            found.dedup();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn options_select_the_directory() {
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
            assert_eq!(literals(&analyze_text(text).option_directories).first(), Some(&"a"), "{text}");
        }
        assert_eq!(analyze_text("cat -C a").option_directories, []);
    }

    #[test]
    fn cd_path_is_recorded() {
        for text in ["CDPATH=a cd b", "export CDPATH=a; cd b", "declare -x CDPATH=a"] {
            assert_eq!(literals(&analyze_text(text).cd_path), ["a"], "{text}");
        }
        assert_eq!(literals(&analyze_text("read CDPATH").cd_path), ["?"]);
        assert_eq!(analyze_text("cd b").cd_path, []);
    }
}
