//! Git settings that make git run a program, in one table. It serves the analysis of `git -c`, the check of a repository
//! before a read-only command, and the overrides with which the engine itself calls git in an untrusted repository.

use GitOverride::{Disable, ResetList, Value};
use ReadOnlyUse::{Always, IfRemoteHelper, IfShellCommand, Never, UnlessSwitch};
use SettingValue::{Command, Other};

/// When a setting makes git run a program, or read further settings or objects, in a read-only command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadOnlyUse {
    Never,
    Always,
    /// Unless its value only switches a built-in feature on or off.
    UnlessSwitch,
    /// If its value names a remote helper (`helper::address`).
    IfRemoteHelper,
    /// If its value begins with `!`.
    IfShellCommand,
}

/// How to disable a setting of an untrusted repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitOverride {
    /// With this value.
    Value(&'static str),
    /// It adds to a list: reset the list.
    ResetList,
    /// Another key of the same section disables it.
    Disable(&'static str),
}

/// What a setting holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettingValue {
    Command,
    /// A path, an address, a switch or the like.
    Other,
}

struct Row {
    /// Lower case.
    section: &'static str,
    /// Lower case; `*` for all names of the section.
    name: &'static str,
    value: SettingValue,
    read_only_use: ReadOnlyUse,
    disabled_by: Option<GitOverride>,
}

const fn row(
    section: &'static str,
    name: &'static str,
    value: SettingValue,
    read_only_use: ReadOnlyUse,
    disabled_by: Option<GitOverride>,
) -> Row {
    Row { section, name, value, read_only_use, disabled_by }
}

const TABLE: &[Row] = &[
    row("core", "alternaterefscommand", Command, Always, Some(Value(""))),
    row("core", "askpass", Command, Always, Some(Value(""))),
    row("core", "editor", Command, Never, None),
    row("core", "fsmonitor", Command, UnlessSwitch, None),
    row("core", "gitproxy", Command, Always, Some(Value(""))),
    row("core", "pager", Command, Always, None),
    row("core", "sshcommand", Command, Always, Some(Value("ssh"))),
    row("credential", "helper", Command, Never, Some(ResetList)),
    row("diff", "command", Command, Always, None),
    row("diff", "external", Command, Always, None),
    row("diff", "textconv", Command, Always, None),
    row("extensions", "partialclone", Other, Always, None),
    row("filter", "clean", Command, Always, Some(Value(""))),
    row("filter", "process", Command, Always, Some(Value(""))),
    row("filter", "required", Other, Never, Some(Value("false"))),
    row("filter", "smudge", Command, Always, Some(Value(""))),
    row("gpg", "defaultkeycommand", Other, Always, None),
    row("gpg", "program", Command, Always, None),
    row("hook", "command", Command, Always, Some(Disable("enabled"))),
    row("hook", "*", Other, Never, Some(Disable("enabled"))),
    row("include", "path", Other, Always, None),
    row("includeif", "path", Other, Always, None),
    row("interactive", "difffilter", Command, Never, None),
    row("lfs", "args", Other, Never, Some(Value(""))),
    row("lfs", "clean", Other, Never, Some(Value(""))),
    row("lfs", "path", Other, Never, Some(Value(""))),
    row("lfs", "smudge", Other, Never, Some(Value(""))),
    row("lfs", "standalonetransferagent", Other, Never, Some(Value(""))),
    row("merge", "driver", Command, Always, None),
    row("pager", "*", Other, UnlessSwitch, None),
    row("remote", "partialclonefilter", Other, Always, None),
    row("remote", "promisor", Other, Always, None),
    row("remote", "pushurl", Other, IfRemoteHelper, None),
    row("remote", "receivepack", Command, Never, None),
    row("remote", "uploadpack", Command, Always, None),
    row("remote", "url", Other, IfRemoteHelper, None),
    row("remote", "vcs", Other, Always, None),
    row("submodule", "update", Command, IfShellCommand, None),
    row("trailer", "cmd", Command, Always, None),
    row("trailer", "command", Command, Always, None),
    row("uploadpack", "packobjectshook", Command, Never, None),
    row("web", "browser", Command, Never, None),
];

/// Values that only switch a feature on or off.
const SWITCH_VALUES: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "1", "0", ""];

fn find_row(section: &str, name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.section == section && (row.name == name || row.name == "*"))
}

/// Returns whether the value of a setting with this last part of its name may be a command, in whichever section.
pub(crate) fn is_command_setting(name: &str) -> bool {
    TABLE.iter().any(|row| row.value == Command && row.name == name)
}

/// Returns whether git runs a program, or reads further settings or objects, because of this setting in a read-only
/// command. Section and name are lower case, without the subsection.
pub fn runs_program_when_reading(section: &str, name: &str, value: &str) -> bool {
    match find_row(section, name).map_or(Never, |row| row.read_only_use) {
        Never => false,
        Always => true,
        UnlessSwitch => !SWITCH_VALUES.contains(&value.to_ascii_lowercase().as_str()),
        IfRemoteHelper => value.contains("::"),
        IfShellCommand => value.starts_with('!'),
    }
}

/// Finds the override for a setting that makes git, or a checkout filter, run a program; `None` for all others.
pub fn find_override(section: &str, name: &str) -> Option<GitOverride> {
    find_row(section, name).and_then(|row| row.disabled_by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_all_names_come_last() {
        let keys: Vec<_> = TABLE.iter().map(|row| (row.section, row.name == "*", row.name)).collect();
        assert!(keys.is_sorted(), "{keys:?}");
    }

    #[test]
    fn use_in_read_only_commands_depends_on_the_value() {
        for (section, name, value, expected) in [
            ("core", "fsmonitor", "true", false),
            ("core", "fsmonitor", "watch.sh", true),
            ("core", "editor", "vi", false),
            ("pager", "log", "less", true),
            ("pager", "log", "No", false),
            ("remote", "url", "https://x.example", false),
            ("remote", "url", "ext::sh -c x", true),
            ("submodule", "update", "!x", true),
            ("submodule", "update", "merge", false),
            ("user", "name", "x", false),
        ] {
            assert_eq!(runs_program_when_reading(section, name, value), expected, "{section}.{name}={value}");
        }
    }

    #[test]
    fn hooks_are_disabled_and_lists_reset() {
        assert_eq!(find_override("hook", "command"), Some(Disable("enabled")));
        assert_eq!(find_override("hook", "event"), Some(Disable("enabled")));
        assert_eq!(find_override("credential", "helper"), Some(ResetList));
        assert_eq!(find_override("core", "bare"), None);
        assert!(is_command_setting("difffilter") && !is_command_setting("required"));
    }
}
