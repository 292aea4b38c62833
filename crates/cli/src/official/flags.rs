//! Flags of the official program.

use super::Support;

/// A flag of the official program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfficialFlag {
    /// All spellings, with dashes.
    pub(crate) spellings: &'static [&'static str],
    pub(crate) value: OfficialValue,
    pub(crate) support: Support,
}

/// Value of an official flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfficialValue {
    None,
    Optional,
    Required,
}

/// Finds the official flag that an argument names.
pub(crate) fn find_official_flag(spelled: &str) -> Option<&'static OfficialFlag> {
    OFFICIAL_FLAGS.iter().find(|flag| flag.spellings.contains(&spelled))
}

const fn supported(spellings: &'static [&'static str], value: OfficialValue) -> OfficialFlag {
    OfficialFlag { spellings, value, support: Support::Supported }
}

const fn partly(
    spellings: &'static [&'static str],
    value: OfficialValue,
    except: &'static str,
) -> OfficialFlag {
    OfficialFlag { spellings, value, support: Support::Partly(except) }
}

const fn no_effect(
    spellings: &'static [&'static str],
    value: OfficialValue,
    reason: &'static str,
) -> OfficialFlag {
    OfficialFlag { spellings, value, support: Support::NoEffect(reason) }
}

const fn refused(
    spellings: &'static [&'static str],
    value: OfficialValue,
    remedy: &'static str,
) -> OfficialFlag {
    OfficialFlag { spellings, value, support: Support::Refused(remedy) }
}

use OfficialValue::{None as Switch, Optional, Required};

/// Remedy for flags that move a session to a hosted service.
const NO_CLOUD: &str =
    "Sessions run on this machine only. Start whimbrel on the machine that should do the work.";

/// Remedy for flags that control a session from elsewhere.
const NO_REMOTE_CONTROL: &str =
    "A session is controlled by the program that starts it. Use an SDK, or --input-format stream-json.";

/// Remedy for message channels.
const NO_CHANNELS: &str = "There are no message channels. Send prompts with --input-format stream-json.";

/// The official flags, by name.
pub(crate) const OFFICIAL_FLAGS: &[OfficialFlag] = &[
    supported(&["--add-dir"], Required),
    refused(&["--advisor"], Required, "There is no advisor model. Remove the flag."),
    supported(&["--agent"], Required),
    supported(&["--agents"], Required),
    supported(&["--allow-dangerously-skip-permissions"], Switch),
    supported(&["--allowedTools", "--allowed-tools"], Required),
    supported(&["--append-subagent-system-prompt"], Required),
    supported(&["--append-subagent-system-prompt-file"], Required),
    supported(&["--append-system-prompt"], Required),
    supported(&["--append-system-prompt-file"], Required),
    supported(&["--autocompact"], Required),
    supported(&["--await-initialize"], Switch),
    supported(&["--ax-screen-reader"], Switch),
    partly(&["--bare"], Switch, "skills in files are not found either"),
    supported(&["--betas"], Required),
    refused(
        &["--bg", "--background"],
        Switch,
        "Sessions run in the foreground. Use nohup, or a service manager.",
    ),
    refused(&["--brief"], Switch, "There is no tool for messages to the user. Remove the flag."),
    refused(&["--channels"], Required, NO_CHANNELS),
    refused(
        &["--chrome"],
        Switch,
        "There is no browser integration. Add a browser as an MCP server with --mcp-config.",
    ),
    refused(&["--cloud", "--remote"], Optional, NO_CLOUD),
    supported(&["-c", "--continue"], Switch),
    refused(&["--dangerously-load-development-channels"], Required, NO_CHANNELS),
    supported(&["--dangerously-skip-permissions"], Switch),
    supported(&["-d", "--debug"], Optional),
    supported(&["--debug-file"], Required),
    supported(&["-d2e", "--debug-to-stderr"], Switch),
    refused(&["--desktop"], Switch, "There is no desktop program. Remove the flag."),
    supported(&["--disable-slash-commands"], Switch),
    supported(&["--disallowedTools", "--disallowed-tools"], Required),
    supported(&["--effort"], Required),
    no_effect(
        &["--enable-auth-status"],
        Switch,
        "logins of the program do not exist, so there is no status to report",
    ),
    refused(&["--environment"], Required, NO_CLOUD),
    supported(&["--exclude-dynamic-system-prompt-sections"], Switch),
    refused(&["--exec"], Required, "Sessions run in the foreground. Start the command itself."),
    supported(&["--fallback-model"], Required),
    no_effect(&["--fast"], Switch, "there is no fast mode; the speed is that of the model"),
    refused(
        &["--file"],
        Required,
        "Files are not downloaded at the start. Download them, and name their paths in the prompt.",
    ),
    supported(&["--fork-session"], Switch),
    supported(&["--forward-subagent-text"], Switch),
    refused(
        &["--from-pr"],
        Optional,
        "Sessions are not linked with pull requests. Find the session with `whimbrel sessions search`, and use \
            --resume.",
    ),
    supported(&["-h", "--help"], Switch),
    no_effect(&["--ide"], Switch, "there is no connection to an editor"),
    supported(&["--include-hook-events"], Switch),
    supported(&["--include-partial-messages"], Switch),
    supported(&["--init"], Switch),
    supported(&["--init-only"], Switch),
    supported(&["--input-format"], Required),
    supported(&["--json-schema"], Required),
    supported(&["--maintenance"], Switch),
    supported(&["--managed-settings"], Required),
    refused(
        &["--managed-settings-in-initialize"],
        Switch,
        "Managed settings of the host are read at the start. Pass them with --managed-settings.",
    ),
    supported(&["--max-budget-usd"], Required),
    supported(&["--max-thinking-tokens"], Required),
    supported(&["--max-turns"], Required),
    supported(&["--mcp-config"], Required),
    supported(&["--mcp-debug"], Switch),
    supported(&["--model"], Required),
    supported(&["-n", "--name"], Required),
    no_effect(&["--no-chrome"], Switch, "there is no browser integration"),
    supported(&["--no-session-persistence"], Switch),
    supported(&["--output-format"], Required),
    partly(&["--permission-mode"], Required, "`auto` works as `default`"),
    supported(&["--permission-prompt-tool"], Required),
    supported(&["--permission-prompts"], Required),
    supported(&["--plan-mode-instructions"], Required),
    supported(&["--plugin-dir"], Required),
    supported(&["--plugin-dir-no-mcp"], Required),
    refused(
        &["--plugin-url"],
        Required,
        "Plugins are not downloaded at the start. Download the plugin, and use --plugin-dir.",
    ),
    supported(&["-p", "--print"], Switch),
    supported(&["--project-config-root"], Required),
    no_effect(&["--prompt-suggestions"], Optional, "prompts are not suggested"),
    refused(&["--ref"], Required, NO_CLOUD),
    refused(&["--remote-control", "--rc"], Optional, NO_REMOTE_CONTROL),
    refused(&["--remote-control-session-name-prefix"], Required, NO_REMOTE_CONTROL),
    supported(&["--replay-user-messages"], Switch),
    refused(
        &["--restricted"],
        Switch,
        "Restrict the session with --tools, --disallowedTools and --permission-mode dontAsk.",
    ),
    supported(&["-r", "--resume"], Optional),
    supported(&["--resume-drops-turn"], Required),
    supported(&["--resume-session-at"], Required),
    supported(&["--rewind-files"], Required),
    refused(&["--safe-mode"], Switch, "Use --bare, which reads no files that no flag names."),
    refused(&["--sdk-url"], Required, "Frames are exchanged over stdin and stdout only."),
    supported(&["--session-id"], Required),
    supported(&["--session-mirror"], Switch),
    supported(&["--setting-sources"], Required),
    supported(&["--settings"], Required),
    supported(&["--strict-mcp-config"], Switch),
    supported(&["--system-prompt"], Required),
    supported(&["--system-prompt-file"], Required),
    partly(
        &["--system-prompt-snapshot"],
        Required,
        "`on` is refused, because the system prompt is built anew at every start",
    ),
    supported(&["--task-budget"], Required),
    no_effect(&["--teammate-mode"], Required, "teammates always run in the process of the session"),
    refused(&["--teleport"], Optional, NO_CLOUD),
    supported(&["--thinking"], Required),
    supported(&["--thinking-display"], Required),
    refused(&["--tmux"], Optional, "No terminal is opened. Start whimbrel in tmux yourself."),
    supported(&["--tools"], Required),
    supported(&["--verbose"], Switch),
    supported(&["-v", "--version"], Switch),
    no_effect(&["--workload"], Required, "requests carry no tag for billing"),
    supported(&["-w", "--worktree"], Optional),
];
