//! Edit: replaces one text in a file by another. Where the text is found, and what the result is, are pure functions;
//! line ends, encoding and mode of the file stay as they were.

use std::ops::Range;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel_wire::content::ResultContent;

use super::encoding::{Decoded, encode};
use super::patch::{self, shorten};
use super::target::{self, Site, Standing, Target};
use super::{Call, Done, Example, Output, Tool, Touches, Trouble, fault, lenient};
use crate::workspace::Workspace;
use crate::{compare, files};

/// The tool.
pub(super) struct Edit;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    file_path: String,
    old_string: String,
    new_string: String,
    /// Replace every match
    #[serde(default, deserialize_with = "lenient::flag")]
    replace_all: bool,
}

/// How large a file may get by an edit.
const LARGEST: usize = 64_000_000;

impl Tool for Edit {
    type Input = Input;

    const NAME: &'static str = "Edit";

    const DESCRIPTION: &'static str = "Replaces text in a file that you have read. old_string must match exactly, \
        whitespace included but without Read's line numbers, and only once: include enough lines around it. An empty \
        old_string creates the file.";

    fn touches(input: &Input) -> Touches {
        Touches::Writes(vec![input.file_path.clone()])
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        let work = files::aside(move || edit(&input, &call)).await;
        work.unwrap_or_else(|error| Err(Trouble::Failed(error.to_string())))
    }

    fn examples() -> Vec<Example> {
        let three = &[("a.txt", "one\ntwo\nthree\n")];
        let read = || ("Read", json!({"file_path": "a.txt"}));
        let edit = |old: &str, new: &str| json!({"file_path": "a.txt", "old_string": old, "new_string": new});
        vec![
            Example::new("replaces a text that is there once", edit("two", "2"))
                .files(three)
                .after(read().0, read().1)
                .says(&["updated", "2\t2"])
                .leaves(&[("a.txt", "one\n2\nthree\n")]),
            Example::new("needs a file that was read", edit("two", "2"))
                .files(three)
                .fails(&["not been read"])
                .leaves(three),
            Example::new("says where a text is that is there more than once", edit("same", "other"))
                .files(&[("a.txt", "same\nelse\nsame\n")])
                .after(read().0, read().1)
                .fails(&["2 places", "lines 1, 3", "replace_all"]),
            Example::new(
                "replaces every match if asked to",
                json!({"file_path": "a.txt", "old_string": "same", "new_string": "other", "replace_all": true}),
            )
            .files(&[("a.txt", "same\nelse\nsame\n")])
            .after(read().0, read().1)
            .says(&["2 places"])
            .leaves(&[("a.txt", "other\nelse\nother\n")]),
            Example::new("points at what differs only in whitespace", edit("  if x:\n    go()", "pass"))
                .files(&[("a.txt", "def f():\n\tif x:\n\t\tgo()\n")])
                .after(read().0, read().1)
                .fails(&["not found", "lines 2-3", "whitespace"]),
            Example::new("makes a file if there is nothing to replace", edit("", "hello\n"))
                .says(&["created"])
                .leaves(&[("a.txt", "hello\n")]),
        ]
    }
}

fn edit(input: &Input, call: &Call) -> Output {
    if input.old_string == input.new_string {
        return Err(Trouble::Refused(
            "old_string and new_string are the same: there is nothing to change.".into(),
        ));
    }
    let (workspace, site) = (&*call.workspace, Site::of(call, &input.file_path)?);
    let path = site.path.as_path();
    if input.old_string.is_empty() {
        return create(input, workspace, &site);
    }
    let Target::File(existing) = site.open(workspace)? else {
        return Err(Trouble::Refused(fault::nothing_at(path, &workspace.cwd())));
    };
    if existing.standing == Standing::Unread {
        return Err(target::unread(path));
    }
    if path.extension().is_some_and(|extension| extension == "ipynb") {
        return Err(Trouble::Refused(format!("{} is a notebook: use NotebookEdit.", path.display())));
    }
    let decoded = existing.editable(path)?;
    let places = find(&decoded.text, &input.old_string);
    if existing.standing == Standing::Changed && places.len() != 1 {
        return Err(target::changed(path));
    }
    if places.is_empty() || (places.len() > 1 && !input.replace_all) {
        return Err(Trouble::Refused(unclear(&decoded.text, &input.old_string, &places, path)));
    }
    let grown = places.len().saturating_mul(input.new_string.len()).saturating_add(decoded.text.len());
    if grown > LARGEST {
        let text = format!(
            "{} would grow to more than {} MB. Write it with a command instead.",
            path.display(),
            LARGEST / 1_000_000
        );
        return Err(Trouble::Refused(text));
    }
    let new = replace(&decoded.text, &places, &input.new_string);
    let mut done = save(input, workspace, &site, decoded, &new, places.len())?;
    if let (Standing::Changed, ResultContent::Text(text)) = (existing.standing, &mut done.content) {
        text.push_str("\nSomebody else had changed the file since you read it.");
    }
    Ok(done)
}

/// Writes the new text in the file's own encoding.
fn save(
    input: &Input,
    workspace: &Workspace,
    site: &Site,
    old: &Decoded,
    new: &str,
    places: usize,
) -> Output {
    let path = site.path.as_path();
    let Some(bytes) = encode(new, old.encoding) else {
        let text =
            format!("{} is in Windows-1252, which has no bytes for some of the new text.", path.display());
        return Err(Trouble::Refused(text));
    };
    let stamp = site.replace(&bytes)?;
    site.note(workspace, stamp, Some(new));
    let times = if places > 1 { format!(" in {places} places") } else { String::new() };
    Ok(done(input, path, &old.text, new, &format!("File updated{times}: {}", path.display())))
}

/// Makes a file that holds `new_string`; an empty one may stand there already.
fn create(input: &Input, workspace: &Workspace, site: &Site) -> Output {
    let (path, bytes) = (site.path.as_path(), input.new_string.as_bytes());
    let stamp = match site.open(workspace)? {
        Target::Nothing => site.create(bytes)?,
        Target::File(existing) if existing.editable(path)?.text.is_empty() => site.replace(bytes)?,
        Target::File(_) => {
            let text = format!(
                "{} is there already and not empty. Say what to replace in old_string.",
                path.display()
            );
            return Err(Trouble::Refused(text));
        }
    };
    site.note(workspace, stamp, Some(&input.new_string));
    Ok(done(input, path, "", &input.new_string, &format!("File created: {}", path.display())))
}

fn done(input: &Input, path: &Path, old: &str, new: &str, says: &str) -> Done {
    let hunks = patch::hunks(old, new);
    let text = if old.is_empty() { says.to_owned() } else { format!("{says}\n{}", patch::snippet(&hunks)) };
    let mut meta = json!({
        "filePath": path.to_string_lossy(),
        "oldString": input.old_string,
        "newString": input.new_string,
        "originalFile": null,
        "structuredPatch": hunks,
        "userModified": false,
        "replaceAll": input.replace_all,
    });
    meta["originalFile"] = patch::for_host(old);
    Done::text(text, meta)
}

/// Where `old` stands in `text`. A line end in `old` fits `\n` and `\r\n`.
fn find(text: &str, old: &str) -> Vec<Range<usize>> {
    if !text.contains('\r') {
        return text.match_indices(old).map(|(at, found)| at..at + found.len()).collect();
    }
    let mut plain = String::with_capacity(text.len());
    // Where in `plain` a `\r` is missing before the `\n`.
    let mut missing = Vec::new();
    for line in text.split_inclusive('\n') {
        match line.strip_suffix("\r\n") {
            Some(line) => {
                plain.push_str(line);
                missing.push(plain.len());
                plain.push('\n');
            }
            None => plain.push_str(line),
        }
    }
    let real = |at: usize| at + missing.partition_point(|missing| *missing < at);
    plain
        .match_indices(&old.replace("\r\n", "\n"))
        .map(|(at, found)| real(at)..real(at + found.len()))
        .collect()
}

/// The text with `new` at each of the places, with the line ends that are usual there.
fn replace(text: &str, places: &[Range<usize>], new: &str) -> String {
    let with_returns = text.contains("\r\n").then(|| new.replace("\r\n", "\n").replace('\n', "\r\n"));
    let mut result = String::with_capacity(text.len() + new.len() * places.len());
    let mut end = 0;
    for place in places {
        result.push_str(&text[end..place.start]);
        match &with_returns {
            Some(new) if ends_in_return(text, place.start) => result.push_str(new),
            _ => result.push_str(new),
        }
        end = place.end;
    }
    result.push_str(&text[end..]);
    result
}

/// Whether the line at this position, or if it is the last the one before, ends in `\r\n`.
fn ends_in_return(text: &str, at: usize) -> bool {
    let end = text[at..].find('\n').map(|end| at + end).or_else(|| text[..at].rfind('\n'));
    end.is_some_and(|end| text[..end].ends_with('\r'))
}

/// Why it is not clear what to replace, and how to make it clear.
fn unclear(text: &str, old: &str, places: &[Range<usize>], path: &Path) -> String {
    if places.is_empty() {
        return format!("old_string was not found in {}.{}", path.display(), hint(text, old));
    }
    let lines: Vec<_> =
        places.iter().take(10).map(|place| line_number(text, place.start).to_string()).collect();
    let more = if places.len() > lines.len() { ", ..." } else { "" };
    format!(
        "old_string matches {} places in {} (lines {}{more}). Add text around the one you mean, or set replace_all.",
        places.len(),
        path.display(),
        lines.join(", ")
    )
}

fn line_number(text: &str, at: usize) -> usize {
    patch::newlines(&text.as_bytes()[..at]) + 1
}

/// What the model may have meant.
fn hint(text: &str, old: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = old.trim().lines().map(str::trim).collect();
    if wanted.is_empty() {
        return String::new();
    }
    if let Some(at) = lines
        .windows(wanted.len())
        .position(|window| window.iter().map(|line| line.trim()).eq(wanted.iter().copied()))
    {
        let there = lines[at..at + wanted.len()].iter().take(5).copied().collect::<Vec<_>>().join("\n");
        return format!(" The lines {}-{} differ only in whitespace:\n{there}", at + 1, at + wanted.len());
    }
    if wanted
        .iter()
        .all(|line| line.split_once('\t').is_some_and(|(number, _)| number.parse::<usize>().is_ok()))
    {
        return " Leave out the line numbers and tabs that Read puts before each line.".into();
    }
    nearest(&lines, wanted[0])
}

/// The line most like the first one that was looked for.
fn nearest(lines: &[&str], wanted: &str) -> String {
    let short = |line: &str| line.len() <= 200;
    let candidates = lines.iter().map(|line| line.trim()).filter(|line| short(line)).take(5_000);
    let found = if short(wanted) { compare::nearest(wanted, candidates) } else { None };
    let Some(found) = found else { return String::new() };
    let number = lines.iter().position(|line| line.trim() == found).unwrap_or_default() + 1;
    format!(" The nearest line is {number}: {}", shorten(found, 200))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use serde_json::Value;

    use super::*;
    use crate::tools::encoding::Encoding;
    use crate::tools::example::Bench;

    /// Edits a text as the tool would.
    fn edited(text: &str, old: &str, new: &str) -> String {
        replace(text, &find(text, old), new)
    }

    #[test]
    fn line_ends_stay_as_they_are() {
        for (name, text, old, new, expected) in [
            ("plain", "a\nb\nc\n", "a\nb", "x\ny", "x\ny\nc\n"),
            ("with returns", "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
            ("one line of many", "a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
            ("returns in the input", "a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"),
            ("the line end itself", "a\r\nb\r\n", "a\n", "", "b\r\n"),
            ("from a line end", "a\r\nb\r\nc", "\nb", "", "a\r\nc"),
            ("mixed, plain part", "a\nb\r\nc\n", "a", "x\ny", "x\ny\nb\r\nc\n"),
            ("mixed, across both", "a\nb\r\nc\n", "a\nb\nc", "x", "x\n"),
            ("mixed, other part", "a\nb\r\nc\n", "b", "x\ny", "a\nx\r\ny\r\nc\n"),
            ("no last newline", "a\r\nb", "b", "x\ny", "a\r\nx\r\ny"),
            ("a return alone", "a\rb\n", "a\rb", "x", "x\n"),
        ] {
            assert_eq!(edited(text, old, new), expected, "{name}");
        }
    }

    #[test]
    fn what_was_meant_is_guessed_from_what_is_there() {
        let text = "fn main() {\n    let total = add(1, 2);\n}\n";
        assert!(
            hint(text, "let totl = add(1, 2);").contains("nearest line is 2: let total"),
            "{}",
            hint(text, "let totl")
        );
        assert!(hint(text, "1\tfn main() {\n2\t    let x").contains("line numbers"));
        assert!(hint(text, "  let total = add(1, 2);").contains("lines 2-2"));
        assert_eq!(hint(text, "nothing like it whatsoever"), "");
        assert_eq!(hint(text, " \n "), "");
    }

    async fn read_and_edit(bench: &Bench, old: &str, new: &str) -> Output {
        bench.call("Read", json!({"file_path": "a.txt"})).await.unwrap();
        bench.call("Edit", json!({"file_path": "a.txt", "old_string": old, "new_string": new})).await
    }

    #[tokio::test]
    async fn the_host_gets_the_whole_change() {
        let bench = Bench::new(&[("a.txt", "one\ntwo\nthree\n")]);
        let done = read_and_edit(&bench, "two", "2").await.unwrap();
        let expected = json!({
            "filePath": bench.path("a.txt"),
            "oldString": "two",
            "newString": "2",
            "originalFile": "one\ntwo\nthree\n",
            "structuredPatch": [{
                "oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3, "lines": [" one", "-two", "+2", " three"],
            }],
            "userModified": false,
            "replaceAll": false,
        });
        assert_eq!(done.meta, expected);
    }

    #[tokio::test]
    async fn encoding_mode_and_links_survive() {
        let utf16 = |text: &str| encode(text, Encoding::Utf16Le).unwrap();
        let bench = Bench::new(&[]);
        fs::write(bench.path("real.txt"), utf16("grün\r\nrot\r\n")).unwrap();
        fs::set_permissions(bench.path("real.txt"), fs::Permissions::from_mode(0o750)).unwrap();
        symlink("real.txt", bench.path("a.txt")).unwrap();
        read_and_edit(&bench, "grün\nrot", "blau\ngelb").await.unwrap();
        assert_eq!(fs::read(bench.path("real.txt")).unwrap(), utf16("blau\r\ngelb\r\n"));
        assert_eq!(fs::metadata(bench.path("real.txt")).unwrap().permissions().mode() & 0o777, 0o750);
        assert!(fs::symlink_metadata(bench.path("a.txt")).unwrap().is_symlink());
    }

    #[tokio::test]
    async fn what_an_encoding_cannot_say_is_refused() {
        let bench = Bench::new(&[]);
        fs::write(bench.path("a.txt"), b"caf\xE9\n").unwrap();
        assert!(matches!(read_and_edit(&bench, "café", "茶").await, Err(Trouble::Refused(_))));
        read_and_edit(&bench, "café", "thé").await.unwrap();
        assert_eq!(fs::read(bench.path("a.txt")).unwrap(), b"th\xE9\n");
    }

    #[tokio::test]
    async fn a_file_changed_by_others_is_edited_only_where_the_text_is_still_there_once() {
        for (theirs, expected) in [("new\nold line\n", Ok("new\n2 line\n")), ("gone\n", Err("changed since"))]
        {
            let bench = Bench::new(&[("a.txt", "old line\n")]);
            bench.call("Read", json!({"file_path": "a.txt"})).await.unwrap();
            fs::write(bench.path("a.txt"), theirs).unwrap();
            let output = bench
                .call("Edit", json!({"file_path": "a.txt", "old_string": "old", "new_string": "2"}))
                .await;
            match (output, expected) {
                (Ok(_), Ok(text)) => assert_eq!(fs::read_to_string(bench.path("a.txt")).unwrap(), text),
                (Err(trouble), Err(words)) => assert!(trouble.reason().contains(words), "{trouble:?}"),
                (output, _) => panic!("{output:?}"),
            }
        }
    }

    #[tokio::test]
    async fn odd_targets_are_refused_with_a_reason() {
        let bench = Bench::new(&[("full.txt", "x"), ("empty.txt", ""), ("n.ipynb", "{}"), ("d/x", "")]);
        let edit = |path: &str, old: &str| json!({"file_path": path, "old_string": old, "new_string": "new"});
        bench.call("Read", json!({"file_path": "n.ipynb"})).await.unwrap();
        for (path, old, words) in [
            ("full.txt", "", "not empty"),
            ("full.txt", "new", "the same"),
            ("none.txt", "x", "does not exist"),
            ("n.ipynb", "{", "NotebookEdit"),
            ("d", "x", "EISDIR"),
        ] {
            let trouble = bench.call("Edit", edit(path, old)).await.unwrap_err();
            assert!(trouble.reason().contains(words), "{path}: {trouble:?}");
        }
        bench.call("Edit", edit("empty.txt", "")).await.unwrap();
        assert_eq!(fs::read_to_string(bench.path("empty.txt")).unwrap(), "new");
    }

    #[tokio::test]
    async fn a_large_original_is_not_sent_to_the_host() {
        let bench = Bench::new(&[]);
        fs::write(bench.path("a.txt"), "line\n".repeat(100_000) + "last\n").unwrap();
        bench.call("Read", json!({"file_path": "a.txt", "limit": 1})).await.unwrap();
        let input = json!({"file_path": "a.txt", "old_string": "last", "new_string": "end"});
        let done = bench.call("Edit", input).await.unwrap();
        assert_eq!(done.meta["originalFile"], Value::Null);
        assert_eq!(done.meta["structuredPatch"][0]["oldStart"], 99_998);
    }
}
