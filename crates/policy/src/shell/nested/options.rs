//! Commands in the arguments of ordinary programs: options and operands that are commands, and settings that may be.
//! Code of other languages is handled in `foreign_code`.

use crate::git_settings::is_command_setting;
use crate::shell::programs::argv::{NO_OPTIONS, OptionSpec, parse_args};
use crate::shell::programs::git::skip_global_options;
use crate::shell::words::expand::render_value;
use crate::shell::{Word, WordValue};

/// Options whose value is a command or ends with one.
const COMMAND_OPTIONS: &[(&[&str], &[&str])] = &[
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

/// Options whose value may be a command: settings of any kind, or options with several meanings.
const SETTING_OPTIONS: &[(&[&str], &[&str])] = &[
    (&["git"], &["-c", "-x", "-O"]),
    (&["ssh", "scp", "sftp"], &["-o"]),
    (&["vi", "vim", "nvim", "view", "ex"], &["-c", "-S", "--cmd"]),
];

/// Letters of `tar` that take a word each when used without a dash.
const TAR_VALUE_LETTERS: &str = "fTXCbgIFKLNV";

/// Commands found in the arguments of a program.
#[derive(Debug, Default)]
pub(crate) struct NestedCommands {
    /// Commands, as for `sh -c`.
    pub(crate) commands: Vec<WordValue>,
    /// Texts that may be commands.
    pub(crate) possible_commands: Vec<String>,
}

/// Finds options of a program whose value is a command.
pub(crate) fn find_options_with_command(name: &str) -> &'static [&'static str] {
    find_options(COMMAND_OPTIONS, name)
}

fn find_options(
    table: &'static [(&'static [&'static str], &'static [&'static str])],
    name: &str,
) -> &'static [&'static str] {
    table.iter().find(|(names, _)| names.contains(&name)).map_or(&[], |(_, options)| options)
}

/// Collects the commands in the arguments of a program, certain and possible ones.
pub(crate) fn collect_nested_commands(name: &str, arguments: &[Word]) -> NestedCommands {
    let mut nested = NestedCommands::default();
    let values = |options: &'static [&'static str]| match options {
        [] => Vec::new(),
        reads => parse_args(arguments, &OptionSpec { reads, ..NO_OPTIONS }).reads,
    };
    for value in values(find_options_with_command(name)) {
        nested.add_command(&value);
    }
    for value in values(find_options(SETTING_OPTIONS, name)) {
        nested.add_setting(name, &value);
    }
    let words = arguments.iter().map(|word| &word.value);
    match name {
        "git" => nested.add_git_commands(arguments),
        "tar" => {
            let bundle = arguments.first().and_then(|word| word.value.as_literal()).unwrap_or_default();
            if bundle.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                let value_letters = bundle.chars().filter(|letter| TAR_VALUE_LETTERS.contains(*letter));
                let commands =
                    value_letters.zip(words.skip(1)).filter(|(letter, _)| matches!(letter, 'I' | 'F'));
                commands.for_each(|(_, value)| nested.add_command(value));
            }
        }
        "vi" | "vim" | "nvim" | "view" | "ex" => {
            let texts = words.map(render_value).filter(|text| text.starts_with('+'));
            nested.possible_commands.extend(texts.flat_map(|text| list_command_suffixes(&text)));
        }
        "make" | "gmake" => {
            let texts =
                words.filter_map(|value| render_value(value).strip_prefix("SHELL=").map(str::to_owned));
            nested.possible_commands.extend(texts);
        }
        "socat" => words.for_each(|value| nested.add_socat_address(value)),
        _ => {}
    }
    nested
}

impl NestedCommands {
    /// Adds a command, without any prefix before it.
    fn add_command(&mut self, value: &WordValue) {
        let text = render_value(value);
        let unknown = value.as_literal().is_none();
        let all = list_command_suffixes(&text).into_iter();
        self.commands.extend(
            all.map(|text| if unknown { mark_partly_unknown(&text) } else { WordValue::Literal(text) }),
        );
    }

    /// Adds `NAME=VALUE`: certainly a command if the setting is known to be one.
    fn add_setting(&mut self, program: &str, value: &WordValue) {
        let mut text = render_value(value);
        if program.starts_with('s') && !text.split([' ', '\t']).next().unwrap_or_default().contains('=') {
            // `ssh` accepts a blank instead of `=`.
            text = text.replacen([' ', '\t'], "=", 1);
        }
        let key = text.split('=').next().unwrap_or_default();
        let is_command = match program {
            "git" => text.contains('=') && is_git_command_setting(key),
            "ssh" | "scp" | "sftp" => key.contains("$?") || key.to_ascii_lowercase().ends_with("command"),
            _ => false,
        };
        match (is_command, value.as_literal()) {
            (true, Some(_)) => self.add_command(&WordValue::Literal(text)),
            (true, None) => self.add_command(&mark_partly_unknown(&text)),
            (false, _) => self.possible_commands.extend(list_command_suffixes(&text)),
        }
    }

    /// Adds the commands of `git bisect run`, `git submodule foreach`, `git config` and shell aliases.
    fn add_git_commands(&mut self, arguments: &[Word]) {
        let rest = skip_global_options(arguments);
        let globals = arguments.get(..arguments.len() - rest.len()).unwrap_or_default();
        // An unknown setting may be any setting.
        let settings = globals.windows(2).filter_map(|pair| match pair {
            [option, setting] if option.value.as_literal() == Some("-c") => Some(&setting.value),
            _ => None,
        });
        let unknown =
            |value: &&WordValue| render_value(value).split('=').next().is_some_and(|key| key.contains("$?"));
        self.commands.extend(settings.filter(unknown).cloned());
        let texts: Vec<String> = rest.iter().map(|word| render_value(&word.value)).collect();
        let after = |text: &str| texts.iter().position(|word| word == text).map_or(rest.len(), |at| at + 1);
        let aliases = texts.iter().filter_map(|text| text.strip_prefix('!'));
        self.possible_commands.extend(aliases.map(str::to_owned));
        let start = match texts.first().map(String::as_str) {
            Some("bisect") => after("run"),
            Some("submodule") => after("foreach"),
            Some("config") => {
                let Some(key) = texts.iter().position(|text| text.contains('.') && !text.starts_with('-'))
                else {
                    return;
                };
                let Some(value) = rest.get(key + 1).map(|word| &word.value) else { return };
                if texts.get(key).is_some_and(|key| is_git_command_setting(key)) {
                    self.add_command(value);
                } else {
                    self.possible_commands.push(render_value(value));
                }
                return;
            }
            _ => return,
        };
        let words = rest.iter().zip(&texts).skip(start).skip_while(|(_, text)| text.starts_with('-'));
        let (words, texts): (Vec<&Word>, Vec<&str>) = words.map(|(word, text)| (word, text.as_str())).unzip();
        let text = texts.join(" ");
        if words.iter().any(|word| word.value.as_literal().is_none()) {
            self.commands.push(mark_partly_unknown(&text));
        } else if !text.is_empty() {
            self.commands.push(WordValue::Literal(text));
        }
    }

    /// Adds the command of a `socat` address such as `EXEC:COMMAND`.
    fn add_socat_address(&mut self, value: &WordValue) {
        let text = render_value(value);
        let Some((kind, text)) = text.split_once(':') else { return };
        let runs = ["exec", "system", "shell"].iter().any(|known| kind.eq_ignore_ascii_case(known));
        match (runs, value.as_literal()) {
            (true, None) => self.commands.push(mark_partly_unknown(text)),
            (true, Some(_)) => self.commands.push(WordValue::Literal(text.to_owned())),
            (false, _) => self.possible_commands.push(text.to_owned()),
        }
    }
}

/// Returns true if the value of a `git` setting is a command.
fn is_git_command_setting(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    let last = setting.rsplit('.').next().unwrap_or_default();
    setting.starts_with("alias.") || setting.starts_with("pager.") || is_command_setting(last)
}

/// Marks a text as partly unknown, so that it is searched nevertheless.
fn mark_partly_unknown(text: &str) -> WordValue {
    let (before, after) = text.split_once("$?").unwrap_or((text, ""));
    WordValue::Unknown { before: before.to_owned(), after: after.to_owned(), nonempty: false }
}

/// Lists the text itself, and its suffixes after `=` and `!`, where a command may start.
fn list_command_suffixes(text: &str) -> Vec<String> {
    let after = |separator: char| text.split_once(separator).map(|(_, end)| end);
    let named = after('=').map(|end| end.strip_prefix("exec=").unwrap_or(end));
    let all = [Some(text), named, named.and_then(|end| end.strip_prefix('!')), after('!')];
    all.into_iter().flatten().map(str::to_owned).collect()
}
