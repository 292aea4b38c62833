//! The command line of `whimbrel --wire`: one table of flags, and what they mean. Parsing is pure; whether the named files
//! exist is checked by [`CommandLine::check_paths`].

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::slice;

/// A wrong command line or a wrong file that it names. The text goes to stderr; the exit code is 2.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

/// What the flags ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub(crate) session: SessionChoice,
    /// `None`: the working directory of the process.
    pub(crate) work_dir: Option<PathBuf>,
    pub(crate) add_dirs: Vec<PathBuf>,
    pub(crate) config: ConfigSource,
    /// A key of `models` in the configuration.
    pub(crate) model: Option<String>,
    /// `None`: as the configuration says.
    pub(crate) thinking: Option<bool>,
    pub(crate) approval: Approval,
    /// Start in plan mode.
    pub(crate) plan: bool,
    pub(crate) agent: AgentChoice,
    /// They replace the discovery of skills, unless there are none.
    pub(crate) skills_dirs: Vec<PathBuf>,
    pub(crate) mcp_configs: Vec<String>,
    pub(crate) mcp_config_files: Vec<PathBuf>,
    pub(crate) max_steps_per_turn: Option<NonZeroU32>,
    pub(crate) max_retries_per_step: Option<NonZeroU32>,
}

/// Which session the process serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum SessionChoice {
    /// A new one.
    #[default]
    New,
    /// The one with this id, which is made if there is none.
    Id(String),
    /// The last one of the working directory, which must exist.
    Latest,
}

/// Where the configuration comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ConfigSource {
    /// `config.toml` of the share directory.
    #[default]
    ShareDir,
    /// The value of `--config`.
    Text(String),
    /// The file that `--config-file` names.
    File(PathBuf),
}

/// Who approves tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Approval {
    /// The host, unless the configuration has `default_yolo`.
    #[default]
    Host,
    /// Calls need no approval; questions of the model still reach the host.
    Yolo,
    /// Calls need no approval, and questions of the model are dismissed: the user is away.
    Afk,
}

/// The main agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum AgentChoice {
    /// The built-in one.
    #[default]
    Default,
    /// The one that this file describes.
    File(PathBuf),
}

struct Flag {
    /// All spellings, the main one first.
    names: &'static [&'static str],
    kind: FlagKind,
}

/// How a flag is read. An error is a text without the name of the flag.
enum FlagKind {
    Switch(fn(&mut CommandLine) -> Result<(), String>),
    Value {
        placeholder: &'static str,
        apply: fn(&mut CommandLine, &str) -> Result<(), String>,
    },
    /// A flag of another way to run the program, and the remedy.
    Refused(&'static str),
}

const OTHER_MODE: &str = "it cannot be combined with --wire. Leave out one of them";
const ONLY_PRINT: &str =
    "it belongs to --print. Leave it out: with --wire, all input and output is wire messages";
const ENDS_AT_ONCE: &str = "it prints a text and ends. Use it without --wire";
const ID_OR_LATEST: &str = "--session and --continue exclude each other. Leave out one of them";
const TEXT_OR_FILE: &str = "--config and --config-file exclude each other. Leave out one of them";

const FLAGS: &[Flag] = &[
    switch(&["--wire"], |_| Ok(())),
    value(&["--session", "--resume", "-S", "-r"], "ID", set_session),
    switch(&["--continue", "-C"], |line| match line.session {
        SessionChoice::Id(_) => Err(ID_OR_LATEST.into()),
        SessionChoice::New | SessionChoice::Latest => set(&mut line.session, SessionChoice::Latest),
    }),
    value(&["--work-dir", "-w"], "DIR", |line, dir| set(&mut line.work_dir, Some(dir.into()))),
    value(&["--add-dir"], "DIR", |line, dir| push(&mut line.add_dirs, dir)),
    value(&["--config"], "TEXT", |line, text| match line.config {
        ConfigSource::File(_) => Err(TEXT_OR_FILE.into()),
        _ if text.trim().is_empty() => Err("the configuration is empty. Pass JSON or TOML".into()),
        ConfigSource::ShareDir | ConfigSource::Text(_) => {
            set(&mut line.config, ConfigSource::Text(text.into()))
        }
    }),
    value(&["--config-file"], "FILE", |line, file| match line.config {
        ConfigSource::Text(_) => Err(TEXT_OR_FILE.into()),
        ConfigSource::ShareDir | ConfigSource::File(_) => {
            set(&mut line.config, ConfigSource::File(file.into()))
        }
    }),
    value(&["--model", "-m"], "NAME", |line, name| {
        set(&mut line.model, (!name.is_empty()).then(|| name.to_owned()))
    }),
    switch(&["--thinking"], |line| set(&mut line.thinking, Some(true))),
    switch(&["--no-thinking"], |line| set(&mut line.thinking, Some(false))),
    switch(&["--yolo", "--yes", "-y", "--auto-approve"], |line| match line.approval {
        Approval::Afk => Ok(()),
        Approval::Host | Approval::Yolo => set(&mut line.approval, Approval::Yolo),
    }),
    switch(&["--afk"], |line| set(&mut line.approval, Approval::Afk)),
    switch(&["--plan"], |line| set(&mut line.plan, true)),
    value(&["--agent"], "NAME", |_, name| match name {
        "default" => Ok(()),
        "okabe" => Err("whimbrel has no agent okabe. Leave the flag out to use the default agent".into()),
        _ => {
            Err(format!("there is no built-in agent `{name}`. Use default, or name a file with --agent-file"))
        }
    }),
    value(&["--agent-file"], "FILE", |line, file| set(&mut line.agent, AgentChoice::File(file.into()))),
    value(&["--skills-dir"], "DIR", |line, dir| push(&mut line.skills_dirs, dir)),
    value(&["--mcp-config"], "JSON", |line, text| push(&mut line.mcp_configs, text)),
    value(&["--mcp-config-file"], "FILE", |line, file| push(&mut line.mcp_config_files, file)),
    value(&["--max-steps-per-turn"], "N", |line, text| {
        set(&mut line.max_steps_per_turn, Some(parse_limit(text)?))
    }),
    value(&["--max-retries-per-step"], "N", |line, text| {
        set(&mut line.max_retries_per_step, Some(parse_limit(text)?))
    }),
    value(&["--max-ralph-iterations"], "N", |_, text| check_ralph_iterations(text)),
    switch(&["--debug"], |_| Ok(())),
    switch(&["--verbose"], |_| Ok(())),
    // With --wire, prompts come over the wire.
    value(&["--prompt", "-p", "--command", "-c"], "TEXT", |_, _| Ok(())),
    refused(&["--print"], OTHER_MODE),
    refused(&["--quiet"], OTHER_MODE),
    refused(&["--acp"], OTHER_MODE),
    refused(&["--input-format"], ONLY_PRINT),
    refused(&["--output-format"], ONLY_PRINT),
    refused(&["--final-message-only"], ONLY_PRINT),
    refused(&["--version", "-V"], ENDS_AT_ONCE),
    refused(&["--help", "-h"], ENDS_AT_ONCE),
];

const fn switch(names: &'static [&'static str], apply: fn(&mut CommandLine) -> Result<(), String>) -> Flag {
    Flag { names, kind: FlagKind::Switch(apply) }
}

const fn value(
    names: &'static [&'static str],
    placeholder: &'static str,
    apply: fn(&mut CommandLine, &str) -> Result<(), String>,
) -> Flag {
    Flag { names, kind: FlagKind::Value { placeholder, apply } }
}

const fn refused(names: &'static [&'static str], reason: &'static str) -> Flag {
    Flag { names, kind: FlagKind::Refused(reason) }
}

impl UsageError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl CommandLine {
    /// Parses the arguments after the name of the program, in any order. A flag that is given twice has its last value.
    pub(crate) fn parse(args: &[String]) -> Result<Self, UsageError> {
        let mut line = Self::default();
        let mut rest = args.iter();
        while let Some(argument) = rest.next() {
            line.read_argument(argument, &mut rest)?;
        }
        Ok(line)
    }

    /// Checks that the named files and directories exist.
    pub(crate) fn check_paths(&self) -> Result<(), UsageError> {
        let dirs = [
            ("--work-dir", self.work_dir.as_slice()),
            ("--add-dir", &self.add_dirs),
            ("--skills-dir", &self.skills_dirs),
        ];
        for (flag, paths) in dirs {
            paths.iter().try_for_each(|path| check_directory(flag, path))?;
        }
        if let ConfigSource::File(path) = &self.config {
            check_file("--config-file", path)?;
        }
        if let AgentChoice::File(path) = &self.agent {
            check_file("--agent-file", path)?;
        }
        self.mcp_config_files.iter().try_for_each(|path| check_file("--mcp-config-file", path))
    }

    fn read_argument(
        &mut self,
        argument: &str,
        rest: &mut slice::Iter<'_, String>,
    ) -> Result<(), UsageError> {
        if argument.len() > 2 && argument.starts_with("--") {
            return match argument.split_once('=') {
                Some((name, given)) => self.read_flag(name, Some(given), rest),
                None => self.read_flag(argument, None, rest),
            };
        }
        match argument.strip_prefix('-') {
            Some(letters) if !letters.is_empty() && letters != "-" => self.read_letters(letters, rest),
            _ => Err(UsageError(format!(
                "`{argument}` is not a flag. Remove it: with --wire, prompts come over the wire."
            ))),
        }
    }

    /// Reads short flags: switches can be joined, and a value can follow its flag without a blank.
    fn read_letters(&mut self, letters: &str, rest: &mut slice::Iter<'_, String>) -> Result<(), UsageError> {
        for (at, letter) in letters.char_indices() {
            let name = format!("-{letter}");
            let behind = &letters[at + letter.len_utf8()..];
            let takes_value =
                find_flag(&name).is_some_and(|flag| matches!(flag.kind, FlagKind::Value { .. }));
            if takes_value {
                let given = (!behind.is_empty()).then(|| behind.strip_prefix('=').unwrap_or(behind));
                return self.read_flag(&name, given, rest);
            }
            self.read_flag(&name, None, rest)?;
        }
        Ok(())
    }

    fn read_flag(
        &mut self,
        name: &str,
        given: Option<&str>,
        rest: &mut slice::Iter<'_, String>,
    ) -> Result<(), UsageError> {
        let wrong = |reason: String| UsageError(format!("{name}: {reason}."));
        let flag = find_flag(name).ok_or_else(|| {
            UsageError(format!(
                "{name} is not a flag of the Kimi wire. Check its spelling, or remove it; a flag of whimbrel itself \
                 cannot be combined with --wire."
            ))
        })?;
        match (&flag.kind, given) {
            (FlagKind::Switch(apply), None) => apply(self).map_err(wrong),
            (FlagKind::Switch(_), Some(given)) => {
                Err(wrong(format!("it takes no value, but `{given}` was given. Write only {name}")))
            }
            (FlagKind::Value { placeholder, apply }, given) => {
                let given = given.or_else(|| take_value(rest));
                let given = given
                    .ok_or_else(|| wrong(format!("the value is missing. Write {name} {placeholder}")))?;
                apply(self, given).map_err(wrong)
            }
            (FlagKind::Refused(reason), _) => Err(wrong((*reason).to_owned())),
        }
    }
}

fn find_flag(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.names.contains(&name))
}

/// Takes the next argument, unless it is a known flag.
fn take_value<'a>(rest: &mut slice::Iter<'a, String>) -> Option<&'a str> {
    let next = rest.as_slice().first()?;
    let name = next.split_once('=').map_or(next.as_str(), |(name, _)| name);
    if find_flag(name).is_some() {
        return None;
    }
    rest.next().map(String::as_str)
}

fn set<T>(field: &mut T, value: T) -> Result<(), String> {
    *field = value;
    Ok(())
}

fn push<T: for<'a> From<&'a str>>(list: &mut Vec<T>, value: &str) -> Result<(), String> {
    list.push(value.into());
    Ok(())
}

fn set_session(line: &mut CommandLine, id: &str) -> Result<(), String> {
    if line.session == SessionChoice::Latest {
        return Err(ID_OR_LATEST.into());
    }
    let id = id.trim();
    if id.is_empty() {
        return Err("the id is missing. Name a session, or leave the flag out for a new one".into());
    }
    // The id is the name of a directory below the share directory.
    if id == "." || id == ".." || id.contains(['/', '\\', '\0']) {
        return Err(format!(
            "`{id}` cannot be the id of a session. Use a UUID, or another name without slashes"
        ));
    }
    set(&mut line.session, SessionChoice::Id(id.to_owned()))
}

fn parse_limit(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("`{text}` is not in range. Give a whole number from 1 to {}", u32::MAX))
}

fn check_ralph_iterations(text: &str) -> Result<(), String> {
    match text.parse::<i64>() {
        Ok(0) => Ok(()),
        Ok(-1..) => Err("whimbrel has no ralph loops. Leave the flag out or set it to 0".into()),
        Ok(_) | Err(_) => Err(format!("`{text}` is not in range. Leave the flag out or set it to 0")),
    }
}

fn check_directory(flag: &str, path: &Path) -> Result<(), UsageError> {
    let cause = match (path.is_dir(), path.exists()) {
        (true, _) => return Ok(()),
        (false, true) => "is not a directory",
        (false, false) => "does not exist",
    };
    Err(UsageError(format!("{flag}: {} {cause}. Name an existing directory.", path.display())))
}

/// Accepts what is not a directory: a host may pass a pipe.
fn check_file(flag: &str, path: &Path) -> Result<(), UsageError> {
    let cause = match (path.is_dir(), path.exists()) {
        (true, _) => "is a directory",
        (false, true) => return Ok(()),
        (false, false) => "does not exist",
    };
    Err(UsageError(format!("{flag}: {} {cause}. Name an existing file.", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<CommandLine, String> {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        CommandLine::parse(&args).map_err(|error| error.to_string())
    }

    fn limit(number: u32) -> Option<NonZeroU32> {
        NonZeroU32::new(number)
    }

    #[test]
    fn flags_become_values() {
        let line = CommandLine::default;
        let id = |id: &str| SessionChoice::Id(id.into());
        let table: Vec<(&str, &[&str], CommandLine)> = vec![
            ("nothing", &[], line()),
            ("only the wire", &["--wire"], line()),
            ("session", &["--wire", "--session", "a"], CommandLine { session: id("a"), ..line() }),
            ("session, joined", &["--session=a"], CommandLine { session: id("a"), ..line() }),
            ("session, alias", &["--resume", "a"], CommandLine { session: id("a"), ..line() }),
            ("session, short", &["-S", "a"], CommandLine { session: id("a"), ..line() }),
            ("session, other short, joined", &["-ra"], CommandLine { session: id("a"), ..line() }),
            ("last value counts", &["-ra", "-rb"], CommandLine { session: id("b"), ..line() }),
            ("continue", &["-C"], CommandLine { session: SessionChoice::Latest, ..line() }),
            ("work directory", &["-w", "/d"], CommandLine { work_dir: Some("/d".into()), ..line() }),
            ("model with an equals sign", &["-m=a=b"], CommandLine { model: Some("a=b".into()), ..line() }),
            ("empty model", &["--model", ""], line()),
            ("thinking", &["--thinking"], CommandLine { thinking: Some(true), ..line() }),
            (
                "thinking, switched off again",
                &["--thinking", "--no-thinking"],
                CommandLine { thinking: Some(false), ..line() },
            ),
            ("yolo", &["-y"], CommandLine { approval: Approval::Yolo, ..line() }),
            ("yolo, alias", &["--auto-approve"], CommandLine { approval: Approval::Yolo, ..line() }),
            (
                "afk means more than yolo",
                &["--afk", "--yes"],
                CommandLine { approval: Approval::Afk, ..line() },
            ),
            ("default agent", &["--agent", "default"], line()),
            (
                "agent file",
                &["--agent-file", "a.yaml"],
                CommandLine { agent: AgentChoice::File("a.yaml".into()), ..line() },
            ),
            (
                "configuration",
                &["--config", "{}"],
                CommandLine { config: ConfigSource::Text("{}".into()), ..line() },
            ),
            (
                "configuration file",
                &["--config-file", "c.json"],
                CommandLine { config: ConfigSource::File("c.json".into()), ..line() },
            ),
            ("prompt is ignored", &["-p", "-x", "--prompt=-y"], line()),
            ("no ralph loops", &["--max-ralph-iterations", "0", "--debug", "--verbose"], line()),
            (
                "joined switches",
                &["-yCw/d"],
                CommandLine {
                    session: SessionChoice::Latest,
                    work_dir: Some("/d".into()),
                    approval: Approval::Yolo,
                    ..line()
                },
            ),
        ];
        for (name, args, expected) in table {
            assert_eq!(parse(args).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn repeated_flags_are_collected() {
        let args = [
            "--add-dir",
            "/a",
            "--add-dir=/b",
            "--skills-dir",
            "/s",
            "--skills-dir",
            "/t",
            "--mcp-config",
            "{}",
            "--mcp-config",
            "{\"a\": 1}",
            "--mcp-config-file",
            "m.json",
            "--max-steps-per-turn",
            "5",
            "--max-retries-per-step=2",
            "--plan",
            "--wire",
        ];
        let expected = CommandLine {
            add_dirs: vec!["/a".into(), "/b".into()],
            skills_dirs: vec!["/s".into(), "/t".into()],
            mcp_configs: vec!["{}".into(), "{\"a\": 1}".into()],
            mcp_config_files: vec!["m.json".into()],
            max_steps_per_turn: limit(5),
            max_retries_per_step: limit(2),
            plan: true,
            ..CommandLine::default()
        };
        assert_eq!(parse(&args).unwrap(), expected);
    }

    #[test]
    fn wrong_command_line_is_refused_with_a_remedy() {
        let table: &[(&str, &[&str], &str)] = &[
            ("unknown flag", &["--no-such-flag"], "--no-such-flag is not a flag"),
            ("unknown letter", &["-yz"], "-z is not a flag"),
            ("prompt without its flag", &["hello"], "`hello` is not a flag"),
            ("two dashes", &["--"], "`--` is not a flag"),
            ("session and continue", &["--session", "a", "--continue"], "--session and --continue exclude"),
            ("continue and session", &["-C", "-r", "a"], "--session and --continue exclude"),
            (
                "two configurations",
                &["--config", "{}", "--config-file", "f"],
                "--config and --config-file exclude",
            ),
            (
                "two configurations, turned",
                &["--config-file", "f", "--config", "{}"],
                "--config-file exclude",
            ),
            ("empty configuration", &["--config", " "], "the configuration is empty"),
            ("print", &["--wire", "--print"], "--print: it cannot be combined with --wire"),
            ("acp", &["--acp", "--wire"], "--acp: it cannot be combined with --wire"),
            ("output format", &["--output-format", "text"], "it belongs to --print"),
            ("version", &["--wire", "-V"], "-V: it prints a text and ends"),
            ("session without an id", &["--session"], "--session: the value is missing. Write --session ID"),
            ("session before a flag", &["--session", "--wire"], "--session: the value is missing"),
            ("session before a joined flag", &["-r", "--model=a"], "-r: the value is missing"),
            ("session with blanks", &["--session", "  "], "--session: the id is missing"),
            ("session that is a path", &["--session", "../../x"], "`../../x` cannot be the id"),
            ("session that is a directory", &["--session", ".."], "`..` cannot be the id"),
            ("value of a switch", &["--yolo=no"], "--yolo: it takes no value, but `no` was given"),
            ("no steps", &["--max-steps-per-turn", "0"], "`0` is not in range"),
            ("fewer than no steps", &["--max-steps-per-turn", "-1"], "`-1` is not in range"),
            ("steps in words", &["--max-steps-per-turn", "many"], "`many` is not in range"),
            ("no retries", &["--max-retries-per-step=0"], "`0` is not in range"),
            ("ralph loops", &["--max-ralph-iterations", "5"], "whimbrel has no ralph loops"),
            ("endless ralph loops", &["--max-ralph-iterations", "-1"], "whimbrel has no ralph loops"),
            ("ralph out of range", &["--max-ralph-iterations", "-2"], "`-2` is not in range"),
            ("okabe", &["--agent", "okabe"], "whimbrel has no agent okabe"),
            ("unknown agent", &["--agent", "x"], "there is no built-in agent `x`"),
        ];
        for (name, args, expected) in table {
            let text = parse(args).unwrap_err();
            assert!(text.contains(expected), "{name}: {text}");
        }
    }

    #[test]
    fn all_names_are_of_one_flag() {
        let mut names: Vec<&str> = FLAGS.iter().flat_map(|flag| flag.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn named_paths_must_exist() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let (dir, file) = (dir.path().to_str().unwrap(), file.to_str().unwrap());
        let check = |args: &[&str]| parse(args).unwrap().check_paths().map_err(|error| error.to_string());
        let good =
            ["-w", dir, "--add-dir", dir, "--skills-dir", dir, "--agent-file", file, "--config-file", file];
        assert_eq!(check(&good), Ok(()));
        assert_eq!(check(&["--mcp-config-file", file]), Ok(()));
        let table: &[(&[&str], &str)] = &[
            (&["--work-dir", "/no/such/dir"], "--work-dir: /no/such/dir does not exist"),
            (&["--work-dir", file], "is not a directory"),
            (&["--add-dir", dir, "--add-dir", "/no/such"], "--add-dir: /no/such does not exist"),
            (&["--skills-dir", "/no/such"], "--skills-dir: /no/such does not exist"),
            (&["--agent-file", "/no/such.yaml"], "--agent-file: /no/such.yaml does not exist"),
            (&["--config-file", dir], "is a directory. Name an existing file"),
            (&["--mcp-config-file", "/no/such"], "--mcp-config-file: /no/such does not exist"),
        ];
        for (args, expected) in table {
            let text = check(args).unwrap_err();
            assert!(text.contains(expected), "{text}");
        }
    }
}
