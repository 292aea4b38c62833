//! Commands in the arguments of ordinary programs: options and operands that are one, settings that may be one. What
//! scripts of other languages may run is in `scripts`.

use super::git::without_globals;
use super::given::{Known, NOTHING, read};
use super::word::text_of;
use super::{Value, Word};

/// Options whose value is a command, or ends with one.
const OPTIONS: &[(&[&str], &[&str])] = &[
    (
        &["git"],
        &[
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
    (&["ssh", "scp", "sftp"], &["-S"]),
    (&["nc", "ncat", "netcat"], &["-e", "-c", "--exec", "--sh-exec"]),
    (&["split"], &["--filter"]),
    (&["sort"], &["--compress-program"]),
    (&["zip"], &["-TT", "--unzip-command"]),
    (&["man"], &["-P", "-H", "--pager", "--html"]),
    (&["wget"], &["--use-askpass"]),
];

/// Options whose value may be a command: settings of any sort, or options that mean something else elsewhere.
const SETTINGS: &[(&[&str], &[&str])] = &[
    (&["git"], &["-c", "-x", "-O"]),
    (&["ssh", "scp", "sftp"], &["-o"]),
    (&["vi", "vim", "nvim", "view", "ex"], &["-c", "-S", "--cmd"]),
];

/// Ends of the names of settings of `git` whose value is a command.
const RUNNING: &[&str] = &[
    "alternaterefscommand",
    "askpass",
    "browser",
    "clean",
    "cmd",
    "command",
    "difffilter",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "gitproxy",
    "helper",
    "packobjectshook",
    "pager",
    "process",
    "program",
    "receivepack",
    "smudge",
    "sshcommand",
    "textconv",
    "update",
    "uploadpack",
];

/// Letters of `tar` that take a word each, if they stand without a dash.
const TAR_LETTERS: &str = "fTXCbgIFKLNV";

/// What a program is given to run.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// Commands, as for `sh -c`.
    pub(super) commands: Vec<Value>,
    /// Texts that may be commands.
    pub(super) guesses: Vec<String>,
}

/// The options of a program whose value is a command.
pub(super) fn options(name: &str) -> &'static [&'static str] {
    listed(OPTIONS, name)
}

fn listed(
    table: &'static [(&'static [&'static str], &'static [&'static str])],
    name: &str,
) -> &'static [&'static str] {
    table.iter().find(|(names, _)| names.contains(&name)).map_or(&[], |(_, options)| options)
}

/// What stands in the arguments of a program that it would run, or may run.
pub(super) fn carried(name: &str, arguments: &[Word]) -> Carried {
    let mut carried = Carried::default();
    let values = |options: &'static [&'static str]| match options {
        [] => Vec::new(),
        reads => read(arguments, &Known { reads, ..NOTHING }).reads,
    };
    for value in values(options(name)) {
        carried.command(&value);
    }
    for value in values(listed(SETTINGS, name)) {
        carried.setting(name, &value);
    }
    let words = arguments.iter().map(|word| &word.value);
    match name {
        "git" => carried.given_to_git(arguments),
        "tar" => {
            let bundle = arguments.first().and_then(|word| word.value.literal()).unwrap_or_default();
            if bundle.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                let taking = bundle.chars().filter(|letter| TAR_LETTERS.contains(*letter));
                let commands = taking.zip(words.skip(1)).filter(|(letter, _)| matches!(letter, 'I' | 'F'));
                commands.for_each(|(_, value)| carried.command(value));
            }
        }
        "vi" | "vim" | "nvim" | "view" | "ex" => {
            let texts = words.map(text_of).filter(|text| text.starts_with('+'));
            carried.guesses.extend(texts.flat_map(|text| ends(&text)));
        }
        "make" | "gmake" => {
            let texts = words.filter_map(|value| text_of(value).strip_prefix("SHELL=").map(str::to_owned));
            carried.guesses.extend(texts);
        }
        "socat" => words.for_each(|value| carried.address(value)),
        _ => {}
    }
    carried
}

impl Carried {
    /// A command, with whatever marks stand before it.
    fn command(&mut self, value: &Value) {
        let text = text_of(value);
        let unknown = value.literal().is_none();
        let all = ends(&text).into_iter();
        self.commands.extend(all.map(|text| if unknown { not_known(&text) } else { Value::Literal(text) }));
    }

    /// `NAME=VALUE`: a command for certain if it is a setting of that sort.
    fn setting(&mut self, program: &str, value: &Value) {
        let mut text = text_of(value);
        if program.starts_with('s') && !text.split([' ', '\t']).next().unwrap_or_default().contains('=') {
            // `ssh` takes a blank in place of the mark.
            text = text.replacen([' ', '\t'], "=", 1);
        }
        let key = text.split('=').next().unwrap_or_default();
        let sure = match program {
            "git" => text.contains('=') && runs(key),
            "ssh" | "scp" | "sftp" => key.contains("$?") || key.to_ascii_lowercase().ends_with("command"),
            _ => false,
        };
        match (sure, value.literal()) {
            (true, Some(_)) => self.command(&Value::Literal(text)),
            (true, None) => self.command(&not_known(&text)),
            (false, _) => self.guesses.extend(ends(&text)),
        }
    }

    /// `git bisect run`, `git submodule foreach`, `git config`, and aliases for commands of the shell.
    fn given_to_git(&mut self, arguments: &[Word]) {
        let rest = without_globals(arguments);
        let globals = arguments.get(..arguments.len() - rest.len()).unwrap_or_default();
        // A setting that is not known may be any.
        let settings = globals.windows(2).filter_map(|pair| match pair {
            [option, setting] if option.value.literal() == Some("-c") => Some(&setting.value),
            _ => None,
        });
        let unknown = |value: &&Value| text_of(value).split('=').next().is_some_and(|key| key.contains("$?"));
        self.commands.extend(settings.filter(unknown).cloned());
        let texts: Vec<String> = rest.iter().map(|word| text_of(&word.value)).collect();
        let after = |text: &str| texts.iter().position(|word| word == text).map_or(rest.len(), |at| at + 1);
        let aliases = texts.iter().filter_map(|text| text.strip_prefix('!'));
        self.guesses.extend(aliases.map(str::to_owned));
        let start = match texts.first().map(String::as_str) {
            Some("bisect") => after("run"),
            Some("submodule") => after("foreach"),
            Some("config") => {
                let Some(key) = texts.iter().position(|text| text.contains('.') && !text.starts_with('-'))
                else {
                    return;
                };
                let Some(value) = rest.get(key + 1).map(|word| &word.value) else { return };
                if texts.get(key).is_some_and(|key| runs(key)) {
                    self.command(value);
                } else {
                    self.guesses.push(text_of(value));
                }
                return;
            }
            _ => return,
        };
        let words = rest.iter().zip(&texts).skip(start).skip_while(|(_, text)| text.starts_with('-'));
        let (words, texts): (Vec<&Word>, Vec<&str>) = words.map(|(word, text)| (word, text.as_str())).unzip();
        let text = texts.join(" ");
        if words.iter().any(|word| word.value.literal().is_none()) {
            self.commands.push(not_known(&text));
        } else if !text.is_empty() {
            self.commands.push(Value::Literal(text));
        }
    }

    /// `EXEC:COMMAND` of `socat`.
    fn address(&mut self, value: &Value) {
        let text = text_of(value);
        let Some((kind, text)) = text.split_once(':') else { return };
        let runs = ["exec", "system", "shell"].iter().any(|known| kind.eq_ignore_ascii_case(known));
        match (runs, value.literal()) {
            (true, None) => self.commands.push(not_known(text)),
            (true, Some(_)) => self.commands.push(Value::Literal(text.to_owned())),
            (false, _) => self.guesses.push(text.to_owned()),
        }
    }
}

/// Whether the value of a setting of `git` is a command.
fn runs(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    let last = setting.rsplit('.').next().unwrap_or_default();
    setting.starts_with("alias.") || setting.starts_with("pager.") || RUNNING.contains(&last)
}

/// A text in which something is not known, to be searched all the same.
fn not_known(text: &str) -> Value {
    let (before, after) = text.split_once("$?").unwrap_or((text, ""));
    Value::Unknown { before: before.to_owned(), after: after.to_owned(), guarded: false }
}

/// The text, and what stands behind the marks after which a command may follow.
fn ends(text: &str) -> Vec<String> {
    let behind = |mark: char| text.split_once(mark).map(|(_, end)| end);
    let named = behind('=').map(|end| end.strip_prefix("exec=").unwrap_or(end));
    let all = [Some(text), named, named.and_then(|end| end.strip_prefix('!')), behind('!')];
    all.into_iter().flatten().map(str::to_owned).collect()
}
