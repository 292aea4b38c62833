//! The files that commands read and change, where that is all there is to say of them. One row each.

use super::facts::Facts;
use super::options::{Arguments, sort};
use super::{Value, Word};

/// Which operands are files, and of which sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Files {
    Read,
    /// Read, but the first is a program or pattern unless one of the options gave it.
    ReadAfterFirst(&'static [&'static str]),
    Written,
    /// The first is a mode or an owner.
    WrittenAfterFirst,
    /// Read, the last one written.
    Copied,
    /// As copied, and what is moved away is changed too.
    Moved,
    /// Only what options name.
    ByOptions,
}

struct Row {
    names: &'static [&'static str],
    files: Files,
    /// Letters with a value that is no file.
    values: &'static str,
    /// Options whose value is read.
    reads: &'static [&'static str],
    /// Options whose value is written.
    writes: &'static [&'static str],
    recursive: &'static [&'static str],
    /// Whether it counts as a writer, whose files must be in scope.
    writer: bool,
}

const ROW: Row = Row {
    names: &[],
    files: Files::Read,
    values: "",
    reads: &[],
    writes: &[],
    recursive: &[],
    writer: false,
};

const TARGET: &[&str] = &["-t", "--target-directory"];

const ROWS: &[Row] = &[
    Row { names: &["mkdir"], files: Files::Written, values: "m", writer: true, ..ROW },
    Row {
        names: &["touch", "truncate"],
        files: Files::Written,
        values: "sdt",
        reads: &["-r", "--reference"],
        writer: true,
        ..ROW
    },
    Row {
        names: &["rm", "rmdir", "unlink", "shred", "mkfifo", "tee"],
        files: Files::Written,
        writer: true,
        ..ROW
    },
    Row {
        names: &["chmod", "chown", "chgrp"],
        files: Files::WrittenAfterFirst,
        reads: &["--reference"],
        writer: true,
        ..ROW
    },
    Row { names: &["mv"], files: Files::Moved, values: "S", writes: TARGET, writer: true, ..ROW },
    Row {
        names: &["cp", "install", "ln", "rsync", "scp"],
        files: Files::Copied,
        values: "Smgoe",
        writes: TARGET,
        recursive: &["-r", "-R", "-a", "--recursive", "--archive"],
        writer: true,
        ..ROW
    },
    Row {
        names: &["patch"],
        files: Files::Written,
        values: "p",
        reads: &["-i", "--input"],
        writes: &["-o", "--output"],
        writer: true,
        ..ROW
    },
    Row {
        names: &["sort"],
        files: Files::Read,
        values: "ktS",
        reads: &["--files0-from", "--random-source"],
        writes: &["-o", "--output", "-T"],
        writer: true,
        ..ROW
    },
    Row {
        names: &["curl"],
        files: Files::ByOptions,
        reads: &["-T", "--upload-file", "-K", "--config", "-E", "--cert", "--key", "--cacert"],
        writes: &["-o", "--output", "-c", "--cookie-jar", "-D", "--dump-header"],
        writer: true,
        ..ROW
    },
    Row {
        names: &["wget"],
        files: Files::ByOptions,
        reads: &["-i", "--input-file", "--post-file", "--body-file"],
        writes: &["-O", "--output-document", "-P", "--directory-prefix", "-o", "--output-file"],
        writer: true,
        ..ROW
    },
    Row {
        names: &["grep", "egrep", "fgrep", "rg", "jq", "awk", "gawk", "mawk"],
        files: Files::ReadAfterFirst(&["-e", "-f", "--regexp", "--file", "--from-file"]),
        values: "ABCmeFvgt",
        reads: &["-f", "--file", "--from-file", "--exclude-from", "--ignore-file", "-L"],
        recursive: &["-r", "-R", "--recursive", "--dereference-recursive"],
        ..ROW
    },
    Row {
        names: &["tar"],
        recursive: &["*"],
        reads: &["-T", "--files-from", "-X", "-C", "--directory"],
        ..ROW
    },
    Row { names: &["zip"], recursive: &["-r", "-R"], ..ROW },
    Row { names: &["openssl"], files: Files::ByOptions, reads: &["-in", "-inkey", "-CAfile"], ..ROW },
    Row {
        names: &[
            "less",
            "more",
            "view",
            "vi",
            "vim",
            "nvim",
            "nano",
            "ed",
            "ex",
            "emacs",
            "bat",
            "xxd",
            "base32",
            "cksum",
            "sum",
            "b2sum",
            "uniq",
            "join",
            "shuf",
            "split",
            "iconv",
            "gzip",
            "bzip2",
            "xz",
            "zcat",
            "bzcat",
            "xzcat",
            "zless",
            "zgrep",
            "gpg",
            "source",
            ".",
            "sh",
            "bash",
            "dash",
            "zsh",
            "ksh",
            "python",
            "python2",
            "python3",
            "node",
            "perl",
            "ruby",
            "php",
            "base64",
            "md5sum",
            "sha1sum",
            "sha224sum",
            "sha256sum",
            "sha384sum",
            "sha512sum",
            "tree",
            "file",
            "hostname",
            "date",
            "ps",
            "mapfile",
            "dd",
            "csplit",
            "look",
            "mount",
            "strip",
        ],
        ..ROW
    },
];

/// What a command reads and changes, if it is listed.
pub(super) fn facts(name: &str, arguments: &[Word]) -> Option<Facts> {
    let versioned = name
        .strip_prefix("python")
        .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
    let row = ROWS.iter().find(|row| row.names.contains(&if versioned { "python" } else { name }))?;
    let paths: Vec<&str> = row.reads.iter().chain(row.writes).copied().collect();
    let reading = sort(arguments, row.values, &[], row.reads);
    let all = sort(arguments, row.values, &[], &paths);
    let mut facts = Facts {
        reads: reading.paths.clone(),
        writes: all.paths.iter().filter(|path| !reading.paths.contains(path)).cloned().collect(),
        recursive: row.recursive.contains(&"*") || all.has(row.recursive),
        scoped: row.writer,
        minds_globs: row.writer,
        ..Facts::default()
    };
    sort_operands(row, &all, &mut facts);
    special(name, arguments, &mut facts);
    Some(facts)
}

/// As `facts`, for a command that may not be listed: then what is not an option is read.
pub(super) fn loose(name: &str, arguments: &[Word]) -> Facts {
    facts(name, arguments)
        .unwrap_or_else(|| Facts { reads: sort(arguments, "", &[], &[]).reads(0), ..Facts::default() })
}

fn sort_operands(row: &Row, all: &Arguments<'_>, facts: &mut Facts) {
    let operands: Vec<Value> =
        all.operands.iter().filter(|value| !is_remote(value)).map(|value| (*value).clone()).collect();
    let targeted = all.has(TARGET);
    match row.files {
        Files::Read => facts.reads.extend(operands),
        Files::ReadAfterFirst(given) => {
            facts.reads.extend(operands.into_iter().skip(usize::from(!all.has(given))));
        }
        Files::Written => facts.writes.extend(operands),
        Files::WrittenAfterFirst => {
            facts.writes.extend(operands.into_iter().skip(usize::from(!all.has(&["--reference"]))));
        }
        Files::Copied | Files::Moved => {
            let mut sources = operands;
            // With one operand the copy or link goes to the working directory.
            if !targeted && sources.len() != 1 {
                facts.writes.extend(sources.pop());
            }
            if row.files == Files::Moved {
                facts.writes.extend(sources.iter().cloned());
            }
            facts.reads.extend(sources);
        }
        Files::ByOptions => {}
    }
}

/// `host:path` is not a file here.
fn is_remote(value: &Value) -> bool {
    value.literal().is_some_and(|text| {
        text.split_once(':')
            .is_some_and(|(host, _)| !host.is_empty() && !host.contains('/') && !host.contains('.'))
            || text.contains("://")
    })
}

/// Files named in forms of their own.
fn special(name: &str, arguments: &[Word], facts: &mut Facts) {
    let literal = |text: &str| Value::Literal(text.to_owned());
    match name {
        "dd" => {
            facts.reads.clear();
            facts.scoped = true;
            facts.minds_globs = true;
            for word in arguments {
                let text = word.value.literal().unwrap_or(&word.raw);
                let value = |path: &str| {
                    if word.value.literal().is_some() { literal(path) } else { word.value.clone() }
                };
                if let Some(path) = text.strip_prefix("if=") {
                    facts.reads.push(value(path));
                } else if let Some(path) = text.strip_prefix("of=") {
                    facts.writes.push(value(path));
                }
            }
        }
        "curl" => {
            for text in arguments.iter().filter_map(|word| word.value.literal()) {
                if let Some(path) = text.strip_prefix("file://") {
                    facts.reads.push(literal(path));
                } else if let Some((_, path)) = text.split_once('@')
                    && !text.contains("://")
                {
                    facts.reads.push(literal(path.split(';').next().unwrap_or(path)));
                }
            }
        }
        _ => {}
    }
}
