//! Command line of `whimbrel sandbox`. Pure.

use crate::arg_list::{ArgList, ListFormat};

/// Help page.
pub(super) const HELP_PAGE: &str = "\
whimbrel sandbox: commands confined by the kernel.

  whimbrel sandbox status [--json]
      say which tiers of confinement this machine supports, what a weaker tier
      lacks, and what helps where one does not work. Without any tier the exit
      code is 1.
  whimbrel sandbox run [FLAGS] -- COMMAND [ARGUMENTS]
      run a command confined to this directory. The exit code is that of the
      command, or 125 if it could not be confined.
      --write PATH            a further writable path
      --deny-write PATH       not writable, also inside a writable path
      --deny-read PATH        not readable; a path or a pattern such as
                              '/home/me/**/*.pem'
      --allow-read PATH       readable inside a path of --deny-read
      --allow-host HOST       reachable: HOST, *.HOST, HOST:PORT or an address
      --deny-host HOST        never reachable, also if --allow-host names it
      --local-sockets         open local (unix) sockets of the machine
      --nested-namespaces     let the command make namespaces, as browsers and
                              container tools do
      --tier TIER             namespaces, bwrap or machine-proc instead of the
                              best one
";

/// A parsed subcommand.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SandboxCommand {
    Help,
    Status(ListFormat),
    Run(Box<RunArguments>),
}

/// What `whimbrel sandbox run` is told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RunArguments {
    pub(super) write: Vec<String>,
    pub(super) deny_write: Vec<String>,
    pub(super) deny_read: Vec<String>,
    pub(super) allow_read: Vec<String>,
    pub(super) allow_hosts: Vec<String>,
    pub(super) deny_hosts: Vec<String>,
    pub(super) local_sockets: bool,
    pub(super) nested_namespaces: bool,
    pub(super) tier: Option<String>,
    /// The program and its arguments; never empty.
    pub(super) command: Vec<String>,
}

/// Flags of `run` that take a value.
const VALUE_FLAGS: [&str; 7] =
    ["--write", "--deny-write", "--deny-read", "--allow-read", "--allow-host", "--deny-host", "--tier"];
const SWITCHES: [&str; 2] = ["--local-sockets", "--nested-namespaces"];

/// Reads the arguments after `whimbrel sandbox`.
pub(super) fn parse(argv: &[String]) -> Result<SandboxCommand, String> {
    let Some((verb, rest)) = argv.split_first() else { return Ok(SandboxCommand::Help) };
    match verb.as_str() {
        "help" | "-h" | "--help" => Ok(SandboxCommand::Help),
        "status" => match rest {
            [] => Ok(SandboxCommand::Status(ListFormat::Text)),
            [flag] if flag == "--json" => Ok(SandboxCommand::Status(ListFormat::Json)),
            [other, ..] => {
                Err(format!("{other:?} is not expected here. Usage: whimbrel sandbox status [--json]."))
            }
        },
        "run" => parse_run(rest).map(|arguments| SandboxCommand::Run(Box::new(arguments))),
        other => Err(format!("whimbrel sandbox {other}: unknown command. See whimbrel sandbox --help.")),
    }
}

fn parse_run(argv: &[String]) -> Result<RunArguments, String> {
    let end = argv.iter().position(|argument| argument == "--");
    let (flags, command) = end.map_or((argv, &[][..]), |end| (&argv[..end], &argv[end + 1..]));
    let mut list = ArgList::default();
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        let (name, value) = flag
            .split_once('=')
            .map_or((flag.as_str(), None), |(name, value)| (name, Some(value.to_owned())));
        if VALUE_FLAGS.contains(&name) {
            let value =
                value.or_else(|| flags.next().cloned()).ok_or_else(|| format!("{name} needs a value."))?;
            list.push_flag(name, Some(value));
        } else if SWITCHES.contains(&flag.as_str()) {
            list.push_flag(name, None);
        } else {
            return Err(format!(
                "{flag:?} is not expected here. Put the command after --, see whimbrel sandbox --help."
            ));
        }
    }
    if command.is_empty() {
        return Err(
            "The command is missing. Usage: whimbrel sandbox run [FLAGS] -- COMMAND [ARGUMENTS].".into()
        );
    }
    Ok(RunArguments {
        write: list.take_values("--write"),
        deny_write: list.take_values("--deny-write"),
        deny_read: list.take_values("--deny-read"),
        allow_read: list.take_values("--allow-read"),
        allow_hosts: list.take_values("--allow-host"),
        deny_hosts: list.take_values("--deny-host"),
        local_sockets: list.take_switch("--local-sockets"),
        nested_namespaces: list.take_switch("--nested-namespaces"),
        tier: list.take_last_value("--tier"),
        command: command.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(text: &str) -> Result<SandboxCommand, String> {
        parse(&text.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn flags_end_at_the_dashes_before_the_command() {
        let parsed =
            parse_words("run --write /a --write=/b --allow-host x.test --local-sockets -- ls --tier x")
                .unwrap();
        let expected = RunArguments {
            write: vec!["/a".into(), "/b".into()],
            allow_hosts: vec!["x.test".into()],
            local_sockets: true,
            command: ["ls", "--tier", "x"].map(String::from).to_vec(),
            ..RunArguments::default()
        };
        assert_eq!(parsed, SandboxCommand::Run(Box::new(expected)));
    }

    #[test]
    fn wrong_arguments_are_errors_with_a_usage() {
        let rows = [
            ("run ls", "Put the command after --"),
            ("run --write", "--write needs a value"),
            ("run --write /a", "The command is missing"),
            ("status x", "Usage: whimbrel sandbox status"),
            ("start", "unknown command"),
        ];
        for (text, expected) in rows {
            let error = parse_words(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
