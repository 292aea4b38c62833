//! Commands in the arguments of ordinary programs: options whose value is a command, and scripts of other languages in
//! which commands stand as text. For refusing only: what may be a command is taken for one.

use super::Word;
use super::given::{Known, NOTHING, read};

/// Options whose value is a command, or ends with one.
const OPTIONS: &[(&[&str], &[&str])] = &[
    (
        &["git"],
        &[
            "-c",
            "-x",
            "-O",
            "--exec",
            "--extcmd",
            "--open-files-in-pager",
            "--upload-pack",
            "--receive-pack",
            "--env-filter",
            "--index-filter",
            "--msg-filter",
            "--commit-filter",
            "--parent-filter",
            "--tag-name-filter",
            "--tree-filter",
        ],
    ),
    (
        &["tar"],
        &[
            "-I",
            "-F",
            "--use-compress-program",
            "--to-command",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
    ),
    (&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    (&["ssh", "scp", "sftp"], &["-o", "-S"]),
    (&["nc", "ncat", "netcat"], &["-e", "-c", "--exec", "--sh-exec"]),
    (&["split"], &["--filter"]),
    (&["sort"], &["--compress-program"]),
    (&["zip"], &["-TT", "--unzip-command"]),
    (&["man"], &["-P", "-H", "--pager", "--html"]),
    (&["vi", "vim", "nvim", "view", "ex"], &["-c", "-S", "--cmd"]),
    (&["wget"], &["--use-askpass"]),
];

/// Texts in the arguments of a program that it may run.
pub(super) fn texts(name: &str, arguments: &[Word]) -> Vec<String> {
    let mut texts = Vec::new();
    if let Some((_, options)) = OPTIONS.iter().find(|(names, _)| names.contains(&name)) {
        let given = read(arguments, &Known { reads: options, ..NOTHING });
        texts.extend(given.reads.iter().filter_map(|value| value.literal()).flat_map(ends));
    }
    let mut words = arguments.iter().filter_map(|word| word.value.literal());
    match name {
        "awk" | "gawk" | "mawk" | "nawk" => texts.extend(words.flat_map(quoted)),
        "sed" | "gsed" => texts.extend(words.flat_map(executed_by_sed)),
        "git" => texts.extend(given_to_git(words)),
        "vi" | "vim" | "nvim" | "view" | "ex" => {
            texts.extend(words.filter(|word| word.starts_with('+')).flat_map(ends));
        }
        "socat" => {
            texts.extend(words.filter_map(|word| word.split_once(':')).map(|(_, text)| text.to_owned()));
        }
        "split" => texts.extend(words.find_map(|word| word.strip_prefix("--filter=")).map(str::to_owned)),
        _ => {}
    }
    texts
}

/// The text, and what stands behind the marks after which a command may follow.
fn ends(text: &str) -> Vec<String> {
    let behind = |mark: char| text.split_once(mark).map(|(_, end)| end);
    let named = behind('=').map(|end| end.strip_prefix("exec=").unwrap_or(end));
    let all = [Some(text), named, named.and_then(|end| end.strip_prefix('!')), behind('!')];
    all.into_iter().flatten().map(str::to_owned).collect()
}

/// The texts in double quotes of a script that can run them.
fn quoted(script: &str) -> Vec<String> {
    if !["system", "|"].iter().any(|way| script.contains(way)) {
        return Vec::new();
    }
    let mut texts = Vec::new();
    let mut text: Option<String> = None;
    let mut letters = script.chars();
    while let Some(letter) = letters.next() {
        match (&mut text, letter) {
            (None, '"') => text = Some(String::new()),
            (None, _) => {}
            (Some(_), '"') => texts.extend(text.take()),
            (Some(text), '\\') => text.extend(letters.next()),
            (Some(text), letter) => text.push(letter),
        }
    }
    texts
}

/// What the command `e` of a script runs, and what its substitutions may make.
fn executed_by_sed(script: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for line in script.lines() {
        let starts = line.match_indices("e ").filter(|(at, _)| {
            let before = line.get(..*at).unwrap_or_default().chars().next_back();
            before.is_none_or(|before| !before.is_alphabetic())
        });
        texts.extend(starts.filter_map(|(at, _)| line.get(at + 2..)).map(str::to_owned));
        // `s/a/TEXT/e`, with whatever stands between.
        if let Some(end) = line.rfind(|letter: char| letter.is_ascii_punctuation())
            && line.get(end + 1..).is_some_and(|flags| flags.contains('e'))
            && let Some((before, mark)) = line.get(..=end).and_then(|text| text.split_at_checked(end))
        {
            texts.extend(before.rsplit_once(mark).map(|(_, text)| text.to_owned()));
        }
    }
    texts
}

/// `git bisect run`, `git submodule foreach`, and aliases for commands of the shell.
fn given_to_git<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let words: Vec<&str> = words.collect();
    let begins = |pair: &[&str]| matches!(pair, ["bisect", "run"] | ["submodule", "foreach"]);
    let start = words.windows(2).position(begins).map(|at| at + 2);
    let rest = start.and_then(|start| words.get(start..)).unwrap_or_default();
    let rest: Vec<&str> = rest.iter().copied().skip_while(|word| word.starts_with('-')).collect();
    let aliases = words.iter().filter_map(|word| word.strip_prefix('!')).map(str::to_owned);
    aliases.chain((!rest.is_empty()).then(|| rest.join(" "))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Surroundings, analyse};

    #[test]
    fn what_is_only_printed_is_no_command() {
        for (text, count) in [
            ("awk '{ print \"git clean\" }' f", 1),
            ("awk '{ print | \"sort -u\" }' f", 2),
            ("sed -n 's/the e/x/p' f", 1),
            ("git commit -m 'run it'", 1),
            ("git submodule update", 1),
        ] {
            assert_eq!(analyse(text, &Surroundings { home: "/home/u" }).parts.len(), count, "{text}");
        }
    }
}
