//! Options in all their forms name the same files.

use std::collections::BTreeSet;

use super::*;
use crate::shell::{CommandAnalysis, ShellContext, analyze};

fn analyze_text(text: &str) -> CommandAnalysis {
    analyze(text, &ShellContext { home: "/home/u" })
}

fn found_files(text: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let commands = analyze_text(text).commands;
    let texts = |values: &[WordValue]| {
        let shown = |value: &WordValue| format!("{value:?}");
        values.iter().map(shown).collect::<BTreeSet<_>>()
    };
    (texts(&commands[0].reads), texts(&commands[0].writes))
}

#[test]
fn every_form_of_an_option_has_the_same_effects() {
    for row in ROWS {
        let options = row.options.reads.iter().chain(row.options.writes);
        for option in options {
            for name in row.names.iter().filter(|name| **name != "dd") {
                let (plain_reads, plain_writes) = found_files(&format!("{name} {option} dir/V"));
                let forms = match option.strip_prefix("--") {
                    Some(_) => vec![format!("{option}=dir/V")],
                    None if option.len() > 2 => continue,
                    None => {
                        let letter = &option[1..];
                        let flag = row.options.flags.chars().find(char::is_ascii_alphabetic);
                        let flag = flag.map(String::from).unwrap_or_default();
                        ["-@ V", "-@V", "-%@ V", "-%@V", "-%%@V"]
                            .iter()
                            .map(|form| form.replace('@', letter).replace('%', &flag).replace('V', "dir/V"))
                            .collect()
                    }
                };
                for form in forms {
                    let (reads, writes) = found_files(&format!("{name} {form}"));
                    assert!(reads.is_superset(&plain_reads), "{name} {form}: {reads:?} {plain_reads:?}");
                    assert!(writes.is_superset(&plain_writes), "{name} {form}: {writes:?} {plain_writes:?}");
                }
            }
        }
    }
}

#[test]
fn abbreviated_and_unknown_options_hide_no_file() {
    let rows = [
        "cp --target-dir=V a",
        "cp --target-dir V a",
        "cp a -t V",
        "ln -sft V a",
        "cp -rtV a",
        "sort --outp=V a",
        "sort -uo V a",
        "curl -sLo V u",
        "curl -fsSLo V https://x.invalid",
        "curl --outpu=V u",
        "curl --strange=V u",
        "curl --strange V u",
        "wget -qO V u",
        "wget -qOV u",
        "patch --strange V",
        "chmod -x V",
        "chmod +x V",
        "chmod 644 V",
        "install -d V",
        "tar -czf V a",
        "tar czf V a",
        "tar --file=V -c a",
        "rsync --log-file=V a b",
        "gzip -9 V",
        "xz V",
        "zstd -o V a",
        "vim V",
        "ed V",
        "split a V",
        "uniq -f 1 a V",
        "xxd -r a V",
        "zip V a",
        "unzip a -d V",
        "iconv -f x -t y -o V a",
        "gpg -o V a",
        "csplit -f V a 1",
        "mktemp -p V",
        "perl -pi -e s/a/b/ V",
        "perl -i.bak -pe s/a/b/ V",
        "ruby -i -pe x V",
        "gawk -i inplace 1 V",
        "git clean -fd V",
    ];
    for text in rows {
        let command = &analyze_text(text).commands[0];
        assert!(command.writes.contains(&literal("V")), "{text}: {:?}", command.writes);
    }
}

#[test]
fn plain_commands_name_only_their_files() {
    let rows: [(&str, &[&str], &[&str]); 13] = [
        ("cp -r --reflink=auto a b", &["a"], &["b"]),
        ("mv -f a b", &["a"], &["b", "a"]),
        ("rm -rf --one-file-system a", &[], &["a"]),
        ("curl -fsSL -H 'A: b.' -d x. --max-time 3 https://x.invalid/a", &[], &[]),
        ("sort -t , -k2 a", &["a"], &[]),
        ("wget -q --tries 3 -O a https://x.invalid/b", &[], &["a"]),
        ("mkdir -p -m 700 a", &[], &["a"]),
        ("chmod -R 755 a", &[], &["a"]),
        ("gzip -dc a", &["a"], &[]),
        ("uniq -c a", &["a"], &[]),
        ("perl -Ilib -MList::Util -ne 1 a", &["1", "a"], &[]),
        ("xxd a", &["a"], &[]),
        ("gawk -i strings 1 a", &["1", "a"], &[]),
    ];
    for (text, reads, writes) in rows {
        let command = &analyze_text(text).commands[0];
        let texts = |values: &[WordValue]| {
            values.iter().map(|value| value.as_literal().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!((texts(&command.reads), texts(&command.writes)), (owned(reads), owned(writes)), "{text}");
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
