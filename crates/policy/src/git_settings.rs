//! Git settings that make git run a program, in one table. It serves the analysis of `git -c`, the check of a repository
//! before a read-only command, and the overrides with which the engine itself calls git in an untrusted repository.

use GitOverride::{Disable, ResetList, Value};
use ReadOnlyUse::{Always, IfRemoteHelper, IfShellCommand, Never, UnlessSwitch};

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

/// A row: section, name (lower case; `*` for all), whether its value is a command, its use in read-only commands, and its
/// override.
struct Row(&'static str, &'static str, bool, ReadOnlyUse, Option<GitOverride>);

const TABLE: &[Row] = &[
    Row("core", "alternaterefscommand", true, Always, Some(Value(""))),
    Row("core", "askpass", true, Always, Some(Value(""))),
    Row("core", "editor", true, Never, None),
    Row("core", "fsmonitor", true, UnlessSwitch, None),
    Row("core", "gitproxy", true, Always, Some(Value(""))),
    Row("core", "pager", true, Always, None),
    Row("core", "sshcommand", true, Always, Some(Value("ssh"))),
    Row("credential", "helper", true, Never, Some(ResetList)),
    Row("diff", "command", true, Always, None),
    Row("diff", "external", true, Always, None),
    Row("diff", "textconv", true, Always, None),
    Row("extensions", "partialclone", false, Always, None),
    Row("filter", "clean", true, Always, Some(Value(""))),
    Row("filter", "process", true, Always, Some(Value(""))),
    Row("filter", "required", false, Never, Some(Value("false"))),
    Row("filter", "smudge", true, Always, Some(Value(""))),
    Row("gpg", "defaultkeycommand", false, Always, None),
    Row("gpg", "program", true, Always, None),
    Row("hook", "command", true, Always, Some(Disable("enabled"))),
    Row("hook", "*", false, Never, Some(Disable("enabled"))),
    Row("include", "path", false, Always, None),
    Row("includeif", "path", false, Always, None),
    Row("interactive", "difffilter", true, Never, None),
    Row("lfs", "args", false, Never, Some(Value(""))),
    Row("lfs", "clean", false, Never, Some(Value(""))),
    Row("lfs", "path", false, Never, Some(Value(""))),
    Row("lfs", "smudge", false, Never, Some(Value(""))),
    Row("lfs", "standalonetransferagent", false, Never, Some(Value(""))),
    Row("merge", "driver", true, Always, None),
    Row("pager", "*", false, UnlessSwitch, None),
    Row("remote", "partialclonefilter", false, Always, None),
    Row("remote", "promisor", false, Always, None),
    Row("remote", "pushurl", false, IfRemoteHelper, None),
    Row("remote", "receivepack", true, Never, None),
    Row("remote", "uploadpack", true, Always, None),
    Row("remote", "url", false, IfRemoteHelper, None),
    Row("remote", "vcs", false, Always, None),
    Row("submodule", "update", true, IfShellCommand, None),
    Row("trailer", "cmd", true, Always, None),
    Row("trailer", "command", true, Always, None),
    Row("uploadpack", "packobjectshook", true, Never, None),
    Row("web", "browser", true, Never, None),
];

/// Values that only switch a feature on or off.
const SWITCH_VALUES: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "1", "0", ""];

fn find_row(section: &str, name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.0 == section && (row.1 == name || row.1 == "*"))
}

/// Returns whether the value of a setting with this last part of its name may be a command, in whichever section.
pub(crate) fn is_command_setting(name: &str) -> bool {
    TABLE.iter().any(|row| row.2 && row.1 == name)
}

/// Returns whether git runs a program, or reads further settings or objects, because of this setting in a read-only
/// command. Section and name are lower case, without the subsection.
pub fn runs_program_when_reading(section: &str, name: &str, value: &str) -> bool {
    match find_row(section, name).map_or(Never, |row| row.3) {
        Never => false,
        Always => true,
        UnlessSwitch => !SWITCH_VALUES.contains(&value.to_ascii_lowercase().as_str()),
        IfRemoteHelper => value.contains("::"),
        IfShellCommand => value.starts_with('!'),
    }
}

/// The override for a setting that makes git, or a checkout filter, run a program; `None` for all others.
pub fn override_for(section: &str, name: &str) -> Option<GitOverride> {
    find_row(section, name).and_then(|row| row.4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_all_names_come_last() {
        let keys: Vec<_> = TABLE.iter().map(|row| (row.0, row.1 == "*", row.1)).collect();
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
        assert_eq!(override_for("hook", "command"), Some(Disable("enabled")));
        assert_eq!(override_for("hook", "event"), Some(Disable("enabled")));
        assert_eq!(override_for("credential", "helper"), Some(ResetList));
        assert_eq!(override_for("core", "bare"), None);
        assert!(is_command_setting("difffilter") && !is_command_setting("required"));
    }
}
