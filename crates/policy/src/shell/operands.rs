//! The files that commands read and change, where that is all there is to say of them.

mod table;

use super::facts::Facts;
use super::given::{Given, NOTHING, read};
use super::{Landing, Value, Word};
use table::{Files, ROWS, Row, TARGET};

/// What a command reads and changes, if it is listed.
pub(super) fn facts(name: &str, arguments: &[Word]) -> Option<Facts> {
    let versioned = name
        .strip_prefix("python")
        .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
    let row = ROWS.iter().find(|row| row.names.contains(&if versioned { "python" } else { name }))?;
    let given = read(arguments, &row.known);
    let mut facts = Facts {
        reads: given.reads.clone(),
        writes: given.writes.clone(),
        recursive: row.recursive.contains(&"*") || given.has(row.recursive),
        changes_below: changes_below(row, arguments, &given),
        scoped: row.writer,
        minds_globs: row.writer,
        ..Facts::default()
    };
    sort_operands(row, &given, &mut facts);
    guess(row, &given, &mut facts);
    special(name, arguments, &given, &mut facts);
    // Standard output.
    facts.writes.retain(|value| value.literal() != Some("-"));
    Some(facts)
}

/// Whether it changes all that lies below what it writes. A word that is not known may be the option.
fn changes_below(row: &Row, arguments: &[Word], given: &Given<'_>) -> bool {
    let unknown = || arguments.iter().any(|word| word.value.literal().is_none());
    row.below.contains(&"*") || given.may_have(row.below) || !row.below.is_empty() && unknown()
}

/// As `facts`, for a command that may not be listed: then what is not an option is read.
pub(super) fn loose(name: &str, arguments: &[Word]) -> Facts {
    facts(name, arguments)
        .unwrap_or_else(|| Facts { reads: read(arguments, &NOTHING).all_reads(0), ..Facts::default() })
}

fn sort_operands(row: &Row, given: &Given<'_>, facts: &mut Facts) {
    let operands: Vec<Value> = files(given).cloned().collect();
    match row.files {
        Files::Read => facts.reads.extend(operands),
        Files::ReadAfterFirst(options) => {
            facts.reads.extend(operands.into_iter().skip(usize::from(!given.has(options))));
        }
        Files::Written => facts.writes.extend(operands),
        Files::WrittenAfterFirst => {
            facts.writes.extend(operands.into_iter().skip(usize::from(!given.has(&["--reference"]))));
        }
        Files::Changed(unless) => {
            if !given.has(unless) {
                facts.writes.extend(operands.iter().cloned());
            }
            facts.reads.extend(operands);
        }
        Files::Copied | Files::Moved => copy(row, given, operands, facts),
        Files::ByOptions => {}
    }
}

/// The last operand is written, or the directory that an option names; the files end up in it if it is a directory.
fn copy(row: &Row, given: &Given<'_>, operands: Vec<Value>, facts: &mut Facts) {
    let mut sources = operands;
    let by_option = given.unsure || given.has(TARGET);
    let mut targets = if by_option { given.writes.clone() } else { Vec::new() };
    if !given.has(TARGET) && sources.len() != 1 {
        let target = sources.pop();
        facts.writes.extend(target.clone());
        targets.extend(target);
    }
    if targets.is_empty() {
        // With one operand the copy or link goes to the working directory.
        targets.push(literal("."));
    }
    for directory in &targets {
        let lands = sources.iter().map(|from| Landing { directory: directory.clone(), from: from.clone() });
        facts.lands.extend(lands);
    }
    if row.files == Files::Moved {
        facts.writes.extend(sources.iter().cloned());
    }
    facts.reads.extend(sources);
}

/// What an option that is not known may name, and the operands that may be its value: all of them files perhaps.
fn guess(row: &Row, given: &Given<'_>, facts: &mut Facts) {
    facts.reads.extend(given.guesses.iter().cloned());
    if row.writer && given.unsure {
        let possible: Vec<Value> = files(given).chain(&given.guesses).cloned().collect();
        facts.reads.extend(files(given).cloned());
        facts.writes.extend(possible);
    }
}

fn files<'a>(given: &'a Given<'_>) -> impl Iterator<Item = &'a Value> {
    given.operands.iter().copied().filter(|value| !is_remote(value))
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
fn special(name: &str, arguments: &[Word], given: &Given<'_>, facts: &mut Facts) {
    match name {
        "dd" => copy_blocks(arguments, facts),
        "curl" => {
            for text in arguments.iter().filter_map(|word| word.value.literal()) {
                let scheme = text.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file://"));
                if let Some(path) = text.get(7..).filter(|_| scheme) {
                    facts.reads.push(literal(path.strip_prefix("localhost").unwrap_or(path)));
                } else if let Some((_, path)) = text.split_once('@').or_else(|| text.split_once("=<"))
                    && !text.contains("://")
                {
                    facts.reads.push(literal(path.split(';').next().unwrap_or(path)));
                }
            }
            if given.has(&["-O", "--remote-name", "--remote-name-all"]) {
                facts.lands.extend(fetched(arguments, given));
            }
        }
        "wget" if !given.has(&["-O", "--output-document"]) => facts.lands.extend(fetched(arguments, given)),
        "install" if given.has(&["-d", "--directory"]) => facts.writes.extend(files(given).cloned()),
        "tar" => {
            // The archive is written or read; the letters may stand without a dash, each with a word of its own.
            facts.reads.extend(given.writes.iter().cloned());
            let bundle = arguments.first().and_then(|word| word.value.literal()).unwrap_or_default();
            let taking = bundle.chars().filter(|letter| "fTXCbgIKLNV".contains(*letter));
            if bundle.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                let named = taking.zip(arguments.iter().skip(1)).filter(|(letter, _)| *letter == 'f');
                facts.writes.extend(named.map(|(_, word)| word.value.clone()));
            }
            let extracts = given.may_have(&["-x", "--extract", "--get"])
                || !bundle.starts_with('-') && !bundle.contains(['/', '.']) && bundle.contains('x');
            if extracts {
                let letters = bundle.chars().filter(|letter| "fTXCbgIFKLNV".contains(*letter));
                let named = letters.zip(arguments.iter().skip(1)).filter(|(letter, _)| *letter == 'C');
                facts.sweeps = named.map(|(_, word)| word.value.clone()).collect();
                facts.sweeps.extend(super::places::chosen_by(name, arguments));
            }
        }
        // The first is read; the next is written, or what the names of what is written begin with.
        "split" | "uniq" | "xxd" => facts.writes.extend(files(given).skip(1).cloned()),
        // With `-m` what is packed is removed.
        "zip" if given.may_have(&["-m", "--move"]) => {
            facts.writes.extend(files(given).cloned());
            facts.changes_below = true;
        }
        "zip" => facts.writes.extend(files(given).take(1).cloned()),
        "awk" | "gawk" | "perl" | "ruby" if works_in_place(name, arguments) => {
            facts.writes.extend(files(given).cloned());
        }
        _ => {}
    }
}

/// Whether a program writes what it makes of its files into them.
fn works_in_place(name: &str, arguments: &[Word]) -> bool {
    let mut texts = arguments.iter().filter_map(|word| word.value.literal());
    if name.ends_with("awk") {
        return texts.any(|text| text.trim_start_matches("--include=").trim_start_matches("-i") == "inplace");
    }
    // The other letters take the rest of the word.
    texts.any(|text| {
        let bundle = text.strip_prefix('-').unwrap_or_default();
        bundle.chars().take_while(|letter| !"-eEmMIxCDFrK".contains(*letter)).any(|letter| letter == 'i')
    })
}

/// `dd if=FILE of=FILE`.
fn copy_blocks(arguments: &[Word], facts: &mut Facts) {
    facts.reads.clear();
    facts.scoped = true;
    facts.minds_globs = true;
    for word in arguments {
        let text = word.value.literal().unwrap_or(&word.raw);
        let value =
            |path: &str| if word.value.literal().is_some() { literal(path) } else { word.value.clone() };
        if let Some(path) = text.strip_prefix("if=") {
            facts.reads.push(value(path));
        } else if let Some(path) = text.strip_prefix("of=") {
            facts.writes.push(value(path));
        }
    }
}

/// What is fetched and kept under the name that it has in its address.
fn fetched<'a>(arguments: &'a [Word], given: &Given<'_>) -> impl Iterator<Item = Landing> + 'a {
    let directories = if given.writes.is_empty() { vec![literal(".")] } else { given.writes.clone() };
    arguments.iter().flat_map(move |word| {
        let path = match &word.value {
            Value::Literal(text) | Value::Glob(text) => text.split(['?', '#']).next().unwrap_or_default(),
            Value::Unknown { .. } => "",
        };
        let path = path.split_once("://").map_or(path, |(_, path)| path);
        let from = path.contains('/').then(|| literal(path));
        let lands = directories.iter().map(move |directory| Some((directory, from.clone()?)));
        lands
            .flatten()
            .map(|(directory, from)| Landing { directory: directory.clone(), from })
            .collect::<Vec<_>>()
    })
}

fn literal(text: &str) -> Value {
    Value::Literal(text.to_owned())
}

#[cfg(test)]
mod tests;
